/** The official SDK, as the requests that a model makes with it. */
import type { Anthropic as AnthropicSdk } from "@anthropic-ai/sdk"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { isModelError, type ModelError } from "../../../core/ModelError.ts"
import { type Origin, refuseAddress } from "../wire/errors.ts"
import { loadPeer } from "../wire/peer.ts"
import { readServerEvents } from "../wire/serverEvents.ts"
import type { Vertex } from "../wire/vertex.ts"
import { betaHeader, clientOptions, type Connection } from "./connection.ts"
import { requestError } from "./failure.ts"
import { isLast, type OutgoingRequest, type Send } from "./session.ts"
import { eventsOf } from "./wholeAnswer.ts"
import type { Prompt } from "./wire.ts"

export interface Transport {
  /** The address of the server. */
  readonly address: string
  readonly send: Send
  /** The headers of a request by itself: its version of the API, and its beta features. */
  readonly headersOf: (request: Pick<OutgoingRequest, "betas" | "body">) => Record<string, string>
  /** Calls the SDK once. */
  readonly call: <A>(use: (client: AnthropicSdk, signal: AbortSignal) => Promise<A>) => Effect.Effect<A, ModelError>
  readonly countTokens: (
    prompt: Prompt,
    betas: ReadonlyArray<string>,
    signal: AbortSignal,
    token?: string
  ) => Promise<unknown>
}

const sampling = ["temperature", "top_p", "top_k"]

/** The last API version that knows of sampling parameters. */
const samplingVersion = "2023-06-01"

const versionHeader = (body: Prompt): Record<string, string> =>
  sampling.some((name) => name in body) ? { "anthropic-version": samplingVersion } : {}

const json = { "content-type": "application/json" }

/** The session ends the request when somebody leaves. */
const eventsIn = (response: Response, origin: Origin): AsyncIterable<ReadonlyArray<unknown>> =>
  readServerEvents(() => Promise.resolve(response), { origin, eventsOf, isLast })

const vertexVersion = "vertex-2023-10-16"

const locationOf = ({ location = "global" }: Pick<Vertex, "location">): string => encodeURIComponent(location)

/** The address of Vertex AI: those of `us` and `eu` have a form of their own. */
const vertexRoot = (vertex: Pick<Vertex, "location">, baseURL: string | undefined): string => {
  if (baseURL !== undefined) return baseURL
  const location = locationOf(vertex)
  if (location === "global") return "https://aiplatform.googleapis.com/v1"
  return location === "us" || location === "eu"
    ? `https://aiplatform.${location}.rep.googleapis.com/v1`
    : `https://${location}-aiplatform.googleapis.com/v1`
}

/** Loads the SDK and makes a client. */
export const make = Effect.fnUntraced(function* (
  connection: Connection & {
    readonly apiKey?: Redacted.Redacted | undefined
    readonly vertex?: Pick<Vertex, "project" | "location"> | undefined
  },
  from: Origin
): Effect.fn.Return<Transport, ModelError> {
  const refused = refuseAddress(from, connection.baseURL)
  if (refused !== undefined) return yield* refused
  const { Anthropic } = yield* loadPeer(from, "@anthropic-ai/sdk", () => import("@anthropic-ai/sdk"))
  const { apiKey, vertex } = connection
  const client = yield* Effect.try({
    try: () =>
      new Anthropic({
        ...clientOptions(connection, from, { isReaderBound: true }),
        ...(vertex === undefined
          ? { apiKey: apiKey === undefined ? undefined : Redacted.value(apiKey) }
          : // Each request has a token of its own.
            { apiKey: null, authToken: null, baseURL: vertexRoot(vertex, connection.baseURL) })
      }),
    catch: (cause) => requestError(from, cause)
  })
  // The SDK may have it from its environment variable.
  const origin: Origin = { ...from, address: client.baseURL }
  const plain = {
    address: client.baseURL,
    headersOf: ({ betas, body }: Pick<OutgoingRequest, "betas" | "body">) => ({
      ...versionHeader(body),
      ...betaHeader(connection, betas)
    }),
    call: <A>(use: (sdk: AnthropicSdk, signal: AbortSignal) => Promise<A>) =>
      Effect.tryPromise({
        try: (signal) => use(client, signal),
        catch: (cause) => (isModelError(cause) ? cause : requestError(origin, cause))
      })
  }
  if (vertex !== undefined) {
    const at = (model: string) =>
      `/projects/${encodeURIComponent(vertex.project)}/locations/${locationOf(vertex)}/publishers/anthropic/models/${encodeURIComponent(model)}`
    const headersOf = (betas: ReadonlyArray<string>, token: string | undefined): Record<string, string> => ({
      ...betaHeader(connection, betas),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` })
    })
    return {
      ...plain,
      send: async ({ betas, body: { model, ...body }, origin: own, signal, token }) => {
        const response = await client
          .post(`${at(model)}:streamRawPredict`, {
            body: { anthropic_version: vertexVersion, ...body },
            signal,
            stream: true,
            headers: headersOf(betas, token)
          })
          .asResponse()
        return eventsIn(response, own)
      },
      countTokens: async (prompt, betas, signal, token) =>
        client.post<unknown>(`${at("count-tokens")}:rawPredict`, {
          body: { anthropic_version: vertexVersion, ...prompt },
          signal,
          headers: headersOf(betas, token)
        })
    }
  }
  return {
    ...plain,
    // `messages.create` warns on the console about models and thinking, and knows no sampling parameters any more.
    send: async ({ betas, body, origin: own, signal, text }) => {
      const headers = { ...json, ...plain.headersOf({ betas, body }) }
      const response = await client.post("/v1/messages", { body: text, signal, stream: true, headers }).asResponse()
      return eventsIn(response, own)
    },
    countTokens: async (prompt, betas, signal) =>
      client.post<unknown>("/v1/messages/count_tokens", {
        body: prompt,
        signal,
        headers: betaHeader(connection, betas)
      })
  }
})
