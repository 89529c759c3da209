/** Reads threads from an SQLite file without `effect/sql`. */
import type { DatabaseSync } from "node:sqlite"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { key } from "../ids.ts"
import type { Cells } from "../sql/rows.ts"
import type { Source } from "../sql/walk.ts"
import type { Fault } from "../tables.ts"

/** The statements that follow an entry's parents. */
const prepare = (database: DatabaseSync) => {
  const leaf = database.prepare("SELECT leaf_pk FROM session_threads WHERE id = ? AND leaf_id = ?")
  const before = database.prepare(`SELECT pk, id, parent, at, body FROM session_entries
    WHERE pk > ?1 >> 24 << 24 AND pk <= ?1 ORDER BY pk DESC LIMIT ?2`)
  leaf.setReturnArrays(true)
  before.setReturnArrays(true)
  return {
    // The columns are strict, so rows have these types.
    leaf: (threadId: string, id: string) =>
      (leaf.get(key(threadId), key(id)) as unknown as readonly [number] | undefined)?.[0],
    before: (pk: number, limit: number) => before.all(pk, limit) as unknown as ReadonlyArray<Cells>
  }
}

/** Reads from a database. In a transaction or without the lock, the other source reads. */
export const readsFrom = (database: DatabaseSync) => {
  const statements = prepare(database)
  return (other: Source): Source => {
    const readOr = <A>(body: () => A, general: Effect.Effect<A, Fault>): Effect.Effect<A, Fault> =>
      Effect.suspend(() => {
        const result = database.isTransaction ? undefined : Result.try(body)
        return result === undefined || Result.isFailure(result) ? general : Effect.succeed(result.success)
      })
    return {
      start: (threadId, id) =>
        Effect.flatMap(
          readOr(() => statements.leaf(threadId, id), Effect.undefined),
          (leaf) => (leaf === undefined ? other.start(threadId, id) : Effect.succeed(leaf))
        ),
      before: (pk, limit) => readOr(() => statements.before(pk, limit), other.before(pk, limit))
    }
  }
}
