/**
 * Texts as vectors, by any server that has OpenAI's embeddings endpoint: OpenAI, Ollama, Gemini, Mistral, vLLM … The
 * `EmbeddingModel` of `effect/ai`.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { EmbeddingModel } from "effect/ai"
 * import * as OpenAiEmbeddingModel from "effect-deepagents/models/OpenAiEmbeddingModel"
 *
 * const local = OpenAiEmbeddingModel.layer({ model: "nomic-embed-text", baseURL: "http://localhost:11434/v1" })
 *
 * const vector = Effect.gen(function* () {
 *   const model = yield* EmbeddingModel.EmbeddingModel
 *   return (yield* model.embed("What is Effect?")).vector
 * }).pipe(Effect.provide(local))
 * ```
 *
 * No package is needed. Gemini is at `https://generativelanguage.googleapis.com/v1beta/openai`.
 */
import type * as EmbeddingModel from "effect/ai/EmbeddingModel"
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type ConfigOptions, fromConfigured } from "../core/configured.ts"
import type { ModelError } from "../core/ModelError.ts"
import { defined } from "../support/json/defined.ts"
import { bearer } from "../support/store/redacted.ts"
import { readFailure } from "./internal/openai/failure.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"
import { type EmbeddingOptions, makeEmbedding } from "./internal/wire/embedding.ts"
import { keyFrom } from "./internal/wire/keys.ts"
import { countOf, objectOf, objectsOf, placeOf } from "./internal/wire/read.ts"

/**
 * Options of a layer. Only `model` is needed.
 *
 * - `baseURL`: address of the API, its version included; OpenAI by default
 * - `apiKey`: from `OPENAI_API_KEY` by default, where `baseURL` is not given
 * - `dimensions`: the length of the vectors, which is sent, and which not every model can change. Without it the server
 *   is asked for one vector when the layer is built, to see how long they are
 * - `batchSize`: the most texts of one request, 96 by default. Longer lists are sent in several
 * - `timeout`: of one request, a minute by default
 */
export interface Options extends EmbeddingOptions {}

const provider = "openai"
const refuse = makeEffectCheck("openai", shapes.openAiEmbeddingModelLayer)

const make = Effect.fn("OpenAiEmbeddingModel.make")(function* (options: Options) {
  const refused = refuse(options)
  if (refused !== undefined) return yield* refused
  const { baseURL, dimensions, model } = options
  const key =
    options.apiKey ?? (baseURL === undefined ? yield* keyFrom("OPENAI_API_KEY", { provider, model }) : undefined)
  return yield* makeEmbedding(options, {
    module: "OpenAiEmbeddingModel",
    provider,
    url: `${(baseURL ?? "https://api.openai.com/v1").replace(/\/+$/, "")}/embeddings`,
    headers: bearer(key),
    batchSize: 96,
    body: (input) => defined({ model, input, dimensions, encoding_format: "float" }),
    read: ({ data, usage }) => ({
      vectors: objectsOf(data).map(({ embedding, index }, place) => [placeOf(index) ?? place, embedding]),
      tokens: countOf(objectOf(usage)?.["prompt_tokens"]) ?? 0
    }),
    failure: readFailure
  })
})

/**
 * A layer of the model, with the dimensions of its vectors. Building it fails with `Authentication` where there is no
 * key, and, without `dimensions`, as the first request does.
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
