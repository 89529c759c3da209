/**
 * An index in Postgres with pgvector, for several hosts, and for more chunks than one machine holds.
 *
 * Words are found by full text search, and scored by BM25 over their namespace. Vectors are found by HNSW with a scan that
 * goes on behind a filter; up to 10,000 chunks are compared one by one. Any number of processes may write and search. A
 * document is stored wholly or not at all.
 *
 * It needs Postgres 14 and pgvector 0.8, or later ones. The layer makes the extension and its tables in the first schema
 * of the `search_path`. It fails with a `RagError` (`Unavailable`) that says what the server lacks.
 *
 * ```ts
 * import { Effect, Layer, Redacted } from "effect"
 * import * as PgClient from "@effect/sql-pg/PgClient"
 * import { RagIndex } from "effect-deepagents/rag"
 * import * as PostgresIndex from "effect-deepagents/rag/PostgresIndex"
 *
 * const url = Redacted.make("postgres://user:password@localhost/app")
 * const layer = PostgresIndex.layer.pipe(Layer.provide(PgClient.layer({ url })))
 *
 * const sources = Effect.gen(function* () {
 *   const space = yield* RagIndex.RagIndex.use((index) => index.space("tenant/acme"))
 *   return yield* space.sources()
 * }).pipe(Effect.provide(layer))
 * ```
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { SqlClient } from "effect/sql/SqlClient"
import { isSqlError } from "effect/sql/SqlError"
import { span } from "../support/effect/span.ts"
import { migrate } from "../support/store/sql.ts"
import { boundLimit, conditionsOf, inNamespace, readEntries, readVector } from "./internal/entries.ts"
import { makeIndex } from "./internal/makeIndex.ts"
import { findNearest, findWords } from "./internal/postgres/search.ts"
import { checkServer, filterOf, makeVectorIndex, versions } from "./internal/postgres/tables.ts"
import { putDocuments, removeDocuments } from "./internal/postgres/write.ts"
import { numberIn, type Reason, rowsOf, toReason } from "./internal/rows.ts"
import { findKey, makeTransaction, readAround, readHashes, toSources } from "./internal/sqlSpace.ts"
import { RagError } from "./RagError.ts"
import { type Hit, type Model, RagIndex, type Source, type Space } from "./RagIndex.ts"

const table = "rag_versions"

const open = Effect.fnUntraced(function* (sql: SqlClient): Effect.fn.Return<void, Reason> {
  yield* checkServer(sql)
  yield* Effect.mapError(migrate(sql, { table, name: "rag", versions }), (error): Reason => {
    const reason: Reason = isSqlError(error) ? toReason(error) : { _tag: "Unavailable", problem: error.message }
    const isForbidden =
      reason._tag === "Unavailable" && reason.problem.includes("permission denied to create extension")
    return isForbidden
      ? {
          _tag: "Unavailable",
          problem:
            "this user may not create the extension pgvector; let an owner of the database run CREATE EXTENSION vector"
        }
      : reason
  })
  const [row = {}] = yield* rowsOf(sql`SELECT max(migration_id) AS version FROM ${sql(table)}`)
  const version = numberIn(row, "version")
  if (version <= versions.length) return
  const problem = `the tables are of version ${version}, and this library knows ${versions.length}; update it`
  return yield* Effect.fail<Reason>({ _tag: "Corrupt", problem })
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  yield* Effect.mapError(open(sql), (reason) => new RagError({ operation: "open", namespace: "", reason }))
  const indexed = new Set<number>()

  const inTransaction = makeTransaction(sql)

  /** Makes the index of vectors before the first of their length: its lock would wait for other writers. */
  const prepare = Effect.fnUntraced(function* (model: Model | undefined) {
    if (model === undefined || indexed.has(model.dimensions)) return
    yield* inTransaction(makeVectorIndex(sql, model.dimensions))
    indexed.add(model.dimensions)
  })

  const spaceOf = <M extends Model | undefined>(namespace: string, model: M): Space<M> => {
    const run = <A>(operation: string, effect: Effect.Effect<A, Reason>) =>
      span(`PostgresIndex.${operation}`)(inNamespace(operation, namespace)(effect))
    // The first document makes the namespace. Reading an empty one writes nothing.
    const on = <A>(operation: string, empty: A, effect: (pk: number) => Effect.Effect<A, Reason>) =>
      run(
        operation,
        Effect.flatMap(findKey(sql, namespace, model), (pk) => (pk === undefined ? Effect.succeed(empty) : effect(pk)))
      )
    return {
      namespace,
      model,
      hashes: (filter) =>
        on<ReadonlyMap<string, string>>("hashes", new Map(), (pk) => readHashes(sql, filterOf(sql, pk, filter))),
      put: (entries) =>
        run(
          "put",
          Effect.gen(function* () {
            const validEntries = yield* readEntries(entries, model)
            if (validEntries.length === 0) return
            if (validEntries.some(({ vectors = [] }) => vectors.length > 0)) yield* prepare(model)
            yield* inTransaction(putDocuments(sql, namespace, model, validEntries))
          })
        ),
      remove: (documents) => run("remove", inTransaction(removeDocuments(sql, namespace, documents))),
      words: (text, { filter, limit }) =>
        on<ReadonlyArray<Hit>>("words", [], (pk) => findWords(sql, pk, text, boundLimit(limit), filter)),
      nearest: (vector, { filter, limit }) =>
        run(
          "nearest",
          Effect.gen(function* (): Effect.fn.Return<ReadonlyArray<Hit>, Reason> {
            const wanted = yield* readVector(vector, model)
            const pk = yield* findKey(sql, namespace, model)
            return pk === undefined ? [] : yield* findNearest(sql, inTransaction, pk, wanted, boundLimit(limit), filter)
          })
        ),
      around: (chunk, options = {}) =>
        on<ReadonlyArray<Hit>>("around", [], (pk) =>
          readAround(sql, filterOf(sql, pk, conditionsOf(options.filter)), chunk, options)
        ),
      sources: (filter) =>
        on<ReadonlyArray<Source>>("sources", [], (pk) =>
          Effect.map(
            rowsOf(sql`SELECT coalesce(d.source, '') AS source, count(*) AS documents, sum(d.chunks) AS chunks
              FROM rag_documents d WHERE ${filterOf(sql, pk, filter)} GROUP BY 1 ORDER BY 1`),
            toSources
          )
        )
    }
  }

  return makeIndex({
    space: (namespace, model) => Effect.as(findKey(sql, namespace, model), spaceOf(namespace, model)),
    drop: (namespace) => Effect.asVoid(rowsOf(sql`DELETE FROM rag_spaces WHERE name = ${namespace}`))
  })
})

/** Keeps the index in the database of a `SqlClient` for Postgres, such as `PgClient` of `@effect/sql-pg`. */
export const layer: Layer.Layer<RagIndex, RagError, SqlClient> = Layer.effect(RagIndex, make)
