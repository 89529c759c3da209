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
import { type Each, listsBy, type Look, readsBy } from "./internal/memory/reads.ts"
import * as Memory from "./internal/memory/thread.ts"
import { make } from "./internal/store.ts"
import type { AppendOutcome, Fault, Tables, Waits } from "./internal/tables.ts"
import { movedTo } from "./internal/transfer/moving.ts"
import { waitsIn } from "./internal/waits.ts"

const noThread: AppendOutcome = { _tag: "Refused", thread: undefined }

const makeTables = (): Tables => {
  const threads = new Map<string, Memory.Memory>()
  /** The open requests of each thread that waits. */
  const waiting = new Map<string, Waits>()
  let moved: string | undefined
  const setWaits = (threadId: string, waits: Waits): void => {
    if (waits.length === 0) waiting.delete(threadId)
    else waiting.set(threadId, waits)
  }
  const listWaiting = Effect.sync(() =>
    [...waiting].flatMap(([threadId, waits]) =>
      threads.get(threadId)?.archived === false ? waits.map((request) => ({ threadId, request })) : []
    )
  )
  const look: Look = (threadId, absent, body) =>
    Effect.sync(() => {
      const memory = threads.get(threadId)
      return memory === undefined ? absent : body(memory)
    })
  const each: Each = (body) =>
    Effect.suspend(() => Effect.map(Effect.forEach([...threads.values()], body), (lists) => lists.flat()))
  const unlessMoved = <A>(change: Effect.Effect<A, Fault>): Effect.Effect<A, Fault> =>
    Effect.suspend(() => (moved === undefined ? change : Effect.fail(movedTo(moved))))
  return {
    ...readsBy(look),
    ...listsBy(each, listWaiting),
    insert: (thread, content) =>
      Effect.flatMap(waitsIn(content), (waits) =>
        unlessMoved(
          Effect.sync(() => {
            if (threads.has(thread.threadId)) return false
            threads.set(thread.threadId, Memory.create(thread, content))
            setWaits(thread.threadId, waits)
            return true
          })
        )
      ),
    fork: (source, at, thread, waits) =>
      unlessMoved(
        look<"Done" | "Exists" | "Gone">(source, "Gone", (memory) => {
          if (threads.has(thread.threadId)) return "Exists"
          threads.set(thread.threadId, Memory.fork(memory, memory.list.length, at, thread))
          setWaits(thread.threadId, waits)
          return "Done"
        })
      ),
    append: (threadId, leaf, entries, at, behind, _bytes, waits) =>
      Effect.suspend(() => {
        const memory = threads.get(threadId)
        if (memory === undefined) return Effect.succeed(noThread)
        if (moved === undefined) {
          const appended = Memory.append(memory, leaf, entries, at, behind)
          if (appended._tag === "Done" && waits !== undefined) setWaits(threadId, waits)
          return Effect.succeed(appended)
        }
        // Repeating an append that was made before the move has no effect.
        const refused = Memory.refusal(memory, leaf, entries)
        return refused === undefined ? Effect.fail(movedTo(moved)) : Effect.succeed(refused)
      }),
    addLabel: (threadId, id, label, at) =>
      unlessMoved(look(threadId, noThread, (memory) => Memory.addLabel(memory, id, label, at))),
    move: (threadId, from, to, at, waits) =>
      unlessMoved(
        look(threadId, false, (memory) => {
          const isMoved = Memory.move(memory, from, to, at)
          if (isMoved) setWaits(threadId, waits)
          return isMoved
        })
      ),
    update: (threadId, change, at) =>
      unlessMoved(
        look(threadId, false, (memory) => {
          Memory.update(memory, change, at)
          return true
        })
      ),
    remove: (threadId) =>
      unlessMoved(
        Effect.sync(() => {
          waiting.delete(threadId)
          return threads.delete(threadId)
        })
      ),
    names: Effect.sync(() => [...threads.keys()].map((threadId) => ({ threadId }))),
    moved: Effect.sync(() => moved),
    close: (to) => Effect.sync(() => (moved ??= to)),
    reopen: Effect.sync(() => {
      moved = undefined
    })
  }
}

/** Keeps threads in memory. Each build of the layer is a new, empty store. */
export const layer: Layer.Layer<SessionStore> = Layer.effect(
  SessionStore,
  Effect.sync(() => make(makeTables()))
)
