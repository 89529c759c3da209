/** Lists threads and searches messages, page by page. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { make as failure } from "../../core/SessionError.ts"
import type { Service, WaitingRequest } from "../../core/SessionStore.ts"
import { span } from "../../support/effect/span.ts"
import * as codec from "./codec.ts"
import { bounded, guarded } from "./operation.ts"
import type { HitCursor, ListCursor, Tables, WaitCursor } from "./tables.ts"
import { phrases } from "./words.ts"

const toCursor = (value: ReadonlyArray<string | number>): string => JSON.stringify(value)

const fromCursor = (cursor: string, length: number): ReadonlyArray<string> | undefined => {
  const value = Result.getOrUndefined(codec.parse(cursor))
  if (!Array.isArray(value) || value.length !== length) return undefined
  return typeof value[0] === "number" && value.slice(1).every((part) => typeof part === "string")
    ? value.map(String)
    : undefined
}

/** Reads the parts of a cursor. */
const after = Effect.fnUntraced(function* (operation: string, cursor: string | undefined, length: number) {
  if (cursor === undefined) return undefined
  const parts = fromCursor(cursor, length)
  if (parts !== undefined) return parts
  const reason = { _tag: "InvalidPoint", entry: cursor, problem: "it is no cursor of such a list" } as const
  return yield* failure(operation, "", reason)
})

/** Makes a page of items. The query fetched one more than the limit. */
const paged = <A>(list: ReadonlyArray<A>, limit: number, cursorOf: (last: A) => ReadonlyArray<string | number>) => {
  const items = list.slice(0, limit)
  const last = items.at(-1)
  return { items, next: list.length > limit && last !== undefined ? toCursor(cursorOf(last)) : null }
}

/** Lists threads. */
export const makeList = (tables: Tables): Service["list"] =>
  Effect.fnUntraced(function* (options) {
    const parts = yield* after("list", options?.cursor, 2)
    const cursor: ListCursor | undefined =
      parts === undefined ? undefined : { at: Number(parts[0]), threadId: parts[1] ?? "" }
    const limit = bounded(options?.limit, 50, 1000)
    const archived = options?.archived ?? false
    const where = options?.where ?? {}
    const items = yield* guarded("list", "")(tables.list({ archived, limit: limit + 1, after: cursor, where }))
    return paged(items, limit, (last) => [last.updatedAt, last.threadId])
  }, span("SessionStore.list"))

/** The cursor of the page behind a request. */
export const waitCursor = ({ request, threadId }: WaitingRequest): string =>
  toCursor([request.at, request.id, threadId])

/** Lists what waits. */
export const makeWaiting = (tables: Tables): Pick<Service, "waiting" | "waitingFor"> => ({
  waiting: Effect.fnUntraced(function* (options) {
    const parts = yield* after("waiting", options?.cursor, 3)
    const cursor: WaitCursor | undefined =
      parts === undefined ? undefined : { at: Number(parts[0]), requestId: parts[1] ?? "", threadId: parts[2] ?? "" }
    const limit = bounded(options?.limit, 50, 1000)
    const threadId = options?.threadId
    const query = { limit: limit + 1, after: cursor, threadId }
    const items = yield* guarded("waiting", threadId ?? "")(tables.waiting(query))
    return paged(items, limit, (last) => [last.request.at, last.request.id, last.threadId])
  }, span("SessionStore.waiting")),

  waitingFor: (requestId) => span("SessionStore.waitingFor")(guarded("waitingFor", "")(tables.waitingFor(requestId)))
})

/** Searches messages. */
export const makeSearch = (tables: Tables): Service["search"] =>
  Effect.fnUntraced(function* (text, options) {
    const wanted = phrases(text)
    const parts = yield* after("search", options?.cursor, 3)
    if (wanted.length === 0) return { items: [], next: null }
    const cursor: HitCursor | undefined =
      parts === undefined ? undefined : { at: Number(parts[0]), threadId: parts[1] ?? "", entryId: parts[2] ?? "" }
    const limit = bounded(options?.limit, 20, 1000)
    const items = yield* guarded(
      "search",
      options?.threadId ?? ""
    )(
      tables.search({
        archived: options?.archived ?? false,
        limit: limit + 1,
        after: cursor,
        phrases: wanted,
        threadId: options?.threadId,
        where: options?.where ?? {}
      })
    )
    return paged(items, limit, (last) => [last.at, last.threadId, last.entryId])
  }, span("SessionStore.search"))
