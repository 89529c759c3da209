/** The failures of servers of the Model Context Protocol. */
import * as Schema from "effect/Schema"
import { TaggedError } from "../support/effect/taggedError.ts"

/**
 * A server could not be reached, or did not fulfil a request. `server` is its name in the configuration.
 *
 * - `Unavailable`: it can't be started or reached
 * - `Unauthorized`: it requires an authorisation that is missing
 * - `Lost`: the connection ended during the request; the effect of the request is unknown
 * - `TimedOut`: it did not answer in time
 * - `Refused`: it answered with an error of the protocol (`code` is its number)
 * - `Invalid`: its answer violates the protocol, is too long, or breaks the tool's promise
 * - `UnknownServer`, `Disabled`: the configuration has no server of this name; it is switched off there
 * - `MissingPackage`: the package `@modelcontextprotocol/client` is not installed
 */
export class McpError extends TaggedError<McpError>()("McpError", {
  server: Schema.String,
  reason: Schema.Literals([
    "Unavailable",
    "Unauthorized",
    "Lost",
    "TimedOut",
    "Refused",
    "Invalid",
    "UnknownServer",
    "Disabled",
    "MissingPackage"
  ]),
  message: Schema.String,
  code: Schema.optionalKey(Schema.Finite),
  cause: Schema.optionalKey(Schema.Defect())
}) {
  /** Tells whether the same request may go better later. */
  get isRetryable(): boolean {
    return this.reason === "Unavailable" || this.reason === "Lost" || this.reason === "TimedOut"
  }
}
