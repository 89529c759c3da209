/** One JSON request to a server, and the text of its answer: for APIs without streams. */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { isModelError, type ModelError } from "../../../core/ModelError.ts"
import { type GivenHeaders, revealed, secretsIn } from "../../../support/store/redacted.ts"
import { connectionError, type Origin } from "./errors.ts"
import { guardedFetch, timeoutOf } from "./guardedFetch.ts"
import { silent } from "./patience.ts"

/** The address of a request, and the reader of its failures. */
export interface Endpoint {
  readonly provider: string
  readonly model: string
  readonly url: string
  /** Secrets are `Redacted`. */
  readonly headers: GivenHeaders
  readonly fetch?: typeof globalThis.fetch | undefined
  readonly timeout: Duration.Input
  readonly hints?: Origin["hints"]
  readonly failure: (origin: Origin, text: string, response: Response) => ModelError
}

/** The text of an answer, and the origin for failures of its reader. */
export interface PostAnswer {
  readonly origin: Origin
  readonly text: string
}

/** Makes the sender of requests to an endpoint. Failures hide secrets, and the texts in `said`. */
export const makePost = ({ failure, headers, hints, model, provider, timeout, url, ...rest }: Endpoint) => {
  const allHeaders = { "content-type": "application/json", ...headers }
  const plainHeaders = revealed(allHeaders)
  const secrets = secretsIn(Object.values(allHeaders)).map((secret) => secret.replace(/^Bearer /, ""))
  return (
    body: object,
    collectTexts: () => Iterable<string>,
    token?: Redacted.Redacted
  ): Effect.Effect<PostAnswer, ModelError> => {
    const value = token === undefined ? [] : [Redacted.value(token)]
    const origin: Origin = { provider, model, secrets: [...secrets, ...value], said: collectTexts, hints, address: url }
    const authorised = { ...plainHeaders, ...(value.length === 0 ? {} : { authorization: `Bearer ${value.join("")}` }) }
    const fetch = guardedFetch(rest.fetch ?? globalThis.fetch, origin, { timeout })
    const ask = async (signal: AbortSignal): Promise<PostAnswer> => {
      const init = { method: "POST", headers: authorised, body: JSON.stringify(body), signal }
      const response = await fetch(url, init)
      const text = await response.text()
      return response.ok ? { origin, text } : Promise.reject(failure(origin, text, response))
    }
    const idle = timeoutOf(timeout)
    return Effect.tryPromise({
      try: ask,
      catch: (cause) => (isModelError(cause) ? cause : connectionError(origin, cause))
    }).pipe(Effect.timeoutOrElse({ duration: idle, orElse: () => Effect.fail(silent(origin, idle)) }))
  }
}
