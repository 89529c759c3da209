/**
 * Reads threads from an SQLite file past `effect/sql`.
 */
import type { DatabaseSync } from "node:sqlite"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { key } from "../ids.ts"
import type { Cells } from "../sql/rows.ts"
import type { Source } from "../sql/walk.ts"
import type { Fault } from "../tables.ts"

/** The statements that follow an entry's parents. */
const prepare = (database: DatabaseSync) => {
  const start = database.prepare(`WITH RECURSIVE line (thread, last) AS (
      SELECT key, 9007199254740991 FROM session_threads WHERE id = ?
      UNION ALL
      SELECT t.origin, t.origin_last FROM line JOIN session_threads t ON t.key = line.thread WHERE t.origin IS NOT NULL
    )
    SELECT e.pk FROM line CROSS JOIN session_entries e
    WHERE e.thread = line.thread AND e.id = ? AND e.pk <= line.last LIMIT 1`)
  const before = database.prepare(`SELECT e.pk, e.id, e.parent, e.at, e.body FROM session_entries e
    WHERE e.thread = (SELECT thread FROM session_entries WHERE pk = ?1) AND e.pk <= ?1 ORDER BY e.pk DESC LIMIT ?2`)
  start.setReturnArrays(true)
  before.setReturnArrays(true)
  return {
    // The columns are strict: they have what they say.
    start: (threadId: string, id: string) =>
      (start.get(key(threadId), key(id)) as unknown as readonly [number] | undefined)?.[0],
    before: (pk: number, limit: number) => before.all(pk, limit) as unknown as ReadonlyArray<Cells>
  }
}

/** Reads from a database. What can't be read at once (there is a transaction, or a lock) is read by the other way. */
export const readsFrom = (database: DatabaseSync) => {
  const statements = prepare(database)
  return (other: Source): Source => {
    const read = <A>(body: () => A, general: Effect.Effect<A, Fault>): Effect.Effect<A, Fault> =>
      Effect.suspend(() => {
        const done = database.isTransaction ? undefined : Result.try(body)
        return done === undefined || Result.isFailure(done) ? general : Effect.succeed(done.success)
      })
    return {
      start: (threadId, id) => read(() => statements.start(threadId, id), other.start(threadId, id)),
      before: (pk, limit) => read(() => statements.before(pk, limit), other.before(pk, limit))
    }
  }
}
