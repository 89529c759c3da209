/**
 * Texts as vectors by Ollama's own API, which says where a text is too long: the `EmbeddingModel` of `effect/ai`.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { EmbeddingModel } from "effect/ai"
 * import * as OllamaEmbeddingModel from "effect-deepagents/models/OllamaEmbeddingModel"
 *
 * const vector = Effect.gen(function* () {
 *   const model = yield* EmbeddingModel.EmbeddingModel
 *   return (yield* model.embed("What is Effect?")).vector
 * }).pipe(Effect.provide(OllamaEmbeddingModel.layer({ model: "nomic-embed-text", keepAlive: "30 minutes" })))
 * ```
 *
 * No package is needed.
 */
import type * as EmbeddingModel from "effect/ai/EmbeddingModel"
import type * as Config from "effect/Config"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type ConfigOptions, fromConfigured } from "../core/configured.ts"
import { ModelError } from "../core/ModelError.ts"
import { defined } from "../support/json/defined.ts"
import { bearer } from "../support/store/redacted.ts"
import { addressOf, messageOf, secondsOf } from "./internal/ollama/client.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"
import { type EmbeddingOptions, makeEmbedding } from "./internal/wire/embedding.ts"
import { providerError } from "./internal/wire/errors.ts"
import { countOf, listOf } from "./internal/wire/read.ts"

/**
 * Options of a layer. Only `model` is needed.
 *
 * - `baseURL`: `http://localhost:11434` by default
 * - `contextWindowTokens`: the context that the model is loaded with (`num_ctx`), in tokens; by default the server's
 * - `truncate`: cuts texts that are too long, in silence. They are refused by default
 * - `keepAlive`: how long the model stays in memory behind a request; five minutes by default, `Infinity` for ever
 * - `batchSize`: the most texts of one request, 96 by default
 * - `timeout`: of one request, a minute by default
 */
export interface Options extends EmbeddingOptions {
  /** The context that the model is loaded with (`num_ctx`), in tokens. Default: the context of the server. */
  readonly contextWindowTokens?: number | undefined
  /** Cuts texts that are too long, without a word. Default: `false`, which rejects them. */
  readonly truncate?: boolean | undefined
  /** The time that the model stays in memory after a request; `Infinity` for ever. Default: 5 minutes. */
  readonly keepAlive?: Duration.Input | undefined
}

const provider = "ollama"
const refuse = makeEffectCheck("ollama", shapes.ollamaEmbeddingModelLayer)

const make = Effect.fn("OllamaEmbeddingModel.make")(function* (options: Options) {
  const refused = refuse(options)
  if (refused !== undefined) return yield* refused
  const { contextWindowTokens, dimensions, keepAlive, model, truncate = false } = options
  const root = addressOf(options.baseURL)
  if (root === undefined) {
    return yield* new ModelError({
      provider,
      model,
      reason: { _tag: "InvalidRequest" },
      detail: "baseURL is no address: one looks like http://localhost:11434"
    })
  }
  const more = defined({
    dimensions,
    keep_alive: keepAlive === undefined ? undefined : secondsOf(keepAlive),
    options: contextWindowTokens === undefined ? undefined : { num_ctx: contextWindowTokens }
  })
  return yield* makeEmbedding(options, {
    module: "OllamaEmbeddingModel",
    provider,
    url: `${root}/api/embed`,
    headers: bearer(options.apiKey),
    batchSize: 96,
    body: (input) => ({ model, input, truncate, ...more }),
    read: ({ embeddings, prompt_eval_count: tokens }) => ({
      vectors: listOf(embeddings).map((vector, place) => [place, vector]),
      tokens: countOf(tokens) ?? 0
    }),
    failure: (origin, text, { headers, status }) => providerError(origin, { status, message: messageOf(text), headers })
  })
})

/**
 * A layer of the model, with the dimensions of its vectors. Without `dimensions` the server is asked for one vector when
 * it is built, which fails as a request does.
 */
export const layer = (
  options: Options
): Layer.Layer<EmbeddingModel.EmbeddingModel | EmbeddingModel.Dimensions, ModelError> =>
  Layer.effectContext(make(options))

/** As {@link layer}, with options of which any may be a `Config`. */
export const layerConfig = (
  options: ConfigOptions<Options>
): Layer.Layer<EmbeddingModel.EmbeddingModel | EmbeddingModel.Dimensions, ModelError | Config.ConfigError> =>
  Layer.effectContext(Effect.flatMap(fromConfigured<Options>(options), make))
