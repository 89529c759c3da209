/** The parts of a chat that its commands use. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Backend from "../../../core/Backend.ts"
import type { SessionError } from "../../../core/SessionError.ts"
import type { Service, StoredEntry, Thread } from "../../../core/SessionStore.ts"
import type { Usage } from "../../../core/Usage.ts"
import type * as FileCheckpoints from "../../../sessions/FileCheckpoints.ts"
import { loadThread } from "../../../sessions/journal.ts"
import * as View from "../../../view/View.ts"
import type { Desk } from "../approvals/desk.ts"
import type { Theme } from "../render/themes.ts"
import type { Item } from "./completion/menu.ts"
import type { Options, Problem, Setup } from "./options.ts"
import type { Ui } from "./ui.ts"

export interface Room<E, R> {
  readonly ui: Ui
  readonly desk: Desk
  /** The files of turns, if they are kept. */
  readonly checkpoints: FileCheckpoints.Service | undefined
  readonly store: Service
  readonly backend: Backend.Service
  readonly options: Options<E, R>
  readonly copy: (text: string) => void
  readonly page: (text: string) => Effect.Effect<unknown>
  /** The current thread, agent and theme. Commands change them. */
  readonly at: {
    threadId: string
    setup: Setup<E, R>
    picking: Deferred.Deferred<string | undefined> | undefined
    theme: Theme
  }
}

export const problem = (message: string): Problem => ({ message })

/** Turns a failure of a store into a problem for a person. */
export const toProblem = <A, R>(
  work: Effect.Effect<A, { readonly message: string }, R>
): Effect.Effect<A, Problem, R> => Effect.mapError(work, ({ message }) => problem(message))

/** A list with more items is searched by the draft. */
const searchedFrom = 8

/** Lets a person choose from a list. Returns `undefined` if they cancel. */
export const choose = Effect.fnUntraced(function* (
  {
    at,
    ui
  }: {
    readonly at: { picking: Deferred.Deferred<string | undefined> | undefined }
    readonly ui: Pick<Ui, "setMenu">
  },
  title: string,
  items: ReadonlyArray<Item>
) {
  const picking = yield* Deferred.make<string | undefined>()
  at.picking = picking
  ui.setMenu({ kind: "pick", title, items, all: items.length > searchedFrom ? items : undefined, at: 0 })
  return yield* Effect.onExit(Deferred.await(picking), () =>
    Effect.sync(() => {
      at.picking = undefined
      ui.setMenu(undefined)
    })
  )
})

/** Reads the thread. Returns `undefined` before its first message. */
export const threadOf = <E, R>({ at, store }: Room<E, R>): Effect.Effect<Thread | undefined, SessionError> =>
  Effect.catchIf(
    store.info(at.threadId),
    (error) => error.reason._tag === "NotFound",
    () => Effect.undefined
  )

/** Reads the entries on the path to a leaf, oldest first. */
const entriesTo = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, leaf: string | null) {
  const entries: Array<StoredEntry> = []
  let from = leaf
  while (from !== null) {
    const page: { readonly entries: ReadonlyArray<StoredEntry>; readonly next: string | null } = yield* room.store.load(
      room.at.threadId,
      { from, limit: 10_000 }
    )
    entries.unshift(...page.entries)
    from = page.next
  }
  return entries
})

/** Reads the entries on the path of the thread, oldest first. */
export const entriesOf = <E, R>(room: Room<E, R>) =>
  Effect.flatMap(threadOf(room), (thread) => entriesTo(room, thread?.leaf.id ?? null))

/** Adds the usage of the runs that ended before a leaf. A run that goes on counts its own from its beginning. */
export const addUsageTo = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, leaf: string | null) {
  let step: Usage | undefined
  let hasEnded = false
  const addStep = (): void => {
    if (hasEnded && step !== undefined) room.ui.addUsage(step)
    if (hasEnded) step = undefined
    hasEnded = false
  }
  for (const { entry } of yield* entriesTo(room, leaf)) {
    if (entry._tag === "RunStarted") addStep()
    if (entry._tag === "Step") step = entry.usage
    if (entry._tag === "RunSettled") hasEnded = entry.outcome !== "suspended"
  }
  addStep()
})

export const historyOf = Effect.fnUntraced(function* <E, R>(room: Room<E, R>) {
  const thread = yield* threadOf(room)
  if (thread === undefined) return { messages: [], ended: "new" }
  const { checkpoint, ended } = yield* loadThread(room.store, room.at.threadId)
  return { messages: checkpoint?.messages ?? [], ended }
})

/** Shows the last parts of a stored conversation. */
export const replay = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, most: number) {
  const { ended, messages } = yield* historyOf(room)
  const parts = View.ofMessages(messages)
  const first = Math.max(0, parts.length - most)
  if (first > 0) room.ui.note("info", `… ${first} earlier; /history shows all of it`)
  room.ui.parts(parts.slice(first))
  return { ended, messages }
})
