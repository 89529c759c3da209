/** Converts the SDK's rejections to errors. It inspects their shape, so it does not import the SDK. */
import * as Predicate from "effect/Predicate"
import { ModelError } from "../../../core/ModelError.ts"
import type { HeaderReader } from "../../../support/http/retryAfter.ts"
import { defined } from "../../../support/json/defined.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import { badResponse, connectionError, type Origin, providerError, stumbled, toldBy } from "../wire/errors.ts"
import { longestSaid } from "../wire/secrets.ts"
import type { Fault } from "./decode.ts"

const stringOf = (value: unknown, key: string): string | undefined => {
  const field = Predicate.hasProperty(value, key) ? value[key] : undefined
  return typeof field === "string" ? field : undefined
}

const fieldOf = (value: unknown, key: string): unknown => (Predicate.hasProperty(value, key) ? value[key] : undefined)

const isReader = (value: unknown): value is HeaderReader =>
  Predicate.hasProperty(value, "get") && typeof value.get === "function"

/** Headers in which a request id of AWS is found like one of Anthropic. */
const headersOf = (cause: unknown): HeaderReader | undefined => {
  const headers = fieldOf(cause, "headers")
  if (!isReader(headers)) return undefined
  return { get: (name) => headers.get(name) ?? (name === "request-id" ? headers.get("x-amzn-requestid") : undefined) }
}

/** The HTTP statuses of Anthropic's error types, for errors that come inside a stream. */
const statuses: { readonly [type: string]: number } = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  api_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
  // AWS
  validationException: 400,
  accessDeniedException: 403,
  throttlingException: 429,
  internalServerException: 500,
  modelStreamErrorException: 500,
  serviceUnavailableException: 503,
  modelTimeoutException: 504
}

const number = (text: string | undefined): number => Number(text)

/** Refines a failure by the messages of Anthropic and AWS, because the status is too coarse. */
const refine = (
  error: ModelError,
  type: string,
  code: string,
  message: string,
  status: number | undefined
): ModelError => {
  const { detail, model, provider, requestId, status: known } = error
  const as = (reason: ModelError["reason"]): ModelError =>
    new ModelError(defined({ provider, reason, model, detail, status: known, requestId }))
  const [, input, output, limit] = /exceed context limit: (\d+) \+ (\d+) > (\d+)/.exec(message) ?? []
  if (limit !== undefined) {
    return as({ _tag: "ContextOverflow", limit: number(limit), used: number(input) + number(output) })
  }
  if (status === 413 || type === "request_too_large") return as({ _tag: "ContextOverflow" })
  if (/credit balance is too low/i.test(message) || /spend_limit|ramp_limit/.test(code)) {
    return as({ _tag: "QuotaExhausted" })
  }
  if (/^(ExpiredToken|UnrecognizedClient|InvalidSignature|IncompleteSignature|MissingAuthentication)/.test(type)) {
    return as({ _tag: "Authentication" })
  }
  return error
}

const errorOf = (
  origin: Origin,
  failure: {
    readonly status: number | undefined
    readonly type: string
    readonly code?: string | undefined
    readonly message: string
    readonly headers?: HeaderReader | undefined
  }
): ModelError => {
  const { code, headers, message, status, type } = failure
  const implied = status ?? valueAt(statuses, type)
  const error = providerError(origin, { type, message, status: implied, code, headers })
  const refined = refine(error, type, code ?? "", message, implied)
  if (status !== undefined) return refined
  // The HTTP status of an error inside a stream was 200.
  const { detail, model, provider, reason, requestId } = refined
  return new ModelError(defined({ provider, reason, model, detail, requestId }))
}

/** The error of an answer that the decoder did not accept. */
export const faultError = (origin: Origin, fault: Fault): ModelError =>
  fault._tag === "Protocol"
    ? badResponse(origin, fault.problem)
    : errorOf(origin, { status: undefined, type: fault.type, message: fault.message })

const authentication = (origin: Origin, detail: string): ModelError =>
  new ModelError({
    provider: origin.provider,
    model: origin.model,
    reason: { _tag: "Authentication" },
    detail: toldBy(origin, detail)
  })

/** The provider's own words for a failure with a status, from `{ error: { message } }` or AWS's `{ message }`. */
const messageOf = (cause: unknown, body: unknown): string =>
  (
    stringOf(fieldOf(body, "error"), "message") ??
    stringOf(body, "message") ??
    stringOf(body, "Message") ??
    (stringOf(cause, "message") ?? "").replace(/^\d{3} /, "")
  ).slice(0, longestSaid + 1)

const apiError = (origin: Origin, cause: unknown): ModelError | undefined => {
  const body = fieldOf(cause, "error")
  const status = fieldOf(cause, "status")
  if (body === undefined && typeof status !== "number") return undefined
  const headers = headersOf(cause)
  // `ThrottlingException:http://internal.amazon.com/…`
  const awsType = headers?.get("x-amzn-errortype")?.split(":")[0]
  const type = stringOf(cause, "type") ?? awsType ?? ""
  return errorOf(origin, {
    status: typeof status === "number" ? status : undefined,
    type,
    message: messageOf(cause, body),
    headers,
    code: stringOf(cause, "errorCode")
  })
}

/** The error of a request that failed, or of an answer that broke off. */
export const requestError = (origin: Origin, cause: unknown): ModelError => {
  const sdkError = apiError(origin, cause)
  if (sdkError !== undefined) return sdkError
  const name = stringOf(cause, "name") ?? ""
  const message = stringOf(cause, "message") ?? ""
  const below = fieldOf(cause, "cause")
  if (name === "APIConnectionTimeoutError") return connectionError(origin, cause, { timedOut: true })
  if (stringOf(below, "name") === "CredentialsProviderError") {
    return authentication(origin, "no AWS credentials were found: set AWS_PROFILE, AWS_ACCESS_KEY_ID or a bearer token")
  }
  if (/authentication method/i.test(message)) {
    return authentication(origin, "there is no API key: set ANTHROPIC_API_KEY, or give apiKey")
  }
  if (/credential|api ?key/i.test(message) || name === "WorkloadIdentityError") {
    return authentication(origin, message)
  }
  if (name === "SyntaxError") return badResponse(origin, "an event is not JSON")
  if (/checksum|truncated event|bedrock chunk|no body/i.test(message)) {
    return badResponse(origin, message.replace(/ into JSON:.*/s, " as JSON"))
  }
  return stumbled(origin, cause) ?? connectionError(origin, cause)
}

/**
 * Reports whether thinking was refused because the conversation before it reads differently than when it was thought.
 */
export const isMovedThinking = (cause: unknown): boolean =>
  fieldOf(cause, "status") === 400 &&
  /bound to a different conversation|block_binding/.test(messageOf(cause, fieldOf(cause, "error")))
