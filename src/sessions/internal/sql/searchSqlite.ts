/**
 * Finds messages by the full-text index of SQLite.
 */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { key } from "../ids.ts"
import type { Phrases } from "../words.ts"
import { decoded, first, insertAll, rows, transaction } from "./client.ts"
import { type Search, toHit, untilDone, wordsOf } from "./hits.ts"
import { entryColumns, number } from "./rows.ts"

/** The number of messages that are put into the index in one go. */
const batch = 500

/** The phrases in FTS5's language. Words have no quotes in them. */
const toMatch = (wanted: Phrases): string => wanted.map((phrase) => `"${phrase.join(" ")}" *`).join(" AND ")

/** Searches by SQLite's FTS5. */
export const searchSqlite = (sql: SqlClient): Search => {
  const columns = sql.literal(entryColumns)
  const upto = sql`SELECT pk FROM session_texts_upto`
  const isBehind = Effect.map(
    first(sql`SELECT max(pk) > (SELECT pk FROM session_texts_upto) AS behind FROM session_entries`),
    (row) => row?.["behind"] === 1
  )

  /** Puts the messages of a batch into the index; `true` if there may be more. */
  const catchUp = Effect.gen(function* () {
    const from = yield* first(upto)
    const found = yield* rows(sql`SELECT ${columns}, e.kind, t.id AS thread_id
      FROM session_entries e JOIN session_threads t ON t.key = e.thread
      WHERE e.pk > ${from === undefined ? 0 : number(from, "pk")} ORDER BY e.pk LIMIT ${batch}`)
    const last = found.at(-1)
    if (last === undefined) return false
    const texts = found.flatMap((row) => {
      const known = row["kind"] === "Message" && row["thread_id"] !== null ? wordsOf(row) : undefined
      return known === undefined ? [] : [{ rowid: number(row, "pk"), words: known.join(" ") }]
    })
    yield* insertAll(sql, "session_texts", texts)
    yield* rows(sql`UPDATE session_texts_upto SET pk = ${number(last, "pk")}`)
    return found.length === batch
  })
  const indexed = Effect.flatMap(isBehind, (isThere) => (isThere ? untilDone(transaction(sql)(catchUp)) : Effect.void))

  return {
    search: Effect.fnUntraced(function* (query) {
      yield* indexed
      const { after, archived, limit, phrases, threadId } = query
      const conditions = [
        sql`session_texts MATCH ${toMatch(phrases)}`,
        sql`t.archived = ${archived ? 1 : 0}`,
        sql`t.id IS NOT NULL`,
        ...(threadId === undefined ? [] : [sql`t.id = ${key(threadId)}`]),
        ...(after === undefined
          ? []
          : [
              sql`(e.at < ${after.at} OR (e.at = ${after.at} AND (t.id, e.id) > (${after.threadId}, ${after.entryId})))`
            ])
      ]
      const found = yield* rows(sql`SELECT ${columns}, t.id AS thread_id
        FROM session_texts JOIN session_entries e ON e.pk = session_texts.rowid
        JOIN session_threads t ON t.key = e.thread
        WHERE ${sql.and(conditions)} ORDER BY e.at DESC, t.id, e.id LIMIT ${limit}`)
      return (yield* decoded(found.map((row) => toHit(row, query, () => true)))).flat()
    }),
    await: () => Effect.void,
    forget: (thread) =>
      rows(sql`DELETE FROM session_texts WHERE rowid IN (SELECT pk FROM session_entries WHERE thread = ${thread})`),
    // Numbers of entries may be used again: those that come are not taken for indexed ones.
    forgotten: rows(sql`UPDATE session_texts_upto SET pk = min(pk, (SELECT coalesce(max(pk), 0) FROM session_entries))`)
  }
}
