/** The two requests to an Ollama server: a model's abilities, and a turn as lines of JSON. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type * as Stream from "effect/Stream"
import { fromAsyncIterable } from "../../../core/ChatModel.ts"
import { isModelError, ModelError } from "../../../core/ModelError.ts"
import { bearer, revealed, secretsIn } from "../../../support/store/redacted.ts"
import { connectionError, type Origin, providerError } from "../wire/errors.ts"
import { guardedFetch, timeoutOf } from "../wire/guardedFetch.ts"
import { linesOf } from "../wire/lines.ts"
import { patiently } from "../wire/patience.ts"
import { countOf, listOf, objectOf, parse, stringOf } from "../wire/read.ts"
import { textsOf } from "../wire/secrets.ts"

/** Settings of the connection to a server. */
export interface Connection {
  readonly baseURL?: string | undefined
  readonly apiKey?: Redacted.Redacted | undefined
  readonly headers?: Readonly<Record<string, string | Redacted.Redacted>> | undefined
  readonly fetch?: typeof globalThis.fetch | undefined
  readonly timeout?: Duration.Input | undefined
}

/** Facts about a model from the server. Missing facts stay undefined. */
export interface ShownModel {
  readonly contextLength?: number | undefined
  readonly abilities?: ReadonlySet<string> | undefined
}

export interface Client {
  readonly show: Effect.Effect<ShownModel>
  /** Sends the JSON of a request and streams the lines of its answer. Errors name the origin. */
  readonly chat: (origin: Origin, text: string) => Stream.Stream<string, ModelError>
  readonly originOf: (body: object) => Origin
}

const home = "http://localhost:11434"

/** The time-out for a model's abilities, which the server reads from a file. */
const patience = "5 seconds"

/**
 * Normalises an address as people write it: without a scheme, or with the `/v1` of compatible APIs. `undefined` if it
 * is invalid.
 */
export const addressOf = (baseURL: string = home): string | undefined => {
  const address = /^https?:\/\//i.test(baseURL) ? baseURL : `http://${baseURL}`
  return URL.parse(address.replace(/\/+$/, "").replace(/\/(?:v1|api)$/, ""))?.href.replace(/\/$/, "")
}

/** The time that a model stays in memory, in the API's seconds: less than none is for ever. */
export const secondsOf = (keepAlive: Duration.Input): number => {
  const seconds = Duration.toSeconds(keepAlive)
  return Number.isFinite(seconds) ? Math.round(seconds) : -1
}

const shownOf = (text: string): ShownModel => {
  const parsed = parse(text)
  const it = Result.isSuccess(parsed) ? objectOf(parsed.success) : undefined
  const info = objectOf(it?.["model_info"]) ?? {}
  const length = Object.entries(info).find(([key]) => key.endsWith(".context_length"))?.[1]
  const abilities = it?.["capabilities"]
  return {
    contextLength: countOf(length) || undefined,
    abilities: Array.isArray(abilities) ? new Set(listOf(abilities).flatMap((one) => stringOf(one) ?? [])) : undefined
  }
}

/** Words of the server on a failure. */
export const messageOf = (text: string): string => {
  const parsed = parse(text)
  const error = Result.isSuccess(parsed) ? objectOf(parsed.success)?.["error"] : undefined
  return stringOf(error) ?? stringOf(objectOf(error)?.["message"]) ?? (text.trimStart().startsWith("<") ? "" : text)
}

/** Makes a client. It fails if the address is invalid. */
export const makeClient = Effect.fnUntraced(function* (
  connection: Connection,
  { model, provider }: Pick<Origin, "provider" | "model">
): Effect.fn.Return<Client, ModelError> {
  const { apiKey, baseURL, timeout } = connection
  const root = addressOf(baseURL)
  if (root === undefined) {
    return yield* new ModelError({
      provider,
      model,
      reason: { _tag: "InvalidRequest" },
      detail: `baseURL is no address: one looks like ${home}`
    })
  }
  const headers = revealed({ "content-type": "application/json", ...bearer(apiKey), ...connection.headers })
  const secrets = secretsIn([apiKey, ...Object.values(connection.headers ?? {})])
  const origin: Origin = { provider, model, secrets, address: root }
  const fetch = guardedFetch(connection.fetch ?? globalThis.fetch, origin, { timeout })
  const post = (path: string, body: string, signal: AbortSignal): Promise<Response> =>
    fetch(`${root}/api/${path}`, {
      method: "POST",
      headers,
      body,
      signal
    })

  const originOf = (body: object): Origin => ({ ...origin, said: () => textsOf(body, "request") })

  async function* answer(own: Origin, text: string, signal: AbortSignal): AsyncGenerator<string> {
    const response = await post("chat", text, signal)
    if (!response.ok) {
      const message = messageOf(await response.text())
      await Promise.reject(providerError(own, { status: response.status, message, headers: response.headers }))
    }
    yield* linesOf(response.body, own)
  }

  return {
    originOf,
    show: Effect.tryPromise((signal) =>
      post("show", JSON.stringify({ model }), signal).then((it) => (it.ok ? it.text() : ""))
    ).pipe(
      Effect.timeout(patience),
      Effect.map(shownOf),
      Effect.orElseSucceed(() => ({}))
    ),
    chat: (own, text) =>
      fromAsyncIterable(
        patiently((signal) => answer(own, text, signal), own, timeoutOf(timeout)),
        (cause) => (isModelError(cause) ? cause : connectionError(own, cause))
      )
  }
})
