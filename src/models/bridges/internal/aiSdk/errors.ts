/**
 * Failures of the AI SDK and of its providers, told by their names: which copy of a package made one does not matter.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { isModelError, ModelError, type Reason } from "../../../../core/ModelError.ts"
import { defined } from "../../../../support/json/defined.ts"
import { valueAt } from "../../../../support/json/valueAt.ts"
import { failureOf } from "../../../internal/openai/failure.ts"
import {
  badResponse,
  connectionError,
  type Origin,
  providerError,
  stumbled,
  toldBy
} from "../../../internal/wire/errors.ts"
import { numberOf, objectOf, parse, stringOf } from "../../../internal/wire/read.ts"

const reasons: { readonly [name: string]: Exclude<Reason["_tag"], "ContextOverflow"> } = {
  AI_LoadAPIKeyError: "Authentication",
  AI_LoadSettingError: "Authentication",
  GatewayAuthenticationError: "Authentication",
  AI_InvalidPromptError: "InvalidRequest",
  AI_InvalidArgumentError: "InvalidRequest",
  AI_UnsupportedFunctionalityError: "Unsupported",
  AI_NoSuchModelError: "Unsupported",
  AI_NoSuchProviderReferenceError: "InvalidRequest"
}

/** Names of failures to read an answer; their texts quote it. */
const unreadable: { readonly [name: string]: string } = {
  AI_EmptyResponseBodyError: "the answer is empty",
  AI_InvalidResponseDataError: "the answer is not of the form of its protocol",
  AI_JSONParseError: "an event of the stream is not JSON",
  AI_NoContentGeneratedError: "the answer is empty",
  AI_TypeValidationError: "an event of the stream is not of the form of its protocol"
}

/** Keys are inside of the model, where we can't see them: what looks like one is hidden. */
const keyLike = /\b(?:(?:sk|pk|rk|gsk|xai|AIza)[-_]?|Bearer )[\w-]{12,}|\b[\w-]{40,}\b/g

const field = (value: unknown, key: string): unknown => (Predicate.hasProperty(value, key) ? value[key] : undefined)

const bodyOf = (error: unknown): unknown => {
  const data = field(error, "data")
  if (objectOf(data) !== undefined) return data
  const parsed = parse(stringOf(field(error, "responseBody")) ?? "")
  return Result.isSuccess(parsed) ? parsed.success : undefined
}

const apiCall = (origin: Origin, error: unknown): ModelError => {
  const status = numberOf(field(error, "statusCode"))
  const headers = objectOf(field(error, "responseHeaders")) ?? {}
  if (status === undefined) return connectionError(origin, field(error, "cause"))
  if (status < 300) return badResponse(origin, "the answer is not of the form of its protocol")
  const json = bodyOf(error)
  const body = objectOf(Array.isArray(json) ? json[0] : json)
  const failure = failureOf(body?.["error"] ?? body)
  return providerError(origin, {
    ...failure,
    // Google's own word for it.
    type: failure.type ?? stringOf(objectOf(body?.["error"])?.["status"]),
    message: failure.message ?? stringOf(field(error, "message")),
    status,
    headers: { get: (name) => stringOf(headers[name]) }
  })
}

const errorByName = (origin: Origin, cause: unknown): ModelError | undefined => {
  const name = stringOf(field(cause, "name")) ?? ""
  const { model, provider } = origin
  if (name === "AI_APICallError") return apiCall(origin, cause)
  const problem = valueAt(unreadable, name)
  if (problem !== undefined) return badResponse(origin, problem)
  const tag = valueAt(reasons, name)
  if (tag === undefined) return undefined
  const detail = toldBy(origin, stringOf(field(cause, "message")) ?? name)
  return new ModelError({ provider, model, reason: { _tag: tag }, detail })
}

const hideKeys = (error: ModelError): ModelError => {
  const { detail, model, provider, reason, requestId, status } = error
  const hidden = detail?.replaceAll(keyLike, "[hidden]")
  if (hidden === undefined || hidden === detail) return error
  return new ModelError({
    provider,
    reason,
    detail: hidden,
    ...defined({ model, status, requestId })
  })
}

/** The failure of a call, or of its stream. */
export const toModelError =
  (origin: Origin) =>
  (cause: unknown): ModelError => {
    if (isModelError(cause)) return cause
    return hideKeys(errorByName(origin, cause) ?? stumbled(origin, cause) ?? connectionError(origin, cause))
  }

/** Converts an error in the middle of a stream: the AI SDK's, or the server's own. */
export const streamedError = (origin: Origin, error: unknown): ModelError => {
  if (isModelError(error)) return error
  const namedError = errorByName(origin, error)
  if (namedError !== undefined) return hideKeys(namedError)
  const inner = objectOf(error)?.["error"]
  const failure = failureOf(objectOf(inner) ?? error)
  const status = numberOf(field(error, "statusCode")) ?? failure.status
  const modelError = providerError(origin, { ...failure, status, type: failure.type ?? stringOf(field(error, "name")) })
  if (modelError.reason._tag !== "Unknown") return hideKeys(modelError)
  return hideKeys(badResponse(origin, modelError.detail ?? "the provider sent an error in the middle of the answer"))
}
