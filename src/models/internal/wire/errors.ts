/** Makes a `ModelError` of a provider's failure, without secrets and parts of the request. */
import { ModelError, type Reason } from "../../../core/ModelError.ts"
import { type HeaderReader, readRetryAfter } from "../../../support/http/retryAfter.ts"
import { defined } from "../../../support/json/defined.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import { tooDeep } from "../schema/nesting.ts"
import { overflowOf } from "./overflow.ts"
import { type Confidential, hide, longestSaid } from "./secrets.ts"

/** The model that a failure is of, and the texts that must not be in it: keys, secret headers, texts of the request. */
export interface Origin extends Confidential {
  readonly provider: string
  readonly model: string
  /** The address of the server. Only its scheme, host and port are shown. */
  readonly address?: string | undefined
  /** What to do after a status, instead of the general hint. */
  readonly hints?: { readonly [status: number]: string | undefined } | undefined
  /** The response to this request, once it is there: its headers name the request. */
  readonly answered?: { headers?: HeaderReader } | undefined
}

/** A failure that the provider told. `code` and `type` are its own words for it; there is no status inside a stream. */
export interface ProviderFailure {
  readonly status?: number | undefined
  readonly headers?: HeaderReader | undefined
  readonly code?: string | undefined
  readonly type?: string | undefined
  readonly message?: string | undefined
}

/** The longest text of a provider that is passed on, in characters. */
const longest = 600

/** As much of a text as is passed on. */
export const shortened = (text: string): string =>
  text.length > longest ? `${text.slice(0, longest).toWellFormed()}…` : text

/** Gives the words of a provider, fit to be shown: nothing confidential, and no more than anybody reads. */
export const toldBy = (origin: Origin, text: string): string => {
  return shortened(hide(text, origin).trim())
}

/** The names that providers have for things, as one is found in a code or a type. */
const words: ReadonlyArray<readonly [RegExp, Exclude<Reason["_tag"], "ContextOverflow">]> = [
  [/insufficient_quota|billing|credit_balance|quota_exceeded|payment_required/, "QuotaExhausted"],
  [/rate_?limit|too_many_requests|throttl/, "RateLimited"],
  [
    /content_?filter|content_policy|responsibleai|safety|(?:bio|misalignment)_policy|moderation|sensitive/,
    "ContentFiltered"
  ],
  [/invalid_api_key|authentication|unauthorized/, "Authentication"],
  [/permission|forbidden|access_denied|not_authorized/, "Permission"],
  [/overloaded|unavailable|server_error|internal_error|api_error|engine_busy/, "Overloaded"],
  [/timeout|timed_out/, "Timeout"],
  [/invalid|unsupported|not_supported|too_(?:large|small)|parse_error|failed_to_download|not_found/, "InvalidRequest"]
]

/** The words of a message without code and status, as gateways write them. */
const phrases: ReadonlyArray<readonly [RegExp, Exclude<Reason["_tag"], "ContextOverflow">]> = [
  [
    /(?:invalid|incorrect|bad|wrong|missing|expired|no).{0,20}\b(?:api[ _-]?)?(?:key|token)\b|unauthorized|unauthenticated/i,
    "Authentication"
  ],
  [/insufficient.{0,20}(?:quota|credit|balance|funds)|quota exceeded/i, "QuotaExhausted"],
  [/rate.?limit|too many requests/i, "RateLimited"],
  [/forbidden|permission denied|access denied/i, "Permission"],
  [/overloaded|(?:temporarily )?unavailable|try again later|internal (?:server )?error/i, "Overloaded"],
  [/timed? ?out/i, "Timeout"],
  [/(?:model|deployment).{0,80}(?:not found|does not exist|is not supported)/i, "InvalidRequest"]
]

const byStatus = (status: number): Reason["_tag"] => {
  switch (status) {
    case 401:
      return "Authentication"
    case 402:
      return "QuotaExhausted"
    case 403:
      return "Permission"
    case 408:
    case 504:
    case 524:
      return "Timeout"
    // A lock of another request is free soon; "too early" is the same.
    case 409:
    case 425:
      return "Overloaded"
    case 429:
      return "RateLimited"
    case 501:
      return "Unsupported"
    default:
      return status >= 500 ? "Overloaded" : status >= 300 ? "InvalidRequest" : "Unknown"
  }
}

