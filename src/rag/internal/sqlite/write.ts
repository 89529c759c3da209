/** Writes documents of a namespace in SQLite. Callers run it in a transaction. */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { centreOf, signOf } from "../../../support/store/signs.ts"
import { inContext } from "../../Chunk.ts"
import type { Model } from "../../RagIndex.ts"
import { findOther, storable, type StoredEntry } from "../entries.ts"
import { wordsIn } from "../queryWords.ts"
import { modelIn, numberIn, type Reason, rowsOf } from "../rows.ts"
import { bytesIn, bytesOf, floatsOf, textsOf } from "./rows.ts"

/** The rows of one statement. */
const batch = 100

/** The rows of removed chunks of a namespace. Beyond them, other processes read all signatures anew. */
const mostRemoved = 10_000

/** Removes documents with their chunks, and gives the number that existed. */
export const removeDocuments = Effect.fnUntraced(function* (sql: SqlClient, space: number, ids: ReadonlyArray<string>) {
  const texts = sql.literal(textsOf(space))
  const documentRows = yield* rowsOf(sql`SELECT pk FROM rag_documents
    WHERE space = ${space} AND id IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`)
  if (documentRows.length === 0) return 0
  const documents = JSON.stringify(documentRows.map((row) => numberIn(row, "pk")))
  const chunks = sql`SELECT pk FROM rag_chunks WHERE document IN (SELECT value FROM json_each(${documents}))`
  yield* rowsOf(sql`DELETE FROM ${texts} WHERE rowid IN (${chunks})`)
  yield* rowsOf(sql`INSERT INTO rag_removed (space, chunk)
    SELECT space, chunk FROM rag_signs WHERE space = ${space} AND chunk IN (${chunks})`)
  yield* rowsOf(sql`DELETE FROM rag_vectors WHERE chunk IN (${chunks})`)
  yield* rowsOf(sql`DELETE FROM rag_signs WHERE space = ${space} AND chunk IN (${chunks})`)
  yield* rowsOf(sql`DELETE FROM rag_chunks WHERE document IN (SELECT value FROM json_each(${documents}))`)
  yield* rowsOf(sql`DELETE FROM rag_documents WHERE pk IN (SELECT value FROM json_each(${documents}))`)
  const [counted] = yield* rowsOf(sql`SELECT count(*) AS count FROM rag_removed WHERE space = ${space}`)
  if (counted !== undefined && numberIn(counted, "count") > mostRemoved) {
    yield* rowsOf(sql`DELETE FROM rag_removed WHERE space = ${space}`)
    yield* rowsOf(sql`UPDATE rag_spaces SET gone = gone + 1 WHERE pk = ${space}`)
  }
  return documentRows.length
})

/** Gives the centre of the namespace's vectors. The first vectors decide it, and the model. */
const readCentre = Effect.fnUntraced(function* (
  sql: SqlClient,
  space: number,
  model: Model,
  vectors: ReadonlyArray<Float32Array>
) {
  const [row] = yield* rowsOf(sql`SELECT model, dims, centre FROM rag_spaces WHERE pk = ${space}`)
  const centreBytes = row === undefined ? undefined : bytesIn(row, "centre")
  if (row !== undefined && centreBytes !== undefined) {
    const other = findOther(modelIn(row), model)
    return other === undefined ? floatsOf(centreBytes) : yield* Effect.fail(other)
  }
  // Vectors of many models lie in a narrow cone: signs about 0 say little.
  const centre = centreOf(vectors)
  yield* rowsOf(sql`UPDATE rag_spaces
    SET model = ${model.id}, dims = ${model.dimensions}, centre = ${bytesOf(centre)} WHERE pk = ${space}`)
  return centre
})

/** The next free key of a table whose keys only grow. */
const nextKey = Effect.fnUntraced(function* (sql: SqlClient, table: string) {
  const [row] = yield* rowsOf(sql`SELECT seq FROM sqlite_sequence WHERE name = ${table}`)
  return row === undefined ? 1 : numberIn(row, "seq") + 1
})

