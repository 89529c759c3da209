/** Gemini's streaming request, at Google's own address and on Vertex AI: server-sent events, read without trust. */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type * as Stream from "effect/Stream"
import type { JsonObject } from "../../../core/Json.ts"
import { isModelError, type ModelError } from "../../../core/ModelError.ts"
import { fromAsyncArrays } from "../../../support/effect/asyncIterable.ts"
import { revealed, secretsIn } from "../../../support/store/redacted.ts"
import { failureOf } from "../openai/failure.ts"
import type { Upload, UploadedFile } from "../turn/uploads.ts"
import { connectionError, type Origin, providerError, stumbled } from "../wire/errors.ts"
import { guardedFetch, timeoutOf } from "../wire/guardedFetch.ts"
import { patiently } from "../wire/patience.ts"
import { objectOf, objectsOf, parse, stringOf } from "../wire/read.ts"
import { textsOf } from "../wire/secrets.ts"
import { readServerEvents } from "../wire/serverEvents.ts"
import type { Vertex } from "../wire/vertex.ts"
import { makeUpload } from "./upload.ts"

/** Settings of the connection. */
export interface Connection {
  /** The address of the API. Default: Google's own. */
  readonly baseURL?: string | undefined
  /** A project of Google Cloud, instead of the Gemini API. Default: none. */
  readonly vertex?: Vertex | undefined
  /** Headers of each request. Default: none. */
  readonly headers?: Readonly<Record<string, string | Redacted.Redacted>> | undefined
  /** Makes HTTP requests. Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** Time that an answer may take to begin, and then to go on each time. Default: 10 minutes. */
  readonly timeout?: Duration.Input | undefined
}

export interface Client {
  /** Uploads a file to the Gemini API. */
  readonly upload: (file: Upload) => Effect.Effect<UploadedFile, ModelError>
  /** Sends the JSON of a request and streams the events of its answer. Errors name the origin. */
  readonly stream: (origin: Origin, text: string) => Effect.Effect<Stream.Stream<unknown, ModelError>, ModelError>
  readonly originOf: (body: object) => Origin
}

/** Google's own address. */
const home = "https://generativelanguage.googleapis.com/v1beta"

const rootOf = ({ baseURL, vertex }: Connection): string => {
  const own = baseURL?.replace(/\/+$/, "")
  if (vertex === undefined) return own ?? home
  const location = vertex.location ?? "global"
  const host = location === "global" ? "" : `${encodeURIComponent(location)}-`
  const project = encodeURIComponent(vertex.project)
  const root = own ?? `https://${host}aiplatform.googleapis.com/v1`
  return `${root}/projects/${project}/locations/${encodeURIComponent(location)}/publishers/google`
}

const pathOf = (model: string): string =>
  (model.includes("/") ? model : `models/${model}`).split("/").map(encodeURIComponent).join("/")

/** Google says in the details of an error how long to wait: `{ "retryDelay": "7s" }`. */
const retryAfter = (error: JsonObject | undefined): string | undefined =>
  objectsOf(error?.["details"]).flatMap((detail) => {
    const seconds = /^(\d+(?:\.\d+)?)s$/.exec(stringOf(detail["retryDelay"]) ?? "")?.[1]
    return seconds === undefined ? [] : [seconds]
  })[0]

/** Finds the specific code in the details: an invalid key is reported as an invalid argument. */
const codeOf = (error: JsonObject | undefined): string | undefined =>
  objectsOf(error?.["details"]).some(({ reason }) => reason === "API_KEY_INVALID") ? "invalid_api_key" : undefined

/** Reads an error as Google writes it: an object, alone or in a list. */
export const errorOf = (origin: Origin, json: unknown, response?: Pick<Response, "status" | "headers">): ModelError => {
  const body = objectOf(Array.isArray(json) ? json[0] : json)
  const error = objectOf(body?.["error"]) ?? body
  const failure = failureOf(error ?? stringOf(json))
  const wait = retryAfter(error)
  return providerError(origin, {
    ...failure,
    code: failure.code ?? codeOf(error),
    status: response?.status ?? failure.status,
    type: failure.type ?? stringOf(error?.["status"]),
    headers: {
      get: (name) => response?.headers.get(name) ?? (name === "retry-after" ? wait : undefined)
    }
  })
}

/** Without a stream, an answer is a list of the chunks. */
const eventsOf = (answer: unknown): ReadonlyArray<unknown> | undefined => {
  const chunks = Array.isArray(answer) ? objectsOf(answer) : objectsOf([answer])
  return chunks.some((chunk) => "candidates" in chunk || "promptFeedback" in chunk) ? chunks : undefined
}

/** Makes a client. */
export const makeClient = (
  connection: Connection,
  key: Redacted.Redacted | undefined,
  { model, provider }: Pick<Origin, "provider" | "model">
): Client => {
  const { timeout, vertex } = connection
  const own = { "content-type": "application/json", ...(key === undefined ? {} : { "x-goog-api-key": key }) }
  const allHeaders = { ...own, ...connection.headers }
  const headers = revealed(allHeaders)
  const secrets = secretsIn(Object.values(allHeaders))
  const origin: Origin = { provider, model, secrets, address: rootOf(connection) }
  const fetch = guardedFetch(connection.fetch ?? globalThis.fetch, origin, { timeout, isReaderBound: true })
  const url = `${rootOf(connection)}/${pathOf(model)}:streamGenerateContent?alt=sse`

  const refuse = async (own: Origin, response: Response): Promise<never> => {
    const text = await response.text()
    const parsed = parse(text)
    const page = text.trimStart().startsWith("<") ? "the server answered with a web page" : text
    return Promise.reject(errorOf(own, Result.isSuccess(parsed) ? parsed.success : page, response))
  }

  const send = async (body: string, token: string | undefined, own: Origin, signal: AbortSignal): Promise<Response> => {
    const response = await fetch(url, {
      method: "POST",
      headers: token === undefined ? headers : { ...headers, authorization: `Bearer ${token}` },
      body,
      signal
    })
    return response.ok ? response : refuse(own, response)
  }

  const originOf = (body: object): Origin => ({
    ...origin,
    answered: {},
    said: () => textsOf(body, "request")
  })

  const upload = makeUpload({ root: rootOf(connection), headers, origin, fetch, refuse })
  return {
    originOf,
    upload: (file) =>
      Effect.tryPromise({
        try: (signal) => upload(file, signal),
        catch: (cause) => (isModelError(cause) ? cause : (stumbled(origin, cause) ?? connectionError(origin, cause)))
      }),
    stream: Effect.fnUntraced(function* (requestOrigin, text) {
      const token = vertex === undefined ? undefined : Redacted.value(yield* vertex.accessToken)
      const own = token === undefined ? requestOrigin : { ...requestOrigin, secrets: [...secrets, token] }
      return fromAsyncArrays(
        patiently(
          (abandonSignal) =>
            readServerEvents((signal) => send(text, token, own, signal), { origin: own, eventsOf }, abandonSignal),
          own,
          timeoutOf(timeout)
        ),
        (cause) => (isModelError(cause) ? cause : (stumbled(own, cause) ?? connectionError(own, cause)))
      )
    })
  }
}
