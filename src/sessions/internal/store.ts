/**
 * The store of threads, on the tables of any place.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as IdGenerator from "../../core/IdGenerator.ts"
import { canonical, type Json, type JsonObject } from "../../core/Json.ts"
import { makeId } from "../../core/Message.ts"
import { make as failure, type SessionError } from "../../core/SessionError.ts"
import type { Leaf, NewEntry, Service, Thread } from "../../core/SessionStore.ts"
import { batchLimit, limit, sizeOf } from "../../support/size.ts"
import { span, streamSpan } from "../../support/span.ts"
import * as codec from "./codec.ts"
import { entryIdProblem, threadIdProblem } from "./ids.ts"
import { imported } from "./import.ts"
import { problemAt } from "./points.ts"
import type { Fault, HitCursor, ListCursor, Tables } from "./tables.ts"
import { phrases } from "./words.ts"

const bounded = (limit: number | undefined, usual: number, most: number): number =>
  limit === undefined || Number.isNaN(limit) ? usual : Math.max(1, Math.min(Math.trunc(limit), most))

const exportPage = 500

/** The same entries, whatever order their keys are in. */
const sameEntry = (left: unknown, right: unknown): boolean =>
  // Both are of the entry schema, which is JSON through and through.
  canonical(left as Json) === canonical(right as Json)

const toCursor = (value: ReadonlyArray<string | number>): string => JSON.stringify(value)

const fromCursor = (cursor: string, length: number): ReadonlyArray<string> | undefined => {
  const value = Result.getOrUndefined(codec.parse(cursor))
  if (!Array.isArray(value) || value.length !== length) return undefined
  return typeof value[0] === "number" && value.slice(1).every((part) => typeof part === "string")
    ? value.map(String)
    : undefined
}

/** Names the operation and the thread of what fails in the tables. */
const guarded =
  (operation: string, threadId: string) =>
  <A>(effect: Effect.Effect<A, Fault>): Effect.Effect<A, SessionError> =>
    Effect.mapError(effect, ({ cause, reason }) => failure(operation, threadId, reason, cause))

/** The id that was given for a new thread, or another one. */
const newId = Effect.fnUntraced(function* (operation: string, given: string | undefined) {
  const threadId = given ?? (yield* IdGenerator.IdGenerator)()
  const problem = threadIdProblem(threadId)
  if (problem !== undefined) return yield* failure(operation, threadId, { _tag: "InvalidId", problem })
  return threadId
})

const metadataOf = (operation: string, threadId: string, metadata: JsonObject) =>
  Effect.mapError(Effect.fromResult(codec.checkMetadata(metadata)), (problem) =>
    failure(operation, threadId, { _tag: "InvalidEntry", entry: "metadata", problem })
  )

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

/** Checks entries that are to be appended. */
const checked = (threadId: string, entries: ReadonlyArray<NewEntry>): Effect.Effect<Array<NewEntry>, SessionError> => {
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
      return Effect.fail(failure("append", threadId, reason))
    }
    const bytes = sizeOf(result.success)
    if (bytes > limit) {
      return Effect.fail(failure("append", threadId, { _tag: "TooLarge", what: `entry ${id}`, bytes, limit }))
    }
    total += bytes
    ids.add(id)
    valid.push({ id, entry: result.success })
  }
  const together = total <= batchLimit ? total : sizeOf(valid, batchLimit)
  if (together <= batchLimit) return Effect.succeed(valid)
  const what = `the ${valid.length} entries together`
  return Effect.fail(failure("append", threadId, { _tag: "TooLarge", what, bytes: together, limit: batchLimit }))
}

/** Reads the parts of a cursor. */
const after = Effect.fnUntraced(function* (operation: string, cursor: string | undefined, length: number) {
  if (cursor === undefined) return undefined
  const parts = fromCursor(cursor, length)
  if (parts !== undefined) return parts
  const reason = { _tag: "InvalidPoint", entry: cursor, problem: "it is no cursor of such a list" } as const
  return yield* failure(operation, "", reason)
})

/** A page of what was found, where one more than the limit was asked for. */
const paged = <A>(found: ReadonlyArray<A>, limit: number, cursorOf: (last: A) => ReadonlyArray<string | number>) => {
  const items = found.slice(0, limit)
  const last = items.at(-1)
  return { items, next: found.length > limit && last !== undefined ? toCursor(cursorOf(last)) : null }
}

