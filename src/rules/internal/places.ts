/** Finds the pending requests: of the threads in a store, of background tasks, and of waiting runs of this process. */
import * as Clock from "effect/Clock"
import type * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Approval from "../../core/Approval.ts"
import type { SessionError } from "../../core/SessionError.ts"
import type { Listing, Service as Store } from "../../core/SessionStore.ts"
import type { BackgroundTasks } from "../../middleware/BackgroundTasks.ts"
import { defined } from "../../support/json/defined.ts"
import type { Book } from "./book.ts"
import { InboxError, type Item } from "./inboxModel.ts"
import type { Kind, Severity } from "./notice.ts"

/** A request of a run that waits in this process. */
export interface WaitingRequest {
  readonly request: Approval.Request
  readonly threadId: string | undefined
  readonly decided: Deferred.Deferred<Approval.Decision>
}

/** A request and its place: a thread, a task, or a waiting run. */
interface PlacedRequest {
  readonly request: Approval.Request
  readonly threadId?: string
  readonly task?: string
  readonly waiting?: WaitingRequest
}

/** An item and its place, which takes a decision on it. */
export interface Place {
  readonly item: Item
  readonly waiting?: WaitingRequest
}

/** The number of requests in one page of the store. */
const pageSize = 1_000

const kindOf = (request: Approval.Request): Kind => (request.answer === undefined ? "approval" : "question")

/** The severity without an option: questions are `low`, all else is `normal`. */
export const defaultSeverity = (request: Approval.Request): Severity =>
  kindOf(request) === "question" ? "low" : "normal"

export const unavailable = (error: SessionError): InboxError =>
  new InboxError({ id: "", reason: { _tag: "Unavailable", problem: error.message } })

const toFound = (waiting: WaitingRequest): PlacedRequest => ({
  request: waiting.request,
  waiting,
  ...defined({ threadId: waiting.threadId })
})

/** The inbox's view of the store and of this process. */
export interface Sources {
  readonly store: Store
  readonly tasks: Option.Option<BackgroundTasks["Service"]>
  readonly live: ReadonlyMap<string, WaitingRequest>
  readonly book: Effect.Effect<Book, SessionError>
  readonly severityOf: (request: Approval.Request) => Severity
}

export const makePlaces = ({ book, live, severityOf, store, tasks }: Sources) => {
  /** Reads the claims, and makes items of requests. */
  const itemMaker = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const { claims } = yield* book
    return ({ request, waiting, ...where }: PlacedRequest): Place => {
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

  /** The requests of this process: of its tasks, and of its waiting runs. */
  const here = Effect.gen(function* () {
    const running = Option.isNone(tasks) ? [] : yield* tasks.value.list()
    const ofTasks = running.flatMap(({ key, pending: requests, status }) =>
      status === "suspended" ? requests.map((request): PlacedRequest => ({ request, task: key })) : []
    )
    return [...ofTasks, ...[...live.values()].map(toFound)]
  })

  /** All requests of the store, or of one thread. */
  const inStore = Effect.fnUntraced(function* (threadId: string | undefined) {
    const requests: Array<PlacedRequest> = []
    let cursor: string | undefined
    do {
      const page: Listing<PlacedRequest> = yield* store.waiting(defined({ threadId, limit: pageSize, cursor }))
      for (const one of page.items) requests.push(one)
      cursor = page.next ?? undefined
    } while (cursor !== undefined)
    return requests
  })

  /** All pending requests, the oldest first. */
  const list = (threadId?: string): Effect.Effect<ReadonlyArray<Place>, InboxError> =>
    Effect.gen(function* () {
      const toPlace = yield* itemMaker
      // The thread of a waiting run may have stored the request, too.
      const byId = new Map([...(yield* inStore(threadId)), ...(yield* here)].map((one) => [one.request.id, one]))
      return [...byId.values()]
        .map(toPlace)
        .sort(({ item: left }, { item: right }) => left.request.at - right.request.at)
    }).pipe(Effect.mapError(unavailable))

  /** The requests with these ids. It reads no other. */
  const find = (ids: Iterable<string>): Effect.Effect<ReadonlyMap<string, Place>, InboxError> =>
    Effect.gen(function* () {
      const toPlace = yield* itemMaker
      const own = new Map((yield* here).map((one) => [one.request.id, one]))
      const places = new Map<string, Place>()
      for (const id of ids) {
        const one: PlacedRequest | undefined = own.get(id) ?? (yield* store.waitingFor(id))
        if (one !== undefined) places.set(id, toPlace(one))
      }
      return places
    }).pipe(Effect.mapError(unavailable))

  return { list, find }
}
