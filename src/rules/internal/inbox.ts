/** The work of an inbox: what waits where, who has taken it, and whom a decision is told to. */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Approval from "../../core/Approval.ts"
import { fromUnknown } from "../../core/Json.ts"
import { CurrentRun } from "../../core/Run.ts"
import { canonical } from "../../core/schema/jsonTree.ts"
import type { SessionError } from "../../core/SessionError.ts"
import { type Listing, SessionStore } from "../../core/SessionStore.ts"
import { BackgroundTasks } from "../../middleware/BackgroundTasks.ts"
import { defined } from "../../support/json/defined.ts"
import { type Kind, Notify, type Severity } from "../Notify.ts"
import * as Books from "./book.ts"
import { classifyBy } from "./classifying.ts"
import { InboxError, type Item, type Options, type Query, type Reason, type Service } from "./inboxModel.ts"

const kindOf = (request: Approval.Request): Kind => (request.answer === undefined ? "approval" : "question")

const unavailable = (error: SessionError): InboxError =>
  new InboxError({ id: "", reason: { _tag: "Unavailable", problem: error.message } })

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : typeof error === "string" ? error : "it failed"

/** Milliseconds in which whoever tells of a request is left alone: then it is told of by somebody else. */
const patience = 300_000

/** The last millisecond that is a date: what is taken for ever is taken until then. */
const endOfTime = 8_640_000_000_000_000

interface Waiting {
  readonly request: Approval.Request
  readonly threadId: string | undefined
  readonly decided: Deferred.Deferred<Approval.Decision>
}

/** A request, and where it waits: in a thread, a task or a run of this process. */
interface Found {
  readonly request: Approval.Request
  readonly threadId?: string
  readonly task?: string
  readonly waiting?: Waiting
}

/** The requests that are read at once. */
const pageSize = 1_000

/** The place of an item: what a decision on it is given to. */
interface Place {
  readonly item: Item
  readonly waiting?: Waiting
}

