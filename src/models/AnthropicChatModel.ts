/**
 * Claude, over Anthropic's Messages API, as a `ChatModel`: thinking, tool use, prompt caching, structured output.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import * as AnthropicChatModel from "effect-deepagents/models/AnthropicChatModel"
 *
 * const helper = Agent.make({ name: "helper", prompt: "You help." })
 *
 * const answer = Agent.run(helper, "What is Effect?").pipe(
 *   Effect.provide(AnthropicChatModel.layer({ model: "claude-opus-5-5" }))
 * )
 * ```
 */
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { KeyValueStore } from "effect/persistence/KeyValueStore"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { ChatModel, type ModelRequest, type Service } from "../core/ChatModel.ts"
import { type ConfigOptions, fromConfigured } from "../core/configured.ts"
import type { ModelError } from "../core/ModelError.ts"
import { defined } from "../support/json/defined.ts"
import { type Connection, secretsOf } from "./internal/anthropic/connection.ts"
import { requestError } from "./internal/anthropic/failure.ts"
import { bedrockFactor, profileOf } from "./internal/anthropic/models.ts"
import { type Encoding, makeEncoder } from "./internal/anthropic/request.ts"
import { makeService } from "./internal/anthropic/service.ts"
import { saidIn, type Setup } from "./internal/anthropic/session.ts"
import type { Settings } from "./internal/anthropic/settings.ts"
import * as transport from "./internal/anthropic/transport.ts"
import { withUploads } from "./internal/anthropic/uploads.ts"
import type { Batching } from "./internal/batch/batches.ts"
import { makeLayerBatch } from "./internal/batch/layer.ts"
import type { Catalogue } from "./internal/facts/catalogue.ts"
import { ModelCatalogue } from "./internal/facts/reference.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"
import type { Uploads } from "./internal/turn/uploads.ts"
import { badResponse, type Origin, reservedParameter } from "./internal/wire/errors.ts"
import { timeoutOf } from "./internal/wire/guardedFetch.ts"
import { keyFrom, nameVariables } from "./internal/wire/keys.ts"
import type { Overrides } from "./internal/wire/overrides.ts"
import { silent } from "./internal/wire/patience.ts"
import { numberOf, objectOf } from "./internal/wire/read.ts"
import type { Vertex } from "./internal/wire/vertex.ts"

/** Options of a layer. Only `model` is needed. */
export interface Options extends Connection, Settings, Overrides {
  /** The id of the model. */
  readonly model: string
  /** The API key. Default: the SDK looks for `ANTHROPIC_API_KEY`, `ANTHROPIC_AUTH_TOKEN` and its own profiles. */
  readonly apiKey?: Redacted.Redacted | undefined
  /** A project of Google Cloud, instead of Anthropic's own API. Default: none. */
  readonly vertex?: Vertex | undefined
  /** Uploads large images and files once, and sends their ids; not on Vertex AI. Default: each request holds them. */
  readonly uploads?: Uploads | undefined
  /** Whether priority capacity may be used. Default: the API's own. */
  readonly serviceTier?: "auto" | "standard_only" | undefined
}

const providerOf = ({ vertex }: Pick<Options, "vertex">): string => (vertex === undefined ? "anthropic" : "vertex")

/** To be asked in one region costs a tenth more than to be asked wherever there is room. */
const vertexFactor = ({ model, vertex }: Options): number =>
  vertex === undefined || (vertex.location ?? "global") === "global" ? 1 : bedrockFactor(model)

const variable = "ANTHROPIC_API_KEY"

const encodingOf = (options: Options, catalogue: Catalogue): Encoding => ({
  model: options.model,
  profile: profileOf(options.model, catalogue),
  settings: options,
  remote: options.vertex === undefined,
  fields: options.serviceTier === undefined ? {} : { service_tier: options.serviceTier }
})
const refuse = makeEffectCheck("anthropic", shapes.anthropicChatModelLayer)

/** Makes the opener of senders of requests in batches. */
type MakeBatched<R> = (client: transport.Transport, origin: Origin) => Effect.Effect<Setup["open"], never, R>

const make = Effect.fnUntraced(function* <R = never>(
  options: Options,
  makeBatched?: MakeBatched<R>
): Effect.fn.Return<Service, ModelError, R> {
  const provider = providerOf(options)
  const secrets = secretsOf(options, [options.apiKey])
  const origin = { provider, model: options.model, secrets }
  const client = yield* transport.make(options, origin)
  const service = makeService({
    provider,
    address: client.address,
    encoding: encodingOf(options, yield* ModelCatalogue),
    overrides: options,
    open: makeBatched === undefined ? Effect.succeed(client.send) : yield* makeBatched(client, origin),
    secrets,
    // The joiner of a batch has its own patience.
    idle: makeBatched === undefined ? timeoutOf(options.timeout) : Infinity,
    priceFactor: vertexFactor(options),
    accessToken: options.vertex?.accessToken,
    tier: makeBatched === undefined ? undefined : "batch"
  })
  const uploads = options.vertex === undefined ? options.uploads : undefined
  return { ...service, makeSession: withUploads(client, origin, uploads)(service.makeSession) }
})

