/**
 * Talks to a thread of an agent that runs anywhere in the cluster.
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent, Approval } from "effect-deepagents"
 * import { AgentClient, AgentEntity } from "effect-deepagents/durable"
 *
 * const support = AgentEntity.make({ name: "support", agent: Agent.make({ name: "support", prompt: "You help." }) })
 *
 * const program = Effect.gen(function* () {
 *   const ada = yield* AgentClient.of(support, "ada")
 *   yield* Effect.forkScoped(Stream.runForEach(ada.events(), (event) => Effect.log(event._tag)))
 *   const outcome = yield* ada.send("Refund order 42", { id: "mail-2" })
 *   if (outcome.stopReason !== "suspended") return outcome
 *   return yield* ada.decide(outcome.pending.map((request) => Approval.approve(request)))
 * })
 * ```
 */
import * as Sharding from "effect/cluster/Sharding"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { AgentError } from "../core/AgentError.ts"
import type { Decision } from "../core/Approval.ts"
import { type HumanMessage, makeId, type Message } from "../core/Message.ts"
import type { ModelError } from "../core/ModelError.ts"
import { canonical } from "../core/schema/jsonTree.ts"
import type { SessionError } from "../core/SessionError.ts"
import { sha256 } from "../support/store/hash.ts"
import type { AgentEntity } from "./AgentEntity.ts"
import type { Conflict } from "./Conflict.ts"
import { type Input, toMessage, toSteering } from "./internal/inputs.ts"
import { checkMessage, checkThreadId } from "./internal/limits.ts"
import { type ClusterFailure, Decide, Send } from "./internal/protocol.ts"
import { retryCut, uncutStream } from "./internal/retries.ts"
import type { NotRunning } from "./NotRunning.ts"
import type { Outcome } from "./Outcome.ts"
import type { ThreadEvent } from "./ThreadEvent.ts"

export type { ClusterFailure }

/** The failures of an input or a decision. */
type Failure<E> = E | ModelError | AgentError | Conflict | SessionError | ClusterFailure

interface NewInput {
  /**
   * Identifies the input: repeating it has no effect, and gives the first outcome. Other content with the same id fails
   * with `Conflict`. Random by default. A zero character or half of a surrogate pair fails with `InvalidId`.
   */
  readonly id?: string | undefined
}

/** A thread. A message may have 15 MiB as JSON (`TooLarge`): put a larger file where the agent can read it. */
export interface AgentClient<out Output, out E> {
  readonly threadId: string
  /** Sends an input, and waits for its outcome. Inputs queue. The run continues if the caller stops waiting. */
  readonly send: (input: Input, options?: NewInput) => Effect.Effect<Outcome<Output | undefined>, E>
  /** Sends an input without waiting for its outcome. `at` delivers it later. */
  readonly post: (
    input: Input,
    options?: NewInput & {
      /** The time of the delivery. Default: now. */
      readonly at?: DateTime.DateTime | undefined
    }
  ) => Effect.Effect<void, SessionError | ClusterFailure>
  /** Decides pending requests, and waits for the outcome. Repeating a decision has no effect. */
  readonly decide: (
    decisions: ReadonlyArray<Decision>,
    options?: NewInput
  ) => Effect.Effect<Outcome<Output | undefined>, E>
  /** Steers the current run. The message is lost if the runner dies before its delivery. */
  readonly steer: (input: Input) => Effect.Effect<void, NotRunning | SessionError | ClusterFailure>
  /**
   * Ends the current run with its partial result (`stopReason: "interrupted"`). `false`: no run is at work. Queued inputs
   * continue.
   */
  readonly interrupt: Effect.Effect<boolean, ClusterFailure>
  /** Reads the stored conversation. */
  readonly history: Effect.Effect<ReadonlyArray<Message>, SessionError | ClusterFailure>
  /**
   * Streams the entries behind the step `after` (default 0), and then new events, also when the thread moves to another
   * runner. Each `Stored` entry comes once, in order.
   */
  readonly events: (options?: {
    /** The step behind which the stream begins. Default: 0. */
    readonly after?: number | undefined
  }) => Stream.Stream<ThreadEvent, SessionError | ClusterFailure>
}

