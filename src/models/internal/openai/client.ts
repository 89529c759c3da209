/** OpenAI's SDK, wrapped: streams that can be left, errors that are values, and nothing read from the environment. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import type * as OpenAiSdk from "openai"
import { isModelError, ModelError } from "../../../core/ModelError.ts"
import { fromAsyncArrays } from "../../../support/effect/asyncIterable.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import { revealed, secretsIn } from "../../../support/store/redacted.ts"
import { servers, variableOf } from "../servers/servers.ts"
import { connectionError, type Origin, providerError, refuseAddress, stumbled, toldBy } from "../wire/errors.ts"
import { guardedFetch, timeoutOf } from "../wire/guardedFetch.ts"
import { keyFrom } from "../wire/keys.ts"
import { patiently } from "../wire/patience.ts"
import { loadPeer } from "../wire/peer.ts"
import { objectOf, stringOf } from "../wire/read.ts"
import { textsOf } from "../wire/secrets.ts"
import { readServerEvents } from "../wire/serverEvents.ts"
import { errorBody, failedCall, failureOf } from "./failure.ts"

/** Settings of the connection to a server. */
export interface Connection {
  /**
   * Without a key, `baseURL` and `azure`, the key is read from `OPENAI_API_KEY`; with `azure` from
   * `AZURE_OPENAI_API_KEY`.
   */
  readonly apiKey?: Redacted.Redacted<string> | undefined
  /** Address of the API, its version included: `http://localhost:11434/v1`. OpenAI by default. */
  readonly baseURL?: string | undefined
  /**
   * An Azure OpenAI resource. Without `apiVersion` its v1 API is used; with one, the dated API. `accessToken` gives a
   * token of Entra ID for each request, in the place of a key.
   */
  readonly azure?:
    | {
        /** The address of the resource. */
        readonly endpoint: string
        /** The version of the dated API. Default: the v1 API. */
        readonly apiVersion?: string | undefined
        /** The name of the deployment. Default: the model's name. */
        readonly deployment?: string | undefined
        /** Gives a token for each request, instead of a key. Default: the key is used. */
        readonly accessToken?: Effect.Effect<Redacted.Redacted, ModelError> | undefined
      }
    | undefined
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string | Redacted.Redacted<string>>> | undefined
  /**
   * Used in the place of the global `fetch` (which goes through a proxy when node runs with `NODE_USE_ENV_PROXY=1`).
   */
  readonly fetch?: typeof globalThis.fetch | undefined
  /**
   * Time that an answer may take to begin, and then to go on each time. `ModelTimeout` limits a whole turn. Default: 10
   * minutes.
   */
  readonly timeout?: Duration.Input | undefined
  /** The organization that pays. Default: the key's own. */
  readonly organization?: string | undefined
  /** The project that pays. Default: the key's own. */
  readonly project?: string | undefined
}

const home = "https://api.openai.com/v1"

/** Tells who answers at the address, by the name for messages and errors. */
export const targetOf = (connection: Connection): "openai" | "azure-openai" | "other" => {
  if (connection.azure !== undefined) return "azure-openai"
  return connection.baseURL === undefined || connection.baseURL.startsWith("https://api.openai.com/")
    ? "openai"
    : "other"
}

const baseUrlOf = (connection: Connection, api: "chat" | "responses", model: string): string => {
  const { azure, baseURL } = connection
  if (azure === undefined) return baseURL ?? home
  const root = `${azure.endpoint.replace(/\/+$/, "")}/openai`
  if (azure.apiVersion === undefined) return `${root}/v1`
  return api === "chat" ? `${root}/deployments/${encodeURIComponent(azure.deployment ?? model)}` : root
}

const variables = { openai: "OPENAI_API_KEY", "azure-openai": "AZURE_OPENAI_API_KEY" } as const

/** Hints for a key of the environment. */
const ownHints: { readonly [Target in keyof typeof variables]: Origin["hints"] } = {
  openai: { 401: `its variable is ${variables.openai}` },
  "azure-openai": { 401: `its variable is ${variables["azure-openai"]}` }
}

const noResponses =
  'OpenAiChatModel and "openai:" speak the Responses API. If this server speaks Chat Completions, use OpenAiCompatibleChatModel, or a spec such as "vllm:…" with VLLM_BASE_URL'

/** Says how to give a key to a server. Only `ChatModels` reads the variables of servers. */
const noKey = (provider: string): string => {
  const server = servers.find(({ name }) => name === provider)
  const variable = server && (server.key ?? variableOf(provider, "API_KEY"))
  return `no key was sent; give apiKey${variable === undefined ? "" : `, or set ${variable} for "${provider}:…"`}`
}

