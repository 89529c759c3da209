/**
 * The journal of a run: stores its steps, so that the thread outlives the run.
 *
 * A run with a `threadId` needs a journal. It begins with the stored thread, and stores each step before the next one
 * begins. Session stores provide a journal (`effect-deepagents/sessions`).
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { Decision, Request } from "./Approval.ts"
import { type Checkpoint, pending } from "./Checkpoint.ts"
import { Json } from "./Json.ts"
import { isPartial, Message } from "./Message.ts"
import type { InvalidEncoding } from "./schema/encoding.ts"
import type { SessionError } from "./SessionError.ts"
import { StopReason } from "./StopReason.ts"
import { Part } from "./thread/parts.ts"
import { Spent, Usage } from "./Usage.ts"

/**
 * An entry of the journal.
 *
 * - `State`: the new value of a slot. Without a value, the slot and all slots below it (`slot/…`) are gone
 * - `Compaction`: the model sees a shorter history (tokens, estimated)
 * - `Request`, `Decision`: approvals
 * - `Step`: the usage and the work so far
 * - `RunSettled`: the end of a run; of a failed one, also its error
 * - `Part`: a streamed part of an unfinished turn
 *
 * A crash leaves a message whose calls have no answers, or a turn of parts alone.
 */
export const Entry = Schema.Union([
  Schema.TaggedStruct("Message", { message: Message }),
  Schema.TaggedStruct("State", { slot: Schema.String, value: Schema.optionalKey(Json) }),
  Schema.TaggedStruct("Compaction", { tokensBefore: Schema.Finite, tokensAfter: Schema.Finite }),
  Schema.TaggedStruct("Request", { request: Request }),
  Schema.TaggedStruct("Decision", { decision: Decision }),
  Schema.TaggedStruct("RunStarted", { runId: Schema.String, agent: Schema.String }),
  Schema.TaggedStruct("Step", { usage: Usage, rounds: Schema.Finite, spent: Schema.optionalKey(Spent) }),
  Schema.TaggedStruct("RunSettled", {
    runId: Schema.String,
    outcome: Schema.String,
    error: Schema.optionalKey(Schema.Struct({ tag: Schema.String, message: Schema.String }))
  }),
  Part
])
export type Entry = typeof Entry.Type

/**
 * A thread that a run writes to.
 *
 * - `checkpoint`: the stored conversation; `undefined` for a new thread
 * - `ended`: the outcome of the last run (`RunSettled`), if no entry follows
 * - `append`: stores entries, all or none, and returns the thread's number of entries. Fails with `Conflict` after
 *   another writer
 * - `part`: stores streamed text at most 100 ms late. A part may be lost; the next message replaces all parts before it
 *
 * `append` and `part` never run concurrently.
 */
export interface Thread {
  readonly checkpoint: Checkpoint | undefined
  readonly ended?: string | undefined
  readonly step: number
  readonly append: (entries: ReadonlyArray<Entry>) => Effect.Effect<number, SessionError>
  readonly part?: ((part: Part) => Effect.Effect<void, SessionError>) | undefined
}

/**
 * Opens threads, and creates missing ones. `hold` takes the turn of a thread until its scope closes. A run takes it
 * before it opens the thread: a second run waits, or fails with `Busy`. `read` reads a thread and changes nothing;
 * `undefined` for a missing one.
 */
export class Journal extends Context.Service<
  Journal,
  {
    readonly open: (threadId: string) => Effect.Effect<Thread, SessionError>
    readonly hold?: ((threadId: string) => Effect.Effect<unknown, SessionError, Scope.Scope>) | undefined
    readonly read?:
      | ((threadId: string) => Effect.Effect<Pick<Thread, "checkpoint" | "ended"> | undefined, SessionError>)
      | undefined
  }
>()("effect-deepagents/Journal") {}

/** The state of a thread. */
export interface Status {
  /**
   * - `empty`: there is no such thread, or it has no message
   * - `done`: the last turn ended
   * - `waiting`: the last turn waits for decisions on `pending`: resume it with them
   * - `unfinished`: the last turn failed, was interrupted or cut off: resume it. A run at work looks the same
   */
  readonly state: "empty" | "done" | "waiting" | "unfinished"
  /** The requests that wait for a decision. */
  readonly pending: ReadonlyArray<Request>
}

const reasons: ReadonlySet<string> = new Set(StopReason.literals)

/** Reports whether the last turn ended. Imported messages have no outcome of a run. */
const isDone = ({ messages }: Checkpoint, ended: string | undefined): boolean => {
  if (ended !== undefined) return reasons.has(ended)
  const last = messages.at(-1)
  return last?.role === "ai" && last.toolCalls.length === 0 && !isPartial(last)
}

/** Reads the state of a stored conversation. */
export const statusOf = (
  stored: Pick<Thread, "checkpoint" | "ended"> | undefined
): Effect.Effect<Status, InvalidEncoding> => {
  const { checkpoint, ended } = stored ?? {}
  if (checkpoint === undefined || checkpoint.messages.length === 0) {
    return Effect.succeed({ state: "empty", pending: [] })
  }
  return Effect.map(pending(checkpoint), (requests) => ({
    state: requests.length > 0 ? "waiting" : isDone(checkpoint, ended) ? "done" : "unfinished",
    pending: requests
  }))
}

/**
 * Tells whether the last turn of a thread is done, waits for decisions, or must be resumed. Changes nothing. Fails with
 * `InvalidEncoding` if a later version of the library wrote the pending requests.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Journal } from "effect-deepagents"
 *
 * const agent = Agent.make({ name: "helper", prompt: "You help." })
 *
 * const program = Effect.gen(function* () {
 *   const { state } = yield* Journal.status("ada")
 *   if (state === "unfinished") yield* Agent.resume(agent, { threadId: "ada" })
 * })
 * ```
 */
export const status = (threadId: string): Effect.Effect<Status, SessionError | InvalidEncoding, Journal> =>
  Journal.use(({ open, read = open }) => Effect.flatMap(read(threadId), statusOf))
