/** Errors of sign-ins and tokens. */
import * as Schema from "effect/Schema"
import { TaggedError } from "../support/effect/taggedError.ts"
import { Reason } from "../support/oauth/reason.ts"

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

/** Reports a failed sign-in or an unusable token. It never contains a secret. */
export class OAuthError extends TaggedError<OAuthError>()("OAuthError", {
  provider: Schema.String,
  account: Schema.String,
  reason: Reason
}) {
  override get message(): string {
    return explain(this.account === "default" ? this.provider : `${this.provider} (${this.account})`, this.reason)
  }

  /** True if a retry can succeed. */
  get isRetryable(): boolean {
    return this.reason._tag === "Unavailable"
  }
}
