/**
 * Threads in memory, gone with the process: for tests, and for conversations that need not last.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
 *
 * const program = SessionStore.SessionStore.use((store) => store.create({ metadata: { user: "ada" } })).pipe(
 *   Effect.provide(MemorySessions.layer)
 * )
 * ```
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { SessionStore } from "../core/SessionStore.ts"
import * as Memory from "./internal/memory.ts"
import { movedTo } from "./internal/moving.ts"
import { make } from "./internal/store.ts"
import type { Appended, Fault, Tables, Waits } from "./internal/tables.ts"
import { waitsIn } from "./internal/waits.ts"

const gone: Appended = { _tag: "Refused", thread: undefined }

const tables = (): Tables => {
  const threads = new Map<string, Memory.Memory>()
  /** The requests of the threads that wait. */
  const waiting = new Map<string, Waits>()
  const keep = (threadId: string, waits: Waits): void => {
    if (waits.length === 0) waiting.delete(threadId)
    else waiting.set(threadId, waits)
  }
  const found = () =>
    [...waiting].flatMap(([threadId, waits]) =>
      threads.get(threadId)?.archived === false ? waits.map((request) => ({ threadId, request })) : []
    )
  const within = <A>(threadId: string, absent: A, body: (memory: Memory.Memory) => A): Effect.Effect<A> =>
    Effect.sync(() => {
      const memory = threads.get(threadId)
      return memory === undefined ? absent : body(memory)
    })
  let moved: string | undefined
  const writing = <A>(effect: Effect.Effect<A>): Effect.Effect<A, Fault> =>
    Effect.suspend(() => (moved === undefined ? effect : Effect.fail(movedTo(moved))))
  return {
    insert: (thread, content) =>
      Effect.flatMap(waitsIn(content), (waits) =>
        writing(
          Effect.sync(() => {
            if (threads.has(thread.threadId)) return false
            threads.set(thread.threadId, Memory.create(thread, content))
            keep(thread.threadId, waits)
            return true
          })
        )
      ),
    fork: (source, at, thread, waits) =>
      writing(
        within<"Done" | "Exists" | "Gone">(source, "Gone", (memory) => {
          if (threads.has(thread.threadId)) return "Exists"
          threads.set(thread.threadId, Memory.fork(memory, memory.list.length, at, thread))
          keep(thread.threadId, waits)
          return "Done"
        })
      ),
    append: (threadId, leaf, entries, at, behind, _bytes, waits) =>
      Effect.suspend(() => {
        const memory = threads.get(threadId)
        if (memory === undefined) return Effect.succeed(gone)
        if (moved === undefined) {
          const appended = Memory.append(memory, leaf, entries, at, behind)
          if (appended._tag === "Done" && waits !== undefined) keep(threadId, waits)
          return Effect.succeed(appended)
        }
        // Entries that were appended before may be appended again: nothing changes.
        const refused = Memory.refusal(memory, leaf, entries)
        return refused === undefined ? Effect.fail(movedTo(moved)) : Effect.succeed(refused)
      }),
    addLabel: (threadId, id, label, at) =>
      writing(within(threadId, gone, (memory) => Memory.addLabel(memory, id, label, at))),
    move: (threadId, from, to, at, waits) =>
      writing(
        within(threadId, false, (memory) => {
          const isMoved = Memory.move(memory, from, to, at)
          if (isMoved) keep(threadId, waits)
          return isMoved
        })
      ),
    update: (threadId, change, at) =>
      writing(
        within(threadId, false, (memory) => {
          Memory.update(memory, change, at)
          return true
        })
      ),
    remove: (threadId) =>
      writing(
        Effect.sync(() => {
          waiting.delete(threadId)
          return threads.delete(threadId)
        })
      ),
    waiting: (query) => Effect.sync(() => Memory.firstWaits(found(), query)),
    waitingFor: (requestId) =>
      Effect.sync(() => {
        const all = found().filter(({ request }) => request.id === requestId)
        return Memory.firstWaits(all, { after: undefined, limit: 1, threadId: undefined })[0]
      }),
    find: (threadId) => within(threadId, undefined, Memory.info),
    entry: (threadId, id) => within(threadId, undefined, (memory) => Memory.find(memory, id)),
    path: (threadId, from, limit) => within(threadId, [], (memory) => Memory.path(memory, from, limit)),
    labels: (threadId) => within(threadId, [], Memory.labels),
    entries: (threadId, cursor, limit) =>
      within(threadId, { entries: [], next: undefined }, (memory) => Memory.slice(memory, cursor, limit)),
    list: (query) =>
      Effect.sync(() =>
        Memory.firstThreads(
          [...threads.values()].map(Memory.info).filter((thread) => Memory.isListed(thread, query)),
          query.limit
        )
      ),
    search: (query) =>
      Effect.map(
        Effect.forEach([...threads.values()], (memory) => Memory.hits(memory, query)),
        (hits) => Memory.firstHits(hits.flat(), query.limit)
      ),
    names: Effect.sync(() => [...threads.keys()].map((threadId) => ({ threadId }))),
    moved: Effect.sync(() => moved),
    close: (to) =>
      Effect.sync(() => {
        moved ??= to
        return moved
      }),
    reopen: Effect.sync(() => {
      moved = undefined
    })
  }
}

/** A store of its own for each time that it is built. */
export const layer: Layer.Layer<SessionStore> = Layer.effect(
  SessionStore,
  Effect.sync(() => make(tables()))
)
