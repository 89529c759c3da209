/** Checks entries, and appends them to a thread. Sending entries twice appends them once. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { type Json } from "../../core/Json.ts"
import { canonical } from "../../core/schema/jsonTree.ts"
import { make as failure, type SessionError } from "../../core/SessionError.ts"
import type { Leaf, NewEntry, Service } from "../../core/SessionStore.ts"
import { briefSpan } from "../../support/effect/span.ts"
import { measure } from "../../support/json/jsonPieces.ts"
import { batchLimit, boundOf, leastOf, limit } from "../../support/text/size.ts"
import * as codec from "./codec.ts"
import { entryIdProblem } from "./ids.ts"
import { guarded, pointOf, threadOf } from "./operation.ts"
import type { Recent } from "./recent.ts"
import type { AppendOutcome, Tables, Waits } from "./tables.ts"
import { makeAfter } from "./waits.ts"

/** The same entries, with their keys in any order. */
const sameEntry = (left: unknown, right: unknown): boolean =>
  // Both are of the entry schema, which is JSON through and through.
  canonical(left as Json) === canonical(right as Json)

/** Gives the leaf behind entries that were appended before. */
const findAppended = Effect.fnUntraced(function* (
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
      const storedEntry = path[entries.length - 1 - index]
      return storedEntry?.id === entry.id && sameEntry(storedEntry.entry, entry.entry)
    })
  return isSame ? { id: last.id, step: there.step } : undefined
})

/** An entry of more bytes yields to other fibers. */
const heavy = 1024 * 1024

/** Measures an entry that may be too large, but not one that is far too large. */
const sizeOf = (entry: unknown): Effect.Effect<number> => {
  const least = leastOf(entry)
  return least > 2 * limit ? Effect.succeed(least) : measure(entry)
}

/** Checked entries, and about their bytes. */
interface CheckedEntries {
  readonly valid: ReadonlyArray<NewEntry>
  readonly bytes: number
}

/** Checks entries, or fails with the first problem. */
const checkEntries = Effect.fnUntraced(function* (
  threadId: string,
  entries: ReadonlyArray<NewEntry>
): Effect.fn.Return<CheckedEntries, SessionError> {
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

/** Checked entries, and their place. */
interface Batch extends CheckedEntries {
  readonly leaf: string | null
  readonly behind: string | null
}

/** Makes the append of a store, and reports appends to `recent`. */
export const makeAppend = (tables: Tables, recent: Recent): Service["append"] => {
  /** Fails with the reason of a refusal, unless the entries were appended before. */
  const explainRefusal = Effect.fnUntraced(function* (
    threadId: string,
    { behind, leaf, valid }: Batch,
    { taken, thread }: Pick<Extract<AppendOutcome, { readonly _tag: "Refused" }>, "thread" | "taken">
  ): Effect.fn.Return<Leaf, SessionError> {
    if (thread === undefined) return yield* failure("append", threadId, { _tag: "NotFound" })
    const earlierLeaf: Leaf | undefined = yield* guarded(
      "append",
      threadId
    )(findAppended(tables, threadId, behind, valid))
    if (earlierLeaf !== undefined) return earlierLeaf
    if (thread.archived) return yield* failure("append", threadId, { _tag: "Archived" })
    if (thread.leaf.id !== leaf) {
      return yield* failure("append", threadId, { _tag: "Conflict", expected: leaf, found: thread.leaf.id })
    }
    if (taken !== undefined) {
      const reason = { _tag: "InvalidEntry", entry: taken, problem: "another entry has this id" } as const
      return yield* failure("append", threadId, reason)
    }
    // The leaf moved and came back meanwhile: try again.
    return valid.length === 0 ? thread.leaf : yield* append(threadId, { leaf, behind, entries: valid })
  })

  const after = makeAfter(tables, recent)

  const putEntries = (threadId: string, batch: Batch): Effect.Effect<Leaf, SessionError> => {
    const { behind, leaf, valid } = batch
    const changed = after(threadId, leaf, behind, valid)
    if (changed === undefined) return putWith(threadId, batch, undefined)
    return Effect.flatMap(guarded("append", threadId)(changed), (waits) => putWith(threadId, batch, waits))
  }

  const putWith = (threadId: string, batch: Batch, waits: Waits | undefined): Effect.Effect<Leaf, SessionError> =>
    Clock.clockWith((clock) => {
      const { behind, bytes, leaf, valid } = batch
      const appended = tables.append(threadId, leaf, valid, clock.currentTimeMillisUnsafe(), behind, bytes, waits)
      return Effect.flatMap(guarded("append", threadId)(appended), (outcome) => {
        if (outcome._tag === "Refused") return explainRefusal(threadId, batch, outcome)
        const reached = { id: valid.at(-1)?.id ?? null, step: outcome.step }
        recent.extend(threadId, behind, valid, reached)
        return Effect.succeed(reached)
      })
    })

  const append: Service["append"] = Effect.fnUntraced(function* (threadId, { behind: point, entries, leaf }) {
    const behind = point === undefined ? leaf : point
    const batch = { ...(yield* checkEntries(threadId, entries)), behind, leaf }
    if (behind !== leaf) {
      yield* threadOf(tables, "append", threadId)
      yield* pointOf(tables, "append", threadId, behind)
    }
    if (entries.length > 0) return yield* putEntries(threadId, batch)
    return yield* explainRefusal(threadId, batch, { thread: yield* guarded("append", threadId)(tables.find(threadId)) })
  }, briefSpan("SessionStore.append"))
  return append
}
