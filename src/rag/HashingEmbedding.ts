/**
 * Vectors by hashing words: no model, no network, no key.
 *
 * Texts with the same words are near each other. Synonyms are not: use a real model to search by meaning.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { HashingEmbedding, RagIndex, MemoryIndex, Retriever } from "effect-deepagents/rag"
 *
 * const program = Effect.gen(function* () {
 *   const space = yield* RagIndex.RagIndex.use((index) => index.space("notes", HashingEmbedding.model()))
 *   return yield* Retriever.search(space, "days of leave")
 * }).pipe(Effect.provide([MemoryIndex.layer, HashingEmbedding.layer()]))
 * ```
 */
import * as EmbeddingModel from "effect/ai/EmbeddingModel"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { makeLayerCheck } from "../support/options/check.ts"
import { words } from "../support/text/words.ts"
import * as shapes from "./internal/shapes.ts"
import { stem } from "./internal/stem.ts"
import type { Model } from "./RagIndex.ts"

/** Options of this module. */
export interface Options {
  /** The length of the vectors, from 8 to 4,096. Default: 384. */
  readonly dimensions?: number | undefined
}

const dimensionsOf = ({ dimensions = 384 }: Options): number =>
  Math.min(Math.max(8, Math.trunc(dimensions) || 384), 4096)

/** Describes the vectors of {@link layer}, for `RagIndex.space`. */
export const model = (options: Options = {}): Model => ({ id: "hashing", dimensions: dimensionsOf(options) })

/** FNV-1a with a final mix, since its lowest bits alone choose the bucket. */
const hashOf = (word: string): number => {
  let hash = 0x811c9dc5
  for (let index = 0; index < word.length; index++) hash = Math.imul(hash ^ word.charCodeAt(index), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  return (hash ^ (hash >>> 13)) >>> 0
}

const vectorOf = (text: string, dimensions: number): Array<number> => {
  const vector = Array.from({ length: dimensions }, () => 0)
  for (const word of words(text)) {
    const hash = hashOf(stem(word))
    const bucket = hash % dimensions
    vector[bucket] = (vector[bucket] ?? 0) + (hash & 0x8000_0000 ? -1 : 1)
  }
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0))
  // A text without words needs a direction, too.
  if (length === 0) vector[0] = 1
  return length === 0 ? vector : vector.map((value) => value / length)
}

const refuseLayer = makeLayerCheck("HashingEmbedding.layer", shapes.hashingEmbeddingLayer)

/** Makes vectors of texts by their words. */
export const layer = (options: Options = {}): Layer.Layer<EmbeddingModel.EmbeddingModel | EmbeddingModel.Dimensions> =>
  refuseLayer(options) ??
  Layer.merge(
    Layer.succeed(EmbeddingModel.Dimensions, dimensionsOf(options)),
    Layer.effect(
      EmbeddingModel.EmbeddingModel,
      EmbeddingModel.make({
        embedMany: ({ inputs }) =>
          Effect.sync(() => ({
            usage: { inputTokens: undefined },
            results: inputs.map((text) => vectorOf(text, dimensionsOf(options)))
          }))
      })
    )
  )
