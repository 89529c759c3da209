/** Failures of a store of memories, traces or credentials. */
import * as Schema from "effect/Schema"
import { TaggedError } from "../support/effect/taggedError.ts"

const Reason = Schema.Union([
  Schema.TaggedStruct("InvalidName", { problem: Schema.String }),
  Schema.TaggedStruct("InvalidValue", { problem: Schema.String }),
  Schema.TaggedStruct("Full", { limit: Schema.Finite }),
  Schema.TaggedStruct("NotFound", {}),
  Schema.TaggedStruct("Corrupt", { problem: Schema.String }),
  Schema.TaggedStruct("Unavailable", { problem: Schema.String }),
  Schema.TaggedStruct("NoKey", { problem: Schema.String }),
  Schema.TaggedStruct("WrongKey", {}),
  Schema.TaggedStruct("TimedOut", { millis: Schema.Finite })
])
type Reason = typeof Reason.Type

const explain = (reason: Reason): string => {
  switch (reason._tag) {
    case "InvalidName":
      return `this is no name to store something by: ${reason.problem}`
    case "InvalidValue":
      return `this can't be stored: ${reason.problem}`
    case "Full":
      return `there are ${reason.limit} facts, and there may be no more; remove what is not needed any longer`
    case "NotFound":
      return "there is nothing of this name; store it first"
    case "Corrupt":
      return `the stored data can't be read: ${reason.problem}`
    case "Unavailable":
      return `the store is not available: ${reason.problem}`
    case "NoKey":
      return `there is no key for credentials: ${reason.problem}`
    case "WrongKey":
      return "it was sealed with another key, or changed by somebody who has none; provide the key that it was stored with, or remove it and store it again"
    case "TimedOut":
      return `a refresh took longer than ${reason.millis} ms and was given up; what was stored is still there, so try again`
  }
}

/**
 * An operation of a store failed. It never contains a secret. Reasons:
 *
 * - `InvalidName`: a namespace, an id or a name that can't be stored
 * - `InvalidValue`: the value is too large, or has the wrong form
 * - `Full`: the namespace has the most facts that it may have
 * - `NotFound`: the store has no item of this name
 * - `Corrupt`: the stored data can't be read
 * - `Unavailable`: the disk is full, or the connection is lost; try again later
 * - `NoKey`: the key of credentials can't be read
 * - `WrongKey`: the credential was sealed with another key, or changed by others
 * - `TimedOut`: refreshing a credential takes too long
 */
export class StoreError extends TaggedError<StoreError>()("StoreError", {
  operation: Schema.String,
  subject: Schema.String,
  reason: Reason,
  cause: Schema.optionalKey(Schema.Defect())
}) {
  override get message(): string {
    return `${this.operation} ${JSON.stringify(this.subject)}: ${explain(this.reason)}`
  }
}
