/** Streams the events of one thread from its store and its current run. */
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
import type { Leaf, Service, StoredEntry } from "../../core/SessionStore.ts"
import type { ThreadEvent } from "../ThreadEvent.ts"

/** The most buffered live events of a slow reader. Older ones are dropped. */
const patience = 1_024

const pageSize = 1_000

/** A reader of events. `grew` signals new entries. */
interface Watcher {
  readonly grew: Queue.Queue<void>
  readonly live: Queue.Queue<AgentEvent>
}

/** The events of one thread, for its watchers. */
export interface Feed {
  /** Wraps a journal: its appends signal watchers. */
  readonly announced: (journal: Journal["Service"]) => Journal["Service"]
  /** Relays the events of a run in its scope. The inner effect waits until all are relayed. */
  readonly follow: (handle: Handle<unknown, unknown>) => Effect.Effect<Effect.Effect<void>, never, Scope.Scope>
  /** Streams the entries behind a step, and then new events. */
  readonly events: (after: number) => Stream.Stream<ThreadEvent, SessionError>
}

const nowhere: Leaf = { id: null, step: 0 }

/** Replaces `NotFound` by a value. */
export const orNothing = <A>(effect: Effect.Effect<A, SessionError>, nothing: A): Effect.Effect<A, SessionError> =>
  Effect.catchIf(
    effect,
    (error) => error.reason._tag === "NotFound",
    () => Effect.succeed(nothing)
  )

/** Reads the entries behind a step, oldest first. The store reads backwards, so all of them are in memory. */
const readBehind = Effect.fnUntraced(function* (store: Service, threadId: string, after: number) {
  const leaf = yield* orNothing(store.leaf(threadId), nowhere)
  const pages: Array<ReadonlyArray<StoredEntry>> = []
  let from = leaf.id
  let step = leaf.step
  while (from !== null && step > after) {
    const { entries, next }: { readonly entries: ReadonlyArray<StoredEntry>; readonly next: string | null } =
      yield* store.load(threadId, { from, limit: Math.min(pageSize, step - after) })
    pages.push(entries)
    step -= entries.length
    from = next
  }
  return { step: leaf.step, entries: pages.toReversed().flat() }
})

const toEvents = (entries: ReadonlyArray<StoredEntry>, last: number): ReadonlyArray<ThreadEvent> =>
  entries.flatMap(({ at, entry, id }, index) =>
    entry._tag === "Label" ? [] : [{ _tag: "Stored", step: last - entries.length + 1 + index, id, at, entry }]
  )

/** Makes the feed of a thread. Entries come from the store, so they are complete whoever wrote them. */
export const make = (store: Service, threadId: string): Feed => {
  const watchers = new Set<Watcher>()
  let running: { readonly handle: Handle<unknown, unknown>; readonly scope: Scope.Scope } | undefined
  let relaying: Fiber.Fiber<void> | undefined

  const offerAll = (events: ReadonlyArray<AgentEvent>) => {
    for (const { live } of watchers) Queue.offerAllUnsafe(live, events)
  }
  /** Relays the events of the run, if there are watchers. */
  const relay = Effect.suspend(() => {
    if (running === undefined || relaying !== undefined || watchers.size === 0) return Effect.void
    // The relay lives as long as the run, because watchers come and go.
    return Stream.runForEachArray(running.handle.events, (events) => Effect.sync(() => offerAll(events))).pipe(
      Effect.forkIn(running.scope, { startImmediately: true }),
      Effect.map((fiber) => {
        relaying = fiber
      })
    )
  })

  const signalGrowth = Effect.sync(() => {
    for (const { grew } of watchers) Queue.offerUnsafe(grew, undefined)
  })

  return {
    announced: (journal) => ({
      open: (id) =>
        Effect.map(journal.open(id), (thread) => ({
          ...thread,
          append: (entries) => Effect.tap(thread.append(entries), signalGrowth)
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
          const history = Stream.paginate(
            after,
            Effect.fnUntraced(function* (cursor: number) {
              for (;;) {
                const { entries, step } = yield* readBehind(store, threadId, cursor)
                if (entries.length > 0) return [toEvents(entries, step), Option.some(step)] as const
                yield* Queue.take(watcher.grew)
              }
            })
          )
          const live = Stream.map(Stream.fromQueue(watcher.live), (event): ThreadEvent => ({ _tag: "Live", event }))
          return Stream.merge(history, live)
        })
      )
  }
}
