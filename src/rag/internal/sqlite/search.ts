/** Searches a namespace in SQLite. */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Row } from "effect/sql/SqlConnection"
import type { Fragment, Statement } from "effect/sql/Statement"
import { costsOf } from "../../../support/store/signs.ts"
import type { Aside } from "../../../support/store/sqliteThread.ts"
import type { Filter, Hit } from "../../RagIndex.ts"
import { byScore, conditionsOf } from "../entries.ts"
import { wordsOf } from "../queryWords.ts"
import { hitColumns, numberIn, type Reason, rowsOf, toHit } from "../rows.ts"
import type { Signatures } from "./memory.ts"
import { bytesIn, floatsOf, textsOf } from "./rows.ts"

/** The chunks of a namespace up to which words are searched in the caller's thread, and no word is too frequent. */
const few = 2_000

/** The least chunks that are scored exactly. */
const least = 640

const listOf = (values: ReadonlyArray<string | number>): string => JSON.stringify(values)

/** The condition of a filter on `rag_documents d`. */
export const filterOf = (sql: SqlClient, space: number, filter: Filter | undefined): Fragment => {
  const { after, before, documents, metadata = {}, sources } = filter ?? {}
  return sql.and([
    sql`d.space = ${space}`,
    ...(documents === undefined ? [] : [sql`d.id IN (SELECT value FROM json_each(${listOf(documents)}))`]),
    ...(sources === undefined
      ? []
      : [sql`coalesce(d.source, '') IN (SELECT value FROM json_each(${listOf(sources)}))`]),
    ...(after === undefined ? [] : [sql`d.at >= ${after}`]),
    ...(before === undefined ? [] : [sql`d.at < ${before}`]),
    ...Object.entries(metadata).map(([key, value]) =>
      typeof value === "boolean"
        ? sql`EXISTS (SELECT 1 FROM json_each(d.metadata) m WHERE m.key = ${key} AND m.type = ${String(value)})`
        : sql`EXISTS (SELECT 1 FROM json_each(d.metadata) m WHERE m.key = ${key} AND m.atom = ${value}
            AND m.type ${typeof value === "string" ? sql`= 'text'` : sql`IN ('integer', 'real')`})`
    )
  ])
}

/** Reads hits by the keys of their chunks. The cross join keeps SQLite from reading all documents first. */
const hitsOf = Effect.fnUntraced(function* (
  sql: SqlClient,
  space: number,
  scores: ReadonlyMap<number, number>
): Effect.fn.Return<ReadonlyArray<Hit>, Reason> {
  const rows = yield* rowsOf(sql`SELECT ${sql.literal(hitColumns)}
    FROM rag_chunks c CROSS JOIN rag_documents d ON d.pk = c.document
    WHERE d.space = ${space} AND c.pk IN (SELECT value FROM json_each(${listOf([...scores.keys()])}))`)
  const hits = yield* Effect.forEach(rows, (row) => toHit(row, scores.get(numberIn(row, "pk")) ?? 0))
  return hits.sort(byScore)
})

/** A word as a query of FTS5. Words contain no quotes. */
const quoted = (word: string): string => `"${word}"`

/** Reads rows in a thread if the file is large. */
const makeReader =
  (aside: Aside | undefined) =>
  (isLarge: boolean, statement: Statement<Row>): Effect.Effect<ReadonlyArray<Row>, Reason> => {
    const here = rowsOf(statement)
    return !isLarge || aside === undefined
      ? here
      : Effect.flatMap(aside(...statement.compile(true)), (rows) => (rows === undefined ? here : Effect.succeed(rows)))
  }

