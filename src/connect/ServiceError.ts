/**
 * Failures of services on the network, as connectors tell them to a model: what was asked, what came back, what to do.
 *
 * There is never a credential in one, nor a URL's query. What a service said is cut to 2,000 characters.
 */
import * as Schema from "effect/Schema"

/**
 * - `NotConnected`: there is no credential, or the service refuses the one there is; `problem` says how to connect
 * - `Refused`: the service answered with a status of failure
 * - `RateLimited`: it was asked too often, and wants a longer wait than a tool may take
 * - `Unreachable`: no answer came, or not all of it; whether a change was made is not known
 * - `TooLarge`: the answer is larger than what is read
 * - `UnexpectedAnswer`: the answer is not of the form that the service documents
 * - `InvalidRequest`: what was asked for can't be sent
 */
export const Reason = Schema.Literals([
  "NotConnected",
  "Refused",
  "RateLimited",
  "Unreachable",
  "TooLarge",
  "UnexpectedAnswer",
  "InvalidRequest"
])
export type Reason = typeof Reason.Type

/**
 * An operation of a service failed. `status` is that of its answer, if one came. `isRetryable` says that the same may go
 * better the next time.
 */
export class ServiceError extends Schema.TaggedError<ServiceError>()("ServiceError", {
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

/** Tells whether a value is a {@link ServiceError}. */
export const isServiceError = (value: unknown): value is ServiceError => value instanceof ServiceError
