/** Finds messages by the full-text index of SQLite. */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Aside } from "../../../support/store/sqliteThread.ts"
import { makePace, type Phrases } from "../words.ts"
import { inTransaction } from "./append.ts"
import { insertAll, rows } from "./client.ts"
import type { Entries } from "./entries.ts"
import { conditionsOf, makeCatchUp, type Search, toHit, wordsOf } from "./hits.ts"
import { entryColumns, number } from "./rows.ts"

/** The messages of one transaction of the index. */
const batch = 200

/** Writes phrases as a query of FTS5. Words contain no quotes. */
const toMatch = (wanted: Phrases): string => wanted.map((phrase) => `"${phrase.join(" ")}" *`).join(" AND ")

/** Makes the search of an SQLite file. Outside of a transaction, `aside` reads the hits in its own thread. */
export const searchSqlite = (
  sql: SqlClient,
  { inThread }: Pick<Entries, "inThread">,
  aside: Aside | undefined
): Search => {
  const columns = sql.literal(entryColumns)

  /** Indexes the next messages of a thread, and gives the number of its entries that were read. */
  const index = Effect.fnUntraced(function* (thread: number, upto: number, limit: number) {
    const list = yield* rows(sql`SELECT ${columns}, e.type FROM session_entries e
      WHERE ${inThread(thread, upto)} ORDER BY e.pk LIMIT ${limit}`)
    const pace = makePace()
    const texts: Array<{ readonly rowid: number; readonly words: string }> = []
    for (const row of list) {
      const words = row["type"] === "Message" ? yield* wordsOf(row, pace) : undefined
      if (words !== undefined) texts.push({ rowid: number(row, "pk"), words: words.join(" ") })
    }
    yield* insertAll(sql, "session_texts", texts)
    const last = list.at(-1)
    yield* rows(sql`UPDATE session_threads SET texts = ${last === undefined ? upto : number(last, "pk")},
      pending = ${list.length < limit ? 0 : 1} WHERE key = ${thread}`)
    return list.length
  })

  /** Indexes a batch of messages. `true`: there may be more. */
  const step = Effect.gen(function* () {
    const threads = yield* rows(sql`SELECT key, id, texts FROM session_threads WHERE pending = 1 LIMIT ${batch}`)
    let room = batch
    for (const row of threads) {
      if (room <= 0) break
      const thread = number(row, "key")
      if (row["id"] === null) yield* rows(sql`UPDATE session_threads SET pending = 0 WHERE key = ${thread}`)
      else room -= yield* index(thread, number(row, "texts"), room)
    }
    return threads.length > 0
  })
  const catchUp = makeCatchUp(sql, sql`SELECT 1 FROM session_threads WHERE pending = 1 LIMIT 1`, step)

  return {
    search: Effect.fnUntraced(function* (query) {
      yield* catchUp
      const { limit, phrases } = query
      const conditions = [sql`session_texts MATCH ${toMatch(phrases)}`, ...conditionsOf(sql, query)]
      const statement = sql`SELECT ${columns}, t.id AS thread_id
        FROM session_texts JOIN session_entries e ON e.pk = session_texts.rowid
        JOIN session_threads t ON t.key = e.thread
        WHERE ${sql.and(conditions)} ORDER BY e.at DESC, t.id, e.id LIMIT ${limit}`
      const here = rows(statement)
      const list = yield* aside === undefined
        ? here
        : inTransaction(
            sql,
            here,
            Effect.flatMap(aside(...statement.compile(true)), (there) =>
              there === undefined ? here : Effect.succeed(there)
            )
          )
      const pace = makePace()
      const isFound = () => Effect.succeed(true)
      return (yield* Effect.forEach(list, (row) => toHit(row, query, isFound, pace))).flat()
    }),
    await: () => Effect.void,
    forget: (thread) =>
      rows(sql`DELETE FROM session_texts WHERE rowid IN (SELECT pk FROM session_entries e WHERE ${inThread(thread)})`)
  }
}
