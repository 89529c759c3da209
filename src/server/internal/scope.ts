/** The store of a tenant: a part of the store of all. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Scope } from "effect/Scope"
import * as Stream from "effect/Stream"
import type { JsonObject } from "../../core/Json.ts"
import { makeId } from "../../core/Message.ts"
import { SessionError } from "../../core/SessionError.ts"
import type { Listing, Service, Thread, WaitingRequest } from "../../core/SessionStore.ts"
import * as Stores from "../../sessions/decorated.ts"
import { defined } from "../../support/json/defined.ts"

/**
 * The part of a store: threads whose ids begin with a prefix, and which have this metadata in the store. Inside of the
 * part, neither is seen.
 */
export interface Part {
  readonly prefix: string
  readonly metadata: JsonObject
}

const pageSize = 1_000

/** The listeners to moves of leaves, by the store under all. */
const listeners = new WeakMap<Service, Set<(threadId: string) => void>>()

/** Listens to threads that any part of a store rewinds or deletes, by their ids in the store. */
export const onMove = (base: Service, listener: (threadId: string) => void): Effect.Effect<void, never, Scope> =>
  Effect.suspend(() => {
    const { store } = Stores.baseOf(base, "")
    const all = listeners.get(store) ?? new Set()
    listeners.set(store, all.add(listener))
    return Effect.addFinalizer(() => Effect.sync(() => all.delete(listener)))
  })

/**
 * Makes a store of the threads of one part. Ids have no prefix inside of it, so that ids of other threads can't be said:
 * a foreign id is the id of a missing thread.
 */
