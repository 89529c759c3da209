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
  readonly pk: number
  readonly step: number
  readonly row: Row
}

/** The column that says what an entry is. */
export const kindColumn = (sql: SqlClient): string => sql.onDialectOrElse({ pg: () => "tag", orElse: () => "type" })

export type Entries = ReturnType<typeof makeEntries>

/** Reads entries. What they find depends on nothing but what is stored. */
export const makeEntries = (sql: SqlClient) => {
  const columns = sql.literal(entryColumns)
  const isPostgres = isPostgresClient(sql)
  const kind = sql.literal(`e.${kindColumn(sql)}`)
  /**
   * The threads that a thread sees entries of, and the last one of each. What it is joined with comes second: SQLite
   * would go through all entries otherwise. It ends in a damaged file, too (`UNION`).
   */
  const line = (threadId: string) => sql`line (thread, last) AS (
    SELECT key, 9007199254740991 FROM session_threads WHERE id = ${key(threadId)}
    UNION
    SELECT t.origin, t.origin_last FROM line JOIN session_threads t ON t.key = line.thread WHERE t.origin IS NOT NULL
  )`

  /**
   * The entries `e` of a thread behind one, and up to another one. There is one bound at each end: of two, SQLite may
   * take the one that is further away.
   */
  const within = (thread: number, after = 0, last = Number.MAX_SAFE_INTEGER) =>
    isPostgres
      ? sql`e.thread = ${thread} AND e.pk > ${after} AND e.pk <= ${last}`
      : sql`e.pk > ${Math.max(thread * room, after)} AND e.pk <= ${Math.min((thread + 1) * room - 1, last)}`

  const named = (threadId: string) => (text: string) => rows(sql.unsafe<Row>(text, [key(threadId)]))

  /** Puts ids into the index of SQLite, where there are many that are not. A disk that is full stops no reading. */
  const name = (threadId: string) =>
    Effect.flatMap(named(threadId)(tooMany("id")), (many) =>
      many.length === 0
        ? Effect.void
        : Effect.ignore(transaction(sql)(Effect.forEach(nameAll("id"), named(threadId), { discard: true })))
    )

  const found = (threadId: string, id: string): Effect.Effect<Row | undefined, Fault> =>
    isPostgres
      ? first(sql`SELECT ${columns} FROM session_threads t CROSS JOIN LATERAL session_visible(t.key, ${key(id)}::text) v
          JOIN session_entries e ON e.pk = v.pk WHERE t.id = ${key(threadId)}`)
      : Effect.andThen(
          name(threadId),
          first(
            sql.unsafe<Row>(
              `${seenBy("id")} SELECT ${entryColumns} FROM session_entries e WHERE e.pk = (SELECT pk FROM seen LIMIT 1)`,
              [key(threadId), key(id)]
            )
          )
        )

  const visible = (threadId: string, id: string): Effect.Effect<Visible | undefined, Fault> =>
    Effect.map(found(threadId, id), (row) =>
      row === undefined ? undefined : { pk: number(row, "pk"), step: number(row, "step"), row }
    )

  const byFunction = (threadId: string, from: string, limit: number) =>
    Effect.flatMap(
      rows(
        sql`SELECT * FROM session_path(${key(threadId)}::text, ${key(from)}::text, ${limit}::bigint) ORDER BY distance`
      ),
      (found) => {
        // A first entry has no step before it.
        const last = found.at(-1)
        return last !== undefined && nullable(last, "parent_id") === null && number(last, "step") !== 1
          ? Effect.fail(corrupt(`entry ${text(last, "id")}: its parent is not there`))
          : orCorrupt(found.map((row) => toStored(row)))
      }
    )

  const source: Source = {
    start: (threadId, id) => Effect.map(visible(threadId, id), (entry) => entry?.pk),
    before: (pk, limit) =>
      Effect.map(
        rows(sql`SELECT e.pk, e.id, e.parent, e.at, e.body FROM session_entries e
          WHERE ${within(Math.floor(pk / room), 0, pk)} ORDER BY e.pk DESC LIMIT ${limit}`),
        (found) =>
          found.map((row) => [
            number(row, "pk"),
            text(row, "id"),
            nullableNumber(row, "parent"),
            number(row, "at"),
            text(row, "body")
          ])
      )
  }

  /** `own` reads past `effect/sql`. */
  const pathTo = (own: ((other: Source) => Source) | undefined): Tables["path"] =>
    isPostgres ? byFunction : walk(own === undefined ? source : own(source))

  const labels: Tables["labels"] = (threadId) =>
    Effect.flatMap(
      rows(sql`WITH RECURSIVE ${line(threadId)}
        SELECT ${columns} FROM line CROSS JOIN session_entries e
        WHERE e.thread = line.thread AND ${kind} = 'Label' AND e.pk <= line.last ORDER BY e.pk`),
      (found) =>
        Effect.map(orCorrupt(found.map((row) => toStored(row))), (stored) =>
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
        WHERE ${within(number(part, "thread"), cursor, number(part, "last"))}
        ORDER BY e.pk LIMIT ${left}`)
      found.push(...more)
    }
    const entries = yield* orCorrupt(found.slice(0, limit).map((row) => toStored(row)))
    const last = found[limit - 1]
    return { entries, next: found.length > limit && last !== undefined ? number(last, "pk") : undefined }
  })

  return { within, visible, pathTo, labels, page }
}
