/** Failures of a model, both ways: `AiError` and `ModelError`, reason by reason. */
import * as AiError from "effect/ai/AiError"
import type * as Duration from "effect/Duration"
import * as Predicate from "effect/Predicate"
import { isModelError, ModelError, type Reason } from "../../../../core/ModelError.ts"
import { defined } from "../../../../support/json/defined.ts"
import { detailOf, httpOf, overflowOf } from "./failures.ts"

/** The model that a failure is of. */
export interface Origin {
  readonly provider: string
  readonly model: string
}

const byStatus = (status: number | undefined, retryAfter: Duration.Duration | undefined): Reason => {
  if (status === 408 || status === 504) return { _tag: "Timeout" }
  return retryAfter === undefined ? { _tag: "Overloaded" } : { _tag: "Overloaded", retryAfter }
}

/** Reasons of which the name says enough. */
const plain = {
  QuotaExhaustedError: "QuotaExhausted",
  ContentPolicyError: "ContentFiltered",
  InvalidResponseError: "BadResponse",
  InvalidOutputError: "BadResponse",
  StructuredOutputError: "BadResponse",
  ToolNotFoundError: "BadResponse",
  ToolParameterValidationError: "BadResponse",
  UnsupportedSchemaError: "Unsupported",
  InvalidToolResultError: "InvalidRequest",
  ToolResultEncodingError: "InvalidRequest",
  ToolConfigurationError: "InvalidRequest",
  ToolkitRequiredError: "InvalidRequest",
  InvalidUserInputError: "InvalidRequest"
} as const

const unknownReason = (reason: AiError.UnknownError, status: number | undefined): Reason => {
  if (status === 402) return { _tag: "QuotaExhausted" }
  if (status === 408) return { _tag: "Timeout" }
  return overflowOf(reason) ?? { _tag: status !== undefined && status < 500 ? "InvalidRequest" : "Unknown" }
}

const networkReason = ({ description, reason }: AiError.NetworkError): Reason => {
  if (reason !== "TransportError") return { _tag: "InvalidRequest" }
  return { _tag: /time[d-]? ?out/i.test(description ?? "") ? "Timeout" : "Transport" }
}

const reasonOf = ({ reason }: AiError.AiError): Reason => {
  const { retryAfter, status } = httpOf(reason)
  const { _tag } = reason
  if (_tag === "RateLimitError") return defined({ _tag: "RateLimited", retryAfter: reason.retryAfter ?? retryAfter })
  if (_tag === "AuthenticationError") {
    return { _tag: reason.kind === "InsufficientPermissions" ? "Permission" : "Authentication" }
  }
  if (_tag === "InvalidRequestError") return overflowOf(reason) ?? { _tag: "InvalidRequest" }
  if (_tag === "InternalProviderError") return byStatus(status, retryAfter)
  if (_tag === "NetworkError") return networkReason(reason)
  return _tag === "UnknownError" ? unknownReason(reason, status) : { _tag: plain[_tag] }
}

/**
 * A failure of `effect/ai` as one of ours. The error itself is not its cause: it may hold the request, and with it the
 * key.
 */
export const toModelError = (error: AiError.AiError, origin: Origin): ModelError => {
  const { requestId, status } = httpOf(error.reason)
  return new ModelError(
    defined({ ...origin, reason: reasonOf(error), detail: detailOf(error.reason), status, requestId })
  )
}

/** Names of providers for errors in the middle of a stream. */
const streamed: ReadonlyArray<readonly [RegExp, Exclude<Reason["_tag"], "ContextOverflow">]> = [
  [/quota|billing|credit/i, "QuotaExhausted"],
  [/rate_?limit|too_many/i, "RateLimited"],
  [/overloaded|server_error|api_error|internal|unavailable/i, "Overloaded"],
  [/timeout|timed_out/i, "Timeout"],
  [/auth|api_key/i, "Authentication"],
  [/permission|forbidden/i, "Permission"],
  [/content_?(filter|policy)|safety/i, "ContentFiltered"],
  [/invalid_request|bad_request/i, "InvalidRequest"]
]

const field = (value: unknown, key: string): string | undefined => {
  const fieldValue = Predicate.hasProperty(value, key) ? value[key] : undefined
  return typeof fieldValue === "string" || typeof fieldValue === "number" ? String(fieldValue) : undefined
}

/** Converts an error part of a stream, by its name. */
export const streamedError = (error: unknown, origin: Origin): ModelError => {
  if (AiError.isAiError(error)) return toModelError(error, origin)
  if (isModelError(error)) return error
  const called = [field(error, "type"), field(error, "code")].filter((name) => name !== undefined).join(" ")
  const message = typeof error === "string" ? error : field(error, "message")
  const detail = [called, message].filter((part) => part !== undefined && part !== "").join(": ")
  const overflow = overflowOf({ description: detail })
  const [, tag] = streamed.find(([pattern]) => pattern.test(called)) ?? []
  return new ModelError({
    ...origin,
    reason: overflow ?? { _tag: tag ?? "BadResponse" },
    detail: detail === "" ? "the provider sent an error in the middle of the answer" : detail
  })
}

/** A failure of ours as a reason of one of `effect/ai`. */
export const toReason = (error: ModelError): AiError.AiErrorReason => {
  const { message: description, reason, status, requestId } = error
  const http =
    status === undefined
      ? {}
      : {
          http: { response: { status, headers: requestId === undefined ? {} : { "x-request-id": requestId } } }
        }
  const { retryAfter } = error
  switch (reason._tag) {
    case "RateLimited":
      return new AiError.RateLimitError({ ...http, retryAfter })
    case "Overloaded":
      return new AiError.InternalProviderError({ description, ...http })
    case "Timeout":
    case "Transport":
      return new AiError.NetworkError({ reason: "TransportError", method: "POST", url: error.provider, description })
    case "Authentication":
      return new AiError.AuthenticationError({ kind: "Unknown", description, ...http })
    case "Permission":
      return new AiError.AuthenticationError({ kind: "InsufficientPermissions", description, ...http })
    case "ContextOverflow":
    case "InvalidRequest":
    case "Unsupported":
    case "Unpriced":
      return new AiError.InvalidRequestError({ description, ...http })
    case "ContentFiltered":
      return new AiError.ContentPolicyError({ description, ...http })
    case "QuotaExhausted":
      return new AiError.QuotaExhaustedError(http)
    case "BadResponse":
      return new AiError.InvalidOutputError({ description })
    case "Unknown":
      return new AiError.UnknownError({ description, ...http })
  }
}

/** A failure of ours as one of `effect/ai`. */
export const toAiError =
  (method: string) =>
  (error: ModelError): AiError.AiError =>
    AiError.make({ module: "LanguageModelFromChatModel", method, reason: toReason(error) })
