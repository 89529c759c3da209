/** Searches a namespace in Postgres. */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Row } from "effect/sql/SqlConnection"
import type { Statement } from "effect/sql/Statement"
import type { Filter, Hit } from "../../RagIndex.ts"
import { byScore, conditionsOf } from "../entries.ts"
import { wordsOf } from "../queryWords.ts"
import { hitColumns, numberIn, type Reason, rowsOf, toHit } from "../rows.ts"
import { termOf } from "../stem.ts"
import { filterOf, indexedOf, lexemeOf, listOf } from "./tables.ts"

/** The chunks of a namespace up to which no word is too frequent. */
const few = 2_000

/** The chunks up to which all vectors are compared. */
const comparable = 10_000

/** The chunks that are scored exactly. */
const candidatesOf = (limit: number): number => Math.max(limit * 16, 200)

const toHits = (rows: ReadonlyArray<Row>): Effect.Effect<ReadonlyArray<Hit>, Reason> =>
  Effect.map(
    Effect.forEach(rows, (row) => toHit(row, numberIn(row, "score"))),
    (hits) => hits.sort(byScore)
  )

/** Counts the chunks of documents, and their words. */
const countChunks = Effect.fnUntraced(function* (sql: SqlClient, space: number, filter: Filter | undefined) {
  const [row = {}] = yield* rowsOf(sql`SELECT coalesce(sum(d.chunks), 0) AS chunks, coalesce(sum(d.length), 0) AS length
    FROM rag_documents d WHERE ${filterOf(sql, space, filter)}`)
  return { chunks: numberIn(row, "chunks"), length: numberIn(row, "length") }
})

/**
 * Finds chunks by words. The best candidates by the rarity of their words are scored exactly by BM25, with the numbers of
 * FTS5: k1 1.2, b 0.75.
 */
export const findWords = Effect.fnUntraced(function* (
  sql: SqlClient,
  space: number,
  text: string,
  limit: number,
  filter: Filter | undefined
): Effect.fn.Return<ReadonlyArray<Hit>, Reason> {
  const lexemes = [...new Set(wordsOf(text).map((word) => lexemeOf(space, termOf(word))))]
  if (lexemes.length === 0) return []
  const { chunks, length } = yield* countChunks(sql, space, undefined)
  const most = chunks > few ? Math.floor(chunks / 10) : chunks
  const counted = yield* rowsOf(sql`SELECT q.lexeme, (SELECT count(*) FROM (SELECT 1 FROM rag_chunks c
      WHERE c.words @@ ('''' || q.lexeme || '''')::tsquery LIMIT ${most + 1}) x) AS found
    FROM (${listOf(sql, lexemes)}) q (lexeme)`)
  const lexemeCounts = counted
    .map((row) => ({ lexeme: String(row["lexeme"]), count: numberIn(row, "found") }))
    .filter(({ count }) => count > 0)
  const rare = lexemeCounts.filter(({ count }) => count <= most)
  const picked = (rare.length > 0 ? rare : lexemeCounts.slice(0, 3)).map(({ count, lexeme }) => ({
    lexeme,
    query: `'${lexeme}'`,
    rarity: Math.max(1e-6, Math.log((chunks - count + 0.5) / (count + 0.5)))
  }))
  if (picked.length === 0) return []
  const any = picked.map(({ query }) => query).join(" | ")
  const average = Math.max(1, length / Math.max(1, chunks))
  const rows = yield* rowsOf(sql`WITH q AS MATERIALIZED (
      SELECT lexeme, query::tsquery AS query, rarity
      FROM json_to_recordset(${JSON.stringify(picked)}::text::json) AS x (lexeme text, query text, rarity float8)
    ), found AS MATERIALIZED (
      SELECT c.pk, c.words, 1.2 * (0.25 + 0.75 * c.length / ${average}::float8) AS weight
      FROM rag_chunks c JOIN rag_documents d ON d.pk = c.document
      WHERE c.space = ${space} AND c.words @@ ${any}::text::tsquery AND ${filterOf(sql, space, conditionsOf(filter))}
      ORDER BY (SELECT sum(q.rarity) FROM q WHERE c.words @@ q.query)
        / (1 + 1.2 * (0.25 + 0.75 * c.length / ${average}::float8)) DESC, c.pk
      LIMIT ${candidatesOf(limit)}
    ), scored AS (
      SELECT f.pk, sum(q.rarity * u.positions[1] * 2.2 / (u.positions[1] + f.weight)) AS score
      FROM found f CROSS JOIN LATERAL unnest(f.words) u JOIN q ON q.lexeme = u.lexeme
      GROUP BY f.pk ORDER BY 2 DESC, 1 LIMIT ${limit}
    )
    SELECT s.score, ${sql.literal(hitColumns)}
    FROM scored s JOIN rag_chunks c ON c.pk = s.pk JOIN rag_documents d ON d.pk = c.document`)
  return yield* toHits(rows)
})

/**
 * Finds the nearest vectors. Up to 10,000 chunks are compared one by one. Of more, HNSW finds them, and its scan goes on
 * until enough hold the filter.
 */
export const findNearest = Effect.fnUntraced(function* (
  sql: SqlClient,
  inTransaction: <A>(body: Effect.Effect<A, Reason>) => Effect.Effect<A, Reason>,
  space: number,
  vector: Float32Array,
  limit: number,
  filter: Filter | undefined
): Effect.fn.Return<ReadonlyArray<Hit>, Reason> {
  const wanted = JSON.stringify([...vector])
  const { chunks } = yield* countChunks(sql, space, conditionsOf(filter))
  const readHits = (matches: Statement<Row>) =>
    rowsOf(sql`WITH found AS MATERIALIZED (${matches})
    SELECT 1 - (c.embedding <=> ${wanted}::text::vector) AS score, ${sql.literal(hitColumns)}
    FROM found f JOIN rag_chunks c ON c.pk = f.pk JOIN rag_documents d ON d.pk = c.document`)
  const compareAll = readHits(sql`SELECT a.pk FROM (
      SELECT c.pk, c.embedding FROM rag_chunks c JOIN rag_documents d ON d.pk = c.document
      WHERE c.embedding IS NOT NULL AND ${filterOf(sql, space, conditionsOf(filter))} OFFSET 0
    ) a ORDER BY a.embedding <=> ${wanted}::text::vector, a.pk LIMIT ${limit}`)
  const indexed = indexedOf(vector.length)
  if (chunks <= comparable || indexed === undefined) return yield* toHits(yield* compareAll)
  const type = sql.literal(indexed.type)
  const rows = yield* inTransaction(
    Effect.andThen(
      rowsOf(sql`SELECT set_config('hnsw.iterative_scan', 'strict_order', true),
        set_config('hnsw.ef_search', ${String(Math.min(1_000, Math.max(200, limit * 2)))}, true)`),
      readHits(sql`SELECT c.pk FROM rag_chunks c
        WHERE c.space = ${space} AND vector_dims(c.embedding) = ${sql.literal(String(vector.length))}
        AND EXISTS (SELECT 1 FROM rag_documents d WHERE d.pk = c.document AND ${filterOf(sql, space, conditionsOf(filter))})
        ORDER BY c.embedding::${type} <=> ${wanted}::text::${type} LIMIT ${limit}`)
    )
  )
  // A scan ends after some thousand rows that the filter excludes.
  return yield* toHits(rows.length < limit ? yield* compareAll : rows)
})
