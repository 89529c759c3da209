/**
 * Reads entries of threads by SQL.
 */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Row } from "effect/sql/SqlConnection"
import type { Label } from "../../../core/SessionStore.ts"
import { key } from "../ids.ts"
import type { Fault, Tables } from "../tables.ts"
import { decoded, first, rows } from "./client.ts"
import { entryColumns, nullable, nullableNumber, number, toStored } from "./rows.ts"

/** An entry that a thread sees. */
export interface Visible {
  readonly pk: number
  readonly step: number
  readonly row: Row
}

/** The column that says what an entry is. */
export const kindColumn = (sql: SqlClient): string => sql.onDialectOrElse({ pg: () => "tag", orElse: () => "kind" })

export type Entries = ReturnType<typeof makeEntries>

/** Reads entries. What they find depends on nothing but what is stored. */
export const makeEntries = (sql: SqlClient) => {
  const columns = sql.literal(entryColumns)
  const isPostgres = sql.onDialectOrElse({ pg: () => true, orElse: () => false })
  const kind = sql.literal(`e.${kindColumn(sql)}`)
  /**
   * The threads that a thread sees entries of, and the last one of each. What it is joined with comes second: SQLite
   * would go through all entries otherwise.
   */
  const line = (threadId: string) => sql`line (thread, last) AS (
    SELECT key, 9007199254740991 FROM session_threads WHERE id = ${key(threadId)}
    UNION ALL
    SELECT t.origin, t.origin_last FROM line JOIN session_threads t ON t.key = line.thread WHERE t.origin IS NOT NULL
  )`

  const visible = (threadId: string, id: string): Effect.Effect<Visible | undefined, Fault> =>
    Effect.map(
      first(
        isPostgres
          ? sql`SELECT ${columns} FROM session_threads t CROSS JOIN LATERAL session_visible(t.key, ${key(id)}::text) v
              JOIN session_entries e ON e.pk = v.pk WHERE t.id = ${key(threadId)}`
          : sql`WITH RECURSIVE ${line(threadId)}
              SELECT ${columns} FROM line CROSS JOIN session_entries e
              WHERE e.thread = line.thread AND e.id = ${key(id)} AND e.pk <= line.last LIMIT 1`
      ),
      (row) => (row === undefined ? undefined : { pk: number(row, "pk"), step: number(row, "step"), row })
    )

  const byFunction = (threadId: string, from: string, limit: number) =>
    sql`SELECT * FROM session_path(${key(threadId)}::text, ${key(from)}::text, ${limit}::bigint) ORDER BY distance`

  /** The rows of a thread from one of them backwards, those of other branches included. */
  const before = (thread: number, pk: number, limit: number) =>
    rows(sql`SELECT e.pk, e.id, e.parent, e.at, e.body FROM session_entries e
      WHERE e.thread = ${thread} AND e.pk <= ${pk} ORDER BY e.pk DESC LIMIT ${limit}`)

  const threadOfEntry = (pk: number) => first(sql`SELECT thread FROM session_entries WHERE pk = ${pk}`)

  /**
   * Follows the parents through the rows of a thread, and of those that it was forked from. Each row is read once at
   * most, in the order of the table: that is several times faster than to look each parent up.
   */
  const walk = Effect.fnUntraced(function* (threadId: string, from: string, limit: number) {
    const start = yield* visible(threadId, from)
    const path: Array<Row> = []
    let next = start === undefined ? null : start.pk
    // One more has the id of the last one's parent.
    while (next !== null && path.length <= limit) {
      const owner = yield* threadOfEntry(next)
      if (owner === undefined) break
      let part: ReadonlyArray<Row>
      do {
        part = yield* before(number(owner, "thread"), next, limit + 1 - path.length)
        const length = path.length
        for (const row of part) {
          if (number(row, "pk") !== next) continue
          path.push(row)
          next = nullableNumber(row, "parent")
          if (next === null) break
        }
        if (path.length === length) break
      } while (next !== null && path.length <= limit)
    }
    const parentOf = (index: number): string | null => nullable(path[index + 1] ?? {}, "id")
    return path.slice(0, limit).map((row, index) => toStored(row, parentOf(index)))
  })

  const pathTo: Tables["path"] = (threadId, from, limit) =>
    Effect.flatMap(
      isPostgres
        ? Effect.map(rows(byFunction(threadId, from, limit)), (found) => found.map((row) => toStored(row)))
        : walk(threadId, from, limit),
      decoded
    )

  const labels: Tables["labels"] = (threadId) =>
    Effect.flatMap(
      rows(sql`WITH RECURSIVE ${line(threadId)}
        SELECT ${columns} FROM line CROSS JOIN session_entries e
        WHERE e.thread = line.thread AND ${kind} = 'Label' AND e.pk <= line.last ORDER BY e.pk`),
      (found) =>
        Effect.map(decoded(found.map((row) => toStored(row))), (stored) =>
          stored.flatMap(({ entry }): ReadonlyArray<Label> => (entry._tag === "Label" ? [entry] : []))
        )
    )

  const page: Tables["entries"] = Effect.fnUntraced(function* (threadId, cursor, limit) {
    const parts = yield* rows(sql`WITH RECURSIVE ${line(threadId)} SELECT thread, last FROM line`)
    const found: Array<Row> = []
    for (const part of parts.toReversed()) {
      const left = limit + 1 - found.length
      if (left <= 0) break
      const more = yield* rows(sql`SELECT ${columns} FROM session_entries e
        WHERE e.thread = ${number(part, "thread")} AND e.pk > ${cursor} AND e.pk <= ${number(part, "last")}
        ORDER BY e.pk LIMIT ${left}`)
      found.push(...more)
    }
    const entries = yield* decoded(found.slice(0, limit).map((row) => toStored(row)))
    const last = found[limit - 1]
    return { entries, next: found.length > limit && last !== undefined ? number(last, "pk") : undefined }
  })

  return { visible, pathTo, labels, page }
}
