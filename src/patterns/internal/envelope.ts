/** Messages of a channel as they are stored, and the failures of a channel. */
import * as Schema from "effect/Schema"
import { Json } from "../../core/Json.ts"
import { TaggedError } from "../../support/effect/taggedError.ts"

/**
 * The effect of a message on the thread of its recipient, if an `Attendant` attends it: `quiet` waits for the next turn,
 * `waking` begins a turn when the thread is idle, `interrupting` ends the turn at work for it.
 */
export const Wake = Schema.Literals(["quiet", "waking", "interrupting"])
export type Wake = typeof Wake.Type

/** A message that was sent. `at` is when, in milliseconds since the epoch. Without `wake` it is quiet. */
export const Envelope = Schema.Struct({
  id: Schema.String,
  from: Schema.String,
  to: Schema.String,
  body: Json,
  at: Schema.Finite,
  wake: Schema.optionalKey(Wake)
})
export type Envelope = typeof Envelope.Type

const Reason = Schema.Union([
  Schema.TaggedStruct("InvalidName", { problem: Schema.String }),
  Schema.TaggedStruct("TooLarge", { limit: Schema.Finite }),
  Schema.TaggedStruct("Full", { limit: Schema.Finite }),
  Schema.TaggedStruct("Refused", { from: Schema.String }),
  Schema.TaggedStruct("NoAuthority", { from: Schema.String }),
  Schema.TaggedStruct("Corrupt", { problem: Schema.String }),
  Schema.TaggedStruct("Unavailable", { problem: Schema.String })
])
type Reason = typeof Reason.Type

const explain = (reason: Reason): string => {
  switch (reason._tag) {
    case "InvalidName":
      return `this is no name: ${reason.problem}`
    case "TooLarge":
      return `the message is longer than ${reason.limit} characters; send less, or raise \`maxSize\``
    case "Full":
      return `${reason.limit} messages wait there already; have them acknowledged first, or raise \`maxPending\``
    case "Refused":
      return `it takes no messages of ${JSON.stringify(reason.from)}`
    case "NoAuthority":
      return `${JSON.stringify(reason.from)} may not interrupt it; send the message as "waking", or allow it by \`mayInterrupt\``
    case "Corrupt":
      return `the stored messages can't be read: ${reason.problem}`
    case "Unavailable":
      return `the mailbox is not available: ${reason.problem}; try again later`
  }
}

/**
 * An operation on the mailbox `to` failed. Reasons:
 *
 * - `InvalidName`: a sender, a recipient or a key that can't be a name
 * - `TooLarge`, `Full`: a limit of the layer
 * - `Refused`: the recipient takes no messages of this sender
 * - `NoAuthority`: the sender may not interrupt the recipient
 * - `Corrupt`, `Unavailable`: the storage failed; the latter may pass
 */
export class ChannelError extends TaggedError<ChannelError>()("ChannelError", {
  operation: Schema.String,
  to: Schema.String,
  reason: Reason
}) {
  override get message(): string {
    return `${this.operation} ${JSON.stringify(this.to)}: ${explain(this.reason)}`
  }
}