/** Hints for servers other than OpenAI's. */
const hintsOf = (api: "chat" | "responses", provider: string, hasKey: boolean): Origin["hints"] => ({
  401: hasKey ? undefined : noKey(provider),
  ...(api === "responses" ? { 404: noResponses, 405: noResponses, 501: noResponses } : {})
})

/** Picks the given key, or the environment's. Another server gets only a given key. */
const keyOf = Effect.fnUntraced(function* (connection: Connection, origin: Pick<Origin, "provider" | "model">) {
  if (connection.azure?.accessToken !== undefined) return undefined
  if (connection.apiKey !== undefined) return Redacted.value(connection.apiKey).trim()
  const target = targetOf(connection)
  if (target === "other") return undefined
  return Redacted.value(yield* keyFrom(variables[target], origin)).trim()
})

type Sdk = Pick<typeof OpenAiSdk, "APIConnectionError" | "APIConnectionTimeoutError" | "APIError">

const toModelError =
  (sdk: Sdk, origin: Origin) =>
  (cause: unknown): ModelError => {
    if (isModelError(cause)) return cause
    if (cause instanceof sdk.APIConnectionTimeoutError) return connectionError(origin, cause, { timedOut: true })
    if (cause instanceof sdk.APIConnectionError) return connectionError(origin, cause)
    if (cause instanceof sdk.APIError) {
      const { error, headers, status }: OpenAiSdk.APIError = cause
      const failure = failureOf(error)
      return providerError(origin, { ...failure, status: status ?? failure.status, headers })
    }
    return stumbled(origin, cause) ?? connectionError(origin, cause)
  }

/** The path of an API, behind its address. */
export type Path = "/responses" | "/chat/completions"

/** Sends the JSON of a request. A failure that holds a call which the model wrote is an answer: the decoder reads it. */
const post = (sdk: Sdk, client: OpenAiSdk.OpenAI, path: Path, text: string, signal: AbortSignal): Promise<Response> =>
  client
    .post(path, { body: text, headers: { "content-type": "application/json" }, signal, stream: true })
    .asResponse()
    .catch((cause: unknown) => {
      const error = cause instanceof sdk.APIError ? objectOf(cause.error) : undefined
      if (error === undefined || failedCall(error) === undefined) return Promise.reject(cause)
      return Response.json({ error })
    })

const types: { readonly [status: string]: string } = {
  completed: "response.completed",
  incomplete: "response.incomplete",
  failed: "response.failed",
  cancelled: "response.cancelled"
}

/** Converts an answer of a server that does not stream to events: of a completion it is the one chunk. */
export const eventsOf = (answer: unknown): ReadonlyArray<unknown> | undefined => {
  const body = objectOf(answer)
  if (body === undefined) return undefined
  if (Array.isArray(body["choices"])) return [body]
  const type = valueAt(types, stringOf(body["status"]))
  return type === undefined || !Array.isArray(body["output"]) ? undefined : [{ type, response: body }]
}

/** Sends a request by the SDK. */
export type SendRequest = (client: OpenAiSdk.OpenAI, signal: AbortSignal) => AsyncIterable<unknown>

/** Sends a request in a batch, and streams the events of its answer. */
export type SendBatched = (
  origin: Origin,
  body: { readonly stream?: unknown; readonly stream_options?: unknown }
) => Stream.Stream<unknown, ModelError>

/** Each event as a list of one. */
async function* inLists(events: AsyncIterable<unknown>): AsyncGenerator<ReadonlyArray<unknown>> {
  for await (const event of events) yield [event]
}

/** A client for one model. */
export interface Client {
  /**
   * Sends the JSON of a request and streams the events of its answer. Leaving the stream ends the request. Errors name
   * the origin.
   */
  readonly stream: (path: Path, origin: Origin, text: string) => Stream.Stream<unknown, ModelError>
  /** Sends by the SDK, and streams the events. Leaving the stream ends the request. */
  readonly streamBy: (origin: Origin, send: SendRequest) => Stream.Stream<unknown, ModelError>
  /** Calls the SDK once. */
  readonly call: <A>(
    origin: Origin,
    use: (client: OpenAiSdk.OpenAI, signal: AbortSignal) => Promise<A>
  ) => Effect.Effect<A, ModelError>
  /** Makes the origin of a request. Errors must not reveal its content. */
  readonly originOf: (body: unknown) => Origin
}

