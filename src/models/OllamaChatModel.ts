/**
 * Models of Ollama, by its own API: the context is never silently truncated.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import * as OllamaChatModel from "effect-deepagents/models/OllamaChatModel"
 *
 * const helper = Agent.make({ name: "helper", prompt: "You help." })
 *
 * const answer = Agent.run(helper, "What is Effect?").pipe(
 *   Effect.provide(OllamaChatModel.layer({ model: "qwen3:8b", thinking: "off", keepAlive: "30 minutes" }))
 * )
 * ```
 *
 * No package is needed. Building the layer asks the server for the model's abilities. If the server does not answer,
 * the first turn reports it.
 */
import type * as Config from "effect/Config"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import { ChatModel } from "../core/ChatModel.ts"
import { type ConfigOptions, fromConfigured } from "../core/configured.ts"
import type { JsonObject } from "../core/Json.ts"
import type { ModelError } from "../core/ModelError.ts"
import { defined } from "../support/json/defined.ts"
import { findIn } from "./internal/facts/facts.ts"
import { ModelCatalogue } from "./internal/facts/reference.ts"
import { makeClient, secondsOf } from "./internal/ollama/client.ts"
import { makeOllamaSessions } from "./internal/ollama/session.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"
import type { ThinkingLevel } from "./internal/turn/thinking.ts"
import type { Overrides } from "./internal/wire/overrides.ts"

/**
 * Options of a layer. Only `model` is required. `contextWindowTokens` is the context to load the model with
 * (`num_ctx`): by default the model's own, at most 32,768. The server says whether the model reads images. An answer in
 * a schema is constrained by a grammar, in an extra request without tools if the agent has tools, unless
 * `structuredOutput` is `tool`.
 */
export interface Options extends Overrides {
  /** The name of the model. */
  readonly model: string
  /** The address of the server. Default: `http://localhost:11434`. */
  readonly baseURL?: string | undefined
  /** Only a server behind a proxy, or ollama.com, wants one. */
  readonly apiKey?: Redacted.Redacted | undefined
  /** Headers of each request. Default: none. */
  readonly headers?: Readonly<Record<string, string | Redacted.Redacted>> | undefined
  /** Makes HTTP requests. Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** Time that an answer may take to begin, and then to go on each time. Default: 10 minutes. */
  readonly timeout?: Duration.Input | undefined
  /** Thinking before an answer. Default: the model's own. */
  readonly thinking?: ThinkingLevel | undefined
  /** The time that the model stays in memory after a request; `Infinity` for ever. Default: 5 minutes. */
  readonly keepAlive?: Duration.Input | undefined
  /** The randomness of the answer. Default: the model's own. */
  readonly temperature?: number | undefined
  /** Samples from the likeliest tokens with this share of probability. Default: the model's own. */
  readonly topP?: number | undefined
  /** Samples from this many likeliest tokens. Default: the model's own. */
  readonly topK?: number | undefined
  /** The seed of the sampling. Default: random. */
  readonly seed?: number | undefined
  /** The most tokens that an answer may have. */
  readonly maxOutputTokens?: number | undefined
  /** Texts that end the answer. Default: none. */
  readonly stop?: ReadonlyArray<string> | undefined
  /**
   * Request fields without an option here, by the API's names. Unknown fields (`mirostat`, `num_gpu` …) become
   * options of the model. Default: none.
   */
  readonly parameters?: JsonObject | undefined
}

const provider = "ollama"

const contextLimit = 32_768

const parametersOf = (options: Options): JsonObject => {
  const { keepAlive, maxOutputTokens, seed, stop, temperature, thinking, topK, topP } = options
  return defined({
    thinking,
    keep_alive: keepAlive === undefined ? undefined : secondsOf(keepAlive),
    temperature,
    top_p: topP,
    top_k: topK,
    seed,
    num_predict: maxOutputTokens,
    stop
  })
}
const refuse = makeEffectCheck("ollama", shapes.ollamaChatModelLayer)

const make = Effect.fnUntraced(function* (options: Options) {
  const refused = refuse(options)
  if (refused !== undefined) return yield* refused
  const { model } = options
  const client = yield* makeClient(options, { provider, model })
  const modelInfo = yield* client.show
  // The server knows its models. The catalogue fills in for an older one.
  const facts = findIn(yield* ModelCatalogue, provider, model)
  const ownWindow = modelInfo.contextLength ?? facts?.contextWindowTokens ?? contextLimit
  const window = options.contextWindowTokens ?? Math.min(contextLimit, ownWindow)
  return ChatModel.of({
    modelId: model,
    provider,
    supportsVision: options.supportsVision ?? modelInfo.abilities?.has("vision") ?? facts?.vision ?? false,
    contextWindowTokens: window,
    structuredOutput: options.structuredOutput ?? "native",
    prices: options.prices ?? facts?.prices,
    makeSession: makeOllamaSessions(client, {
      provider,
      model,
      window,
      abilities: modelInfo.abilities,
      parameters: [parametersOf(options), options.parameters ?? {}]
    })
  })
})

/** Makes the layer of a model. Request failures (no server, unknown model) fail the turn. */
export const layer = (options: Options): Layer.Layer<ChatModel, ModelError> => Layer.effect(ChatModel, make(options))

/** As {@link layer}, with options of which any may be a `Config`. */
export const layerConfig = (options: ConfigOptions<Options>): Layer.Layer<ChatModel, ModelError | Config.ConfigError> =>
  Layer.effect(ChatModel, Effect.flatMap(fromConfigured<Options>(options), make))
