/** Follows the parents of an entry. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Fault, Tables } from "../tables.ts"
import { corrupt } from "./client.ts"
import { type Cells, type PlacedEntry, toPlaced } from "./rows.ts"

/** Reads entries of SQLite. */
export interface Source {
  /** Finds the number of an entry that the thread sees. */
  readonly start: (threadId: string, id: string) => Effect.Effect<number | undefined, Fault>
  /** Reads an entry and earlier entries of the same thread from all branches, newest first. */
  readonly before: (pk: number, limit: number) => Effect.Effect<ReadonlyArray<Cells>, Fault>
}

/** The entries of one query. Small pages stay in the young generation, and let other fibers run. */
const page = 512

/**
 * Follows a path backwards through the rows of a thread and its origins. It reads rows in the order of the table, which is
 * several times faster than a lookup of each parent.
 */
export const walk = (source: Source): Tables["path"] =>
  Effect.fnUntraced(function* (threadId, from, limit) {
    const path: Array<PlacedEntry> = []
    let next: number | null = (yield* source.start(threadId, from)) ?? null
    while (next !== null) {
      // One more row has the id of the last parent.
      const part: ReadonlyArray<Cells> = yield* source.before(next, Math.min(page, limit + 1 - path.length))
      if (part[0]?.[0] !== next) {
        // The thread was removed meanwhile, or its file is damaged.
        if ((yield* source.start(threadId, from)) === undefined) break
        const behind = path.at(-1)
        return yield* Effect.fail(
          corrupt(behind === undefined ? `entry ${from} is not there` : `entry ${behind.id}: its parent is not there`)
        )
      }
      for (const cells of part) {
        if (cells[0] !== next) continue
        const behind = path.at(-1)
        if (behind !== undefined) behind.parentId = cells[1]
        if (path.length === limit) return path
        const placed = toPlaced(cells)
        if (Result.isFailure(placed)) return yield* Effect.fail(corrupt(placed.failure))
        path.push(placed.success)
        const parent = cells[2]
        if (parent === null) return path
        // A parent behind its child would make the loop endless.
        if (parent >= next) return yield* Effect.fail(corrupt(`entry ${cells[1]}: it came before its parent`))
        next = parent
      }
      yield* Effect.yieldNow
    }
    return path
  })
