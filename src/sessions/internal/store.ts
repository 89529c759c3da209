/** The store of threads, on the tables of any place. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { JsonObject } from "../../core/Json.ts"
import { make as failure } from "../../core/SessionError.ts"
import type { Service } from "../../core/SessionStore.ts"
import { span } from "../../support/effect/span.ts"
import { makeAppend } from "./appending.ts"
import { makeBranching } from "./branching.ts"
import { makeList, makeSearch, makeWaiting } from "./browsing.ts"
import { bounded, entryOf, guarded, metadataOf, newId, threadOf } from "./operation.ts"
import { type Recent, remembering } from "./recent.ts"
import type { Tables } from "./tables.ts"
import { withTables } from "./transfer/copying.ts"
import { makeTransfer } from "./transfer/transfer.ts"

/** A store of threads on tables: all that is the same wherever threads are kept. */
export const make = (tables: Tables): Service =>
  withTables(
    remembering((recent) => storeOf(tables, recent)),
    tables
  )

const storeOf = (tables: Tables, recent: Recent): Service => {
  const update = Effect.fnUntraced(function* (
    operation: string,
    threadId: string,
    change: { readonly metadata: JsonObject } | { readonly archived: boolean }
  ) {
    const isDone = yield* guarded(operation, threadId)(tables.update(threadId, change, yield* Clock.currentTimeMillis))
    if (!isDone) return yield* failure(operation, threadId, { _tag: "NotFound" })
  })

  return {
    append: makeAppend(tables, recent),
    list: makeList(tables),
    search: makeSearch(tables),
    ...makeWaiting(tables),
    ...makeBranching(tables),
    ...makeTransfer(tables),

    create: Effect.fnUntraced(function* (options) {
      const threadId = yield* newId("create", options?.threadId)
      const metadata = yield* metadataOf("create", threadId, options?.metadata ?? {})
      const at = yield* Clock.currentTimeMillis
      const content = { entries: [], leaf: null, archived: false }
      const isNew = yield* guarded("create", threadId)(tables.insert({ threadId, at, metadata }, content))
      if (!isNew) return yield* failure("create", threadId, { _tag: "AlreadyExists" })
      const leaf = { id: null, step: 0 }
      return { threadId, leaf, createdAt: at, updatedAt: at, metadata, archived: false, origin: undefined }
    }, span("SessionStore.create")),

    info: (threadId) => span("SessionStore.info")(threadOf(tables, "info", threadId)),
    leaf: (threadId) =>
      span("SessionStore.leaf")(Effect.map(threadOf(tables, "leaf", threadId), (thread) => thread.leaf)),

    describe: Effect.fnUntraced(function* (threadId, input) {
      const metadata = yield* metadataOf("describe", threadId, input)
      yield* update("describe", threadId, { metadata })
      return yield* threadOf(tables, "describe", threadId)
    }, span("SessionStore.describe")),

    load: Effect.fnUntraced(function* (threadId, options) {
      const thread = yield* threadOf(tables, "load", threadId)
      const from = options?.from ?? thread.leaf.id
      if (from === null) return { entries: [], next: null }
      if (from !== thread.leaf.id) yield* entryOf(tables, "load", threadId, from)
      const path = yield* guarded("load", threadId)(tables.path(threadId, from, bounded(options?.limit, 1000, 10_000)))
      return { entries: path.toReversed(), next: path.at(-1)?.parentId ?? null }
    }, span("SessionStore.load")),

    archive: (threadId) => span("SessionStore.archive")(update("archive", threadId, { archived: true })),
    unarchive: (threadId) => span("SessionStore.unarchive")(update("unarchive", threadId, { archived: false })),

    delete: Effect.fnUntraced(function* (threadId) {
      const isDone = yield* guarded("delete", threadId)(tables.remove(threadId))
      recent.drop(threadId)
      if (!isDone) return yield* failure("delete", threadId, { _tag: "NotFound" })
    }, span("SessionStore.delete"))
  }
}
