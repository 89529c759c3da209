/** Every index obeys the same rules, in memory and in SQLite. */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Chunker, MemoryIndex, RagIndex } from "effect-deepagents/rag"
import * as RagIndexConformance from "effect-deepagents/rag/RagIndexConformance"
import * as SqliteIndex from "effect-deepagents/rag/SqliteIndex"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import { SqlClient } from "effect/sql/SqlClient"
import { scaled } from "../scale.ts"
import { holdsApart } from "./tenants.ts"

const inFile = Layer.unwrap(
  Effect.sync(() => {
    const file = join(mkdtempSync(join(tmpdir(), "rag-")), "index.db")
    return Layer.provide(SqliteIndex.layer, SqliteClient.layer({ file }))
  })
)

const inMemory = Layer.provide(SqliteIndex.layer, SqliteClient.layer({ file: ":memory:" }))

describe("MemoryIndex", () => {
  for (const check of RagIndexConformance.suite(MemoryIndex.layer)) it.live(check.name, () => check.run)
})

describe("SqliteIndex in a file", () => {
  for (const check of RagIndexConformance.suite(inFile)) it.live(check.name, () => check.run)
})

it.effect("writes nothing for a namespace that is only read", () =>
  Effect.gen(function* () {
    const space = yield* RagIndex.RagIndex.use((index) => index.space("empty", { id: "toy", dimensions: 2 }))
    const read = yield* Effect.all([
      space.sources(),
      space.words("a", { limit: 1 }),
      space.nearest([1, 0], { limit: 1 }),
      space.around("a::0"),
      Effect.map(space.hashes(), (hashes) => [...hashes])
    ])
    expect([...read, yield* space.remove(["a"])]).toEqual([[], [], [], [], [], 0])
    expect(yield* SqlClient.use((sql) => sql`SELECT name FROM rag_spaces`)).toEqual([])
    yield* space.put([{ document: { id: "a", text: "A." }, hash: "1", chunks: Chunker.chunk({ id: "a", text: "A." }) }])
    expect(yield* space.words("a", { limit: 1 })).toHaveLength(1)
  }).pipe(Effect.provide(Layer.provideMerge(SqliteIndex.layer, SqliteClient.layer({ file: ":memory:" }))))
)

describe("SqliteIndex in memory", () => {
  for (const check of RagIndexConformance.suite(inMemory)) it.live(check.name, () => check.run)
})

describe("gives a tenant its own documents that hold the filter, and nothing of others", () => {
  for (const [name, layer] of Object.entries({ MemoryIndex: MemoryIndex.layer, SqliteIndex: inFile })) {
    it.live(name, () => Effect.provide(holdsApart(scaled(160)), layer), 30_000)
  }
})
