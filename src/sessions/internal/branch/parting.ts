/** Finds the entry where two branches of a thread part. */
import * as Effect from "effect/Effect"
import type { SessionError } from "../../../core/SessionError.ts"
import type { Service, StoredEntry } from "../../../core/SessionStore.ts"

const limit = 1_000

/**
 * A way back from an entry, as far as it was read. `entries` come newest first; `next` is the entry to read on from.
 */
interface Way {
  readonly entries: Array<StoredEntry>
  readonly ids: Set<string>
  next: string | null
}

const wayFrom = (id: string | null): Way => ({ entries: [], ids: new Set(), next: id })

/** Reads another page, and gives its entries. */
const goOn = Effect.fnUntraced(function* (
  store: Service,
  threadId: string,
  way: Way
): Effect.fn.Return<ReadonlyArray<StoredEntry>, SessionError> {
  if (way.next === null) return []
  const page = yield* store.load(threadId, { from: way.next, limit })
  const newest = page.entries.toReversed()
  for (const entry of newest) {
    way.entries.push(entry)
    way.ids.add(entry.id)
  }
  way.next = page.next
  return newest
})

/**
 * The entries on the path to one entry and not on the path to another, oldest first. Reads back no further than it
 * must.
 */
export const leftBehind = Effect.fnUntraced(function* (
  store: Service,
  threadId: string,
  from: string | null,
  to: string | null
): Effect.fn.Return<ReadonlyArray<StoredEntry>, SessionError> {
  const oldWay = wayFrom(from)
  const newWay = wayFrom(to)
  while (oldWay.next !== null || newWay.next !== null) {
    const passed = yield* goOn(store, threadId, oldWay)
    const others = yield* goOn(store, threadId, newWay)
    if (passed.some(({ id }) => newWay.ids.has(id)) || others.some(({ id }) => oldWay.ids.has(id))) break
  }
  const common = oldWay.entries.findIndex(({ id }) => newWay.ids.has(id))
  return (common === -1 ? oldWay.entries : oldWay.entries.slice(0, common)).toReversed()
})

/** The last entry of a kind on the path to an entry. */
export const lastOf = Effect.fnUntraced(function* <T extends StoredEntry["entry"]["_tag"]>(
  store: Service,
  threadId: string,
  from: string | null,
  tag: T
) {
  const isWanted = (entry: StoredEntry["entry"]): entry is Extract<StoredEntry["entry"], { readonly _tag: T }> =>
    entry._tag === tag
  let next = from
  while (next !== null) {
    const page: { readonly entries: ReadonlyArray<StoredEntry>; readonly next: string | null } = yield* store.load(
      threadId,
      { from: next, limit: 64 }
    )
    const match = page.entries.map(({ entry }) => entry).findLast(isWanted)
    if (match !== undefined) return match
    next = page.next
  }
  return undefined
})