/** Makes the search by words. */
export const makeWords = (sql: SqlClient, space: number, aside: Aside | undefined) => {
  const texts = sql.literal(textsOf(space))
  const sizes = sql.literal(`${textsOf(space)}_docsize`)
  const readRows = makeReader(aside)

  /** Leaves out words of more than a tenth of all chunks, as long as others are left. */
  const pickRare = Effect.fnUntraced(function* (wanted: ReadonlyArray<string>) {
    const [all] = yield* readRows(true, sql`SELECT count(*) AS total FROM ${sizes}`)
    const most = all === undefined ? 0 : Math.floor(numberIn(all, "total") / 10)
    const rows = yield* readRows(
      true,
      sql`SELECT w.value AS word, (SELECT count(*) FROM
        (SELECT 1 FROM ${texts} t WHERE t.text MATCH w.value LIMIT ${most + 1})) AS found
        FROM json_each(${listOf(wanted.map(quoted))}) w`
    )
    const counted = rows.map((row) => ({ word: String(row["word"]), count: numberIn(row, "found") }))
    const matchCounts = counted.filter(({ count }) => count > 0)
    const rare = matchCounts.filter(({ count }) => count <= most)
    return (rare.length > 0 ? rare : matchCounts.slice(0, 3)).map(({ word }) => word)
  })

  return Effect.fnUntraced(function* (
    text: string,
    limit: number,
    filter: Filter | undefined
  ): Effect.fn.Return<ReadonlyArray<Hit>, Reason> {
    const wanted = wordsOf(text)
    if (wanted.length === 0) return []
    // A table of FTS5 has a row for each text here. A count of all rows would read them all.
    const first = yield* rowsOf(sql`SELECT 1 FROM ${sizes} LIMIT 1 OFFSET ${few}`)
    const isLarge = first.length > 0
    const picked = isLarge ? yield* pickRare(wanted) : wanted.map(quoted)
    if (picked.length === 0) return []
    const match = picked.join(" OR ")
    const conditions = conditionsOf(filter)
    const rows = yield* readRows(
      isLarge,
      conditions === undefined
        ? sql`SELECT rowid AS pk, -rank AS score FROM ${texts} WHERE ${texts} MATCH ${match}
            ORDER BY rank LIMIT ${limit}`
        : sql`SELECT t.rowid AS pk, -bm25(${texts}) AS score FROM ${texts} t
            CROSS JOIN rag_chunks c ON c.pk = t.rowid CROSS JOIN rag_documents d ON d.pk = c.document
            WHERE ${texts} MATCH ${match} AND ${filterOf(sql, space, conditions)}
            ORDER BY bm25(${texts}) LIMIT ${limit}`
    )
    return yield* hitsOf(sql, space, new Map(rows.map((row) => [numberIn(row, "pk"), numberIn(row, "score")])))
  })
}

/** Makes the search by vectors. */
export const makeNearest = (sql: SqlClient, space: number, signatures: Signatures) => {
  const scored = Effect.fnUntraced(function* (chunks: ReadonlyArray<number>, wanted: Float32Array) {
    const rows = yield* rowsOf(
      sql`SELECT chunk, vector FROM rag_vectors WHERE chunk IN (SELECT value FROM json_each(${listOf(chunks)}))`
    )
    return rows.map((row) => {
      const vector = floatsOf(bytesIn(row, "vector") ?? new Uint8Array())
      let sum = 0
      for (let index = 0; index < wanted.length; index++) sum += (wanted[index] ?? 0) * (vector[index] ?? 0)
      return [numberIn(row, "chunk"), sum] as const
    })
  })

  return Effect.fnUntraced(function* (
    vector: Float32Array,
    limit: number,
    filter: Filter | undefined
  ): Effect.fn.Return<ReadonlyArray<Hit>, Reason> {
    const conditions = conditionsOf(filter)
    const allowed =
      conditions === undefined
        ? undefined
        : yield* rowsOf(sql`SELECT d.pk FROM rag_documents d WHERE ${filterOf(sql, space, conditions)}`)
    const documents = allowed === undefined ? undefined : new Set(allowed.map((row) => numberIn(row, "pk")))
    const chunks = yield* signatures.candidates(
      (centre) => costsOf(vector, centre),
      Math.max(limit * 16, least),
      documents
    )
    const scores = yield* scored(chunks, vector)
    scores.sort((left, right) => right[1] - left[1] || left[0] - right[0])
    return yield* hitsOf(sql, space, new Map(scores.slice(0, limit)))
  })
}
