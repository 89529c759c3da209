/** Writes documents of a namespace in Postgres. Callers run it in a transaction. */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { inContext } from "../../Chunk.ts"
import type { Model } from "../../RagIndex.ts"
import { findOther, storable, type StoredEntry } from "../entries.ts"
import { wordsIn } from "../queryWords.ts"
import { modelIn, numberIn, type Reason, rowsOf } from "../rows.ts"
import { termOf } from "../stem.ts"
import { facetOf, lexemeOf, listOf } from "./tables.ts"

/** The chunks of one statement. */
const batch = 200

/** The bytes of the words of a chunk; a tsvector has at most a megabyte. */
const mostBytes = 900_000

/** The largest position in a tsvector. */
const mostCount = 16_383

/** Writes the words of a chunk as a tsvector. A count stands as position. */
const toVector = (space: number, terms: ReadonlyArray<string>): string => {
  const counts = new Map<string, number>()
  for (const term of terms) {
    const lexeme = lexemeOf(space, term)
    counts.set(lexeme, (counts.get(lexeme) ?? 0) + 1)
  }
  const parts: Array<string> = []
  let bytes = 0
  for (const [lexeme, count] of counts) {
    // A character of UTF-16 has three bytes of UTF-8 at most.
    bytes += 3 * lexeme.length + 12
    if (bytes > mostBytes) break
    parts.push(`'${lexeme}':${Math.min(count, mostCount)}`)
  }
  return parts.join(" ")
}

/** Locks a namespace against its removal, and gives its key; `undefined` before its first document. */
const holdSpace = Effect.fnUntraced(function* (sql: SqlClient, namespace: string) {
  const [row] = yield* rowsOf(sql`SELECT pk FROM rag_spaces WHERE name = ${namespace} FOR KEY SHARE`)
  return row === undefined ? undefined : numberIn(row, "pk")
})

const openSpace = Effect.fnUntraced(function* (
  sql: SqlClient,
  namespace: string,
  model: Model | undefined,
  hasVectors: boolean
): Effect.fn.Return<number, Reason> {
  let space = yield* holdSpace(sql, namespace)
  if (space === undefined) {
    yield* rowsOf(sql`INSERT INTO rag_spaces (name) VALUES (${namespace}) ON CONFLICT DO NOTHING`)
    space = yield* holdSpace(sql, namespace)
  }
  if (space === undefined) {
    return yield* Effect.fail<Reason>({
      _tag: "Unavailable",
      problem: "the namespace was dropped meanwhile; try again"
    })
  }
  if (!hasVectors || model === undefined) return space
  // The first vectors decide the model. A second writer waits here, and compares.
  yield* rowsOf(sql`UPDATE rag_spaces SET model = ${storable(model.id)}, dims = ${model.dimensions}
    WHERE pk = ${space} AND model IS NULL`)
  const [row = {}] = yield* rowsOf(sql`SELECT model, dims FROM rag_spaces WHERE pk = ${space}`)
  const other = findOther(modelIn(row), model)
  return other === undefined ? space : yield* Effect.fail(other)
})

/** Stores documents, over earlier ones of their ids. All writers lock documents in the order of their ids. */
export const putDocuments = Effect.fnUntraced(function* (
  sql: SqlClient,
  namespace: string,
  model: Model | undefined,
  entries: ReadonlyArray<StoredEntry>
): Effect.fn.Return<void, Reason> {
  const hasVectors = entries.some(({ vectors = [] }) => vectors.length > 0)
  const space = yield* openSpace(sql, namespace, model, hasVectors)
  const optional = (text: string | undefined) => (text === undefined ? null : storable(text))
  const documents = entries.map(({ chunks, document, hash, vectors }) => {
    const rows = chunks.map((chunk, index) => {
      const terms = wordsIn(inContext(document.title, chunk)).map(termOf)
      const vector = vectors?.[index]
      return {
        place: chunk.index,
        start: chunk.start,
        stop: chunk.end,
        text: storable(chunk.text),
        headings: JSON.stringify(chunk.headings.map(storable)),
        label: storable(chunk.label),
        length: terms.length,
        words: toVector(space, terms),
        embedding: vector === undefined ? null : JSON.stringify([...vector])
      }
    })
    const row = {
      id: document.id,
      hash: storable(hash),
      title: optional(document.title),
      source: optional(document.source),
      url: optional(document.url),
      at: document.at ?? null,
      metadata: JSON.stringify(document.metadata ?? {}),
      facets: Object.entries(document.metadata ?? {}).flatMap(([key, value]) =>
        typeof value === "object" ? [] : [facetOf(key, value)]
      ),
      chunks: rows.length,
      length: rows.reduce((sum, { length }) => sum + length, 0)
    }
    return { id: document.id, row, rows }
  })
  const keyRows = yield* rowsOf(sql`INSERT INTO rag_documents
      (space, id, hash, title, source, url, at, metadata, facets, chunks, length)
    SELECT ${space}::bigint, x.id, x.hash, x.title, x.source, x.url, x.at, x.metadata,
      ARRAY(SELECT json_array_elements_text(x.facets)), x.chunks, x.length
    FROM json_to_recordset(${JSON.stringify(documents.map(({ row }) => row))}::text::json) AS x (id text, hash text, title text,
      source text, url text, at float8, metadata text, facets json, chunks int, length bigint)
    ORDER BY x.id COLLATE "C"
    ON CONFLICT (space, id) DO UPDATE SET hash = excluded.hash, title = excluded.title, source = excluded.source,
      url = excluded.url, at = excluded.at, metadata = excluded.metadata, facets = excluded.facets,
      chunks = excluded.chunks, length = excluded.length
    RETURNING pk, id`)
  const keys = new Map(keyRows.map((row) => [String(row["id"]), numberIn(row, "pk")]))
  yield* rowsOf(sql`DELETE FROM rag_chunks
    WHERE document IN (SELECT d::bigint FROM (${listOf(sql, [...keys.values()])}) x (d))`)
  const all = documents.flatMap(({ id, rows }) => rows.map((row) => ({ ...row, document: keys.get(id) ?? null })))
  yield* Effect.forEach(
    Arr.chunksOf(all, batch),
    (part) =>
      rowsOf(sql`INSERT INTO rag_chunks
          (space, document, place, start, stop, text, headings, label, length, words, embedding)
        SELECT ${space}::bigint, x.document, x.place, x.start, x.stop, x.text, x.headings, x.label, x.length,
          x.words::tsvector, x.embedding::vector
        FROM json_to_recordset(${JSON.stringify(part)}::text::json) AS x (document bigint, place int, start int, stop int,
          text text, headings text, label text, length int, words text, embedding text)`),
    { discard: true }
  )
})

/** Removes documents with their chunks, and gives the number that existed. */
export const removeDocuments = Effect.fnUntraced(function* (
  sql: SqlClient,
  namespace: string,
  ids: ReadonlyArray<string>
): Effect.fn.Return<number, Reason> {
  const space = yield* holdSpace(sql, namespace)
  if (space === undefined) return 0
  const removedRows = yield* rowsOf(sql`WITH gone AS (SELECT pk FROM rag_documents WHERE space = ${space}
      AND id IN (${listOf(sql, ids.map(storable))}) ORDER BY id FOR UPDATE)
    DELETE FROM rag_documents d USING gone WHERE d.pk = gone.pk RETURNING d.pk`)
  return removedRows.length
})