/** Stores documents, over earlier ones of their ids. */
export const putDocuments = Effect.fnUntraced(function* (
  sql: SqlClient,
  space: number,
  model: Model | undefined,
  entries: ReadonlyArray<StoredEntry>
): Effect.fn.Return<void, Reason> {
  const [open] = yield* rowsOf(sql`SELECT pk FROM rag_spaces WHERE pk = ${space}`)
  if (open === undefined) {
    return yield* Effect.fail<Reason>({ _tag: "Unavailable", problem: "the namespace was dropped; open it again" })
  }
  yield* removeDocuments(
    sql,
    space,
    entries.map(({ document }) => document.id)
  )
  const vectors = entries.flatMap((entry) => entry.vectors ?? [])
  const centre = model === undefined || vectors.length === 0 ? undefined : yield* readCentre(sql, space, model, vectors)
  let documentKey = yield* nextKey(sql, "rag_documents")
  let chunkKey = yield* nextKey(sql, "rag_chunks")
  const rows = entries.map(({ chunks, document, hash, vectors: own }) => {
    const key = documentKey++
    const optional = (text: string | undefined) => (text === undefined ? null : storable(text))
    return {
      document: {
        pk: key,
        space,
        id: document.id,
        hash,
        title: optional(document.title),
        source: optional(document.source),
        url: optional(document.url),
        at: document.at ?? null,
        metadata: storable(JSON.stringify(document.metadata ?? {}))
      },
      chunks: chunks.map((chunk, index) => {
        const pk = chunkKey++
        const vector = own?.[index]
        return {
          chunk: {
            pk,
            document: key,
            place: chunk.index,
            start: chunk.start,
            stop: chunk.end,
            text: storable(chunk.text),
            headings: JSON.stringify(chunk.headings.map(storable)),
            label: storable(chunk.label)
          },
          text: { rowid: pk, text: wordsIn(inContext(document.title, chunk)).join(" ") },
          vector: vector === undefined || centre === undefined ? undefined : { pk, key, vector, centre }
        }
      })
    }
  })
  const insert = (table: string, values: ReadonlyArray<Record<string, string | number | Uint8Array | null>>) =>
    Effect.forEach(
      Arr.chunksOf(values, batch),
      (part) => rowsOf(sql`INSERT INTO ${sql.literal(table)} ${sql.insert(part)}`),
      { discard: true }
    )
  const all = rows.flatMap((row) => row.chunks)
  const measured = all.flatMap(({ vector }) => (vector === undefined ? [] : [vector]))
  yield* insert(
    "rag_documents",
    rows.map(({ document }) => document)
  )
  yield* insert(
    "rag_chunks",
    all.map(({ chunk }) => chunk)
  )
  yield* insert(
    textsOf(space),
    all.map(({ text }) => text)
  )
  yield* insert(
    "rag_vectors",
    measured.map(({ pk, vector }) => ({ chunk: pk, vector: bytesOf(vector) }))
  )
  yield* insert(
    "rag_signs",
    measured.map(({ centre: about, key, pk, vector }) => ({
      space,
      chunk: pk,
      document: key,
      signs: bytesOf(signOf(vector, about))
    }))
  )
})

/** Removes a namespace with its documents, and gives the key that it had. */
export const dropNamespace = Effect.fnUntraced(function* (
  sql: SqlClient,
  namespace: string
): Effect.fn.Return<number | undefined, Reason> {
  const [row] = yield* rowsOf(sql`SELECT pk FROM rag_spaces WHERE name = ${namespace}`)
  if (row === undefined) return undefined
  const pk = numberIn(row, "pk")
  const documents = sql`SELECT pk FROM rag_documents WHERE space = ${pk}`
  yield* rowsOf(sql`DROP TABLE IF EXISTS ${sql.literal(textsOf(pk))}`)
  yield* rowsOf(sql`DELETE FROM rag_vectors
    WHERE chunk IN (SELECT c.pk FROM rag_chunks c WHERE c.document IN (${documents}))`)
  yield* rowsOf(sql`DELETE FROM rag_chunks WHERE document IN (${documents})`)
  for (const table of ["rag_signs", "rag_removed", "rag_documents"]) {
    yield* rowsOf(sql`DELETE FROM ${sql.literal(table)} WHERE space = ${pk}`)
  }
  yield* rowsOf(sql`DELETE FROM rag_spaces WHERE pk = ${pk}`)
  return pk
})
