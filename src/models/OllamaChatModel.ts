/**
 * Models of Ollama, by its own API: the context is as large as it is meant to be, and never cut in silence.
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
 * No package is needed. When the layer is built the server is asked what the model can; where it does not answer, the
 * first turn says why.
 */
import type * as Config from "effect/Config"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import { ChatModel } from "../core/ChatModel.ts"
import { type Configured, fromConfigured } from "../core/configured.ts"
import type { JsonObject } from "../core/Json.ts"
import type { ModelError } from "../core/ModelError.ts"
import { defined } from "../support/json/defined.ts"
import { makeClient, secondsOf } from "./internal/ollama/client.ts"
import { makeSessions } from "./internal/ollama/session.ts"
import type { ThinkingLevel } from "./internal/turn/thinking.ts"
import type { Overrides } from "./internal/wire/overrides.ts"

/**
 * Options of a layer. Only `model` is needed.
 *
 * - `baseURL`: `http://localhost:11434` by default
 * - `contextWindowTokens`: the context that the model is loaded with (`num_ctx`), in tokens; by default as much as it
 *   was made for, at most 32,768
 * - `keepAlive`: how long the model stays in memory behind a request; five minutes by default, `Infinity` for ever
 * - `supportsVision`: by default what the server says
 * - `structuredOutput`: an answer in a schema is held to it by a grammar (`native`, the default: an agent with tools is
 *   asked for it once more, without them), or comes by a call of a tool
 * - `parameters`: fields of a request that have no option here, by the API's names; those that are none of its fields
 *   (`mirostat`, `num_gpu` …) are taken for options of the model
 */
export interface Options extends Overrides {
  readonly model: string
  readonly baseURL?: string | undefined
  /** Only a server behind a proxy, or ollama.com, wants one. */
  readonly apiKey?: Redacted.Redacted | undefined
  readonly headers?: Readonly<Record<string, string | Redacted.Redacted>> | undefined
  readonly fetch?: typeof globalThis.fetch | undefined
  /** Time that an answer may take to begin, and then to go on each time; 10 minutes by default. */
  readonly timeout?: Duration.Input | undefined
  readonly thinking?: ThinkingLevel | undefined
  readonly keepAlive?: Duration.Input | undefined
  readonly temperature?: number | undefined
  readonly topP?: number | undefined
  readonly topK?: number | undefined
  readonly seed?: number | undefined
  /** The most tokens that an answer may have. */
  readonly maxOutputTokens?: number | undefined
  readonly stop?: ReadonlyArray<string> | undefined
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

const make = Effect.fnUntraced(function* (options: Options) {
  const { model } = options
  const client = yield* makeClient(options, { provider, model })
  const shown = yield* client.show
  const window = options.contextWindowTokens ?? Math.min(contextLimit, shown.contextLength ?? contextLimit)
  return ChatModel.of({
    modelId: model,
    provider,
    supportsVision: options.supportsVision ?? shown.abilities?.has("vision") ?? false,
    contextWindowTokens: window,
    structuredOutput: options.structuredOutput ?? "native",
    prices: options.prices,
    makeSession: makeSessions(client, {
      provider,
      model,
      window,
      abilities: shown.abilities,
      parameters: [parametersOf(options), options.parameters ?? {}]
    })
  })
})

/** A model with these options. What goes wrong with a request (no server, no such model) fails its turn. */
export const layer = (options: Options): Layer.Layer<ChatModel, ModelError> => Layer.effect(ChatModel, make(options))

/** As {@link layer}, with options of which any may be a `Config`. */
export const layerConfig = (options: Configured<Options>): Layer.Layer<ChatModel, ModelError | Config.ConfigError> =>
  Layer.effect(ChatModel, Effect.flatMap(fromConfigured<Options>(options), make))
