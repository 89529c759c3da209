/** Appends entries to a thread: checked, and once however often they are sent. */
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
import type { Appended, Tables, Waits } from "./tables.ts"
import { usualNew } from "./usual.ts"
import { makeAfter } from "./waits.ts"

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

/** Entries that are checked, and about how many bytes they have together. */
interface Checked {
  readonly valid: ReadonlyArray<NewEntry>
  readonly bytes: number
}

/** Checks entries as runs append them: known ones, few bytes, in the order of their ids. `undefined` for all others. */
const usual = (entries: ReadonlyArray<NewEntry>): Checked | undefined => {
  const valid: Array<NewEntry> = []
  let [bytes, last] = [0, ""]
  for (const { entry, id } of entries) {
    const known = usualNew(entry)
    if (known === undefined || entryIdProblem(id) !== undefined || !(id > last)) return undefined
    bytes += boundOf(known)
    if (bytes > heavy) return undefined
    valid.push({ id, entry: known })
    last = id
  }
  return { valid, bytes }
}

/** Checks any entries; what is wrong with them is said. */
const checked = Effect.fnUntraced(function* (
  threadId: string,
  entries: ReadonlyArray<NewEntry>
): Effect.fn.Return<Checked, SessionError> {
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

/** Entries that are checked, and where they go. */
interface Batch extends Checked {
  readonly leaf: string | null
  readonly behind: string | null
}

/** The append of a store; `recent` is told of it. */
export const makeAppend = (tables: Tables, recent: Recent): Service["append"] => {
  /** The reason why nothing was appended, unless these entries were before. */
  const refused = Effect.fnUntraced(function* (
    threadId: string,
    { behind, leaf, valid }: Batch,
    { taken, thread }: Pick<Extract<Appended, { readonly _tag: "Refused" }>, "thread" | "taken">
  ): Effect.fn.Return<Leaf, SessionError> {
    if (thread === undefined) return yield* failure("append", threadId, { _tag: "NotFound" })
    const done: Leaf | undefined = yield* guarded("append", threadId)(already(tables, threadId, behind, valid))
    if (done !== undefined) return done
    if (thread.archived) return yield* failure("append", threadId, { _tag: "Archived" })
    if (thread.leaf.id !== leaf) {
      return yield* failure("append", threadId, { _tag: "Conflict", expected: leaf, found: thread.leaf.id })
    }
    if (taken !== undefined) {
      const reason = { _tag: "InvalidEntry", entry: taken, problem: "another entry has this id" } as const
      return yield* failure("append", threadId, reason)
    }
    // A thread that stood elsewhere for a moment, and is back, takes them.
    return valid.length === 0 ? thread.leaf : yield* append(threadId, { leaf, behind, entries: valid })
  })

  const after = makeAfter(tables, recent)

  const put = (threadId: string, batch: Batch): Effect.Effect<Leaf, SessionError> => {
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
        if (outcome._tag === "Refused") return refused(threadId, batch, outcome)
        const reached = { id: valid.at(-1)?.id ?? null, step: outcome.step }
        recent.extend(threadId, behind, valid, reached)
        return Effect.succeed(reached)
      })
    })

  const putAny = Effect.fnUntraced(function* (
    threadId: string,
    leaf: string | null,
    behind: string | null,
    entries: ReadonlyArray<NewEntry>
  ) {
    const batch = { ...(yield* checked(threadId, entries)), behind, leaf }
    if (behind !== leaf) {
      yield* threadOf(tables, "append", threadId)
      yield* pointOf(tables, "append", threadId, behind)
    }
    if (entries.length > 0) return yield* put(threadId, batch)
    return yield* refused(threadId, batch, { thread: yield* guarded("append", threadId)(tables.find(threadId)) })
  })

  const append: Service["append"] = (threadId, { behind: given, entries, leaf }) =>
    briefSpan("SessionStore.append")(
      Effect.suspend(() => {
        const behind = given === undefined ? leaf : given
        const known = behind === leaf && entries.length > 0 ? usual(entries) : undefined
        return known === undefined ? putAny(threadId, leaf, behind, entries) : put(threadId, { ...known, behind, leaf })
      })
    )
  return append
}
