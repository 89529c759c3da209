/** Finds messages by the full-text index of SQLite. */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { key } from "../ids.ts"
import type { Aside } from "../sqlite/aside.ts"
import type { Phrases } from "../words.ts"
import { inTransaction } from "./append.ts"
import { orCorrupt, first, insertAll, rows, transaction } from "./client.ts"
import type { Entries } from "./entries.ts"
import { type Search, toHit, untilDone, wordsOf } from "./hits.ts"
import { entryColumns, number } from "./rows.ts"

/** The number of messages that are put into the index in one go. */
const batch = 200

/** The phrases in FTS5's language. Words have no quotes in them. */
const toMatch = (wanted: Phrases): string => wanted.map((phrase) => `"${phrase.join(" ")}" *`).join(" AND ")

/** Searches by SQLite's FTS5; `aside` reads the hits, outside of a transaction, in a thread of its own. */
export const searchSqlite = (sql: SqlClient, { within }: Pick<Entries, "within">, aside: Aside | undefined): Search => {
  const columns = sql.literal(entryColumns)
  const isBehind = Effect.map(
    first(sql`SELECT 1 AS behind FROM session_threads WHERE pending = 1 LIMIT 1`),
    (row) => row !== undefined
  )

  /** Puts the next messages of a thread into the index, and gives the number of entries that were looked at. */
  const index = Effect.fnUntraced(function* (thread: number, upto: number, limit: number) {
    const found = yield* rows(sql`SELECT ${columns}, e.type FROM session_entries e
      WHERE ${within(thread, upto)} ORDER BY e.pk LIMIT ${limit}`)
    const texts = found.flatMap((row) => {
      const known = row["type"] === "Message" ? wordsOf(row) : undefined
      return known === undefined ? [] : [{ rowid: number(row, "pk"), words: known.join(" ") }]
    })
    yield* insertAll(sql, "session_texts", texts)
    const last = found.at(-1)
    yield* rows(sql`UPDATE session_threads SET texts = ${last === undefined ? upto : number(last, "pk")},
      pending = ${found.length < limit ? 0 : 1} WHERE key = ${thread}`)
    return found.length
  })

  /** Puts the messages of a batch into the index; `true` if there may be more. */
  const catchUp = Effect.gen(function* () {
    const threads = yield* rows(sql`SELECT key, id, texts FROM session_threads WHERE pending = 1 LIMIT ${batch}`)
    let left = batch
    for (const row of threads) {
      if (left <= 0) break
      const thread = number(row, "key")
      if (row["id"] === null) yield* rows(sql`UPDATE session_threads SET pending = 0 WHERE key = ${thread}`)
      else left -= yield* index(thread, number(row, "texts"), left)
    }
    return threads.length > 0
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
      const statement = sql`SELECT ${columns}, t.id AS thread_id
        FROM session_texts JOIN session_entries e ON e.pk = session_texts.rowid
        JOIN session_threads t ON t.key = e.thread
        WHERE ${sql.and(conditions)} ORDER BY e.at DESC, t.id, e.id LIMIT ${limit}`
      const here = rows(statement)
      const found = yield* aside === undefined
        ? here
        : inTransaction(
            sql,
            here,
            Effect.flatMap(aside(...statement.compile(true)), (there) =>
              there === undefined ? here : Effect.succeed(there)
            )
          )
      return (yield* orCorrupt(found.map((row) => toHit(row, query, () => true)))).flat()
    }),
    await: () => Effect.void,
    forget: (thread) =>
      rows(sql`DELETE FROM session_texts WHERE rowid IN (SELECT pk FROM session_entries e WHERE ${within(thread)})`)
  }
}
