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
import type {
  AlreadyProcessingMessage,
  EntityNotAssignedToRunner,
  MailboxFull,
  PersistenceError
} from "effect/cluster/ClusterError"
import type * as Sharding from "effect/cluster/Sharding"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { AgentError } from "../core/AgentError.ts"
import type { Decision } from "../core/Approval.ts"
import { canonical } from "../core/Json.ts"
import { makeId, type Message } from "../core/Message.ts"
import type { ModelError } from "../core/ModelError.ts"
import type { SessionError } from "../core/SessionError.ts"
import type { AgentEntity } from "./AgentEntity.ts"
import { type Input, toMessage, toWord } from "./internal/inputs.ts"
import { Decide, Send } from "./internal/protocol.ts"
import type { Answer } from "./internal/terms.ts"
import type { NotRunning } from "./NotRunning.ts"
import type { Outcome } from "./Outcome.ts"
import type { ThreadEvent } from "./ThreadEvent.ts"

/** The cluster could not take a message, or its storage is not available. */
export type ClusterFailure = MailboxFull | AlreadyProcessingMessage | PersistenceError | EntityNotAssignedToRunner

/** `id` makes an input one: a second one with it is not taken, and gets the outcome of the first. Random by default. */
export interface Identified {
  readonly id?: string
}

/**
 * A thread.
 *
 * - `send` gives an input to the agent and waits for what comes of it; `post` does not wait, and can be for a later time
 *   (`at`). Inputs queue. Both give it once, if it has an `id`. Who waits may leave: the run goes on.
 * - `decide` answers what the thread waits for, and waits for what comes of that. The same decisions are taken once.
 * - `steer` puts a word into the run that goes on; it is lost if the runner dies before it is delivered.
 * - `interrupt` ends the run that goes on, with what it has (`stopReason: "interrupted"`). `false` if there was none.
 * - `history` is the conversation as it is stored.
 * - `events` are what was stored behind the step `after` (0: from the beginning), then what comes, from whichever runner
 *   has the thread: `Stored` ones whole, in order and once.
 */
export interface AgentClient<out Output, out E> {
  readonly threadId: string
  readonly send: (input: Input, options?: Identified) => Effect.Effect<Outcome<Output | undefined>, E>
  readonly post: (
    input: Input,
    options?: Identified & { readonly at?: DateTime.DateTime }
  ) => Effect.Effect<void, ClusterFailure>
  readonly decide: (
    decisions: ReadonlyArray<Decision>,
    options?: Identified
  ) => Effect.Effect<Outcome<Output | undefined>, E>
  readonly steer: (input: Input) => Effect.Effect<void, NotRunning | ClusterFailure>
  readonly interrupt: Effect.Effect<boolean, ClusterFailure>
  readonly history: Effect.Effect<ReadonlyArray<Message>, SessionError | ClusterFailure>
  readonly events: (options?: { readonly after?: number }) => Stream.Stream<ThreadEvent, SessionError | ClusterFailure>
}

const pageSize = 1_000

const pause = "100 millis"

/** A thread that moves to another runner interrupts what was asked of it where it was: it is asked again there. */
const wherever = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.catchCauseIf(effect, Cause.hasInterruptsOnly, () => Effect.delay(wherever(effect), pause))

const streamWherever = <A, E, R>(stream: Stream.Stream<A, E, R>): Stream.Stream<A, E, R> =>
  Stream.catchCauseIf(stream, Cause.hasInterruptsOnly, () =>
    Stream.unwrap(Effect.as(Effect.sleep(pause), streamWherever(stream)))
  )

/** A thread of an agent, of any id that a session store takes, of at most 255 characters. */
export const of = Effect.fnUntraced(function* <O, E, R>(
  { entity }: AgentEntity<O, E, R>,
  threadId: string
): Effect.fn.Return<AgentClient<Answer<O>, E | ModelError | AgentError | ClusterFailure>, never, Sharding.Sharding> {
  const thread = (yield* entity.client)(threadId)
  const toSend = (input: Input, id: string = makeId(), at?: number) =>
    new Send({ inputId: id, message: toMessage(input, id), ...(at === undefined ? {} : { at }) })

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
    send: (input, options) => Effect.suspend(() => thread.Send(toSend(input, options?.id))),
    post: (input, options) =>
      Effect.suspend(() =>
        thread.Send(
          toSend(input, options?.id, options?.at === undefined ? undefined : DateTime.toEpochMillis(options.at)),
          {
            discard: true
          }
        )
      ),
    decide: (decisions, options) =>
      Effect.suspend(() =>
        thread.Decide(
          new Decide({ id: options?.id ?? canonical(decisions.map((decision) => ({ ...decision }))), decisions })
        )
      ),
    steer: (input) => Effect.suspend(() => wherever(thread.Steer({ message: toWord(input) }))),
    interrupt: Effect.suspend(() => wherever(thread.Interrupt())),
    history,
    events: (options) =>
      Stream.suspend(() => {
        let last = options?.after ?? 0
        const told = streamWherever(Stream.suspend(() => thread.Events({ after: last })))
        // A runner that takes the thread over without this being told begins where the one before it did.
        return Stream.filter(told, (event) => {
          if (event._tag === "Live") return true
          const isNew = event.step > last
          last = Math.max(last, event.step)
          return isNew
        })
      })
  }
})