/** Makes a client: loads the SDK and reads the key. */
export const makeClient = Effect.fnUntraced(function* (
  connection: Connection,
  api: "chat" | "responses",
  provider: string,
  model: string
) {
  const baseURL = baseUrlOf(connection, api, model)
  const refused = refuseAddress({ provider, model }, baseURL)
  if (refused !== undefined) return yield* refused
  const key = yield* keyOf(connection, { provider, model })
  const target = targetOf(connection)
  const hasOwnKey = connection.apiKey !== undefined || connection.azure?.accessToken !== undefined
  const sdk = yield* loadPeer({ provider, model }, "openai", () => import("openai"))
  const { azure, organization, project, timeout } = connection
  const headers = {
    ...(azure !== undefined || key === undefined ? { Authorization: null } : {}),
    ...(azure !== undefined && key !== undefined ? { "api-key": key } : {}),
    ...revealed(connection.headers)
  }
  const secrets = [...(key === undefined ? [] : [key]), ...secretsIn(Object.values(connection.headers ?? {}))]
  const secretsOfLayer = secrets.length
  const origin: Origin = {
    provider,
    model,
    secrets,
    address: baseURL,
    hints: target === "other" ? hintsOf(api, provider, key !== undefined) : hasOwnKey ? undefined : ownHints[target]
  }
  const client = yield* Effect.try({
    try: () =>
      new sdk.OpenAI({
        // The SDK wants one; the header that it would be in is taken out.
        apiKey: key ?? "none",
        adminAPIKey: null,
        webhookSecret: null,
        organization: organization ?? null,
        project: project ?? null,
        baseURL,
        defaultHeaders: headers,
        defaultQuery: azure?.apiVersion === undefined ? undefined : { "api-version": azure.apiVersion },
        timeout: timeout === undefined ? undefined : Duration.toMillis(timeout),
        // Every error of a server in the one shape that the SDK reads: it forgets the rest.
        fetch: guardedFetch(connection.fetch ?? globalThis.fetch, origin, {
          timeout,
          readError: errorBody,
          isReaderBound: true
        }),
        maxRetries: 0,
        logLevel: "off"
      }),
    catch: (cause) =>
      new ModelError({
        provider,
        model,
        reason: { _tag: "InvalidRequest" },
        detail: toldBy(origin, cause instanceof Error ? cause.message : "the client could not be made")
      })
  })
  const originOf = (body: unknown): Origin => ({
    ...origin,
    answered: {},
    said: () => textsOf(body, "request")
  })
  /** The client for a request, with a token of its own where each request has one. */
  const asking: Effect.Effect<OpenAiSdk.OpenAI, ModelError> =
    azure?.accessToken === undefined
      ? Effect.succeed(client)
      : Effect.map(azure.accessToken, (accessToken) => {
          const token = Redacted.value(accessToken)
          // Tokens live for an hour: the last one is kept out of errors.
          secrets[secretsOfLayer] = token
          return client.withOptions({ defaultHeaders: { ...headers, Authorization: `Bearer ${token}` } })
        })
  const streamOf = (
    own: Origin,
    open: (sdkClient: OpenAiSdk.OpenAI, abandonSignal: AbortSignal) => AsyncIterable<ReadonlyArray<unknown>>
  ): Stream.Stream<unknown, ModelError> => {
    const ask = (sdkClient: OpenAiSdk.OpenAI): Stream.Stream<unknown, ModelError> =>
      fromAsyncArrays(
        patiently((abandonSignal) => open(sdkClient, abandonSignal), own, timeoutOf(timeout)),
        (cause) => toModelError(sdk, own)(cause)
      )
    return azure?.accessToken === undefined ? ask(client) : Stream.unwrap(Effect.map(asking, ask))
  }
  const openAi: Client = {
    originOf,
    call: (own, use) =>
      Effect.flatMap(asking, (sdkClient) =>
        Effect.tryPromise({ try: (signal) => use(sdkClient, signal), catch: (cause) => toModelError(sdk, own)(cause) })
      ),
    streamBy: (own, send) => streamOf(own, (sdkClient, abandonSignal) => inLists(send(sdkClient, abandonSignal))),
    stream: (path, own, text) =>
      streamOf(own, (sdkClient, abandonSignal) =>
        readServerEvents((signal) => post(sdk, sdkClient, path, text, signal), { origin: own, eventsOf }, abandonSignal)
      )
  }
  return openAi
})
