/**
 * Keeps the vectors of texts in a storage, so that no text is embedded twice: after a crash, in another folder, under
 * another name.
 *
 * ```ts
 * import { Layer } from "effect"
 * import * as OpenAiEmbeddingModel from "effect-deepagents/models/OpenAiEmbeddingModel"
 * import { EmbeddingCache } from "effect-deepagents/rag"
 * import { Storage } from "effect-deepagents/stores"
 *
 * const model = "text-embedding-3-small"
 * const embeddings = EmbeddingCache.layer({ model }).pipe(
 *   Layer.provide([OpenAiEmbeddingModel.layer({ model }), Storage.layerMemory])
 * )
 * ```
 */
import * as EmbeddingModel from "effect/ai/EmbeddingModel"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Storage } from "../stores/Storage.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import { sha256 } from "../support/store/hash.ts"
import { decode, encode } from "../support/store/vectors.ts"
import * as shapes from "./internal/shapes.ts"

/** Options of this module. */
export interface Options {
  /** The id of the model, with its dimensions if you choose them: vectors of one id belong together. */
  readonly model: string
}

const refuseLayer = makeLayerCheck("EmbeddingCache.layer", shapes.embeddingCacheLayer)

/**
 * Looks a text up by its hash before the model is asked. A storage that fails is passed over: the model is asked. Stored
 * vectors have 32-bit numbers.
 */
export const layer = (
  options: Options
): Layer.Layer<EmbeddingModel.EmbeddingModel, never, EmbeddingModel.EmbeddingModel | Storage> =>
  refuseLayer(options) ??
  Layer.effect(
    EmbeddingModel.EmbeddingModel,
    Effect.gen(function* () {
      const model = yield* EmbeddingModel.EmbeddingModel
      const table = (yield* Storage).table("embeddings")
      const space = yield* sha256(options.model)
      const find = (key: string) =>
        Effect.map(
          Effect.catch(table.get(space, key), () => Effect.undefined),
          (text) => (text === undefined ? undefined : decode(text))
        )
      return yield* EmbeddingModel.make({
        embedMany: Effect.fnUntraced(function* ({ inputs }) {
          const keys = yield* Effect.forEach(inputs, sha256)
          const storedVectors = yield* Effect.forEach(keys, find, { concurrency: 16 })
          const missing = new Map(
            keys.flatMap((key, index) =>
              storedVectors[index] === undefined ? [[key, inputs[index] ?? ""] as const] : []
            )
          )
          const answer = yield* model.embedMany([...missing.values()])
          const added = new Map([...missing.keys()].map((key, index) => [key, answer.embeddings[index]?.vector ?? []]))
          const rows = [...added].map(([key, vector]) => ({ key, value: encode(Float32Array.from(vector)) }))
          if (rows.length > 0) yield* Effect.ignore(table.put(space, rows))
          return {
            usage: { inputTokens: answer.usage.inputTokens },
            results: keys.map((key, index) =>
              Array.from(storedVectors[index] ?? Float32Array.from(added.get(key) ?? []))
            )
          }
        })
      })
    })
  )
