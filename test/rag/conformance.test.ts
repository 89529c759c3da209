/** Every index obeys the same rules, in memory and in SQLite. */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { MemoryIndex } from "effect-deepagents/rag"
import * as RagIndexConformance from "effect-deepagents/rag/RagIndexConformance"
import * as SqliteIndex from "effect-deepagents/rag/SqliteIndex"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"

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

describe("SqliteIndex in memory", () => {
  for (const check of RagIndexConformance.suite(inMemory)) it.live(check.name, () => check.run)
})
