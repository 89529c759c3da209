/** Copies all threads of a store to another one, and verifies each of them. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type Json } from "../../../core/Json.ts"
import { canonical } from "../../../core/schema/jsonTree.ts"
import { make as failure, type SessionError } from "../../../core/SessionError.ts"
import type { Service, StoredEntry, Thread } from "../../../core/SessionStore.ts"
import { span } from "../../../support/effect/span.ts"
import { TaggedError } from "../../../support/effect/taggedError.ts"
import { sha256 } from "../../../support/store/hash.ts"
import { guarded } from "../operation.ts"
import type { Fault, ThreadName, Tables } from "../tables.ts"

/**
 * The result of a copy: the threads that are in both stores and equal, how many of them this call copied, and their
 * entries and bytes as JSON.
 */
export interface CopyResult {
  readonly threads: number
  readonly copied: number
  readonly entries: number
  readonly bytes: number
}

/** Some threads were not copied, or differ. All others are in the target, and verified. */
export class CopyError extends TaggedError<CopyError>()("CopyError", {
  failures: Schema.Array(Schema.Struct({ threadId: Schema.String, problem: Schema.String })),
  copied: Schema.Struct({
    threads: Schema.Finite,
    copied: Schema.Finite,
    entries: Schema.Finite,
    bytes: Schema.Finite
  })
}) {
  override get message(): string {
    const named = this.failures.slice(0, 10).map(({ problem, threadId }) => `${JSON.stringify(threadId)} (${problem})`)
    const more = this.failures.length > named.length ? `, and ${this.failures.length - named.length} more` : ""
    return `${this.copied.threads} threads are in both stores, and ${this.failures.length} are not: ${named.join(", ")}${more}. These stay in the source, where they can be read; the source takes no changes.`
  }
}

const stores = new WeakMap<Service, Tables>()

/** Remembers the tables of a store. */
export const withTables = (store: Service, tables: Tables): Service => {
  stores.set(store, tables)
  return store
}

const tablesOf = (operation: string, store: Service): Effect.Effect<Tables, SessionError> => {
  const tables = stores.get(store)
  if (tables !== undefined) return Effect.succeed(tables)
  const problem =
    "only the stores of effect-deepagents can be copied, as their layers make them; give the store without what wraps it, or copy by export and import"
  return Effect.fail(failure(operation, "", { _tag: "Unavailable", problem }))
}

/** The entries of one page. */
const page = 500

/** The threads that are copied at once. */
const atOnce = 4

/** Entries in the order of their arrival, and the keys that identify them. */
interface Sum {
  readonly count: number
  readonly bytes: number
  readonly digest: string
}

const empty: Sum = { count: 0, bytes: 0, digest: "" }

/** An entry in its place, with its keys in any order. */
const lineOf = ({ at, entry, id, parentId }: StoredEntry): string =>
  // Entries are of a schema that is JSON through and through.
  canonical([id, parentId, at, entry as unknown as Json])

const sumOf = Effect.fnUntraced(function* (before: Sum, entries: ReadonlyArray<StoredEntry>) {
  const text = new TextEncoder().encode(entries.map((entry) => `${lineOf(entry)}\n`).join(""))
  const digest = yield* sha256(`${before.digest}${yield* sha256(text)}`)
  return { count: before.count + entries.length, bytes: before.bytes + text.length, digest }
})

/** Reads the first entries of a thread, at most `limit`, and sums them up. */
const readEntries = Effect.fnUntraced(function* (
  tables: Tables,
  threadId: string,
  limit: number,
  each: (entries: ReadonlyArray<StoredEntry>) => void
): Effect.fn.Return<Sum, Fault> {
  let sum = empty
  let cursor: number | undefined = 0
  while (cursor !== undefined && sum.count < limit) {
    // Pages of both stores end at the same entries: the digest is one of pages.
    const part: Effect.Success<ReturnType<Tables["entries"]>> = yield* tables.entries(threadId, cursor, page)
    const entries = part.entries.slice(0, limit - sum.count)
    if (entries.length > 0) sum = yield* sumOf(sum, entries)
    each(entries)
    cursor = part.next
  }
  return sum
})

/** The facts of a thread that a copy keeps. */
const factsOf = ({ archived, createdAt, leaf, metadata, origin, updatedAt }: Thread): string =>
  canonical({
    archived,
    createdAt,
    updatedAt,
    leaf: leaf.id,
    step: leaf.step,
    metadata,
    origin: origin === undefined ? null : { ...origin }
  })

/** The outcome for one thread. It is gone if it was removed before the source was closed. */
type Outcome =
  | { readonly _tag: "Same"; readonly sum: Sum; readonly isNew: boolean }
  | { readonly _tag: "Failed"; readonly threadId: string; readonly problem: string }
  | { readonly _tag: "Gone" }