/** Makes an inbox of the store in context. */
export const make = Effect.fnUntraced(function* <E, R>(options: Options<E, R>) {
  const store = yield* SessionStore
  const tasks = yield* Effect.serviceOption(BackgroundTasks)
  const context = yield* Effect.context<R>()
  const book = Books.make(store)
  const live = new Map<string, Waiting>()
  const severityOf =
    options.severity ?? ((request: Approval.Request): Severity => (kindOf(request) === "question" ? "low" : "normal"))

  /** Makes items of requests, with who has taken them by now. */
  const placing = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const { claims } = yield* book.read
    return ({ request, waiting, ...where }: Found): Place => {
      const claim = Object.hasOwn(claims, request.id) ? claims[request.id] : undefined
      const item: Item = {
        id: request.id,
        kind: kindOf(request),
        severity: severityOf(request),
        request,
        ...where,
        isLive: waiting !== undefined,
        isExpired: request.expiresAt !== undefined && request.expiresAt <= now,
        ...(claim !== undefined && claim.until > now ? { claim } : {})
      }
      return waiting === undefined ? { item } : { item, waiting }
    }
  })

  const toFound = (waiting: Waiting): Found => ({
    request: waiting.request,
    waiting,
    ...defined({ threadId: waiting.threadId })
  })

  /** The requests of this process: those of its tasks, and of runs that wait. */
  const here = Effect.gen(function* () {
    const running = Option.isNone(tasks) ? [] : yield* tasks.value.list()
    const ofTasks = running.flatMap(({ key, pending: requests, status }) =>
      status === "suspended" ? requests.map((request): Found => ({ request, task: key })) : []
    )
    return [...ofTasks, ...[...live.values()].map(toFound)]
  })

  /** All requests of the store, or of one thread. */
  const stored = Effect.fnUntraced(function* (threadId: string | undefined) {
    const found: Array<Found> = []
    let cursor: string | undefined
    do {
      const page: Listing<Found> = yield* store.waiting(defined({ threadId, limit: pageSize, cursor }))
      for (const one of page.items) found.push(one)
      cursor = page.next ?? undefined
    } while (cursor !== undefined)
    return found
  })

  const places = (threadId?: string): Effect.Effect<ReadonlyArray<Place>, InboxError> =>
    Effect.gen(function* () {
      const place = yield* placing
      // A run that waits here may have told its thread, too.
      const byId = new Map([...(yield* stored(threadId)), ...(yield* here)].map((one) => [one.request.id, one]))
      return [...byId.values()].map(place).sort(({ item: left }, { item: right }) => left.request.at - right.request.at)
    }).pipe(Effect.mapError(unavailable))

  /** The requests of these ids; no other is read. */
  const find = (ids: Iterable<string>): Effect.Effect<ReadonlyMap<string, Place>, InboxError> =>
    Effect.gen(function* () {
      const place = yield* placing
      const own = new Map((yield* here).map((one) => [one.request.id, one]))
      const found = new Map<string, Place>()
      for (const id of ids) {
        const one: Found | undefined = own.get(id) ?? (yield* store.waitingFor(id))
        if (one !== undefined) found.set(id, place(one))
      }
      return found
    }).pipe(Effect.mapError(unavailable))

  const findOne = (id: string): Effect.Effect<Place, InboxError> =>
    Effect.flatMap(find([id]), (found) => given(id, found))

  const fits =
    ({ claimedBy, isFree, kinds, severities, threadId }: Query) =>
    ({ claim, kind, severity, threadId: own }: Item): boolean =>
      (threadId === undefined || own === threadId) &&
      (kinds === undefined || kinds.includes(kind)) &&
      (severities === undefined || severities.includes(severity)) &&
      (claimedBy === undefined || claim?.by.id === claimedBy) &&
      (isFree !== true || claim === undefined)

  const list = (query: Query = {}) =>
    Effect.map(places(query.threadId), (found) => found.map(({ item }) => item).filter(fits(query)))

  const failed = (id: string, reason: Reason) => Effect.fail(new InboxError({ id, reason }))

  const given = (id: string, among: ReadonlyMap<string, Place>): Effect.Effect<Place, InboxError> => {
    const found = among.get(id)
    return found === undefined ? failed(id, { _tag: "NotFound" }) : Effect.succeed(found)
  }

  const otherThan = (claim: Books.Claim | undefined, by: Approval.Principal, now: number) =>
    claim !== undefined && claim.until > now && claim.by.id !== by.id
      ? ({ _tag: "Claimed", by: claim.by.id, until: claim.until } as const)
      : undefined

  const claim: Service["claim"] = Effect.fnUntraced(function* (id, { by, for: time = "15 minutes" }) {
    const { item } = yield* findOne(id)
    if (!Approval.mayDecide(item.request, by)) {
      const problem = `it may be decided by ${item.request.deciders?.join(", ") ?? ""}, not by "${by.id}"`
      return yield* failed(id, { _tag: "Refused", problem })
    }
    const now = yield* Clock.currentTimeMillis
    const mine = { by, until: Math.min(now + Duration.toMillis(Duration.fromInputUnsafe(time)), endOfTime) }
    const taken = yield* Effect.mapError(
      book.change((current) => {
        const other = otherThan(Object.hasOwn(current.claims, id) ? current.claims[id] : undefined, by, now)
        if (other !== undefined) return { value: other, book: undefined }
        // Those that are over are of no use to anybody.
        const kept = Object.entries(current.claims).filter(([, one]) => one.until > now)
        return { value: undefined, book: { ...current, claims: { ...Object.fromEntries(kept), [id]: mine } } }
      }),
      unavailable
    )
    if (taken !== undefined) return yield* failed(id, taken)
    // Somebody may have decided on it, and given it back, before it was taken.
    yield* Effect.tapError(findOne(id), () => forget([id], by))
    return { ...item, claim: mine }
  })

  /** Takes requests out of the book. */
  const forget = (ids: ReadonlyArray<string>, by?: Approval.Principal) =>
    Effect.mapError(
      book.change((current) => {
        const gone = ids.filter(
          (id) => Object.hasOwn(current.claims, id) && (by === undefined || current.claims[id]?.by.id === by.id)
        )
        if (gone.length === 0) return { value: undefined, book: undefined }
        const kept = Object.entries(current.claims).filter(([id]) => !gone.includes(id))
        return { value: undefined, book: { ...current, claims: Object.fromEntries(kept) } }
      }),
      unavailable
    )

  const undeliverable = (id: string) => (error: unknown) =>
    new InboxError({ id, reason: { _tag: "Undeliverable", problem: messageOf(error) } })

  const decide: Service["decide"] = Effect.fnUntraced(function* (decisions, { by, rule }) {
    const among = yield* find(decisions.map(({ id }) => id))
    const now = yield* Clock.currentTimeMillis
    const threads = new Map<string, { readonly agent: string; readonly decisions: Array<Approval.Decision> }>()
    const others: Array<Effect.Effect<void, InboxError>> = []
    const known = new Map<string, string>()
    // Nothing is told to anybody before all of it is known to count.
    for (const made of decisions) {
      const content = canonical(fromUnknown(made))
      const before = known.get(made.id)
      if (before === content) continue
      if (before !== undefined) {
        return yield* failed(made.id, { _tag: "Refused", problem: "there are two decisions on it; give one" })
      }
      known.set(made.id, content)
      const { item, waiting } = yield* given(made.id, among)
      const { id, request, task, threadId } = item
      const other = otherThan(item.claim, by, now)
      if (other !== undefined) return yield* failed(id, other)
      const decision = Approval.decidedBy(made, request, { by, at: now, rule })
      const problem =
        Approval.problemOf(request, made.digest === undefined ? decision : { ...decision, digest: made.digest }) ??
        (item.isExpired ? "a decision on it counts no more; its thread asks again when it is resumed" : undefined)
      if (problem !== undefined) return yield* failed(id, { _tag: "Refused", problem })
      if (waiting !== undefined) others.push(Effect.asVoid(Deferred.succeed(waiting.decided, decision)))
      else if (task !== undefined && Option.isSome(tasks)) {
        others.push(Effect.asVoid(Effect.mapError(tasks.value.decide(task, [decision]), undeliverable(id))))
      } else if (threadId !== undefined) {
        const one = threads.get(threadId) ?? { agent: request.path[0] ?? "", decisions: [] }
        threads.set(threadId, one)
        one.decisions.push(decision)
      }
    }
    yield* Effect.all(others, { discard: true })
    yield* Effect.forEach(
      threads,
      ([threadId, { agent, decisions: own }]) =>
        Effect.mapError(
          Effect.provideContext(options.deliver(threadId, own, agent), context),
          undeliverable(own[0]?.id ?? "")
        ),
      { concurrency: 8, discard: true }
    )
    yield* forget(decisions.map(({ id }) => id))
  })

  const expire: Service["expire"] = Effect.fnUntraced(function* ({ after, reason = "Nobody decided in time." }) {
    const before = (yield* Clock.currentTimeMillis) - Duration.toMillis(Duration.fromInputUnsafe(after))
    const late = (yield* list({ isFree: true })).filter(
      ({ isExpired, request }) =>
        !isExpired && request.at <= before && request.allow.includes("reject") && request.deciders === undefined
    )
    yield* decide(
      late.map(({ request }) => Approval.reject(request, reason)),
      { by: { id: "inbox" }, rule: "expired" }
    )
    return late
  })

  const notify = Effect.gen(function* () {
    const { send } = yield* Notify
    const found = yield* list()
    const now = yield* Clock.currentTimeMillis
    const ids = new Set(found.map(({ id }) => id))
    const chosen = yield* Effect.mapError(
      book.change((current) => {
        const isOpen = (id: string): boolean => Object.hasOwn(current.telling, id) && (current.telling[id] ?? 0) > now
        const added = found.filter(({ id }) => !Object.hasOwn(current.told, id) && !isOpen(id))
        if (added.length === 0) return { value: added, book: undefined }
        const told = Object.fromEntries(Object.entries(current.told).filter(([id]) => ids.has(id)))
        const open = Object.entries(current.telling).filter(([id]) => isOpen(id))
        const telling = Object.fromEntries([...open, ...added.map(({ id }) => [id, now + patience] as const)])
        return { value: added, book: { ...current, told, telling } }
      }),
      unavailable
    )
    if (chosen.length === 0) return []
    const mine = new Set(chosen.map(({ id }) => id))
    const sent: Array<Item> = []
    // An item that was not sent is tried again the next time, and after a crash in the middle when its time is over.
    const settled = Effect.mapError(
      book.change((current) => {
        const telling = Object.entries(current.telling).filter(([id]) => !mine.has(id))
        const told = { ...current.told, ...Object.fromEntries(sent.map(({ id }) => [id, now])) }
        return { value: undefined, book: { ...current, told, telling: Object.fromEntries(telling) } }
      }),
      unavailable
    )
    yield* Effect.forEach(
      chosen,
      (item) =>
        Effect.matchCauseEffect(send(notificationOf(item)), {
          onSuccess: () => Effect.sync(() => sent.push(item)),
          onFailure: (cause) => Effect.logWarning(messageOf(Cause.squash(cause)))
        }),
      { concurrency: 4, discard: true }
    ).pipe(Effect.onInterrupt(() => Effect.ignore(settled)))
    yield* settled
    return sent
  })

  const wait: Service["wait"] = Effect.fnUntraced(function* (request) {
    const run = yield* CurrentRun
    const waiting: Waiting = { request, threadId: run?.threadId, decided: yield* Deferred.make<Approval.Decision>() }
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

  const release: Service["release"] = (id, { by }) => forget([id], by)

  const classify = classifyBy({
    list: list(),
    decide,
    read: Effect.mapError(book.read, unavailable),
    change: (f) =>
      Effect.mapError(
        book.change((current) => ({ value: undefined, book: { ...current, judged: f(current.judged) } })),
        unavailable
      )
  })

  return { list, claim, release, decide, expire, notify, classify, wait } satisfies Service
})

/** The notification of an item. */
const notificationOf = ({ id, kind, request, severity, threadId }: Item) => ({
  id,
  kind,
  severity,
  title: `${request.path.join(" > ")} ${kind === "question" ? "asks" : "wants to call"} ${request.toolName}`,
  text: request.description,
  at: request.at,
  ...defined({ threadId })
})
