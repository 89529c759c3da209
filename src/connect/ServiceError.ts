/**
 * Failures of services, in words for a model. They contain no credential and no query of a URL, and at most 2,000
 * characters of a response.
 */
import * as Schema from "effect/Schema"
import { TaggedError } from "../support/effect/taggedError.ts"

const Reason = Schema.Literals([
  "NotConnected",
  "Refused",
  "RateLimited",
  "Unreachable",
  "TooLarge",
  "UnexpectedAnswer",
  "InvalidRequest"
])

/**
 * An operation of a service failed. `status` is the status of the response. `isRetryable` is true if the same call may
 * succeed later. Reasons:
 *
 * - `NotConnected`: the credential is missing or refused; `problem` says how to connect
 * - `Refused`: the service responded with a failure
 * - `RateLimited`: the service asks for a longer wait than a tool may take
 * - `Unreachable`: the response is missing or broken off; a change may have been made
 * - `TooLarge`: the response is over the size limit
 * - `UnexpectedAnswer`: the response has not the documented form
 * - `InvalidRequest`: the request can't be sent
 */
export class ServiceError extends TaggedError<ServiceError>()("ServiceError", {
  service: Schema.String,
  operation: Schema.String,
  reason: Reason,
  problem: Schema.String,
  status: Schema.optionalKey(Schema.Finite),
  isRetryable: Schema.Boolean
}) {
  override get message(): string {
    return `${this.service}, ${this.operation}: ${this.problem}`
  }
}
