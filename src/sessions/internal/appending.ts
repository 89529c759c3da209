/**
 * Appends entries to a thread: checked, and once however often they are sent.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { canonical, type Json } from "../../core/Json.ts"
import { make as failure } from "../../core/SessionError.ts"
import type { Leaf, NewEntry, Service } from "../../core/SessionStore.ts"
import { measure } from "../../support/jsonPieces.ts"
import { batchLimit, boundOf, leastOf, limit } from "../../support/size.ts"
import { briefSpan } from "../../support/span.ts"
import * as codec from "./codec.ts"
import { entryIdProblem } from "./ids.ts"
import { guarded, pointOf, threadOf } from "./operation.ts"
import type { Recent } from "./recent.ts"
import type { Tables } from "./tables.ts"

/** The same entries, whatever order their keys are in. */
const sameEntry = (left: unknown, right: unknown): boolean =>
  // Both are of the entry schema, which is JSON through and through.
  canonical(left as Json) === canonical(right as Json)

/** The leaf after these entries, if they were appended before. */
const already = Effect.fnUntraced(function* (
  tables: Tables,
  threadId: string,
  behind: string | null,
  entries: ReadonlyArray<NewEntry>
) {
  const last = entries.at(-1)
  if (last === undefined) return undefined
  const there = yield* tables.entry(threadId, last.id)
  if (there === undefined) return undefined
  const path = yield* tables.path(threadId, last.id, entries.length)
  const isSame =
    path.at(-1)?.parentId === behind &&
    entries.every((entry, index) => {
      const stored = path[entries.length - 1 - index]
      return stored?.id === entry.id && sameEntry(stored.entry, entry.entry)
    })
  return isSame ? { id: last.id, step: there.step } : undefined
})

/** After what is larger, others get their turn of the event loop. */
const heavy = 1024 * 1024

/** The bytes of an entry that may have too many; at most as many where they are far too many. */
const sizeOf = (entry: unknown): Effect.Effect<number> => {
  const least = leastOf(entry)
  return least > 2 * limit ? Effect.succeed(least) : measure(entry)
}

/** Checks entries that are to be appended, and says about how many bytes they have. */
const checked = Effect.fnUntraced(function* (threadId: string, entries: ReadonlyArray<NewEntry>) {
  const ids = new Set<string>()
  const valid: Array<NewEntry> = []
  let total = 0
  for (const { entry, id } of entries) {
    const result = codec.check(entry)
    const problem =
      entryIdProblem(id) ??
      (ids.has(id) ? "its id is there twice" : Result.isFailure(result) ? result.failure : undefined)
    if (problem !== undefined || Result.isFailure(result)) {
      const reason = { _tag: "InvalidEntry", entry: id, problem: problem ?? "" } as const
      return yield* failure("append", threadId, reason)
    }
    const bound = boundOf(result.success)
    const bytes = bound <= limit ? bound : yield* sizeOf(result.success)
    if (bytes > limit) {
      return yield* failure("append", threadId, { _tag: "TooLarge", what: `entry ${id}`, bytes, limit })
    }
    total += bytes
    ids.add(id)
    valid.push({ id, entry: result.success })
    if (bytes > heavy) yield* Effect.yieldNow
  }
  if (total > batchLimit) {
    total = 0
    for (const one of valid) {
      total += yield* measure(one)
    }
  }
  if (total <= batchLimit) return { valid, bytes: total }
  const what = `the ${valid.length} entries together`
  return yield* failure("append", threadId, { _tag: "TooLarge", what, bytes: total, limit: batchLimit })
})

/** The append of a store; `recent` is told of it. */
export const makeAppend = (tables: Tables, recent: Recent): Service["append"] => {
  const append: Service["append"] = Effect.fnUntraced(function* (threadId, { behind: given, entries, leaf }) {
    const behind = given === undefined ? leaf : given
    const { bytes, valid } = yield* checked(threadId, entries)
    if (behind !== leaf) {
      yield* threadOf(tables, "append", threadId)
      yield* pointOf(tables, "append", threadId, behind)
    }
    const last = valid.at(-1)
    const guard = guarded("append", threadId)
    const appended =
      last === undefined
        ? { thread: yield* guard(tables.find(threadId)) }
        : yield* guard(tables.append(threadId, leaf, valid, yield* Clock.currentTimeMillis, behind, bytes))
    if ("step" in appended) {
      const reached = { id: last?.id ?? null, step: appended.step }
      recent.extend(threadId, behind, valid, reached)
      return reached
    }
    const { thread } = appended
    if (thread === undefined) return yield* failure("append", threadId, { _tag: "NotFound" })
    const done: Leaf | undefined = yield* guard(already(tables, threadId, behind, valid))
    if (done !== undefined) return done
    if (thread.archived) return yield* failure("append", threadId, { _tag: "Archived" })
    if (thread.leaf.id !== leaf) {
      return yield* failure("append", threadId, { _tag: "Conflict", expected: leaf, found: thread.leaf.id })
    }
    if ("taken" in appended && appended.taken !== undefined) {
      const reason = { _tag: "InvalidEntry", entry: appended.taken, problem: "another entry has this id" } as const
      return yield* failure("append", threadId, reason)
    }
    // A thread that stood elsewhere for a moment, and is back, takes them.
    return last === undefined ? thread.leaf : yield* append(threadId, { leaf, behind, entries })
  }, briefSpan("SessionStore.append"))
  return append
}