/** Finds the reason that a failure names, in its code and type, else in its message. */
const wordOf = (named: string, message = ""): Exclude<Reason["_tag"], "ContextOverflow"> | undefined =>
  words.find(([pattern]) => pattern.test(named))?.[1] ??
  phrases.find(([pattern]) => pattern.test(message.slice(0, longest)))?.[1]

const reasonOf = (failure: ProviderFailure): Reason => {
  const { headers, status } = failure
  const named = `${(failure.code ?? "").slice(0, longest)} ${(failure.type ?? "").slice(0, longest)}`.toLowerCase()
  const overflow = overflowOf(named, (failure.message ?? "").slice(0, longestSaid), status)
  if (overflow !== undefined) return overflow
  // The body is too large for the server.
  if (status === 413) return { _tag: "ContextOverflow" }
  const word = wordOf(named, status === undefined ? failure.message : undefined)
  const plain = status === undefined ? undefined : byStatus(status)
  // A status says more than a word that many failures share: `invalid_request_error` is said of a missing key too.
  const vague = word === undefined || word === "Overloaded" || word === "RateLimited" || word === "InvalidRequest"
  const tag = plain === undefined || plain === "Unknown" ? (word ?? "Unknown") : vague ? plain : word
  if (tag !== "RateLimited" && tag !== "Overloaded") return { _tag: tag }
  const wait = readRetryAfter(headers)
  return wait === undefined ? { _tag: tag } : { _tag: tag, retryAfter: wait }
}

const hints: { readonly [status: number]: string } = {
  404: "is the base URL right, and the model's name?",
  405: "is the base URL right?"
}

/** Reports whether a server knows the path of a request, but not its model. */
const isModelMissing = ({ code = "", message = "", type = "" }: ProviderFailure): boolean =>
  /model_not_(?:found|exist)/.test(`${code} ${type}`.slice(0, longest)) ||
  /\bmodel\b.{0,80}(?:not found|not exist|not loaded)|\bno such model\b/i.test(message.slice(0, longest))

/** What to do after a failure, by its status. The hint of a server is about its paths, and not about its models. */
const hintOf = (origin: Origin, failure: ProviderFailure): string | undefined => {
  const { status } = failure
  if (status === undefined) return undefined
  return (isModelMissing(failure) ? undefined : origin.hints?.[status]) ?? hints[status]
}

/** Makes the error of a failure that the provider told. */
export const providerError = (origin: Origin, failure: ProviderFailure): ModelError => {
  const { code, headers = origin.answered?.headers, message, status } = failure
  const serverMessage = message === undefined ? "" : toldBy(origin, message)
  const hint = hintOf(origin, failure)
  const named = code === undefined || serverMessage.includes(code) ? [] : [`[${toldBy(origin, code)}]`]
  const detail = [...named, serverMessage, ...(hint === undefined ? [] : [`(${hint})`])]
    .filter((text) => text !== "")
    .join(" ")
  const requestId =
    headers?.get("x-request-id") ?? headers?.get("request-id") ?? headers?.get("apim-request-id") ?? undefined
  return new ModelError(
    defined({
      provider: origin.provider,
      model: origin.model,
      reason: reasonOf(failure),
      detail: detail === "" ? undefined : detail,
      status,
      requestId: requestId === undefined ? undefined : toldBy(origin, requestId)
    })
  )
}

/** The failure of a request that sets a parameter which the run controls. */
export const reservedParameter = (provider: string, model: string, name: string): ModelError =>
  new ModelError({
    provider,
    model,
    reason: { _tag: "InvalidRequest" },
    detail: `parameters can't set "${name}": it is made from the run`
  })

/** Makes the error for an answer that violates the protocol. */
export const badResponse = (origin: Origin, detail: string): ModelError =>
  new ModelError({
    provider: origin.provider,
    model: origin.model,
    reason: { _tag: "BadResponse" },
    detail: toldBy(origin, detail)
  })

/**
 * Refuses an address without its scheme: `localhost:8000` is a URL of the scheme `localhost`. In place of an empty address,
 * SDKs would send the request of another server to their own provider.
 */
