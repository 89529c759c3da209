/**
 * A thread of an agent that runs anywhere in the cluster, as one talks to it.
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
import * as Cause from "effect/Cause"
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
import type { Answer } from "./internal/codecs.ts"
import { type Input, toMessage, toSteering } from "./internal/inputs.ts"
import { checkMessage, checkThreadId } from "./internal/limits.ts"
import { type ClusterFailure, Decide, Send } from "./internal/protocol.ts"
import { uncut } from "./internal/retries.ts"
import type { NotRunning } from "./NotRunning.ts"
import type { Outcome } from "./Outcome.ts"
import type { ThreadEvent } from "./ThreadEvent.ts"

export type { ClusterFailure }

/** The failures of an input or a decision. */
export type Failure<E> = E | ModelError | AgentError | Conflict | SessionError | ClusterFailure

/**
 * `id` makes an input one: it is not taken again, and gets the outcome that it had; other words with the id of another
 * input fail with `Conflict`. Random by default. Any text without a zero character or half of a surrogate pair
 * (`InvalidId`).
 */
export interface Identified {
  readonly id?: string | undefined
}

/**
 * A thread.
 *
 * - `send` gives an input to the agent and waits for what comes of it; `post` does not wait, and can be for a later
 *   time (`at`). Inputs queue. Both give it once, if it has an `id`. Whoever waits may leave: the run continues.
 * - `decide` answers what the thread waits for, and waits for what comes of that. The same decisions are taken once.
 * - `steer` gives the current run a steering message; it is lost if the runner dies before it is delivered.
 * - `interrupt` ends the run that is at work, or about to begin, with what it has (`stopReason: "interrupted"`).
 *   `false` if there was none: an input that waits behind another one, or that no runner has taken yet, is not stopped
 *   by it.
 * - A message may have 15 MiB as JSON (`TooLarge`): put a larger file where the agent can read it, and send its path.
 * - `history` is the conversation as it is stored.
 * - `events` are what was stored behind the step `after` (0: from the beginning), then what comes, from whichever
 *   runner has the thread: `Stored` ones whole, in order and once.
 */
export interface AgentClient<out Output, out E> {
  readonly threadId: string
  readonly send: (input: Input, options?: Identified) => Effect.Effect<Outcome<Output | undefined>, E>
  readonly post: (
    input: Input,
    options?: Identified & { readonly at?: DateTime.DateTime | undefined }
  ) => Effect.Effect<void, SessionError | ClusterFailure>
  readonly decide: (
    decisions: ReadonlyArray<Decision>,
    options?: Identified
  ) => Effect.Effect<Outcome<Output | undefined>, E>
  readonly steer: (input: Input) => Effect.Effect<void, NotRunning | SessionError | ClusterFailure>
  readonly interrupt: Effect.Effect<boolean, ClusterFailure>
  readonly history: Effect.Effect<ReadonlyArray<Message>, SessionError | ClusterFailure>
  readonly events: (options?: {
    readonly after?: number | undefined
  }) => Stream.Stream<ThreadEvent, SessionError | ClusterFailure>
}

const pageSize = 1_000

const pause = "100 millis"

/** A thread that moves to another runner ends its events where it was: they are asked for again there. */
const uncutStream = <A, E, R>(stream: Stream.Stream<A, E, R>, isOver: Effect.Effect<boolean>): Stream.Stream<A, E, R> =>
  Stream.catchCauseIf(stream, Cause.hasInterruptsOnly, (cause) =>
    Stream.unwrap(
      Effect.flatMap(isOver, (over) =>
        over ? Effect.succeed(Stream.failCause(cause)) : Effect.as(Effect.sleep(pause), uncutStream(stream, isOver))
      )
    )
  )

/** An id as errors show it: of a long one, the beginning. */
const shown = (id: string): string => JSON.stringify(id.length > 80 ? `${id.slice(0, 80)}…` : id)

/** The hash of what an input says. */
const digestOf = (content: HumanMessage["content"]): Effect.Effect<string> => sha256(JSON.stringify(content))

/**
 * A thread of an agent. Fails with `InvalidId` for an id that is empty, has more than 255 characters, control
 * characters or half of a surrogate pair.
 */
export const of = Effect.fnUntraced(function* <O, E, R>(
  { entity, name }: AgentEntity<O, E, R>,
  threadId: string
): Effect.fn.Return<AgentClient<Answer<O>, Failure<E>>, SessionError, Sharding.Sharding> {
  yield* checkThreadId(threadId)
  const thread = (yield* entity.client)(threadId)
  const { isShutdown } = yield* Sharding.Sharding
  const door = (operation: string) =>
    Effect.withSpan(`AgentClient.${operation}`, { attributes: { "agent.name": name, "thread.id": threadId } })
  const wherever = <A, F>(effect: Effect.Effect<A, F>): Effect.Effect<A, F> => uncut(effect, isShutdown)
  // Inputs are sent in the order in which they were given, whichever digest is there first.
  const inOrder = (yield* Semaphore.make(1)).withPermits(1)
  const toSend = Effect.fnUntraced(function* (operation: string, input: Input, id: string = makeId(), at?: number) {
    const message = toMessage(input, id)
    yield* checkMessage(operation, threadId, `the input ${shown(id)}`, id, { id, message })
    const digest = yield* digestOf(message.content)
    return new Send({ inputId: id, digest, message, ...(at === undefined ? {} : { at }) })
  })
  const toDecide = Effect.fnUntraced(function* (decisions: ReadonlyArray<Decision>, given: string | undefined) {
    const id = given ?? canonical(decisions.map((decision) => ({ ...decision })))
    yield* checkMessage("decide", threadId, "the decision", id, { id, decisions })
    return new Decide({ id, decisions })
  })

  const history = Effect.gen(function* () {
    const pages: Array<ReadonlyArray<Message>> = []
    let from: string | null = null
    do {
      const page: { readonly messages: ReadonlyArray<Message>; readonly next: string | null } = yield* wherever(
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
      Effect.flatMap(inOrder(toSend("send", input, options?.id)), (send) => wherever(thread.Send(send))).pipe(
        door("send")
      ),
    post: (input, options) => {
      const at = options?.at === undefined ? undefined : DateTime.toEpochMillis(options.at)
      return Effect.flatMap(inOrder(toSend("post", input, options?.id, at)), (send) =>
        wherever(thread.Send(send, { discard: true }))
      ).pipe(door("post"))
    },
    decide: (decisions, options) =>
      Effect.flatMap(toDecide(decisions, options?.id), (decide) => wherever(thread.Decide(decide))).pipe(
        door("decide")
      ),
    steer: (input) =>
      Effect.suspend(() => {
        const message = toSteering(input)
        return Effect.andThen(
          checkMessage("steer", threadId, "the steering message", message.id, { message }),
          wherever(thread.Steer({ message }))
        )
      }).pipe(door("steer")),
    interrupt: Effect.suspend(() => wherever(thread.Interrupt())).pipe(door("interrupt")),
    history: door("history")(history),
    events: (options) =>
      Stream.suspend(() => {
        let last = options?.after ?? 0
        const events = uncutStream(
          Stream.suspend(() => thread.Events({ after: last })),
          isShutdown
        )
        // A runner that takes the thread over without this being noticed begins where the one before it did.
        return Stream.filter(events, (event) => {
          if (event._tag === "Live") return true
          const isNew = event.step > last
          last = Math.max(last, event.step)
          return isNew
        })
      })
  }
})
