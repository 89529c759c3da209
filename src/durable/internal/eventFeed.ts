/** Events of one thread, from its store and from the run that is at work on it. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Handle } from "../../core/Agent.ts"
import type { AgentEvent } from "../../core/AgentEvent.ts"
import type { Journal } from "../../core/Journal.ts"
import type { SessionError } from "../../core/SessionError.ts"
import type { Leaf, Service, Stored } from "../../core/SessionStore.ts"
import type { ThreadEvent } from "../ThreadEvent.ts"

/** The most live events that wait for a slow reader; then the oldest are left out. */
const patience = 1_024

const pageSize = 1_000

/** Somebody who watches: notified that the thread grew, and given what happens. */
interface Watcher {
  readonly grew: Queue.Queue<void>
  readonly live: Queue.Queue<AgentEvent>
}

/** The events of one thread, for its watchers. */
export interface Feed {
  /** A journal whose appends are announced. */
  readonly announced: (journal: Journal["Service"]) => Journal["Service"]
  /** Relays the events of a run, in its scope. The effect that it gives waits until all of them are out. */
  readonly follow: (handle: Handle<unknown, unknown>) => Effect.Effect<Effect.Effect<void>, never, Scope.Scope>
  /** Everything behind a step, and what comes. */
  readonly events: (after: number) => Stream.Stream<ThreadEvent, SessionError>
}

const nowhere: Leaf = { id: null, step: 0 }

/** A thread that is not there yet has nothing in it. */
export const orNothing = <A>(effect: Effect.Effect<A, SessionError>, nothing: A): Effect.Effect<A, SessionError> =>
  Effect.catchIf(
    effect,
    (error) => error.reason._tag === "NotFound",
    () => Effect.succeed(nothing)
  )

/**
 * The entries behind a step, oldest first. They are read backwards, so they are all kept until the first is emitted.
 */
const behind = Effect.fnUntraced(function* (store: Service, threadId: string, after: number) {
  const leaf = yield* orNothing(store.leaf(threadId), nowhere)
  const pages: Array<ReadonlyArray<Stored>> = []
  let from = leaf.id
  let step = leaf.step
  while (from !== null && step > after) {
    const { entries, next }: { readonly entries: ReadonlyArray<Stored>; readonly next: string | null } =
      yield* store.load(threadId, { from, limit: Math.min(pageSize, step - after) })
    pages.push(entries)
    step -= entries.length
    from = next
  }
  return { step: leaf.step, entries: pages.toReversed().flat() }
})

const toEvents = (entries: ReadonlyArray<Stored>, last: number): ReadonlyArray<ThreadEvent> =>
  entries.flatMap(({ at, entry, id }, index) =>
    entry._tag === "Label" ? [] : [{ _tag: "Stored", step: last - entries.length + 1 + index, id, at, entry }]
  )

/**
 * Stored entries are read from the store, so they come whole and in order whoever wrote them; the rest as it happens.
 */
export const make = (store: Service, threadId: string): Feed => {
  const watchers = new Set<Watcher>()
  let running: { readonly handle: Handle<unknown, unknown>; readonly scope: Scope.Scope } | undefined
  let relaying: Fiber.Fiber<void> | undefined

  const tell = (events: ReadonlyArray<AgentEvent>) => {
    for (const { live } of watchers) Queue.offerAllUnsafe(live, events)
  }
  /** Nobody pays for events that nobody watches. */
  const relay = Effect.suspend(() => {
    if (running === undefined || relaying !== undefined || watchers.size === 0) return Effect.void
    // For as long as the run: other watchers may come, and this one may leave.
    return Stream.runForEachArray(running.handle.events, (events) => Effect.sync(() => tell(events))).pipe(
      Effect.forkIn(running.scope, { startImmediately: true }),
      Effect.map((fiber) => {
        relaying = fiber
      })
    )
  })

  const grown = Effect.sync(() => {
    for (const { grew } of watchers) Queue.offerUnsafe(grew, undefined)
  })

  return {
    announced: (journal) => ({
      open: (id) =>
        Effect.map(journal.open(id), (thread) => ({
          ...thread,
          append: (entries) => Effect.tap(thread.append(entries), grown)
        }))
    }),
    follow: (handle) =>
      Effect.gen(function* () {
        running = { handle, scope: yield* Effect.scope }
        relaying = undefined
        yield* Effect.addFinalizer(() =>
          Effect.sync(() => {
            running = undefined
          })
        )
        yield* relay
        return Effect.suspend(() => (relaying === undefined ? Effect.void : Effect.asVoid(Fiber.await(relaying))))
      }),
    events: (after) =>
      Stream.unwrap(
        Effect.gen(function* () {
          const watcher: Watcher = {
            grew: yield* Queue.sliding<void>(1),
            live: yield* Queue.sliding<AgentEvent>(patience)
          }
          yield* Effect.acquireRelease(
            Effect.sync(() => watchers.add(watcher)),
            () => Effect.sync(() => watchers.delete(watcher))
          )
          yield* relay
          const stored = Stream.paginate(
            after,
            Effect.fnUntraced(function* (cursor: number) {
              for (;;) {
                const { entries, step } = yield* behind(store, threadId, cursor)
                if (entries.length > 0) return [toEvents(entries, step), Option.some(step)] as const
                yield* Queue.take(watcher.grew)
              }
            })
          )
          const live = Stream.map(Stream.fromQueue(watcher.live), (event): ThreadEvent => ({ _tag: "Live", event }))
          return Stream.merge(stored, live)
        })
      )
  }
}
