import { Effect, Layer } from "effect"
import { EmbeddingModel } from "effect/ai"

/** Meanings of the words that tests use: a direction each, a text is the sum of its words. */
const meanings: Record<string, ReadonlyArray<number>> = {
  tea: [1, 0.1, 0],
  coffee: [0.9, 0.3, 0],
  beverage: [1, 0.2, 0],
  oslo: [0, 1, 0.1],
  norway: [0, 1, 0.2],
  deploys: [0, 0, 1]
}

const embed = (text: string): Array<number> =>
  text
    .toLowerCase()
    .split(/\W+/)
    .reduce((sum, word) => sum.map((value, index) => value + (meanings[word]?.[index] ?? 0)), [0.01, 0.01, 0.01])

/** A model that knows these texts, and counts its requests. */
export const asked: Array<string> = []
export const Embeddings = Layer.effect(
  EmbeddingModel.EmbeddingModel,
  EmbeddingModel.make({
    embedMany: ({ inputs }) =>
      Effect.sync(() => {
        asked.push(...inputs)
        return { results: inputs.map(embed), usage: { inputTokens: undefined } }
      })
  })
)