const pageSize = 1_000

/** Quotes an id for errors, and shortens it. */
const quoteId = (id: string): string => JSON.stringify(id.length > 80 ? `${id.slice(0, 80)}…` : id)

/** Hashes the content of an input. */
const digestOf = (content: HumanMessage["content"]): Effect.Effect<string> => sha256(JSON.stringify(content))

/**
 * Gives a thread of an agent. Fails with `InvalidId` for an empty id, more than 255 characters, control characters, or half
 * of a surrogate pair.
 */
export const of = Effect.fnUntraced(function* <O, E, R>(
  { entity, name }: AgentEntity<O, E, R>,
  threadId: string
): Effect.fn.Return<AgentClient<Exclude<O, undefined>, Failure<E>>, SessionError, Sharding.Sharding> {
  yield* checkThreadId(threadId)
  const thread = (yield* entity.client)(threadId)
  const { isShutdown } = yield* Sharding.Sharding
  const door = (operation: string) =>
    Effect.withSpan(`AgentClient.${operation}`, { attributes: { "agent.name": name, "thread.id": threadId } })
  const acrossRunners = <A, F>(effect: Effect.Effect<A, F>): Effect.Effect<A, F> => retryCut(effect, isShutdown)
  // Inputs keep their order, even if a later digest is ready first.
  const inOrder = (yield* Semaphore.make(1)).withPermits(1)
  const toSend = Effect.fnUntraced(function* (operation: string, input: Input, id: string = makeId(), at?: number) {
    const message = toMessage(input, id)
    yield* checkMessage(operation, threadId, `the input ${quoteId(id)}`, id, { id, message })
    const digest = yield* digestOf(message.content)
    return new Send({ inputId: id, digest, message, ...(at === undefined ? {} : { at }) })
  })
  const toDecide = Effect.fnUntraced(function* (decisions: ReadonlyArray<Decision>, key: string | undefined) {
    const id = key ?? canonical(decisions.map((decision) => ({ ...decision })))
    yield* checkMessage("decide", threadId, "the decision", id, { id, decisions })
    return new Decide({ id, decisions })
  })

  const history = Effect.gen(function* () {
    const pages: Array<ReadonlyArray<Message>> = []
    let from: string | null = null
    do {
      const page: { readonly messages: ReadonlyArray<Message>; readonly next: string | null } = yield* acrossRunners(
        thread.History({ from, limit: pageSize })
      )
      pages.push(page.messages)
      from = page.next
    } while (from !== null)
    return pages.toReversed().flat()
  })

  return {
    threadId,
    send: (input, options) =>
      Effect.flatMap(inOrder(toSend("send", input, options?.id)), (send) => acrossRunners(thread.Send(send))).pipe(
        door("send")
      ),
    post: (input, options) => {
      const at = options?.at === undefined ? undefined : DateTime.toEpochMillis(options.at)
      return Effect.flatMap(inOrder(toSend("post", input, options?.id, at)), (send) =>
        acrossRunners(thread.Send(send, { discard: true }))
      ).pipe(door("post"))
    },
    decide: (decisions, options) =>
      Effect.flatMap(toDecide(decisions, options?.id), (decide) => acrossRunners(thread.Decide(decide))).pipe(
        door("decide")
      ),
    steer: (input) =>
      Effect.suspend(() => {
        const message = toSteering(input)
        return Effect.andThen(
          checkMessage("steer", threadId, "the steering message", message.id, { message }),
          acrossRunners(thread.Steer({ message }))
        )
      }).pipe(door("steer")),
    interrupt: Effect.suspend(() => acrossRunners(thread.Interrupt())).pipe(door("interrupt")),
    history: door("history")(history),
    events: (options) =>
      Stream.suspend(() => {
        let last = options?.after ?? 0
        const events = uncutStream(
          Stream.suspend(() => thread.Events({ after: last })),
          isShutdown
        )
        // A new runner starts again at `after` if the client did not notice the move.
        return Stream.filter(events, (event) => {
          if (event._tag === "Live") return true
          const isNew = event.step > last
          last = Math.max(last, event.step)
          return isNew
        })
      })
  }
})
