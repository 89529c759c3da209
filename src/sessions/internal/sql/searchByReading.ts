/** Finds messages in a file that can only be read, without an index: it reads all messages, the newest first. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Hit } from "../../../core/SessionStore.ts"
import { key } from "../ids.ts"
import { isHitBehind } from "../memory.ts"
import type { Tables } from "../tables.ts"
import { matches } from "../words.ts"
import { rows } from "./client.ts"
import { toHit } from "./hits.ts"
import { entryColumns } from "./rows.ts"

/** The messages that are read at once. */
const batch = 500

/** Searches by reading. */
export const searchByReading = (sql: SqlClient): Tables["search"] =>
  Effect.fnUntraced(function* (query) {
    const { after, archived, limit, threadId } = query
    const conditions = [
      sql`e.type = 'Message'`,
      sql`t.archived = ${archived ? 1 : 0}`,
      sql`t.id IS NOT NULL`,
      ...(threadId === undefined ? [] : [sql`t.id = ${key(threadId)}`]),
      ...(after === undefined ? [] : [sql`e.at <= ${after.at}`])
    ]
    const hits: Array<Hit> = []
    for (let offset = 0; hits.length < limit; offset += batch) {
      const found = yield* rows(sql`SELECT ${sql.literal(entryColumns)}, t.id AS thread_id
        FROM session_entries e JOIN session_threads t ON t.key = e.thread
        WHERE ${sql.and(conditions)} ORDER BY e.at DESC, t.id, e.id LIMIT ${batch} OFFSET ${offset}`)
      for (const row of found) {
        // What can't be read is left out: loading its thread says what is wrong with it.
        const read = Result.getOrElse(toHit(row, query, matches), () => [])
        hits.push(...read.filter((hit) => isHitBehind(hit, after)))
      }
      if (found.length < batch) break
      yield* Effect.yieldNow
    }
    return hits.slice(0, limit)
  })
