/** The parts that the operations of a store share: its failures, its threads, and the points in them. */
import * as Effect from "effect/Effect"
import * as IdGenerator from "../../core/IdGenerator.ts"
import type { JsonObject } from "../../core/Json.ts"
import { make as failure, type SessionError } from "../../core/SessionError.ts"
import type { Thread } from "../../core/SessionStore.ts"
import * as codec from "./codec.ts"
import { threadIdProblem } from "./ids.ts"
import { problemAt } from "./points.ts"
import type { Fault, Tables } from "./tables.ts"

/** Names the operation and the thread of what fails in the tables. */
export const guarded =
  (operation: string, threadId: string) =>
  <A>(effect: Effect.Effect<A, Fault>): Effect.Effect<A, SessionError> =>
    Effect.mapError(effect, ({ cause, reason }) => failure(operation, threadId, reason, cause))

/** A number of items to give, at most so many. */
export const bounded = (limit: number | undefined, usual: number, most: number): number =>
  limit === undefined || Number.isNaN(limit) ? usual : Math.max(1, Math.min(Math.trunc(limit), most))

/** The id that was given for a new thread, or another one. */
export const newId = Effect.fnUntraced(function* (operation: string, given: string | undefined) {
  const threadId = given ?? (yield* IdGenerator.IdGenerator)()
  const problem = threadIdProblem(threadId)
  if (problem !== undefined) return yield* failure(operation, threadId, { _tag: "InvalidId", problem })
  return threadId
})

/** Checks metadata that are to be stored. */
export const metadataOf = (operation: string, threadId: string, metadata: JsonObject) =>
  Effect.mapError(Effect.fromResult(codec.checkMetadata(metadata)), (problem) =>
    failure(operation, threadId, { _tag: "InvalidEntry", entry: "metadata", problem })
  )

/** A thread that must be there. */
export const threadOf = (tables: Tables, operation: string, threadId: string): Effect.Effect<Thread, SessionError> =>
  Effect.flatMap(guarded(operation, threadId)(tables.find(threadId)), (thread) =>
    thread === undefined ? Effect.fail(failure(operation, threadId, { _tag: "NotFound" })) : Effect.succeed(thread)
  )

/** A thread that must be there, and take changes. */
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
