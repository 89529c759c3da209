/** Lists threads by SQL. */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { isPostgres as isPostgresClient } from "../../../support/store/sql.ts"
import { key } from "../ids.ts"
import type { Tables } from "../tables.ts"
import { orCorrupt, rows } from "./client.ts"
import { metadataConditionsOf } from "./hits.ts"
import { threadColumns, toThread } from "./rows.ts"

/** In SQLite's index, a thread is in the place of at most so many milliseconds before it changed last. */
export const listedFor = 1_000

/** Lists threads: the latest change first, then by id. */
export const makeList = (sql: SqlClient): Tables["list"] => {
  const isPostgres = isPostgresClient(sql)
  return ({ after, archived, limit, where }) => {
    const conditions = [
      sql`id IS NOT NULL`,
      sql`archived = ${archived ? 1 : 0}`,
      ...(after === undefined
        ? []
        : [sql`(updated_at < ${after.at} OR (updated_at = ${after.at} AND id > ${key(after.threadId)}))`]),
      ...metadataConditionsOf(sql, where)
    ]
    if (!isPostgres) {
      if (after !== undefined) conditions.push(sql`listed <= ${after.at}`)
      // A page of these changed at the last one's place, or later: nothing that is listed long before belongs to it.
      const last = sql`SELECT min(listed) FROM (
        SELECT listed FROM session_threads t WHERE ${sql.and(conditions)} ORDER BY listed DESC LIMIT ${limit})`
      conditions.push(sql`listed > coalesce((${last}), 0) - ${listedFor}`)
    }
    return Effect.flatMap(
      rows(sql`SELECT ${sql.literal(threadColumns)} FROM session_threads t WHERE ${sql.and(conditions)}
        ORDER BY updated_at DESC, id LIMIT ${limit}`),
      (list) => orCorrupt(list.map(toThread))
    )
  }
}
