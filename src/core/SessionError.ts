/** Failures of a thread and the store that keeps it. */
import * as Schema from "effect/Schema"
import { TaggedError } from "../support/effect/taggedError.ts"

/**
 * - `NotFound`, `AlreadyExists`: no thread, or already a thread, with this id
 * - `InvalidId`: the id can't name a thread
 * - `InvalidEntry`: an entry does not decode, or can't follow the entry before it; `entry` is its id
 * - `InvalidPoint`: the entry does not exist, or lies between a call and its result
 * - `Conflict`: another writer was first; `expected` and `found` are the leaves
 * - `Busy`: another run of this process works on the thread
 * - `Archived`: the thread takes no entries until it is unarchived
 * - `TooLarge`: `what` has more bytes, as JSON, than `limit`; nothing was stored
 * - `Corrupt`: the stored data can't be read
 * - `Tampered`: the open calls of the thread have no valid signature (see `Tamper` of `effect-deepagents/rules`)
 * - `Moved`: the threads were copied to another store (`to`), and this store takes no changes
 * - `Unavailable`: the disk is full, or the connection is lost; try again later
 */
export const Reason = Schema.Union([
  Schema.TaggedStruct("NotFound", {}),
  Schema.TaggedStruct("AlreadyExists", {}),
  Schema.TaggedStruct("InvalidId", { problem: Schema.String }),
  Schema.TaggedStruct("InvalidEntry", { entry: Schema.String, problem: Schema.String }),
  Schema.TaggedStruct("InvalidPoint", { entry: Schema.String, problem: Schema.String }),
  Schema.TaggedStruct("Conflict", { expected: Schema.NullOr(Schema.String), found: Schema.NullOr(Schema.String) }),
  Schema.TaggedStruct("Busy", {}),
  Schema.TaggedStruct("Archived", {}),
  Schema.TaggedStruct("TooLarge", { what: Schema.String, bytes: Schema.Finite, limit: Schema.Finite }),
  Schema.TaggedStruct("Corrupt", { problem: Schema.String }),
  Schema.TaggedStruct("Tampered", { problem: Schema.String }),
  Schema.TaggedStruct("Moved", { to: Schema.String }),
  Schema.TaggedStruct("Unavailable", { problem: Schema.String })
])
export type Reason = typeof Reason.Type

const explain = (reason: Reason): string => {
  switch (reason._tag) {
    case "NotFound":
      return "there is no such thread; create it first"
    case "AlreadyExists":
      return "there is such a thread already; choose another id"
    case "InvalidId":
      return `this can't be an id: ${reason.problem}`
    case "InvalidEntry":
      return `entry ${reason.entry}: ${reason.problem}`
    case "InvalidPoint":
      return `can't go to entry ${reason.entry}: ${reason.problem}`
    case "Conflict":
      return `somebody else wrote meanwhile (expected the leaf ${reason.expected ?? "none"}, found ${reason.found ?? "none"}); load it again and continue from there`
    case "Busy":
      return "another run of this process is at work on the thread; begin this one when that is done, or give it a thread of its own"
    case "Archived":
      return "the thread is archived; unarchive it to continue"
    case "TooLarge":
      return `${reason.what} has ${reason.bytes} bytes as JSON, and ${reason.limit} are the limit; put large content into a file, and give its path, URL or fileId`
    case "Corrupt":
      return `the stored data can't be read: ${reason.problem}`
    case "Tampered":
      return `${reason.problem}; say something new in it, or rewind it to before`
    case "Moved":
      return `the threads of this store were moved to ${reason.to}: go on there. If nothing was written there, open this store again with SessionStore.reopen, or with deepagents sessions reopen`
    case "Unavailable":
      return `the store is not available: ${reason.problem}`
  }
}

/** An operation failed; nothing was stored. `threadId` is empty for operations on the whole store. */
export class SessionError extends TaggedError<SessionError>()("SessionError", {
  operation: Schema.String,
  threadId: Schema.String,
  reason: Reason,
  cause: Schema.optionalKey(Schema.Defect())
}) {
  override get message(): string {
    const thread = this.threadId === "" ? "" : ` ${JSON.stringify(this.threadId)}`
    return `${this.operation}${thread}: ${explain(this.reason)}`
  }
}

/** Makes the failure of an operation on a thread. */
export const make = (operation: string, threadId: string, reason: Reason, cause?: unknown): SessionError =>
  new SessionError({ operation, threadId, reason, ...(cause === undefined ? {} : { cause }) })

/** Tells whether a value is a {@link SessionError}. */
export const isSessionError = (value: unknown): value is SessionError => value instanceof SessionError
