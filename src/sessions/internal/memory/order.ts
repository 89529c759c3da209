/** The orders of threads, hits and requests, and the first items of a query in them. */
import type { JsonObject } from "../../../core/Json.ts"
import { canonical } from "../../../core/schema/jsonTree.ts"
import type { Hit, Thread, WaitingRequest } from "../../../core/SessionStore.ts"
import { compareText } from "../../../support/text/text.ts"
import type { HitCursor, ListCursor, ListQuery, WaitCursor, WaitQuery } from "../tables.ts"

const threadOrder = (left: ListCursor, right: ListCursor): number =>
  right.at - left.at || compareText(left.threadId, right.threadId)

const hitOrder = (left: HitCursor, right: HitCursor): number =>
  threadOrder(left, right) || compareText(left.entryId, right.entryId)

/** Reports whether a hit comes behind a cursor. */
export const isHitBehind = (hit: Hit, after: HitCursor | undefined): boolean =>
  after === undefined || hitOrder(after, hit) < 0

/** Reports whether metadata has all values of a query. */
export const hasMetadata = (metadata: JsonObject, where: JsonObject): boolean =>
  Object.entries(where).every(([key, value]) => {
    const own = Object.hasOwn(metadata, key) ? metadata[key] : undefined
    return own !== undefined && canonical(own) === canonical(value)
  })

/** Reports whether a thread is one of a list. */
export const isListed = (thread: Thread, { after, archived, where }: ListQuery): boolean =>
  thread.archived === archived &&
  (after === undefined || threadOrder(after, { at: thread.updatedAt, threadId: thread.threadId }) < 0) &&
  hasMetadata(thread.metadata, where)

/** The first of a list of threads. */
export const firstThreads = (threads: Iterable<Thread>, limit: number): ReadonlyArray<Thread> =>
  [...threads]
    .sort((left, right) =>
      threadOrder({ at: left.updatedAt, threadId: left.threadId }, { at: right.updatedAt, threadId: right.threadId })
    )
    .slice(0, limit)

/** Sorts hits, and gives the first. */
export const firstHits = (hits: Iterable<Hit>, limit: number): ReadonlyArray<Hit> =>
  [...hits].sort(hitOrder).slice(0, limit)

const waitOrder = (left: WaitCursor, right: WaitCursor): number =>
  left.at - right.at || compareText(left.requestId, right.requestId) || compareText(left.threadId, right.threadId)

const placeOf = ({ request, threadId }: WaitingRequest): WaitCursor => ({
  at: request.at,
  requestId: request.id,
  threadId
})

/** Sorts requests, and gives the first of a query. */
export const firstWaits = (
  waits: Iterable<WaitingRequest>,
  { after, limit, threadId }: WaitQuery
): ReadonlyArray<WaitingRequest> =>
  [...waits]
    .filter(
      (one) =>
        (threadId === undefined || one.threadId === threadId) &&
        (after === undefined || waitOrder(after, placeOf(one)) < 0)
    )
    .sort((left, right) => waitOrder(placeOf(left), placeOf(right)))
    .slice(0, limit)
