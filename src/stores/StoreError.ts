/** Failures of a store of memories, traces or credentials. */
import * as Schema from "effect/Schema"
import type { Fault } from "./internal/table.ts"

/**
 * - `InvalidName`: a namespace, an id or a name that can't be kept
 * - `InvalidValue`: what is to be stored is too large, or not of its form
 * - `Full`: a namespace has as many facts as it may
 * - `NotFound`: there is nothing of this name
 * - `Corrupt`: what is stored can't be read
 * - `Unavailable`: the disk is full, the connection is lost; try again later
 * - `NoKey`: the key that credentials are sealed with can't be had
 * - `WrongKey`: a credential was sealed with another key, or changed by others
 * - `TimedOut`: a credential is being refreshed, and it takes too long
 */
export const Reason = Schema.Union([
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
export type Reason = typeof Reason.Type

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
      return `what is stored can't be read: ${reason.problem}`
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

/** An operation of a store failed. There is never a secret in it. */
export class StoreError extends Schema.TaggedError<StoreError>()("StoreError", {
  operation: Schema.String,
  subject: Schema.String,
  reason: Reason,
  cause: Schema.optionalKey(Schema.Defect())
}) {
  override get message(): string {
    return `${this.operation} ${JSON.stringify(this.subject)}: ${explain(this.reason)}`
  }
}

/** Makes the failure of an operation on what has a name. */
export const make = (operation: string, subject: string, reason: Reason | Fault): StoreError =>
  "_tag" in reason
    ? new StoreError({ operation, subject, reason })
    : new StoreError({
        operation,
        subject,
        reason: { _tag: reason.reason, problem: reason.problem },
        ...(reason.cause === undefined ? {} : { cause: reason.cause })
      })

/** Reports whether a value is a {@link StoreError}. */
export const isStoreError = (value: unknown): value is StoreError => value instanceof StoreError
