/** Failures of signing in to a service, and of the tokens that came of it. */
import * as Schema from "effect/Schema"

/**
 * - `NotConnected`: nobody has signed in, or what came of it is no longer valid
 * - `Declined`: the person said no, to us or at the server
 * - `Expired`: the sign-in was not finished in time
 * - `Refused`: the server refused, with an error of OAuth
 * - `InvalidResponse`: the answer is not of this sign-in, or not of its form: it was not used
 * - `Unavailable`: the server was not reached, or failed; try again later
 * - `Unsupported`: the server, or this installation, can't do what is asked for
 */
export const Reason = Schema.Union([
  Schema.TaggedStruct("NotConnected", { problem: Schema.String }),
  Schema.TaggedStruct("Declined", {}),
  Schema.TaggedStruct("Expired", { seconds: Schema.Finite }),
  Schema.TaggedStruct("Refused", { error: Schema.String, description: Schema.optionalKey(Schema.String) }),
  Schema.TaggedStruct("InvalidResponse", { problem: Schema.String }),
  Schema.TaggedStruct("Unavailable", { problem: Schema.String }),
  Schema.TaggedStruct("Unsupported", { problem: Schema.String })
])
export type Reason = typeof Reason.Type

const explain = (name: string, reason: Reason): string => {
  switch (reason._tag) {
    case "NotConnected":
      return `${name} is not connected: ${reason.problem}; sign in to it first, by OAuth.connect or the application's own page`
    case "Declined":
      return `the sign-in to ${name} was declined; do without it, or ask again when it is wanted`
    case "Expired":
      return `the sign-in to ${name} was not finished within ${reason.seconds} seconds; begin it again`
    case "Refused":
      return `the server of ${name} refused: ${reason.error}${reason.description === undefined ? "" : ` (it says: ${JSON.stringify(reason.description)})`}`
    case "InvalidResponse":
      return `what came from the server of ${name} was not used: ${reason.problem}`
    case "Unavailable":
      return `the server of ${name} is not available: ${reason.problem}; try again later`
    case "Unsupported":
      return `${name} can't be connected like this: ${reason.problem}`
  }
}

/** A sign-in, or a token of one, could not be had. There is never a secret in it. */
export class OAuthError extends Schema.TaggedError<OAuthError>()("OAuthError", {
  provider: Schema.String,
  account: Schema.String,
  reason: Reason
}) {
  override get message(): string {
    return explain(this.account === "default" ? this.provider : `${this.provider} (${this.account})`, this.reason)
  }

  /** True if the same may go better the next time. */
  get isRetryable(): boolean {
    return this.reason._tag === "Unavailable"
  }
}
