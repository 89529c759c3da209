/** A space with more than 2,000 chunks is searched by words in a thread, without its most frequent words. */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { RagIndex } from "effect-deepagents/rag"
import * as SqliteIndex from "effect-deepagents/rag/SqliteIndex"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"

const chunkOf = (document: string, index: number, text: string) => ({
  id: `${document}::${index}`,
  document,
  index,
  start: 0,
  end: text.length,
  text,
  headings: [],
  label: ""
})

const dot = (left: ReadonlyArray<number>, right: ReadonlyArray<number>) =>
  left.reduce((sum, value, at) => sum + value * (right[at] ?? 0), 0)

const entries = Array.from({ length: 13 }, (_, document) => {
  const id = `d${document}`
  const chunks = Array.from({ length: 200 }, (_, index) => {
    const text = `common words ${index % 50 === 0 ? `rare${document}` : ""} number${index}`
    return chunkOf(id, index, text)
  })
  return { document: { id, text: "", source: document === 3 ? "three" : "other" }, hash: "1", chunks }
})

describe("a large space", () => {
  for (const kind of ["in a file", "in memory"]) {
    it.live(`finds rare words among frequent ones, ${kind}`, () =>
      Effect.gen(function* () {
        const space = yield* RagIndex.RagIndex.use((index) => index.space("large"))
        yield* space.put(entries)
        const found = yield* space.words('the common words of rare3, "NEAR(', { limit: 10 })
        expect(found.map(({ chunk }) => chunk.id).sort()).toEqual(["d3::0", "d3::100", "d3::150", "d3::50"])
        // With nothing but frequent words, these are searched.
        expect((yield* space.words("common words", { limit: 10 })).length).toBe(10)
        const filter = { sources: ["three"] }
        const narrowed = yield* space.words("common number7 number8", { limit: 10, filter })
        expect(narrowed.map(({ chunk }) => chunk.id).sort()).toEqual(["d3::7", "d3::8"])
        expect(yield* space.words("unknown", { limit: 10 })).toEqual([])
      }).pipe(
        Effect.provide(
          Layer.provide(
            SqliteIndex.layer,
            SqliteClient.layer({
              file: kind === "in memory" ? ":memory:" : join(mkdtempSync(join(tmpdir(), "rag-")), "index.db")
            })
          )
        )
      )
    )
  }
})

it.live(
  "the nearest of 4,000 vectors in a narrow cone are among the candidates of their signatures",
  () =>
    Effect.gen(function* () {
      const size = 64
      let seed = 7
      const random = () => (seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff) / 0x7fffffff
      const clusters = Array.from({ length: 20 }, () => Array.from({ length: size }, () => random() - 0.5))
      const vectorOf = (cluster: number) =>
        (clusters[cluster % 20] ?? []).map((value) => 2 + value * 0.3 + (random() - 0.5) * 0.6)
      const unit = (vector: ReadonlyArray<number>) => {
        const length = Math.hypot(...vector)
        return vector.map((value) => value / length)
      }
      const vectors = Array.from({ length: 4_000 }, (_, at) => unit(vectorOf(at)))
      const space = yield* RagIndex.RagIndex.use((index) => index.space("cone", { id: "toy", dimensions: size }))
      yield* space.put(
        Array.from({ length: 20 }, (_, document) => {
          const own = vectors.slice(document * 200, (document + 1) * 200)
          const id = `d${document}`
          const chunks = own.map((_, index) => chunkOf(id, index, "a"))
          return { document: { id, text: "" }, hash: "1", chunks, vectors: own }
        })
      )
      let found = 0
      for (let query = 0; query < 40; query++) {
        const wanted = unit(vectorOf(query))
        const exact = vectors
          .map((vector, at) => [`d${Math.floor(at / 200)}::${at % 200}`, dot(vector, wanted)] as const)
          .sort((left, right) => right[1] - left[1])
          .slice(0, 10)
        const hits = new Set((yield* space.nearest(wanted, { limit: 10 })).map(({ chunk }) => chunk.id))
        found += exact.filter(([id]) => hits.has(id)).length
      }
      expect(found / 400).toBeGreaterThanOrEqual(0.98)
    }).pipe(Effect.provide(Layer.provide(SqliteIndex.layer, SqliteClient.layer({ file: ":memory:" })))),
  30_000
)
