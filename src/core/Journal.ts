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
import { Part } from "./thread/parts.ts"
import { Spent, Usage } from "./Usage.ts"

/**
 * An entry of the journal. `State` is a slot's new value (without one, the slot is gone, and every slot whose name begins
 * with its name and a `/`), `Compaction` what the model sees of the history (tokens,
 * estimated), `Request` and `Decision` are of approvals, `Step` is how much was used so far. A message without an
 * answer yet for each of its calls is one that a crash cut off, and so is a turn of which there are only parts.
 */
export const Entry = Schema.Union([
  Schema.TaggedStruct("Message", { message: Message }),
  Schema.TaggedStruct("State", { slot: Schema.String, value: Schema.optionalKey(Json) }),
  Schema.TaggedStruct("Compaction", { tokensBefore: Schema.Finite, tokensAfter: Schema.Finite }),
  Schema.TaggedStruct("Request", { request: Request }),
  Schema.TaggedStruct("Decision", { decision: Decision }),
  Schema.TaggedStruct("RunStarted", { runId: Schema.String, agent: Schema.String }),
  Schema.TaggedStruct("Step", { usage: Usage, rounds: Schema.Finite, spent: Schema.optionalKey(Spent) }),
  Schema.TaggedStruct("RunSettled", { runId: Schema.String, outcome: Schema.String }),
  Part
])
export type Entry = typeof Entry.Type

/**
 * A thread that a run writes to. `checkpoint` is what it had come to, `undefined` for a new one; `ended` is the outcome
 * of its last run (`RunSettled`), if nothing was written after it. `append` stores entries in one go, all or none, and
 * gives the number of entries that the thread has then; it fails with `Conflict` if somebody else wrote meanwhile.
 *
 * With `part`, what the model streams is stored while it does, at most 100 ms late. A part is lost or stored, as the
 * store is able to; the next message takes the place of all parts before it. `append` and `part` are
 * not called at once.
 */
export interface Thread {
  readonly checkpoint: Checkpoint | undefined
  readonly ended?: string | undefined
  readonly step: number
  readonly append: (entries: ReadonlyArray<Entry>) => Effect.Effect<number, SessionError>
  readonly part?: ((part: Part) => Effect.Effect<void, SessionError>) | undefined
}

/**
 * The journal: opens threads, and makes those that are not there. `hold` takes the turn of a thread until its scope is
 * closed: a run takes it before it opens the thread, so that of two runs one waits, or fails with `Busy` before it asks
 * or stores anything.
 */
export class Journal extends Context.Service<
  Journal,
  {
    readonly open: (threadId: string) => Effect.Effect<Thread, SessionError>
    readonly hold?: ((threadId: string) => Effect.Effect<unknown, SessionError, Scope.Scope>) | undefined
  }
>()("effect-deepagents/Journal") {}
