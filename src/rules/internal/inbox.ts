/** Makes an inbox of the parts that find, claim, decide, notify and classify. */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Approval from "../../core/Approval.ts"
import { CurrentRun } from "../../core/Run.ts"
import { SessionStore } from "../../core/SessionStore.ts"
import { BackgroundTasks } from "../../middleware/BackgroundTasks.ts"
import * as Books from "./book.ts"
import { classifyBy } from "./classifying.ts"
import { claimedByOther, decideBy, failWith, placeOf } from "./delivery.ts"
import type { InboxError, Item, Options, Query, Service } from "./inboxModel.ts"
import { notifyBy } from "./notifying.ts"
import { defaultSeverity, makePlaces, type Place, unavailable, type WaitingRequest } from "./places.ts"

/** The last millisecond of a date: the end of a claim without end. */
const endOfTime = 8_640_000_000_000_000

const fits =
  ({ claimedBy, isFree, kinds, severities, threadId }: Query) =>
  ({ claim, kind, severity, threadId: own }: Item): boolean =>
    (threadId === undefined || own === threadId) &&
    (kinds === undefined || kinds.includes(kind)) &&
    (severities === undefined || severities.includes(severity)) &&
    (claimedBy === undefined || claim?.by.id === claimedBy) &&
    (isFree !== true || claim === undefined)

/** Makes an inbox of the store in context. */
export const make = Effect.fnUntraced(function* <E, R>(options: Options<E, R>) {
  const store = yield* SessionStore
  const tasks = yield* Effect.serviceOption(BackgroundTasks)
  const context = yield* Effect.context<R>()
  const book = Books.make(store)
  const live = new Map<string, WaitingRequest>()
  const severityOf = options.severity ?? defaultSeverity
  const places = makePlaces({ store, tasks, live, book: book.read, severityOf })

  const change = <A>(
    f: (current: Books.Book) => { readonly value: A; readonly book: Books.Book | undefined }
  ): Effect.Effect<A, InboxError> => Effect.mapError(book.change(f), unavailable)

  const findOne = (id: string): Effect.Effect<Place, InboxError> =>
    Effect.flatMap(places.find([id]), (byId) => placeOf(id, byId))

  const list = (query: Query = {}) =>
    Effect.map(places.list(query.threadId), (all) => all.map(({ item }) => item).filter(fits(query)))

  /** Removes claims from the book: all, or those of one principal. */
  const forget = (ids: ReadonlyArray<string>, by?: Approval.Principal) =>
    change((current) => {
      const claimedIds = ids.filter(
        (id) => Object.hasOwn(current.claims, id) && (by === undefined || current.claims[id]?.by.id === by.id)
      )
      if (claimedIds.length === 0) return { value: undefined, book: undefined }
      const otherClaims = Object.entries(current.claims).filter(([id]) => !claimedIds.includes(id))
      return { value: undefined, book: { ...current, claims: Object.fromEntries(otherClaims) } }
    })

  const claim: Service["claim"] = Effect.fnUntraced(function* (id, { by, for: time = "15 minutes" }) {
    const { item } = yield* findOne(id)
    if (!Approval.mayDecide(item.request, by)) {
      const problem = `it may be decided by ${item.request.deciders?.join(", ") ?? ""}, not by "${by.id}"`
      return yield* failWith(id, { _tag: "Refused", problem })
    }
    const now = yield* Clock.currentTimeMillis
    const mine = { by, until: Math.min(now + Duration.toMillis(Duration.fromInputUnsafe(time)), endOfTime) }
    const other = yield* change((current) => {
      const other = claimedByOther(Object.hasOwn(current.claims, id) ? current.claims[id] : undefined, by, now)
      if (other !== undefined) return { value: other, book: undefined }
      const openClaims = Object.entries(current.claims).filter(([, one]) => one.until > now)
      return { value: undefined, book: { ...current, claims: { ...Object.fromEntries(openClaims), [id]: mine } } }
    })
    if (other !== undefined) return yield* failWith(id, other)
    // Somebody may have decided on it before the claim was written.
    yield* Effect.tapError(findOne(id), () => forget([id], by))
    return { ...item, claim: mine }
  })

  const decide = decideBy({
    find: places.find,
    forget,
    tasks,
    deliver: (threadId, decisions, agent) => Effect.provideContext(options.deliver(threadId, decisions, agent), context)
  })

  const expire: Service["expire"] = Effect.fnUntraced(function* ({ after, reason = "Nobody decided in time." }) {
    const deadline = (yield* Clock.currentTimeMillis) - Duration.toMillis(Duration.fromInputUnsafe(after))
    const expired = (yield* list({ isFree: true })).filter(
      ({ isExpired, request }) =>
        !isExpired && request.at <= deadline && request.allow.includes("reject") && request.deciders === undefined
    )
    yield* decide(
      expired.map(({ request }) => Approval.reject(request, reason)),
      { by: { id: "inbox" }, rule: "expired" }
    )
    return expired
  })

  const wait: Service["wait"] = Effect.fnUntraced(function* (request) {
    const run = yield* CurrentRun
    const waiting: WaitingRequest = {
      request,
      threadId: run?.threadId,
      decided: yield* Deferred.make<Approval.Decision>()
    }
    const now = yield* Clock.currentTimeMillis
    return yield* Effect.ensuring(
      Effect.suspend(() => {
        live.set(request.id, waiting)
        return request.expiresAt === undefined
          ? Deferred.await(waiting.decided)
          : Effect.timeoutOrElse(Deferred.await(waiting.decided), {
              duration: Math.max(0, request.expiresAt - now),
              orElse: () => Effect.succeed(Approval.reject(request, "Nobody decided in time."))
            })
      }),
      Effect.sync(() => live.delete(request.id))
    )
  })

  const notify = notifyBy({ list: list(), change })

  const release: Service["release"] = (id, { by }) => forget([id], by)

  const classify = classifyBy({
    list: list(),
    decide,
    read: Effect.mapError(book.read, unavailable),
    change: (f) => change((current) => ({ value: undefined, book: { ...current, judged: f(current.judged) } }))
  })

  return { list, claim, release, decide, expire, notify, classify, wait } satisfies Service
})
