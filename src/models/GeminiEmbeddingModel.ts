/**
 * Texts as vectors by Gemini's own API, which knows what a vector is for: the `EmbeddingModel` of `effect/ai`.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { EmbeddingModel } from "effect/ai"
 * import * as GeminiEmbeddingModel from "effect-deepagents/models/GeminiEmbeddingModel"
 *
 * const documents = GeminiEmbeddingModel.layerConfig({ model: "gemini-embedding-001", taskType: "RETRIEVAL_DOCUMENT" })
 *
 * const vector = Effect.gen(function* () {
 *   const model = yield* EmbeddingModel.EmbeddingModel
 *   return (yield* model.embed("What is Effect?")).vector
 * }).pipe(Effect.provide(documents))
 * ```
 *
 * No package is needed.
 */
import type * as EmbeddingModel from "effect/ai/EmbeddingModel"
import type * as Config from "effect/Config"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { type Configured, fromConfigured } from "../core/Configured.ts"
import type { ModelError } from "../core/ModelError.ts"
import { defined } from "../support/defined.ts"
import { makeEmbedding } from "./internal/embedding.ts"
import { errorOf } from "./internal/gemini/client.ts"
import { keyFrom } from "./internal/keys.ts"
import { countOf, objectOf, objectsOf, parse } from "./internal/read.ts"

/**
 * Options of a layer. Only `model` is needed.
 *
 * - `apiKey`: from `GEMINI_API_KEY` by default, where `baseURL` is not given
 * - `taskType`: what the vectors are for; documents and the questions that are to find them have different ones
 * - `dimensions`: the length of the vectors. Shorter ones than the model's own are not of length 1
 * - `batchSize`: the most texts of one request, 100 by default, which is the most that the API takes
 * - `timeout`: of one request, a minute by default
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly model: string
  readonly baseURL?: string | undefined
  readonly apiKey?: Redacted.Redacted | undefined
  readonly taskType?:
    | "RETRIEVAL_QUERY"
    | "RETRIEVAL_DOCUMENT"
    | "SEMANTIC_SIMILARITY"
    | "CLASSIFICATION"
    | "CLUSTERING"
    | "QUESTION_ANSWERING"
    | "FACT_VERIFICATION"
    | "CODE_RETRIEVAL_QUERY"
    | undefined
  readonly dimensions?: number | undefined
  readonly batchSize?: number | undefined
  readonly headers?: Readonly<Record<string, string | Redacted.Redacted>> | undefined
  readonly fetch?: typeof globalThis.fetch | undefined
  readonly timeout?: Duration.Input | undefined
}

const provider = "gemini"

const home = "https://generativelanguage.googleapis.com/v1beta"

const make = Effect.fn("GeminiEmbeddingModel.make")(function* (options: Options) {
  const { baseURL, dimensions, taskType } = options
  const key =
    options.apiKey ??
    (baseURL === undefined ? yield* keyFrom("GEMINI_API_KEY", { provider, model: options.model }) : undefined)
  const model = `models/${options.model.replace(/^models\//, "")}`
  return yield* makeEmbedding(options, {
    module: "GeminiEmbeddingModel",
    provider,
    url: `${(baseURL ?? home).replace(/\/+$/, "")}/${model.split("/").map(encodeURIComponent).join("/")}:batchEmbedContents`,
    headers: key === undefined ? {} : { "x-goog-api-key": key },
    batchSize: 100,
    body: (texts) => ({
      requests: texts.map((text) =>
        defined({ model, content: { parts: [{ text }] }, taskType, outputDimensionality: dimensions })
      )
    }),
    read: ({ embeddings, usageMetadata }) => ({
      vectors: objectsOf(embeddings).map(({ values }, place) => [place, values]),
      tokens: countOf(objectOf(usageMetadata)?.["promptTokenCount"]) ?? 0
    }),
    failure: (origin, text, response) => {
      const page = text.trimStart().startsWith("<") ? "the server answered with a web page" : text
      return errorOf(
        origin,
        Result.getOrElse(parse(text), () => page),
        response
      )
    }
  })
})

/**
 * A layer of the model, with the dimensions of its vectors. Without `dimensions` the server is asked for one vector when
 * it is built, which fails as a request does.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  options: Options
): Layer.Layer<EmbeddingModel.EmbeddingModel | EmbeddingModel.Dimensions, ModelError> =>
  Layer.effectContext(make(options))

/**
 * As {@link layer}, with options of which any may be a `Config`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Configured<Options>
): Layer.Layer<EmbeddingModel.EmbeddingModel | EmbeddingModel.Dimensions, ModelError | Config.ConfigError> =>
  Layer.effectContext(Effect.flatMap(fromConfigured<Options>(options), make))
