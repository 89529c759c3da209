/**
 * The journal of a run: it writes down what it does, as it does it, so that its thread outlives it.
 *
 * A run with a `threadId` needs a journal: it begins with what the thread has come to, and each of its steps is stored
 * before the next begins. A session store gives one (`effect-deepagents/sessions`).
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { Decision, Request } from "./Approval.ts"
import type { Checkpoint } from "./Checkpoint.ts"
import { Json } from "./Json.ts"
import { Message } from "./Message.ts"
import type { SessionError } from "./SessionError.ts"
import { Usage } from "./Usage.ts"

/**
 * An entry of the journal. `State` is a slot's new value, `Compaction` what the model sees of the history (tokens,
 * estimated), `Request` and `Decision` are of approvals, `Step` is how much was used so far. A message without an
 * answer yet for each of its calls is one that a crash cut off.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Entry = Schema.Union([
  Schema.TaggedStruct("Message", { message: Message }),
  Schema.TaggedStruct("State", { slot: Schema.String, value: Json }),
  Schema.TaggedStruct("Compaction", { tokensBefore: Schema.Finite, tokensAfter: Schema.Finite }),
  Schema.TaggedStruct("Request", { request: Request }),
  Schema.TaggedStruct("Decision", { decision: Decision }),
  Schema.TaggedStruct("RunStarted", { runId: Schema.String, agent: Schema.String }),
  Schema.TaggedStruct("Step", { usage: Usage, rounds: Schema.Finite }),
  Schema.TaggedStruct("RunSettled", { runId: Schema.String, outcome: Schema.String })
])
export type Entry = typeof Entry.Type

/**
 * A thread that a run writes to. `checkpoint` is what it had come to, `undefined` for a new one; `ended` is the outcome
 * of its last run (`RunSettled`), if nothing was written after it. `append` stores entries in one go, all or none, and
 * gives the number of entries that the thread has then; it fails with `Conflict` if somebody else wrote meanwhile.
 *
 * @category models
 * @since 0.1.0
 */
export interface Thread {
  readonly checkpoint: Checkpoint | undefined
  readonly ended?: string | undefined
  readonly step: number
  readonly append: (entries: ReadonlyArray<Entry>) => Effect.Effect<number, SessionError>
}

/**
 * The journal: opens threads, and makes those that are not there. `hold` takes the turn of a thread until its scope is
 * closed: a run takes it before it opens the thread, so that of two runs one waits, or fails with `Busy` before it asks
 * or stores anything.
 *
 * @category services
 * @since 0.1.0
 */
export class Journal extends Context.Service<
  Journal,
  {
    readonly open: (threadId: string) => Effect.Effect<Thread, SessionError>
    readonly hold?: ((threadId: string) => Effect.Effect<unknown, SessionError, Scope.Scope>) | undefined
  }
>()("effect-deepagents/Journal") {}

/**
 * The locks of the runs that this one is inside of, as `hold` gave them: a run inside of a run can't wait for that one.
 *
 * @category services
 * @since 0.1.0
 */
export const Held = Context.Reference<ReadonlyArray<unknown>>("effect-deepagents/Journal/Held", {
  defaultValue: () => []
})
