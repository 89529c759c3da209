/** An index in Postgres obeys the rules of every index, and says what a server lacks. */
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import type { PGlite } from "@electric-sql/pglite"
import { Effect, Exit, Layer, Scope } from "effect"
import { type Chunk, RagIndex } from "effect-deepagents/rag"
import * as PostgresIndex from "effect-deepagents/rag/PostgresIndex"
import * as RagIndexConformance from "effect-deepagents/rag/RagIndexConformance"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import { SqlClient } from "effect/sql/SqlClient"
import { scaled } from "../scale.ts"
import { onPglite, pglite } from "../servers/pglite.ts"
import { PgLive } from "../servers/postgres.ts"
import { holdsApart } from "./tenants.ts"

// One server for all: it takes two seconds to start.
const scope = Scope.makeUnsafe()
let server: Promise<PGlite>
beforeAll(async () => {
  server = Effect.runPromise(Scope.provide(pglite, scope))
  await server
}, 60_000)
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const client = Layer.unwrap(
  Effect.map(
    Effect.promise(() => server),
    onPglite
  )
)
const layer = Layer.provide(PostgresIndex.layer, client)

describe("PostgresIndex", () => {
  for (const check of RagIndexConformance.suite(layer)) it.live(check.name, () => check.run, 60_000)

  it.live(
    "gives a tenant its own documents that hold the filter, and nothing of others",
    () => Effect.provide(holdsApart(scaled(80)), layer),
    60_000
  )

  it.live("opens its tables again, and refuses tables of a later version", () =>
    Effect.gen(function* () {
      const sources = RagIndex.RagIndex.use((index) => Effect.flatMap(index.space("a"), (space) => space.sources()))
      const opened = sources.pipe(Effect.provide(PostgresIndex.layer, { local: true }))
      yield* RagIndex.RagIndex.use((index) => Effect.flatMap(index.space("a"), (space) => space.put([entry]))).pipe(
        Effect.provide(PostgresIndex.layer, { local: true })
      )
      expect(yield* opened).toEqual([{ source: "", documents: 1, chunks: 1 }])
      yield* SqlClient.use((sql) => sql`INSERT INTO rag_versions (migration_id, name) VALUES (99, 'later')`)
      const { message } = yield* Effect.flip(opened)
      expect(message).toContain("the tables are of version 99, and this library knows 1; update it")
    }).pipe(Effect.provide(client))
  )

  it.live(
    "finds the nearest by HNSW among many, also behind a filter that few chunks hold",
    () =>
      Effect.gen(function* () {
        const size = 8
        const model = { id: "toy", dimensions: size }
        const space = yield* RagIndex.RagIndex.use((index) => index.space("large", model))
        const vectorOf = (document: number, index: number) =>
          Array.from(
            { length: size },
            (_, at) => Math.sin(document * 31 + index * (at + 1)) + (document === 4 ? -5 : 2)
          )
        const entries = Array.from({ length: 5 }, (_, document) => {
          const id = `d${document}`
          const chunks = Array.from({ length: document === 4 ? 30 : 150 }, (_, index) =>
            chunkOf(id, index, `number${index}`)
          )
          const source = document === 4 ? "rare" : "common"
          const vectors = chunks.map(({ index }) => vectorOf(document, index))
          return { document: { id, text: "", source }, hash: "1", chunks, vectors }
        })
        yield* space.put(entries)
        // It is told of more chunks than it compares one by one, and of no way but the index: HNSW of so many takes a minute.
        yield* SqlClient.use((sql) => sql`UPDATE rag_documents SET chunks = 20000`)
        for (const way of ["seqscan", "bitmapscan", "sort"]) {
          yield* SqlClient.use((sql) => sql.unsafe(`SET enable_${way} = off`))
        }
        const wanted = vectorOf(3, 77)
        const [first] = yield* space.nearest(wanted, { limit: 5 })
        expect(first?.chunk.id).toBe("d3::77")
        const rare = yield* space.nearest(wanted, { limit: 20, filter: { sources: ["rare"] } })
        expect(rare).toHaveLength(20)
        const after = yield* space.nearest(wanted, { limit: 20, filter: { sources: ["rare", "common"] } })
        expect(after).toHaveLength(20)
        const scans = yield* SqlClient.use(
          (sql) => sql`SELECT 1 FROM pg_indexes WHERE indexname = 'rag_chunks_hnsw_8' AND schemaname = current_schema()`
        )
        expect(scans).toHaveLength(1)
        const words = yield* space.words("number7 number140", { limit: 100 })
        expect(new Set(words.map(({ chunk }) => chunk.text))).toEqual(new Set(["number7", "number140"]))
      }).pipe(Effect.provide(Layer.provideMerge(PostgresIndex.layer, client))),
    60_000
  )
})

const chunkOf = (document: string, index: number, text: string): Chunk.Chunk => ({
  id: `${document}::${index}`,
  document,
  index,
  start: 0,
  end: text.length,
  text,
  headings: [],
  label: ""
})

const entry = { document: { id: "a", text: "A." }, hash: "1", chunks: [chunkOf("a", 0, "A.")] }

const problemOf = <E>(sql: Layer.Layer<SqlClient, E>) =>
  Effect.map(Effect.flip(Effect.provide(Layer.build(PostgresIndex.layer), sql)), (error) =>
    String(error instanceof Error ? error.message : error)
  ).pipe(Effect.scoped)

describe("a server without a feature that the index needs", () => {
  it.live(
    "without pgvector is told how to get it",
    () =>
      Effect.gen(function* () {
        expect(yield* problemOf(PgLive)).toContain("the server has no pgvector; install the extension")
      }),
    60_000
  )

  it.live("of another database is refused", () =>
    Effect.gen(function* () {
      expect(yield* problemOf(SqliteClient.layer({ file: ":memory:" }))).toContain("provide a SqlClient of it")
    })
  )
})
