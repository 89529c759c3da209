/** Forks, rewinds and labels threads. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { makeId } from "../../core/Message.ts"
import { make as failure } from "../../core/SessionError.ts"
import type { Service } from "../../core/SessionStore.ts"
import { span } from "../../support/effect/span.ts"
import { threadIdProblem } from "./ids.ts"
import { entryOf, guarded, metadataOf, newId, openThreadOf, pointOf, threadOf } from "./operation.ts"
import type { Tables } from "./tables.ts"
import { waitsAt } from "./waits.ts"

/** The operations of a store on the tree of a thread. */
export const makeBranching = (tables: Tables): Pick<Service, "fork" | "rewind" | "label" | "labels"> => ({
  fork: Effect.fnUntraced(function* (source, options) {
    const threadId = yield* newId("fork", options?.threadId)
    const thread = yield* threadOf(tables, "fork", source)
    const entryId = options?.at === undefined ? thread.leaf.id : options.at
    yield* pointOf(tables, "fork", source, entryId)
    const metadata = yield* metadataOf("fork", threadId, options?.metadata ?? thread.metadata)
    const at = yield* Clock.currentTimeMillis
    const guard = guarded("fork", source)
    const waits = yield* guard(waitsAt((from, limit) => tables.path(source, from, limit), entryId))
    const outcome = yield* guard(tables.fork(source, entryId, { threadId, at, metadata }, waits))
    if (outcome === "Gone") return yield* failure("fork", source, { _tag: "NotFound" })
    if (outcome === "Exists") return yield* failure("fork", threadId, { _tag: "AlreadyExists" })
    return yield* threadOf(tables, "fork", threadId)
  }, span("SessionStore.fork")),

  rewind: Effect.fnUntraced(function* (threadId, to) {
    const thread = yield* openThreadOf(tables, "rewind", threadId)
    yield* pointOf(tables, "rewind", threadId, to)
    const from = thread.leaf.id
    const guard = guarded("rewind", threadId)
    const waits = yield* guard(waitsAt((entry, limit) => tables.path(threadId, entry, limit), to))
    const isMoved = yield* guard(tables.move(threadId, from, to, yield* Clock.currentTimeMillis, waits))
    const { archived, leaf } = yield* threadOf(tables, "rewind", threadId)
    if (isMoved) return leaf
    return yield* failure(
      "rewind",
      threadId,
      archived ? { _tag: "Archived" } : { _tag: "Conflict", expected: from, found: leaf.id }
    )
  }, span("SessionStore.rewind")),

  label: Effect.fnUntraced(function* (threadId, name, target) {
    const problem = threadIdProblem(name)
    if (problem !== undefined) return yield* failure("label", threadId, { _tag: "InvalidEntry", entry: name, problem })
    yield* openThreadOf(tables, "label", threadId)
    if (target !== null) yield* entryOf(tables, "label", threadId, target)
    const at = yield* Clock.currentTimeMillis
    const outcome = yield* guarded(
      "label",
      threadId
    )(tables.addLabel(threadId, makeId(), { _tag: "Label", name, target }, at))
    if (outcome._tag === "Refused") {
      return yield* failure("label", threadId, { _tag: outcome.thread === undefined ? "NotFound" : "Archived" })
    }
  }, span("SessionStore.label")),

  labels: Effect.fnUntraced(function* (threadId) {
    yield* threadOf(tables, "labels", threadId)
    const names = new Map<string, string>()
    for (const { name, target } of yield* guarded("labels", threadId)(tables.labels(threadId))) {
      if (target === null) names.delete(name)
      else names.set(name, target)
    }
    return names
  }, span("SessionStore.labels"))
})
