/** Ranks by words are BM25: the scores of bm25s 0.3.16 (`robertson`, k1 1.2, b 0.75, Porter stems), recorded. */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Chunker, MemoryIndex, RagIndex } from "effect-deepagents/rag"
import * as SqliteIndex from "effect-deepagents/rag/SqliteIndex"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"

const texts = [
  "Ulm lies on the Danube. Its minster is high.",
  "Cologne lies on the Rhine, and its cathedral is old.",
  "The Danube flows through Vienna and Budapest to the Black Sea.",
  "Vienna is old. Old Vienna has a cathedral, and Budapest has baths.",
  "A minster is a large church.",
  "The Black Forest is the source of the Danube, the Danube of many songs.",
  "Nothing is said here about rivers.",
  "Songs of the sea.",
  "A church near the river Rhine was built of stone.",
  "Stone by stone, the town grew."
]

/** The scores of the texts. bm25s leaves the constant factor k1 + 1 out. */
const recorded = {
  "Danube minster": [0.8944, 0, 0.3143, 0, 0.6395, 0.4085, 0, 0, 0, 0],
  "old cathedral of Vienna": [0, 1.0537, 0.5046, 1.872, 0, 0.4085, 0, 0.4459, 0.3281, 0],
  "songs of the sea": [0, 0, 0.5046, 0, 0, 0.8564, 0, 1.878, 0.3281, 0],
  "stone church": [0, 0, 0, 0, 0.6395, 0, 0, 0, 1.0537, 0.84]
}

const inFile = Layer.unwrap(
  Effect.sync(() =>
    Layer.provide(
      SqliteIndex.layer,
      SqliteClient.layer({ file: join(mkdtempSync(join(tmpdir(), "rag-")), "index.db") })
    )
  )
)

describe("BM25", () => {
  for (const [name, layer] of Object.entries({ MemoryIndex: MemoryIndex.layer, SqliteIndex: inFile })) {
    it.live(`of ${name} is that of bm25s`, () =>
      Effect.gen(function* () {
        const space = yield* RagIndex.RagIndex.use((index) => index.space("a"))
        yield* space.put(
          texts.map((text, at) => {
            const document = { id: `d${at}`, text }
            return { document, hash: "1", chunks: Chunker.chunk(document) }
          })
        )
        for (const [query, scores] of Object.entries(recorded)) {
          const hits = yield* space.words(query, { limit: 10 })
          const found = new Map(hits.map(({ chunk, score }) => [chunk.document, score / 2.2]))
          for (const [at, score] of scores.entries()) expect(found.get(`d${at}`) ?? 0).toBeCloseTo(score, 3)
        }
      }).pipe(Effect.provide(layer))
    )
  }
})