export const scope = (store: Service, { metadata: own, prefix }: Part): Service => {
  // An empty id stays one, so that the store refuses it.
  const inner = (threadId: string): string => (threadId === "" ? "" : prefix + threadId)
  const isOwn = (threadId: string): boolean => threadId.startsWith(prefix)
  const outer = (threadId: string): string => threadId.slice(prefix.length)

  const hide = ({ cause, operation, reason, threadId }: SessionError): SessionError =>
    new SessionError({
      operation,
      threadId: isOwn(threadId) ? outer(threadId) : "",
      reason,
      ...defined({ cause })
    })
  const hidden = <A, E, R>(effect: Effect.Effect<A, E | SessionError, R>): Effect.Effect<A, E | SessionError, R> =>
    Effect.mapError(effect, (error) => (error instanceof SessionError ? hide(error) : error))

  const moved = <A, E, R>(threadId: string, change: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.tap(change, () =>
      Effect.sync(() => {
        for (const listen of listeners.get(Stores.baseOf(store, "").store) ?? []) listen(inner(threadId))
      })
    )

  const owned = (metadata: JsonObject): JsonObject => ({ ...metadata, ...own })
  const withoutOwn = (metadata: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(metadata).filter(([key]) => !Object.hasOwn(own, key)))

  const threadOf = (thread: Thread): Thread => ({
    ...thread,
    metadata: withoutOwn(thread.metadata),
    threadId: outer(thread.threadId),
    origin:
      thread.origin !== undefined && isOwn(thread.origin.threadId)
        ? { ...thread.origin, threadId: outer(thread.origin.threadId) }
        : undefined
  })
  /** Keeps what belongs to the part. Other items never come by `where`, so this is the second lock on the door. */
  const only = <A extends { readonly threadId: string }>({ items, next }: Listing<A>): Listing<A> => ({
    items: items.flatMap((item) => (isOwn(item.threadId) ? [{ ...item, threadId: outer(item.threadId) }] : [])),
    next
  })

  const waiting: Service["waiting"] = (options) => {
    const { cursor, limit, threadId } = options ?? {}
    if (threadId !== undefined) {
      return hidden(Effect.map(store.waiting({ ...options, threadId: inner(threadId) }), (page) => only(page)))
    }
    const most = Stores.bounded(limit, 50, pageSize)
    return Effect.gen(function* () {
      const ownItems: Array<WaitingRequest> = []
      // Pages of the store end at any thread: the cursor of a part's page is made of its own last request.
      for (let from = cursor; ;) {
        const page: Listing<WaitingRequest> = yield* hidden(store.waiting(defined({ limit: pageSize, cursor: from })))
        ownItems.push(...page.items.filter((one) => isOwn(one.threadId)))
        if (ownItems.length <= most && page.next !== null) {
          from = page.next
          continue
        }
        const items = ownItems.slice(0, most)
        const last = items.at(-1)
        const next = ownItems.length > most && last !== undefined ? Stores.waitCursor(last) : null
        return only({ items, next })
      }
    })
  }

  const waitingFor: Service["waitingFor"] = Effect.fnUntraced(function* (requestId) {
    const item = yield* hidden(store.waitingFor(requestId))
    if (item !== undefined && isOwn(item.threadId)) return { ...item, threadId: outer(item.threadId) }
    if (item === undefined) return undefined
    // The id of a request is another thread's first: it may be that of an own fork, too.
    for (let cursor: string | undefined; ;) {
      const page: Listing<WaitingRequest> = yield* waiting(defined({ limit: pageSize, cursor }))
      const one = page.items.find(({ request }) => request.id === requestId)
      if (one !== undefined || page.next === null) return one
      cursor = page.next
    }
  })

  const scoped: Service = {
    create: (options) =>
      hidden(
        Effect.map(
          store.create({ threadId: inner(options?.threadId ?? makeId()), metadata: owned(options?.metadata ?? {}) }),
          threadOf
        )
      ),
    info: (threadId) => hidden(Effect.map(store.info(inner(threadId)), threadOf)),
    leaf: (threadId) => hidden(store.leaf(inner(threadId))),
    describe: (threadId, metadata) => hidden(Effect.map(store.describe(inner(threadId), owned(metadata)), threadOf)),
    append: (threadId, batch) => hidden(store.append(inner(threadId), batch)),
    load: (threadId, options) => hidden(store.load(inner(threadId), options)),
    fork: (threadId, options) =>
      hidden(
        Effect.map(
          store.fork(inner(threadId), {
            ...options,
            threadId: inner(options?.threadId ?? makeId()),
            metadata: options?.metadata === undefined ? undefined : owned(options.metadata)
          }),
          threadOf
        )
      ),
    rewind: (threadId, to) => hidden(moved(threadId, store.rewind(inner(threadId), to))),
    label: (threadId, name, entryId) => hidden(store.label(inner(threadId), name, entryId)),
    labels: (threadId) => hidden(store.labels(inner(threadId))),
    list: (options) =>
      hidden(
        Effect.map(store.list({ ...options, where: owned(options?.where ?? {}) }), ({ items, next }) => ({
          items: items.flatMap((thread) => (isOwn(thread.threadId) ? [threadOf(thread)] : [])),
          next
        }))
      ),
    search: (text, options) => {
      const threadId = options?.threadId === undefined ? undefined : inner(options.threadId)
      const where = owned(options?.where ?? {})
      return hidden(Effect.map(store.search(text, { ...options, threadId, where }), (page) => only(page)))
    },
    waiting,
    waitingFor,
    archive: (threadId) => hidden(store.archive(inner(threadId))),
    unarchive: (threadId) => hidden(store.unarchive(inner(threadId))),
    delete: (threadId) => hidden(moved(threadId, store.delete(inner(threadId)))),
    export: (threadId) => {
      const lines = Stream.mapError(store.export(inner(threadId)), hide)
      return onHead(lines, (head) => ({ ...head, threadId, metadata: withoutOwn(head.metadata) }))
    },
    import: (lines, options) =>
      hidden(
        Effect.map(
          store.import(
            onHead(lines, (head) => ({
              ...head,
              threadId: inner(options?.threadId ?? head.threadId),
              metadata: owned(head.metadata)
            }))
          ),
          threadOf
        )
      )
  }
  return Stores.decorate(scoped, store, inner)
}

/** Changes the head of exported lines. A head that can't be read stays, so that the store refuses it. */
const onHead = <E, R>(
  lines: Stream.Stream<string, E, R>,
  change: (head: Stores.Head) => Stores.Head
): Stream.Stream<string, E, R> =>
  Stream.mapAccum(
    lines,
    () => false,
    (isBehind, line): readonly [boolean, ReadonlyArray<string>] => {
      if (isBehind || line.trim() === "") return [isBehind, [line]]
      const head = Stores.decodeHead(line)
      return [true, [Result.isSuccess(head) ? Stores.encodeHead(change(head.success)) : line]]
    }
  )
