/**
 * An index in one SQLite file, without a native extension.
 *
 * Words are found by FTS5, with a table for each namespace, so scores of one namespace say nothing of others. Vectors are
 * found by signatures of one bit a dimension, which are held in memory, and scored exactly. Any number of processes may
 * write and search one file. A document is stored wholly or not at all, whenever a process is killed.
 *
 * A search of more than 2,000 chunks by words runs in a thread, and leaves out words that a tenth of all chunks have.
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { RagIndex } from "effect-deepagents/rag"
 * import * as SqliteIndex from "effect-deepagents/rag/SqliteIndex"
 * import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
 *
 * const layer = SqliteIndex.layer.pipe(Layer.provide(SqliteClient.layer({ file: "documents.db" })))
 *
 * const sources = Effect.gen(function* () {
 *   const space = yield* RagIndex.RagIndex.use((index) => index.space("handbook"))
 *   return yield* space.sources()
 * }).pipe(Effect.provide(layer))
 * ```
 */
import { resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { SqlClient } from "effect/sql/SqlClient"
import { isSqlError } from "effect/sql/SqlError"
import { SqliteClient } from "../sessions/SqliteClient.ts"
import { span } from "../support/effect/span.ts"
import { migrate } from "../support/store/sql.ts"
import { type Aside, make as makeAside } from "../support/store/sqliteThread.ts"
import { boundLimit, conditionsOf, findOther, inNamespace, readEntries, readVector } from "./internal/entries.ts"
import { makeIndex } from "./internal/makeIndex.ts"
import { modelIn, numberIn, type Reason, rowsOf, toReason } from "./internal/rows.ts"
import { makeSignatures, type Signatures } from "./internal/sqlite/memory.ts"
import { textsOf, versions } from "./internal/sqlite/rows.ts"
import { filterOf, makeNearest, makeWords } from "./internal/sqlite/search.ts"
import { dropNamespace, putDocuments, removeDocuments } from "./internal/sqlite/write.ts"
import { findKey, makeTransaction, readAround, readHashes, toSources } from "./internal/sqlSpace.ts"
import { RagError } from "./RagError.ts"
import { type Hit, type Model, RagIndex, type Source, type Space } from "./RagIndex.ts"

/** The namespaces whose signatures stay in memory. */
const mostHeld = 64

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const client = yield* Effect.serviceOption(SqliteClient)
  const file = Option.match(client, { onNone: () => ":memory:", onSome: (one) => one.file })
  const aside: Aside | undefined = file === ":memory:" ? undefined : yield* makeAside(resolve(file))
  yield* Effect.mapError(
    migrate(sql, { table: "rag_versions", name: "rag", versions }),
    (error) =>
      new RagError({
        operation: "open",
        namespace: "",
        reason: isSqlError(error) ? toReason(error) : { _tag: "Unavailable", problem: error.message },
        cause: error
      })
  )
  const signaturesBySpace = new Map<number, Signatures>()

  const inTransaction = makeTransaction(sql)

  const signaturesOf = (space: number): Signatures => {
    const signatures = signaturesBySpace.get(space) ?? makeSignatures(sql, space)
    signaturesBySpace.delete(space)
    signaturesBySpace.set(space, signatures)
    for (const oldest of signaturesBySpace.keys())
      if (signaturesBySpace.size > mostHeld) signaturesBySpace.delete(oldest)
    return signatures
  }

  const create = Effect.fnUntraced(function* (namespace: string): Effect.fn.Return<number, Reason> {
    yield* rowsOf(sql`INSERT INTO rag_spaces (name) VALUES (${namespace}) ON CONFLICT DO NOTHING`)
    const [row] = yield* rowsOf(sql`SELECT pk FROM rag_spaces WHERE name = ${namespace}`)
    if (row === undefined) return yield* Effect.fail<Reason>({ _tag: "Corrupt", problem: "a namespace vanished" })
    yield* rowsOf(sql`CREATE VIRTUAL TABLE IF NOT EXISTS ${sql.literal(textsOf(numberIn(row, "pk")))}
      USING fts5(text, content='', contentless_delete=1, tokenize='porter unicode61')`)
    return numberIn(row, "pk")
  })

  const spaceOf = <M extends Model | undefined>(opened: number | undefined, namespace: string, model: M): Space<M> => {
    let spaceKey = opened
    const key = Effect.suspend(() =>
      spaceKey === undefined
        ? Effect.tap(findKey(sql, namespace, model), (pk) => Effect.sync(() => (spaceKey = pk)))
        : Effect.succeed(spaceKey)
    )
    const run = <A>(operation: string, effect: Effect.Effect<A, Reason>) =>
      span(`SqliteIndex.${operation}`)(inNamespace(operation, namespace)(effect))
    // The first document makes the namespace. Reading an empty one writes nothing.
    const on = <A>(operation: string, empty: A, effect: (pk: number) => Effect.Effect<A, Reason>) =>
      run(
        operation,
        Effect.flatMap(key, (pk) => (pk === undefined ? Effect.succeed(empty) : effect(pk)))
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
            const pk = yield* key
            const write = (pk: number) => putDocuments(sql, pk, model, validEntries)
            yield* inTransaction(pk === undefined ? Effect.flatMap(create(namespace), write) : write(pk))
          })
        ),
      remove: (documents) => on("remove", 0, (pk) => inTransaction(removeDocuments(sql, pk, documents))),
      words: (text, { filter, limit }) =>
        on<ReadonlyArray<Hit>>("words", [], (pk) => makeWords(sql, pk, aside)(text, boundLimit(limit), filter)),
      nearest: (vector, { filter, limit }) =>
        run(
          "nearest",
          Effect.gen(function* (): Effect.fn.Return<ReadonlyArray<Hit>, Reason> {
            const wanted = yield* readVector(vector, model)
            const pk = yield* key
            if (pk === undefined) return []
            // Another one may have stored the first vectors since this space was opened.
            const [row = {}] = yield* rowsOf(sql`SELECT model, dims FROM rag_spaces WHERE pk = ${pk}`)
            const other = findOther(modelIn(row), model)
            if (other !== undefined) return yield* Effect.fail(other)
            return yield* makeNearest(sql, pk, signaturesOf(pk))(wanted, boundLimit(limit), filter)
          })
        ),
      around: (chunk, options = {}) =>
        on<ReadonlyArray<Hit>>("around", [], (pk) =>
          readAround(sql, filterOf(sql, pk, conditionsOf(options.filter)), chunk, options)
        ),
      sources: (filter) =>
        on<ReadonlyArray<Source>>("sources", [], (pk) =>
          Effect.map(
            rowsOf(sql`SELECT coalesce(d.source, '') AS source, count(DISTINCT d.pk) AS documents, count(c.pk) AS chunks
              FROM rag_documents d LEFT JOIN rag_chunks c ON c.document = d.pk
              WHERE ${filterOf(sql, pk, filter)} GROUP BY 1 ORDER BY 1`),
            toSources
          )
        )
    }
  }

  const drop = (namespace: string) =>
    Effect.map(dropNamespace(sql, namespace), (pk) => {
      if (pk !== undefined) signaturesBySpace.delete(pk)
    })

  return makeIndex({
    space: (namespace, model) => Effect.map(findKey(sql, namespace, model), (pk) => spaceOf(pk, namespace, model)),
    drop: (namespace) => inTransaction(drop(namespace))
  })
})

/** Keeps the index in the database of a `SqlClient` for SQLite, such as `SqliteClient`. */
export const layer: Layer.Layer<RagIndex, RagError, SqlClient> = Layer.effect(RagIndex, make)
