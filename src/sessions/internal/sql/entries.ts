/** Reads entries of threads by SQL. */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Row } from "effect/sql/SqlConnection"
import type { Label } from "../../../core/SessionStore.ts"
import { isPostgres as isPostgresClient } from "../../../support/store/sql.ts"
import { key } from "../ids.ts"
import type { Fault, Tables } from "../tables.ts"
import { corrupt, orCorrupt, first, rows, transaction } from "./client.ts"
import { nameAll, seenBy, tooMany } from "./names.ts"
import { entryColumns, nullable, nullableNumber, number, text, toStored } from "./rows.ts"
import { room } from "./sqlite.ts"
import { type Source, walk } from "./walk.ts"

/** An entry that a thread sees. */
export interface Visible {
  readonly id: string
  readonly pk: number
  readonly step: number
  readonly row: Row
}

/** The column of the kind of an entry. */
export const kindColumn = (sql: SqlClient): string => sql.onDialectOrElse({ pg: () => "tag", orElse: () => "type" })

export type Entries = ReturnType<typeof makeEntries>

/** Makes the queries for entries. */
export const makeEntries = (sql: SqlClient) => {
  const columns = sql.literal(entryColumns)
  const isPostgres = isPostgresClient(sql)
  const kind = sql.literal(`e.${kindColumn(sql)}`)
  /**
   * The threads whose entries a thread sees, and the last visible entry of each. Join other tables behind it: otherwise
   * SQLite scans all entries. `UNION` ends the recursion in a damaged file, too.
   */
  const line = (threadId: string) => sql`line (thread, last) AS (
    SELECT key, 9007199254740991 FROM session_threads WHERE id = ${key(threadId)}
    UNION
    SELECT t.origin, t.origin_last FROM line JOIN session_threads t ON t.key = line.thread WHERE t.origin IS NOT NULL
  )`

  /** Entries `e` of a thread between two numbers. Each end has one bound, because SQLite may choose the worse of two. */
  const inThread = (thread: number, after = 0, last = Number.MAX_SAFE_INTEGER) =>
    isPostgres
      ? sql`e.thread = ${thread} AND e.pk > ${after} AND e.pk <= ${last}`
      : sql`e.pk > ${Math.max(thread * room, after)} AND e.pk <= ${Math.min((thread + 1) * room - 1, last)}`

  const runFor = (threadId: string) => (text: string) => rows(sql.unsafe<Row>(text, [key(threadId)]))

  /** Adds ids to the index of SQLite if many are missing. Reading continues on a full disk. */
  const indexIds = (threadId: string) =>
    Effect.flatMap(runFor(threadId)(tooMany("id")), (many) =>
      many.length === 0
        ? Effect.void
        : Effect.ignore(transaction(sql)(Effect.forEach(nameAll("id"), runFor(threadId), { discard: true })))
    )

  const findRow = (threadId: string, id: string): Effect.Effect<Row | undefined, Fault> =>
    isPostgres
      ? first(sql`SELECT ${columns} FROM session_threads t CROSS JOIN LATERAL session_visible(t.key, ${key(id)}::text) v
          JOIN session_entries e ON e.pk = v.pk WHERE t.id = ${key(threadId)}`)
      : Effect.andThen(
          indexIds(threadId),
          first(
            sql.unsafe<Row>(
              `${seenBy("id")} SELECT ${entryColumns} FROM session_entries e WHERE e.pk = (SELECT pk FROM seen LIMIT 1)`,
              [key(threadId), key(id)]
            )
          )
        )

  const visible = (threadId: string, id: string): Effect.Effect<Visible | undefined, Fault> =>
    Effect.map(findRow(threadId, id), (row) =>
      row === undefined ? undefined : { id: text(row, "id"), pk: number(row, "pk"), step: number(row, "step"), row }
    )

  const pathByFunction = (threadId: string, from: string, limit: number) =>
    Effect.flatMap(
      rows(
        sql`SELECT * FROM session_path(${key(threadId)}::text, ${key(from)}::text, ${limit}::bigint) ORDER BY distance`
      ),
      (list) => {
        // Only the first entry has no parent.
        const last = list.at(-1)
        return last !== undefined && nullable(last, "parent_id") === null && number(last, "step") !== 1
          ? Effect.fail(corrupt(`entry ${text(last, "id")}: its parent is not there`))
          : orCorrupt(list.map((row) => toStored(row)))
      }
    )

  const source: Source = {
    start: (threadId, id) => Effect.map(visible(threadId, id), (entry) => entry?.pk),
    before: (pk, limit) =>
      Effect.map(
        rows(sql`SELECT e.pk, e.id, e.parent, e.at, e.body FROM session_entries e
          WHERE ${inThread(Math.floor(pk / room), 0, pk)} ORDER BY e.pk DESC LIMIT ${limit}`),
        (list) =>
          list.map((row) => [
            number(row, "pk"),
            text(row, "id"),
            nullableNumber(row, "parent"),
            number(row, "at"),
            text(row, "body")
          ])
      )
  }

  /** Makes the query for a path. `own` reads without `effect/sql`. */
  const pathTo = (own: ((other: Source) => Source) | undefined): Tables["path"] =>
    isPostgres ? pathByFunction : walk(own === undefined ? source : own(source))

  const labels: Tables["labels"] = (threadId) =>
    Effect.flatMap(
      rows(sql`WITH RECURSIVE ${line(threadId)}
        SELECT ${columns} FROM line CROSS JOIN session_entries e
        WHERE e.thread = line.thread AND ${kind} = 'Label' AND e.pk <= line.last ORDER BY e.pk`),
      (list) =>
        Effect.map(orCorrupt(list.map((row) => toStored(row))), (entries) =>
          entries.flatMap(({ entry }): ReadonlyArray<Label> => (entry._tag === "Label" ? [entry] : []))
        )
    )

  const page: Tables["entries"] = Effect.fnUntraced(function* (threadId, cursor, limit) {
    const parts = yield* rows(sql`WITH RECURSIVE ${line(threadId)} SELECT thread, last FROM line`)
    const list: Array<Row> = []
    for (const part of parts.toReversed()) {
      const wanted = limit + 1 - list.length
      if (wanted <= 0) break
      const more = yield* rows(sql`SELECT ${columns} FROM session_entries e
        WHERE ${inThread(number(part, "thread"), cursor, number(part, "last"))}
        ORDER BY e.pk LIMIT ${wanted}`)
      list.push(...more)
    }
    const entries = yield* orCorrupt(list.slice(0, limit).map((row) => toStored(row)))
    const last = list[limit - 1]
    return { entries, next: list.length > limit && last !== undefined ? number(last, "pk") : undefined }
  })

  return { inThread, visible, pathTo, labels, page }
}