/** An unreadable thread fails alone; an unavailable store fails the copy. */
const isOfThread = ({ reason }: Fault): boolean => reason._tag === "Corrupt"

const copyThread = (
  from: Tables,
  to: Tables,
  { problem, threadId }: ThreadName
): Effect.Effect<Outcome, SessionError> => {
  const failed = (why: string): Outcome => ({ _tag: "Failed", threadId, problem: why })
  if (problem !== undefined) return Effect.succeed(failed(problem))
  const copied = Effect.gen(function* (): Effect.fn.Return<Outcome, Fault> {
    const thread = yield* from.find(threadId)
    if (thread === undefined) return { _tag: "Gone" }
    const { archived, createdAt, leaf, metadata, origin, updatedAt } = thread
    const entries: Array<StoredEntry> = []
    const sum = yield* readEntries(from, threadId, Infinity, (part) => {
      entries.push(...part)
    })
    const dates = origin === undefined ? { createdAt, updatedAt } : { createdAt, updatedAt, origin }
    const at = yield* Clock.currentTimeMillis
    const isNew = yield* to.insert({ threadId, at, metadata }, { entries, leaf: leaf.id, archived, past: dates })
    const there = yield* to.find(threadId)
    if (there === undefined) return failed("it is not in the target after it was copied; copy again")
    // A thread that the target had already may have gone on since an earlier copy.
    const copySum = yield* readEntries(to, threadId, sum.count, () => undefined)
    const isSame = copySum.digest === sum.digest && there.createdAt === createdAt
    if (!isSame && !isNew) return failed("the target has another thread with this id; give one of them another id")
    if (!isSame) return failed("its entries in the target are not those of the source")
    if (isNew && factsOf(there) !== factsOf(thread)) return failed("its dates, metadata or leaf differ in the target")
    return { _tag: "Same", sum, isNew }
  })
  return Effect.catchIf(copied, isOfThread, (fault): Effect.Effect<Outcome, Fault> =>
    Effect.succeed(failed(fault.reason._tag === "Corrupt" ? fault.reason.problem : fault.reason._tag))
  ).pipe(guarded("copy", threadId))
}

/** A name as every store can keep it: one line. */
const nameOf = (name: string): string =>
  name
    .toWellFormed()
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ")
    .slice(0, 300)

/** Copies all threads of a store. */
export const copy = Effect.fnUntraced(function* (
  source: Service,
  target: Service,
  options: { readonly name: string }
): Effect.fn.Return<CopyResult, SessionError | CopyError> {
  const [from, to] = [yield* tablesOf("copy", source), yield* tablesOf("copy", target)]
  const guard = guarded("copy", "")
  const refuse = (problem: string) => failure("copy", "", { _tag: "Unavailable", problem })
  const name = nameOf(options.name)
  const isSame = refuse("the source and the target are the same store; name another target")
  if (from === to) return yield* isSame
  const elsewhere = yield* guard(to.moved)
  if (elsewhere !== undefined) return yield* failure("copy", "", { _tag: "Moved", to: elsewhere })
  const before = yield* guard(from.moved)
  const place = before ?? (yield* guard(from.close(name)))
  if (place !== name) return yield* failure("copy", "", { _tag: "Moved", to: place })
  if ((yield* guard(to.moved)) !== undefined) {
    if (before === undefined) yield* guard(from.reopen)
    return yield* isSame
  }
  // An earlier copy may have been cut off while it set the mark.
  yield* guard(from.close(name))
  const outcomes = yield* Effect.forEach(yield* guard(from.names), (named) => copyThread(from, to, named), {
    concurrency: atOnce
  })
  const failures: Array<{ readonly threadId: string; readonly problem: string }> = []
  const copied = { threads: 0, copied: 0, entries: 0, bytes: 0 }
  for (const outcome of outcomes) {
    if (outcome._tag === "Failed") failures.push({ threadId: outcome.threadId, problem: outcome.problem })
    if (outcome._tag !== "Same") continue
    copied.threads++
    copied.copied += outcome.isNew ? 1 : 0
    copied.entries += outcome.sum.count
    copied.bytes += outcome.sum.bytes
  }
  if (failures.length > 0) return yield* new CopyError({ failures, copied })
  return copied
}, span("SessionStore.copy"))

/** Has a store take changes again. Gives the place that its threads were moved to, if they were. */
export const reopen = (store: Service): Effect.Effect<string | undefined, SessionError> =>
  Effect.flatMap(tablesOf("reopen", store), ({ moved, reopen: open }) =>
    guarded("reopen", "")(Effect.tap(moved, () => open))
  )
