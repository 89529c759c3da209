/** One request to the provider, and its answer as the parts of a turn. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { ModelRequest, TurnPart } from "../../../src/core/ChatModel.ts"
import { type ModelError } from "../../../src/core/ModelError.ts"
import { badResponse, connectionError, type Origin, providerError } from "../../../src/models/internal/wire/errors.ts"
import { guardedFetch } from "../../../src/models/internal/wire/guardedFetch.ts"
import { decodeAnswer } from "./decode.ts"
import { toBody } from "./request.ts"

/** Settings of a connection to the provider. */
export interface Connection {
  readonly model: string
  readonly apiKey: Redacted.Redacted
  readonly baseURL?: string | undefined
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** Makes the function that asks for one turn. */
export const makeAsk = ({ apiKey, baseURL = "https://api.example.com", fetch, model }: Connection) => {
  const origin: Origin = { provider: "skeleton", model, secrets: [Redacted.value(apiKey)] }
  const send = guardedFetch(fetch ?? globalThis.fetch, origin, {})
  return Effect.fnUntraced(function* (request: ModelRequest): Effect.fn.Return<ReadonlyArray<TurnPart>, ModelError> {
    const response = yield* Effect.tryPromise({
      try: (signal) =>
        send(`${baseURL}/chat`, {
          method: "POST",
          headers: { "content-type": "application/json", authorization: `Bearer ${Redacted.value(apiKey)}` },
          body: JSON.stringify(toBody(model, request)),
          signal
        }),
      catch: (cause) => connectionError(origin, cause)
    })
    const text = yield* Effect.tryPromise({
      try: () => response.text(),
      catch: (cause) => connectionError(origin, cause)
    })
    if (!response.ok) {
      return yield* providerError(origin, { status: response.status, headers: response.headers, message: text })
    }
    return yield* Effect.mapError(decodeAnswer(text), (problem) => badResponse(origin, problem))
  })
}
