/**
 * The official SDK, as the two requests that a model makes with it.
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { ModelError } from "../../../core/ModelError.ts"
import type { Origin } from "../errors.ts"
import { loadPeer } from "../peer.ts"
import { betaHeader, clientOptions, type Connection } from "./connection.ts"
import { requestError } from "./failure.ts"
import type { Send } from "./session.ts"
import type { Prompt } from "./wire.ts"

export interface Transport {
  readonly send: Send
  readonly countTokens: (prompt: Prompt, betas: ReadonlyArray<string>, signal: AbortSignal) => Promise<unknown>
}

const sampling = ["temperature", "top_p", "top_k"]

/** The last API version that knows of sampling parameters. */
const samplingVersion = "2023-06-01"

const versionHeader = (body: Prompt): Record<string, string> =>
  sampling.some((name) => name in body) ? { "anthropic-version": samplingVersion } : {}

/** Loads the SDK and makes a client. */
export const make = Effect.fnUntraced(function* (
  connection: Connection & { readonly apiKey?: Redacted.Redacted | undefined },
  origin: Origin
): Effect.fn.Return<Transport, ModelError> {
  const { Anthropic } = yield* loadPeer(origin, "@anthropic-ai/sdk", () => import("@anthropic-ai/sdk"))
  const { apiKey } = connection
  const client = yield* Effect.try({
    try: () =>
      new Anthropic({
        ...clientOptions(connection, origin),
        apiKey: apiKey === undefined ? undefined : Redacted.value(apiKey)
      }),
    catch: (cause) => requestError(origin, cause)
  })
  return {
    // `messages.create` warns on the console about models and thinking, and knows no sampling parameters any more.
    send: async (body, betas, signal) =>
      client.post<AsyncIterable<unknown>>("/v1/messages", {
        body,
        signal,
        stream: true,
        headers: { ...versionHeader(body), ...betaHeader(connection, betas) }
      }),
    countTokens: async (prompt, betas, signal) =>
      client.post<unknown>("/v1/messages/count_tokens", {
        body: prompt,
        signal,
        headers: betaHeader(connection, betas)
      })
  }
})
