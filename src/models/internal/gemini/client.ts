/** Gemini's streaming request, at Google's own address and on Vertex AI: server-sent events, read without trust. */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type * as Stream from "effect/Stream"
import { fromAsyncIterable } from "../../../core/ChatModel.ts"
import type { JsonObject } from "../../../core/Json.ts"
import { isModelError, type ModelError } from "../../../core/ModelError.ts"
import { revealed, secretsIn } from "../../../support/store/redacted.ts"
import { failureOf } from "../openai/failure.ts"
import { badResponse, connectionError, type Origin, providerError, stumbled } from "../wire/errors.ts"
import { guardedFetch, timeoutOf } from "../wire/guardedFetch.ts"
import { patiently } from "../wire/patience.ts"
import { objectOf, objectsOf, parse, stringOf } from "../wire/read.ts"
import { textsOf } from "../wire/secrets.ts"
import type { Vertex } from "../wire/vertex.ts"

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
  /** The events of an answer. */
  readonly stream: (body: object) => Effect.Effect<Stream.Stream<unknown, ModelError>, ModelError>
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
export const errorOf = (
  origin: Origin,
  given: unknown,
  response?: Pick<Response, "status" | "headers">
): ModelError => {
  const body = objectOf(Array.isArray(given) ? given[0] : given)
  const error = objectOf(body?.["error"]) ?? body
  const failure = failureOf(error ?? stringOf(given))
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

/** Splits a body into server-sent events and returns the JSON of each, with any line ending. */
async function* eventsOf(body: ReadableStream<Uint8Array> | null, origin: Origin): AsyncGenerator<unknown> {
  const decoder = new TextDecoder()
  let begun = ""
  let data: Array<string> = []
  const flush = (): Result.Result<unknown, unknown> | undefined => {
    const text = data.join("\n")
    data = []
    return text.trim() === "" || text.trim() === "[DONE]" ? undefined : parse(text)
  }
  const take = (line: string): Result.Result<unknown, unknown> | undefined => {
    if (line === "") return flush()
    if (line.startsWith("data:")) data.push(line.slice(5).trimStart())
    // An error in the place of a stream is plain JSON.
    else if (data.length > 0 && !/^(?:event|id|retry)?:/.test(line)) data.push(line)
    else if (/^[[{]/.test(line)) data.push(line)
    return undefined
  }
  const checkEvent = async (event: Result.Result<unknown, unknown>): Promise<unknown> =>
    Result.isSuccess(event) ? event.success : Promise.reject(badResponse(origin, "an event of the stream is not JSON"))
  let returned = false
  for await (const chunk of body ?? []) {
    const text = decoder.decode(chunk, { stream: true })
    // The other half of an end of a line that was cut.
    const lines = (returned && text.startsWith("\n") ? text.slice(1) : text).split(/\r\n|\r|\n/)
    if (text !== "") returned = text.endsWith("\r")
    const last = lines.pop() ?? ""
    for (const line of lines) {
      const event = take(begun + line)
      begun = ""
      if (event !== undefined) yield await checkEvent(event)
    }
    begun += last
  }
  take(begun + decoder.decode())
  const event = flush()
  if (event !== undefined) yield await checkEvent(event)
}

/** Makes a client. */
export const makeClient = (
  connection: Connection,
  key: Redacted.Redacted | undefined,
  { model, provider }: Pick<Origin, "provider" | "model">
): Client => {
  const { timeout, vertex } = connection
  const own = { "content-type": "application/json", ...(key === undefined ? {} : { "x-goog-api-key": key }) }
  const given = { ...own, ...connection.headers }
  const headers = revealed(given)
  const secrets = secretsIn(Object.values(given))
  const origin: Origin = { provider, model, secrets }
  const fetch = guardedFetch(connection.fetch ?? globalThis.fetch, origin, { timeout })
  const url = `${rootOf(connection)}/${pathOf(model)}:streamGenerateContent?alt=sse`

  async function* answer(body: object, token: string | undefined, own: Origin, signal: AbortSignal) {
    const response = await fetch(url, {
      method: "POST",
      headers: token === undefined ? headers : { ...headers, authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
      signal
    })
    if (!response.ok) {
      const text = await response.text()
      const parsed = parse(text)
      const page = text.trimStart().startsWith("<") ? "the server answered with a web page" : text
      await Promise.reject(errorOf(own, Result.isSuccess(parsed) ? parsed.success : page, response))
    }
    yield* eventsOf(response.body, own)
  }

  const originOf = (body: object): Origin => ({ ...origin, said: () => textsOf(body, "request") })

  return {
    originOf,
    stream: Effect.fnUntraced(function* (body) {
      const token = vertex === undefined ? undefined : Redacted.value(yield* vertex.accessToken)
      const told = originOf(body)
      const own = token === undefined ? told : { ...told, secrets: [...secrets, token] }
      return fromAsyncIterable(
        patiently((signal) => answer(body, token, own, signal), own, timeoutOf(timeout)),
        (cause) => (isModelError(cause) ? cause : (stumbled(own, cause) ?? connectionError(own, cause)))
      )
    })
  }
}
