/**
 * The failures of model calls, as one tagged error with a tagged reason.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { ModelError } from "effect-deepagents"
 *
 * declare const call: Effect.Effect<string, ModelError.ModelError>
 *
 * const patient = call.pipe(
 *   Effect.catchReason("ModelError", "RateLimited", (reason) => Effect.succeed(`busy: ${reason._tag}`))
 * )
 * ```
 */
import type * as Duration from "effect/Duration"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { TaggedError } from "../support/effect/taggedError.ts"
import { defined } from "../support/json/defined.ts"

/**
 * The reason of a failed model call.
 *
 * - `RateLimited`, `Overloaded`, `Timeout`, `Transport`: retryable; `retryAfter` is the provider's wish. `isRefused`:
 *   nothing listens at an address of this machine
 * - `Authentication`, `Permission`, `QuotaExhausted`: somebody must act
 * - `Unpriced`: a budget limits the cost, and the model has no prices; somebody must act
 * - `InvalidRequest`, `Unsupported`: the request is wrong for this model
 * - `ContextOverflow`: the history does not fit (`limit` and `used` in tokens)
 * - `ContentFiltered`: the provider refused the content
 * - `BadResponse`: the answer violates the provider's protocol (retryable, such as a cut stream)
 * - `Unknown`: anything else
 */
export const Reason = Schema.Union([
  Schema.TaggedStruct("RateLimited", { retryAfter: Schema.optionalKey(Schema.Duration) }),
  Schema.TaggedStruct("Overloaded", { retryAfter: Schema.optionalKey(Schema.Duration) }),
  Schema.TaggedStruct("Timeout", {}),
  Schema.TaggedStruct("Transport", { isRefused: Schema.optionalKey(Schema.Boolean) }),
  Schema.TaggedStruct("Authentication", {}),
  Schema.TaggedStruct("Permission", {}),
  Schema.TaggedStruct("InvalidRequest", {}),
  Schema.TaggedStruct("ContextOverflow", {
    limit: Schema.optionalKey(Schema.Finite),
    used: Schema.optionalKey(Schema.Finite)
  }),
  Schema.TaggedStruct("ContentFiltered", {}),
  Schema.TaggedStruct("QuotaExhausted", {}),
  Schema.TaggedStruct("Unpriced", {}),
  Schema.TaggedStruct("BadResponse", {}),
  Schema.TaggedStruct("Unsupported", {}),
  Schema.TaggedStruct("Unknown", {})
])
export type Reason = typeof Reason.Type

const advice: { readonly [Tag in Reason["_tag"]]: string } = {
  RateLimited: "rate limited; wait, and try again",
  Overloaded: "the provider is overloaded; try again later",
  Timeout: "no answer in time; try again, or raise the limit of ModelTimeout",
  Transport: "the connection failed; check the network and the base URL",
  Authentication: "the API key is missing or was refused; check the key and its variable",
  Permission: "this key may not use this model; check the account's access",
  InvalidRequest: "the request is wrong for this model",
  ContextOverflow: "the conversation does not fit in the model's context window; shorten or summarise it",
  ContentFiltered: "the provider's content filter stopped the answer",
  QuotaExhausted: "the account's quota or credit is used up",
  Unpriced: "the cost is limited, and this model has no prices",
  BadResponse: "the provider's answer was not valid",
  Unsupported: "this model does not support the request",
  Unknown: "the model call failed"
}

const retryable: ReadonlySet<Reason["_tag"]> = new Set([
  "RateLimited",
  "Overloaded",
  "Timeout",
  "Transport",
  "BadResponse"
])

const terminal: ReadonlySet<Reason["_tag"]> = new Set(["Authentication", "Permission", "QuotaExhausted", "Unpriced"])

/**
 * A model call failed. `detail` is the provider's own message; neither it nor `cause` may hold a key or a request body:
 * the adapter that makes the error sees to that.
 */
export class ModelError extends TaggedError<ModelError>()("ModelError", {
  provider: Schema.String,
  model: Schema.optionalKey(Schema.String),
  reason: Reason,
  detail: Schema.optionalKey(Schema.String),
  status: Schema.optionalKey(Schema.Finite),
  requestId: Schema.optionalKey(Schema.String),
  cause: Schema.optionalKey(Schema.Defect())
}) {
  /** Marks the error for another copy of this module, such as that of an extension of a program. */
  get "~effect-deepagents/ModelError"(): true {
    return true
  }

  /** Says whether the same request may succeed later. */
  get isRetryable(): boolean {
    return retryable.has(this.reason._tag)
  }

  /** Says whether nothing listens at the address, which is of this machine: only somebody who starts the server helps. */
  get isRefused(): boolean {
    return this.reason._tag === "Transport" && this.reason.isRefused === true
  }

  /** Says whether every request to this model will fail until somebody acts: on the key, the access, the quota or the prices. */
  get isTerminal(): boolean {
    return terminal.has(this.reason._tag)
  }

  /** The time that the provider asked to wait. */
  get retryAfter(): Duration.Duration | undefined {
    return "retryAfter" in this.reason ? this.reason.retryAfter : undefined
  }

  /** Makes the same error with other words. */
  withDetail(detail: string): ModelError {
    const { cause, model, provider, reason, requestId, status } = this
    return new ModelError({ provider, reason, detail, ...defined({ cause, model, requestId, status }) })
  }

  override get message(): string {
    const where = this.model === undefined ? this.provider : `${this.provider}/${this.model}`
    const facts = [
      ...(this.status === undefined ? [] : [`status ${this.status}`]),
      ...(this.requestId === undefined ? [] : [`request ${this.requestId}`])
    ]
    // Nothing was sent: the detail says all.
    const isUnsent = this.isRefused || this.reason._tag === "Authentication" || this.reason._tag === "Unsupported"
    if (isUnsent && this.status === undefined && this.detail !== undefined) return `${where}: ${this.detail}`
    const detail = this.detail === undefined ? "" : `: ${this.detail}`
    return `${where}: ${advice[this.reason._tag]}${facts.length === 0 ? "" : ` (${facts.join(", ")})`}${detail}`
  }
}

/** Tells whether a value is a {@link ModelError}. */
export const isModelError = (value: unknown): value is ModelError =>
  Predicate.hasProperty(value, "~effect-deepagents/ModelError")
