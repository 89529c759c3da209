/** Finds messages in a read-only file. It reads all messages, the newest first, because the index may be old. */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Hit } from "../../../core/SessionStore.ts"
import type { Tables } from "../tables.ts"
import { makePace, matches } from "../words.ts"
import { rows } from "./client.ts"
import { conditionsOf, toHit } from "./hits.ts"
import { entryColumns } from "./rows.ts"

/** The messages of one query. */
const batch = 500

/** Searches by reading. */
export const searchByReading = (sql: SqlClient): Tables["search"] =>
  Effect.fnUntraced(function* (query) {
    const { limit, phrases } = query
    const pace = makePace()
    const isFound = (content: string) => matches(content, phrases, pace)
    const conditions = [sql`e.type = 'Message'`, ...conditionsOf(sql, query)]
    const hits: Array<Hit> = []
    for (let offset = 0; hits.length < limit; offset += batch) {
      const list = yield* rows(sql`SELECT ${sql.literal(entryColumns)}, t.id AS thread_id
        FROM session_entries e JOIN session_threads t ON t.key = e.thread
        WHERE ${sql.and(conditions)} ORDER BY e.at DESC, t.id, e.id LIMIT ${batch} OFFSET ${offset}`)
      for (const row of list) {
        // Unreadable messages are left out. Loading the thread reports them.
        hits.push(...(yield* Effect.orElseSucceed(toHit(row, query, isFound, pace), () => [])))
      }
      if (list.length < batch) break
    }
    return hits.slice(0, limit)
  })