export const refuseAddress = (
  { model, provider }: Pick<Origin, "provider" | "model">,
  address: string | undefined
): ModelError | undefined => {
  if (address === undefined || /^https?:\/\//i.test(address)) return undefined
  const detail = `the base URL must begin with https:// or http://${address.trim() === "" ? ", and is empty" : ""}`
  return new ModelError({ provider, model, reason: { _tag: "InvalidRequest" }, detail })
}

/** Words of `fetch` for a header that it refuses to send. Node, Bun, Deno and browsers differ. */
const unsendable = /bytestring|header.{0,300}invalid|invalid.{0,40}header/is

/**
 * Makes the error for a request that `fetch` refused to send, or an answer that crashed an SDK (an undefined field, a
 * full stack). Connection failures are of the same type, but have a cause.
 */
export const stumbled = (origin: Origin, cause: unknown): ModelError | undefined => {
  if (cause instanceof RangeError) return badResponse(origin, tooDeep)
  if (cause instanceof TypeError && unsendable.test(cause.message.slice(0, longest))) {
    const { model, provider } = origin
    const detail =
      "a header, most likely the key's, has a character that can't be sent (such as … or a quotation mark); copy the key anew"
    return new ModelError({ provider, model, reason: { _tag: "Authentication" }, detail })
  }
  if (cause instanceof TypeError && /invalid url/i.test(cause.message.slice(0, longest))) {
    const { model, provider } = origin
    const detail = "the base URL is no address; one looks like https://example.com/v1"
    return new ModelError({ provider, model, reason: { _tag: "InvalidRequest" }, detail })
  }
  return cause instanceof TypeError && cause.cause === undefined
    ? badResponse(origin, "an event of the stream is not of the form of its protocol")
    : undefined
}

const isTimeout = (code: string): boolean => /TIMEDOUT|TIMEOUT|TimeoutError/.test(code)

/** The system's or the HTTP client's code at the bottom of an error's causes. */
const codeOf = (cause: unknown): string | undefined => {
  let code: string | undefined
  let at = cause
  for (let depth = 0; depth < 8 && typeof at === "object" && at !== null; depth++) {
    if ("code" in at && typeof at.code === "string") code = at.code
    else if ("name" in at && at.name === "TimeoutError") code = "TimeoutError"
    at = "errors" in at && Array.isArray(at.errors) ? at.errors[0] : "cause" in at ? at.cause : undefined
  }
  return code
}

/** Servers of this machine, and the commands that start them, by their usual ports. */
const localServers: { readonly [port: string]: string } = {
  11434: "Ollama (ollama serve)",
  1234: "the server of LM Studio (lms server start)",
  4000: "LiteLLM",
  8000: "vLLM (vllm serve)",
  8080: "llama-server"
}

const localHost = /^(?:localhost|0\.0\.0\.0|127\.\d+\.\d+\.\d+|\[::1\])$/

/** Names the server of a failed connection, without credentials and path, and says what to do. */
const describeServer = (address: URL, code: string | undefined, isRefused: boolean): string => {
  const at = `${address.protocol}//${address.host}`
  return isRefused
    ? `nothing listens at ${at}; start ${valueAt(localServers, address.port) ?? "the server"}, or change its address, baseURL`
    : `${code ?? "no connection"} at ${at}${code === "ECONNREFUSED" ? "; is the address right?" : ""}`
}

/**
 * Makes the error of a connection that failed or broke. Of the cause only its code is kept: its message may quote a URL
 * with credentials.
 */
export const connectionError = (
  origin: Origin,
  cause: unknown,
  options?: { readonly timedOut?: boolean | undefined }
): ModelError => {
  const code = codeOf(cause)
  const timedOut = options?.timedOut === true || (code !== undefined && isTimeout(code))
  const { address, model, provider } = origin
  if (timedOut) return new ModelError(defined({ provider, model, reason: { _tag: "Timeout" } as const, detail: code }))
  const url = address === undefined ? null : URL.parse(address)
  const isRefused = code === "ECONNREFUSED" && localHost.test(url?.hostname ?? "")
  return new ModelError(
    defined({
      provider,
      model,
      reason: { _tag: "Transport", ...(isRefused ? { isRefused } : {}) } as const,
      detail: url === null ? code : describeServer(url, code, isRefused)
    })
  )
}
