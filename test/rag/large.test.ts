/** A space with more than 2,000 chunks is searched by words in a thread, without its most frequent words. */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { RagIndex } from "effect-deepagents/rag"
import * as SqliteIndex from "effect-deepagents/rag/SqliteIndex"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"

const entries = Array.from({ length: 13 }, (_, document) => {
  const id = `d${document}`
  const chunks = Array.from({ length: 200 }, (_, index) => {
    const text = `common words ${index % 50 === 0 ? `rare${document}` : ""} number${index}`
    return { id: `${id}::${index}`, document: id, index, start: 0, end: text.length, text, headings: [], label: "" }
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