/** A store of threads on tables: all that is the same wherever threads are kept. */
export const make = (tables: Tables): Service => {
  const threadOf = (operation: string, threadId: string): Effect.Effect<Thread, SessionError> =>
    Effect.flatMap(guarded(operation, threadId)(tables.find(threadId)), (thread) =>
      thread === undefined ? Effect.fail(failure(operation, threadId, { _tag: "NotFound" })) : Effect.succeed(thread)
    )

  const pointOf = Effect.fnUntraced(function* (operation: string, threadId: string, entryId: string | null) {
    if (entryId === null) return
    const guard = guarded(operation, threadId)
    const entry = yield* guard(tables.entry(threadId, entryId))
    const problem =
      entry === undefined
        ? "the thread has no such entry"
        : yield* guard(problemAt((from, limit) => tables.path(threadId, from, limit), entryId))
    if (problem !== undefined) {
      return yield* failure(operation, threadId, { _tag: "InvalidPoint", entry: entryId, problem })
    }
  })

  const append: Service["append"] = Effect.fnUntraced(function* (threadId, { behind: given, entries, leaf }) {
    const behind = given === undefined ? leaf : given
    const valid = yield* checked(threadId, entries)
    if (behind !== leaf) {
      yield* threadOf("append", threadId)
      yield* pointOf("append", threadId, behind)
    }
    const last = valid.at(-1)
    const guard = guarded("append", threadId)
    const appended =
      last === undefined
        ? { thread: yield* guard(tables.find(threadId)) }
        : yield* guard(tables.append(threadId, leaf, valid, yield* Clock.currentTimeMillis, behind))
    if ("step" in appended) return { id: last?.id ?? null, step: appended.step }
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
  }, span("SessionStore.append"))

  const update = Effect.fnUntraced(function* (
    operation: string,
    threadId: string,
    change: { readonly metadata: JsonObject } | { readonly archived: boolean }
  ) {
    const isDone = yield* guarded(operation, threadId)(tables.update(threadId, change, yield* Clock.currentTimeMillis))
    if (!isDone) return yield* failure(operation, threadId, { _tag: "NotFound" })
  })

  const create: Service["create"] = Effect.fnUntraced(function* (options) {
    const threadId = yield* newId("create", options?.threadId)
    const metadata = yield* metadataOf("create", threadId, options?.metadata ?? {})
    const at = yield* Clock.currentTimeMillis
    const content = { entries: [], leaf: null, archived: false }
    const isNew = yield* guarded("create", threadId)(tables.insert({ threadId, at, metadata }, content))
    if (!isNew) return yield* failure("create", threadId, { _tag: "AlreadyExists" })
    return yield* threadOf("create", threadId)
  }, span("SessionStore.create"))

  return {
    create,
    append,
    info: (threadId) => span("SessionStore.info")(threadOf("info", threadId)),
    leaf: (threadId) => span("SessionStore.leaf")(Effect.map(threadOf("leaf", threadId), (thread) => thread.leaf)),

    describe: Effect.fnUntraced(function* (threadId, given) {
      const metadata = yield* metadataOf("describe", threadId, given)
      yield* update("describe", threadId, { metadata })
      return yield* threadOf("describe", threadId)
    }, span("SessionStore.describe")),

    load: Effect.fnUntraced(function* (threadId, options) {
      const guard = guarded("load", threadId)
      const thread = yield* threadOf("load", threadId)
      const from = options?.from ?? thread.leaf.id
      if (from === null) return { entries: [], next: null }
      if (options?.from !== undefined && (yield* guard(tables.entry(threadId, from))) === undefined) {
        const reason = { _tag: "InvalidPoint", entry: from, problem: "the thread has no such entry" } as const
        return yield* failure("load", threadId, reason)
      }
      const path = yield* guard(tables.path(threadId, from, bounded(options?.limit, 1000, 10_000)))
      return { entries: path.toReversed(), next: path.at(-1)?.parentId ?? null }
    }, span("SessionStore.load")),

    fork: Effect.fnUntraced(function* (source, options) {
      const threadId = yield* newId("fork", options?.threadId)
      const thread = yield* threadOf("fork", source)
      const entryId = options?.at === undefined ? thread.leaf.id : options.at
      yield* pointOf("fork", source, entryId)
      const metadata = yield* metadataOf("fork", threadId, options?.metadata ?? thread.metadata)
      const at = yield* Clock.currentTimeMillis
      const outcome = yield* guarded("fork", source)(tables.fork(source, entryId, { threadId, at, metadata }))
      if (outcome === "Gone") return yield* failure("fork", source, { _tag: "NotFound" })
      if (outcome === "Exists") return yield* failure("fork", threadId, { _tag: "AlreadyExists" })
      return yield* threadOf("fork", threadId)
    }, span("SessionStore.fork")),

    rewind: Effect.fnUntraced(function* (threadId, to) {
      const thread = yield* threadOf("rewind", threadId)
      if (thread.archived) return yield* failure("rewind", threadId, { _tag: "Archived" })
      yield* pointOf("rewind", threadId, to)
      const from = thread.leaf.id
      const isMoved = yield* guarded(
        "rewind",
        threadId
      )(tables.move(threadId, from, to, yield* Clock.currentTimeMillis))
      const { archived, leaf } = yield* threadOf("rewind", threadId)
      if (isMoved) return leaf
      return yield* failure(
        "rewind",
        threadId,
        archived ? { _tag: "Archived" } : { _tag: "Conflict", expected: from, found: leaf.id }
      )
    }, span("SessionStore.rewind")),

    label: Effect.fnUntraced(function* (threadId, name, target) {
      const problem = threadIdProblem(name)
      if (problem !== undefined)
        return yield* failure("label", threadId, { _tag: "InvalidEntry", entry: name, problem })
      const guard = guarded("label", threadId)
      const thread = yield* threadOf("label", threadId)
      if (thread.archived) return yield* failure("label", threadId, { _tag: "Archived" })
      if (target !== null && (yield* guard(tables.entry(threadId, target))) === undefined) {
        const reason = { _tag: "InvalidPoint", entry: target, problem: "the thread has no such entry" } as const
        return yield* failure("label", threadId, reason)
      }
      const at = yield* Clock.currentTimeMillis
      const outcome = yield* guard(tables.addLabel(threadId, makeId(), { _tag: "Label", name, target }, at))
      if (outcome._tag === "Refused") {
        return yield* failure("label", threadId, { _tag: outcome.thread === undefined ? "NotFound" : "Archived" })
      }
    }, span("SessionStore.label")),

    labels: Effect.fnUntraced(function* (threadId) {
      yield* threadOf("labels", threadId)
      const names = new Map<string, string>()
      for (const { name, target } of yield* guarded("labels", threadId)(tables.labels(threadId))) {
        if (target === null) names.delete(name)
        else names.set(name, target)
      }
      return names
    }, span("SessionStore.labels")),

    list: Effect.fnUntraced(function* (options) {
      const parts = yield* after("list", options?.cursor, 2)
      const cursor: ListCursor | undefined =
        parts === undefined ? undefined : { at: Number(parts[0]), threadId: parts[1] ?? "" }
      const limit = bounded(options?.limit, 50, 1000)
      const archived = options?.archived ?? false
      const where = options?.where ?? {}
      const found = yield* guarded("list", "")(tables.list({ archived, limit: limit + 1, after: cursor, where }))
      return paged(found, limit, (last) => [last.updatedAt, last.threadId])
    }, span("SessionStore.list")),

    search: Effect.fnUntraced(function* (text, options) {
      const wanted = phrases(text)
      const parts = yield* after("search", options?.cursor, 3)
      if (wanted.length === 0) return { items: [], next: null }
      const cursor: HitCursor | undefined =
        parts === undefined ? undefined : { at: Number(parts[0]), threadId: parts[1] ?? "", entryId: parts[2] ?? "" }
      const limit = bounded(options?.limit, 20, 1000)
      const found = yield* guarded(
        "search",
        options?.threadId ?? ""
      )(
        tables.search({
          archived: options?.archived ?? false,
          limit: limit + 1,
          after: cursor,
          phrases: wanted,
          threadId: options?.threadId
        })
      )
      return paged(found, limit, (last) => [last.at, last.threadId, last.entryId])
    }, span("SessionStore.search")),

    archive: (threadId) => span("SessionStore.archive")(update("archive", threadId, { archived: true })),
    unarchive: (threadId) => span("SessionStore.unarchive")(update("unarchive", threadId, { archived: false })),

    delete: Effect.fnUntraced(function* (threadId) {
      const isDone = yield* guarded("delete", threadId)(tables.remove(threadId))
      if (!isDone) return yield* failure("delete", threadId, { _tag: "NotFound" })
    }, span("SessionStore.delete")),

    export: (threadId) => {
      const guard = guarded("export", threadId)
      const head = Effect.map(threadOf("export", threadId), ({ archived, createdAt, leaf, metadata }) => {
        const line: codec.Head = { v: codec.version, threadId, createdAt, metadata, archived, leaf: leaf.id }
        return JSON.stringify(line)
      })
      const rest = Stream.paginate(0, (cursor: number) =>
        Effect.map(
          guard(tables.entries(threadId, cursor, exportPage)),
          ({ entries, next }) => [entries.map(codec.encodeLine), Option.fromUndefinedOr(next)] as const
        )
      )
      return streamSpan("SessionStore.export")(Stream.concat(Stream.fromEffect(head), rest))
    },

    import: Effect.fnUntraced(function* (lines, options) {
      const { entries, head, threadId } = yield* imported(lines, options?.threadId)
      yield* newId("import", threadId)
      const metadata = yield* metadataOf("import", threadId, head.metadata)
      const content = { entries, leaf: head.leaf, archived: head.archived }
      const thread = { threadId, at: yield* Clock.currentTimeMillis, metadata }
      const isNew = yield* guarded("import", threadId)(tables.insert(thread, content))
      if (!isNew) return yield* failure("import", threadId, { _tag: "AlreadyExists" })
      return yield* threadOf("import", threadId)
    }, span("SessionStore.import"))
  }
}