const makeChecked = Effect.fnUntraced(function* (options: Options): Effect.fn.Return<Service, ModelError> {
  const refused = refuse(options)
  return refused === undefined ? yield* make(options) : yield* refused
})

/**
 * A model with these options. Building it fails with a `ModelError`: `Unsupported` without the SDK. What
 * goes wrong with a request (no credentials too) fails its turn.
 */
export const layer = (options: Options): Layer.Layer<ChatModel, ModelError> =>
  Layer.effect(ChatModel, makeChecked(options))

/**
 * As {@link layer}, with options of which any may be a `Config`. The key is read from `ANTHROPIC_API_KEY` by default.
 */
export const layerConfig = (options: ConfigOptions<Options>): Layer.Layer<ChatModel, ModelError | Config.ConfigError> =>
  Layer.effect(
    ChatModel,
    Effect.gen(function* () {
      const own = yield* fromConfigured<Options>(options)
      const refused = refuse(own)
      if (refused !== undefined) return yield* refused
      if (own.vertex !== undefined) return yield* make(own)
      const origin = { provider: providerOf(own), model: own.model }
      if (own.apiKey !== undefined) return yield* make(own)
      return nameVariables(yield* make({ ...own, apiKey: yield* keyFrom(variable, origin) }), { key: variable })
    })
  )

/** Options of {@link layerBatch}. */
export interface BatchOptions extends Omit<Options, "vertex" | "serviceTier">, Batching {}

/**
 * As {@link layer}, by Anthropic's Message Batches API: half the price, and an answer within a day. For many runs at the
 * same time, such as the agents of a workflow: requests of the same moments share a batch.
 *
 * ```ts
 * import { Layer } from "effect"
 * import { KeyValueStore } from "effect/persistence"
 * import * as AnthropicChatModel from "effect-deepagents/models/AnthropicChatModel"
 *
 * export const cheap = AnthropicChatModel.layerBatch({ model: "claude-opus-5-5" }).pipe(
 *   Layer.provide(KeyValueStore.layerMemory)
 * )
 * ```
 *
 * The store keeps the batch of each request until the run has its answer. After a crash, the same request goes on with
 * its batch, and reads its answer again if no run finished with it. A store on disk survives a crash; a process needs a
 * store of its own.
 */
export const layerBatch: (options: BatchOptions) => Layer.Layer<ChatModel, ModelError, KeyValueStore> =
  makeLayerBatch<BatchOptions>("anthropic", shapes.anthropicChatModelLayerBatch, (own, batching) =>
    Effect.flatMap(
      Effect.promise(() => import("./internal/anthropic/batch.ts")),
      ({ makeBatched }) => make(own, makeBatched(batching))
    )
  )

/** A request to be counted, of which only the messages are needed. */
type Countable = Pick<ModelRequest, "messages"> &
  Partial<Pick<ModelRequest, "systemPrompt" | "tools" | "toolChoice" | "outputSchema">>

/**
 * Asks the API how many input tokens a request has, encoded as `layer` with the same options encodes it. Free of
 * charge, with a rate limit of its own.
 */
export const countTokens = Effect.fn("AnthropicChatModel.countTokens")(function* (
  options: Options,
  request: Countable
): Effect.fn.Return<number, ModelError> {
  const refused = refuse(options)
  if (refused !== undefined) return yield* refused
  const token = options.vertex === undefined ? undefined : yield* options.vertex.accessToken
  const origin: Origin = {
    provider: providerOf(options),
    model: options.model,
    secrets: secretsOf(options, [options.apiKey, token]),
    said: () => saidIn({ systemPrompt: "", ...request })
  }
  const client = yield* transport.make(options, origin)
  const encoded = makeEncoder(encodingOf(options, yield* ModelCatalogue))({
    systemPrompt: "",
    tools: [],
    toolChoice: "auto",
    parameters: {},
    cacheHints: [],
    purpose: "count",
    ...request
  })
  if (Result.isFailure(encoded)) return yield* reservedParameter(origin.provider, options.model, encoded.failure)
  const { betas, body } = encoded.success
  const { messages, model, output_config, system, thinking, tool_choice, tools } = body
  const prompt = defined({ model, messages, system, tools, tool_choice, thinking, output_config })
  const idle = timeoutOf(options.timeout)
  const counted = yield* Effect.tryPromise({
    try: (signal) => client.countTokens(prompt, betas, signal, token === undefined ? undefined : Redacted.value(token)),
    catch: (cause) => requestError(origin, cause)
  }).pipe(Effect.timeoutOrElse({ duration: idle, orElse: () => Effect.fail(silent(origin, idle)) }))
  const count = numberOf(objectOf(counted)?.["input_tokens"])
  return count === undefined ? yield* badResponse(origin, "the answer holds no number of tokens") : count
})
