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
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { type ConfigOptions, fromConfigured } from "../core/configured.ts"
import type { ModelError } from "../core/ModelError.ts"
import { defined } from "../support/json/defined.ts"
import { errorOf } from "./internal/gemini/client.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"
import { type EmbeddingOptions, type Api, makeEmbedding } from "./internal/wire/embedding.ts"
import { keyFrom } from "./internal/wire/keys.ts"
import { countOf, objectOf, objectsOf, parse } from "./internal/wire/read.ts"
import type { Vertex } from "./internal/wire/vertex.ts"

/**
 * Options of a layer. Only `model` is required.
 *
 * - `apiKey`: by default from `GEMINI_API_KEY`, unless `baseURL` or `vertex` is set
 * - `vertex`: a project of Google Cloud instead of a key. Its `text-embedding` and `text-multilingual-embedding` models
 *   and `gemini-embedding-001` use `:predict`, later Gemini models `:embedContent`
 * - `taskType`: the purpose of the vectors. Documents and the questions that search them need different types
 * - `dimensions`: the length of the vectors. Shortened vectors are not normalised
 * - `batchSize`: the most texts per request, 100 by default, the limit of the API. On Vertex AI 9 (up to 250 short
 *   texts fit), and 1 for Gemini models
 * - `timeout`: of one request, a minute by default
 */
export interface Options extends EmbeddingOptions {
  /** A project of Vertex AI in place of the Gemini API. Default: the Gemini API. */
  readonly vertex?: Vertex | undefined
  /**
   * The purpose of the vectors. Documents and the questions that search them need different types. Default: the API's
   * own.
   */
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
}

const provider = "gemini"

const home = "https://generativelanguage.googleapis.com/v1beta"

const failure: Api["failure"] = (origin, text, response) => {
  const page = text.trimStart().startsWith("<") ? "the server answered with a web page" : text
  return errorOf(
    origin,
    Result.getOrElse(parse(text), () => page),
    response
  )
}

/** The requests of Vertex AI: of one text for Gemini's models, and of several for those before them. */
const onVertex = (options: Options, { accessToken, location = "global", project }: Vertex): Api => {
  const { baseURL, dimensions: outputDimensionality, taskType } = options
  const origin = `https://${location === "global" ? "" : `${location}-`}aiplatform.googleapis.com/v1`
  const name = options.model.replace(/^models\//, "")
  const segments = ["projects", project, "locations", location, "publishers", "google", "models", name]
  const url = `${(baseURL ?? origin).replace(/\/+$/, "")}/${segments.map(encodeURIComponent).join("/")}`
  const shared = { module: "GeminiEmbeddingModel", provider, headers: {}, token: accessToken, failure }
  const isGemini = name.startsWith("gemini-embedding")
  if (isGemini && name !== "gemini-embedding-001") {
    return {
      ...shared,
      url: `${url}:embedContent`,
      batchSize: 1,
      body: (texts) => defined({ content: { parts: texts.map((text) => ({ text })) }, taskType, outputDimensionality }),
      read: ({ embedding, usageMetadata }) => ({
        vectors: [[0, objectOf(embedding)?.["values"]]],
        tokens: countOf(objectOf(usageMetadata)?.["promptTokenCount"]) ?? 0
      })
    }
  }
  return {
    ...shared,
    url: `${url}:predict`,
    batchSize: isGemini ? 1 : 9,
    body: (texts) => ({
      instances: texts.map((content) => defined({ content, task_type: taskType })),
      parameters: defined({ outputDimensionality })
    }),
    read: ({ predictions }) => {
      const embeddingObjects = objectsOf(predictions).map(({ embeddings }) => objectOf(embeddings))
      return {
        vectors: embeddingObjects.map((one, place) => [place, one?.["values"]]),
        tokens: embeddingObjects.reduce(
          (sum, one) => sum + (countOf(objectOf(one?.["statistics"])?.["token_count"]) ?? 0),
          0
        )
      }
    }
  }
}
const refuse = makeEffectCheck("gemini", shapes.geminiEmbeddingModelLayer)

const make = Effect.fn("GeminiEmbeddingModel.make")(function* (options: Options) {
  const refused = refuse(options)
  if (refused !== undefined) return yield* refused
  const { baseURL, dimensions, taskType, vertex } = options
  if (vertex !== undefined) {
    const api = onVertex(options, vertex)
    // More texts than one would be parts of one content, or refused.
    return yield* makeEmbedding(api.batchSize === 1 ? { ...options, batchSize: 1 } : options, api)
  }
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
    failure
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
