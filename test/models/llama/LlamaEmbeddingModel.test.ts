import { assert, describe, it, vi } from "@effect/vitest"
import { Effect } from "effect"
import * as LlamaEmbeddingModel from "effect-deepagents/models/local/LlamaEmbeddingModel"
import { EmbeddingModel } from "effect/ai"
import { file, real } from "./models.ts"
import { buildTinyGguf } from "./tiny-gguf.mjs"

vi.setConfig({ testTimeout: 60_000 })

const model = real ?? file("embedding.gguf", buildTinyGguf({ pooling: "mean" }))

const product = (left: ReadonlyArray<number>, right: ReadonlyArray<number>): number =>
  left.reduce((sum, value, index) => sum + value * (right[index] ?? 0), 0)

describe("LlamaEmbeddingModel", () => {
  it.layer(LlamaEmbeddingModel.layer({ model, gpu: false, threads: 1, contextSize: 256 }), {
    excludeTestServices: true
  })("makes vectors", (it) => {
    it.effect("of length 1, in the order of the texts, the same for the same text", () =>
      Effect.gen(function* () {
        const embedding = yield* EmbeddingModel.EmbeddingModel
        const dimensions = yield* EmbeddingModel.Dimensions
        const { embeddings, usage } = yield* embedding.embedMany(["a cat sat", "0101 XYZ", "a cat sat"])
        const [cat, other, again] = embeddings.map((one) => one.vector)
        assert(cat !== undefined && other !== undefined && again !== undefined)
        assert.lengthOf(cat, dimensions)
        assert.approximately(product(cat, cat), 1, 1e-6)
        assert.approximately(product(cat, again), 1, 1e-4)
        assert.isBelow(product(cat, other), 0.999)
        assert.isAbove(usage.inputTokens ?? 0, 5)
        const one = yield* embedding.embed("a cat sat")
        assert.approximately(product(one.vector, cat), 1, 1e-4)
      })
    )

    it.effect("of no text that is too long, and says how long it may be", () =>
      Effect.gen(function* () {
        const embedding = yield* EmbeddingModel.EmbeddingModel
        const error = yield* Effect.flip(embedding.embed("much too long ".repeat(200)))
        assert.strictEqual(error.reason._tag, "InvalidRequestError")
        assert.include(error.message, "256")
      })
    )
  })
})
