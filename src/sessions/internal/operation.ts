/** Checks and failures that the operations of a store share. */
import * as Effect from "effect/Effect"
import * as IdGenerator from "../../core/IdGenerator.ts"
import type { JsonObject } from "../../core/Json.ts"
import { make as failure, type SessionError } from "../../core/SessionError.ts"
import type { Thread } from "../../core/SessionStore.ts"
import * as codec from "./codec.ts"
import { threadIdProblem } from "./ids.ts"
import { problemAt } from "./points.ts"
import type { Fault, Tables } from "./tables.ts"

/** Adds the operation and the thread to a failure of the tables. */
export const guarded =
  (operation: string, threadId: string) =>
  <A, R = never>(effect: Effect.Effect<A, Fault, R>): Effect.Effect<A, SessionError, R> =>
    Effect.mapError(effect, ({ cause, reason }) => failure(operation, threadId, reason, cause))

/** Bounds the limit of a page. */
export const bounded = (limit: number | undefined, usual: number, most: number): number =>
  limit === undefined || Number.isNaN(limit) ? usual : Math.max(1, Math.min(Math.trunc(limit), most))

/** Checks the id of a new thread, or makes one. */
export const newId = Effect.fnUntraced(function* (operation: string, id: string | undefined) {
  const threadId = id ?? (yield* IdGenerator.IdGenerator)()
  const problem = threadIdProblem(threadId)
  if (problem !== undefined) return yield* failure(operation, threadId, { _tag: "InvalidId", problem })
  return threadId
})

/** Checks metadata. */
export const metadataOf = (operation: string, threadId: string, metadata: JsonObject) =>
  Effect.mapError(Effect.fromResult(codec.checkMetadata(metadata)), (problem) =>
    failure(operation, threadId, { _tag: "InvalidEntry", entry: "metadata", problem })
  )

/** Finds a thread, or fails with `NotFound`. */
export const threadOf = (tables: Tables, operation: string, threadId: string): Effect.Effect<Thread, SessionError> =>
  Effect.flatMap(guarded(operation, threadId)(tables.find(threadId)), (thread) =>
    thread === undefined ? Effect.fail(failure(operation, threadId, { _tag: "NotFound" })) : Effect.succeed(thread)
  )

/** Finds a thread that is not archived. */
export const openThreadOf = (
  tables: Tables,
  operation: string,
  threadId: string
): Effect.Effect<Thread, SessionError> =>
  Effect.flatMap(threadOf(tables, operation, threadId), (thread) =>
    thread.archived ? Effect.fail(failure(operation, threadId, { _tag: "Archived" })) : Effect.succeed(thread)
  )

/** Fails unless the thread has the entry. */
export const entryOf = Effect.fnUntraced(function* (
  tables: Tables,
  operation: string,
  threadId: string,
  entryId: string
) {
  if ((yield* guarded(operation, threadId)(tables.entry(threadId, entryId))) !== undefined) return
  const problem = "the thread has no such entry"
  return yield* failure(operation, threadId, { _tag: "InvalidPoint", entry: entryId, problem })
})

/** Fails unless a turn ends at the entry; `null` is the beginning. */
export const pointOf = Effect.fnUntraced(function* (
  tables: Tables,
  operation: string,
  threadId: string,
  entryId: string | null
) {
  if (entryId === null) return
  yield* entryOf(tables, operation, threadId, entryId)
  const path = (from: string, limit: number) => tables.path(threadId, from, limit)
  const problem = yield* guarded(operation, threadId)(problemAt(path, entryId))
  if (problem === undefined) return
  return yield* failure(operation, threadId, { _tag: "InvalidPoint", entry: entryId, problem })
})
