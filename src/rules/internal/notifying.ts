/** Sends one notification for each new request, once over all processes. */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { defined } from "../../support/json/defined.ts"
import { Notify } from "../Notify.ts"
import type { Book } from "./book.ts"
import { messageOf } from "./delivery.ts"
import type { InboxError, Item } from "./inboxModel.ts"

/** Milliseconds that a process has to send a notification. Afterwards another process sends it. */
const patience = 300_000

/** The parts of an inbox that notifications need. */
interface Room {
  readonly list: Effect.Effect<ReadonlyArray<Item>, InboxError>
  readonly change: <A>(
    f: (book: Book) => { readonly value: A; readonly book: Book | undefined }
  ) => Effect.Effect<A, InboxError>
}

const notificationOf = ({ id, kind, request, severity, threadId }: Item) => ({
  id,
  kind,
  severity,
  title: `${request.path.join(" > ")} ${kind === "question" ? "asks" : "wants to call"} ${request.toolName}`,
  text: request.description,
  at: request.at,
  ...defined({ threadId })
})

/** Chooses the requests without a notification, and reserves them for this process. */
const reserve = ({ change }: Room, items: ReadonlyArray<Item>, now: number) => {
  const ids = new Set(items.map(({ id }) => id))
  return change((current) => {
    const isReserved = (id: string): boolean => Object.hasOwn(current.telling, id) && (current.telling[id] ?? 0) > now
    const added = items.filter(({ id }) => !Object.hasOwn(current.told, id) && !isReserved(id))
    if (added.length === 0) return { value: added, book: undefined }
    const notices = Object.fromEntries(Object.entries(current.told).filter(([id]) => ids.has(id)))
    const reserved = Object.entries(current.telling).filter(([id]) => isReserved(id))
    const telling = Object.fromEntries([...reserved, ...added.map(({ id }) => [id, now + patience] as const)])
    return { value: added, book: { ...current, told: notices, telling } }
  })
}

export const notifyBy = (room: Room): Effect.Effect<ReadonlyArray<Item>, InboxError, Notify> =>
  Effect.gen(function* () {
    const { send } = yield* Notify
    const items = yield* room.list
    const now = yield* Clock.currentTimeMillis
    const dueItems = yield* reserve(room, items, now)
    if (dueItems.length === 0) return []
    const mine = new Set(dueItems.map(({ id }) => id))
    const sentItems: Array<Item> = []
    // The next call tries unsent items again. After a crash, another process tries them when the time is over.
    const settle = room.change((current) => {
      const telling = Object.entries(current.telling).filter(([id]) => !mine.has(id))
      const notices = { ...current.told, ...Object.fromEntries(sentItems.map(({ id }) => [id, now])) }
      return { value: undefined, book: { ...current, told: notices, telling: Object.fromEntries(telling) } }
    })
    yield* Effect.forEach(
      dueItems,
      (item) =>
        Effect.matchCauseEffect(send(notificationOf(item)), {
          onSuccess: () => Effect.sync(() => sentItems.push(item)),
          onFailure: (cause) => Effect.logWarning(messageOf(Cause.squash(cause)))
        }),
      { concurrency: 4, discard: true }
    ).pipe(Effect.onInterrupt(() => Effect.ignore(settle)))
    yield* settle
    return sentItems
  })
