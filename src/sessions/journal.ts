/** The journal of runs that write to a store. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Journal, Thread } from "../core/Journal.ts"
import { make as failure, type SessionError } from "../core/SessionError.ts"
import type { Leaf, NewEntry, Service } from "../core/SessionStore.ts"
import { load, loadAt, type LoadedThread } from "./internal/checkpoint.ts"
import { take } from "./internal/turns.ts"
import { idsBehind, persistent } from "./internal/write.ts"

export { persistent }

/** Loads a thread, and creates it if it is missing. */
const openThread = Effect.fnUntraced(function* (store: Service, threadId: string) {
  const create = Effect.catchIf(
    store.create({ threadId }),
    (error) => error.reason._tag === "AlreadyExists",
    () => store.info(threadId)
  )
  const thread = yield* Effect.catchIf(
    store.info(threadId),
    (error) => error.reason._tag === "NotFound",
    () => create
  )
  if (thread.archived) return yield* failure("open", threadId, { _tag: "Archived" })
  return yield* loadAt(store, thread)
})

/** Options of journals and chats. */
export interface JournalOptions {
  /**
   * Decides about a run while another run of this process works on the thread: it waits (`queue`, the default), or fails
   * with `Busy` (`refuse`) before it asks or stores anything.
   */
  readonly busy?: "queue" | "refuse" | undefined
  /**
   * Stores streamed text at most 100 ms late, so that a crash loses little of a turn: the thread then ends with a partial
   * answer (`Message.isPartial`). A finished turn replaces its parts, which stay in the thread as a branch. A part that
   * can't be stored is a `Warning` only.
   */
  readonly parts?: boolean | undefined
}

/** Makes a journal that writes to a store. */
export const makeJournal = (store: Service, options?: JournalOptions): Journal["Service"] => ({
  hold: (threadId) => take(store, threadId, options?.busy ?? "queue"),
  read: (threadId) =>
    Effect.catchIf(
      loadThread(store, threadId),
      ({ reason }) => reason._tag === "NotFound",
      () => Effect.undefined
    ),
  open: Effect.fnUntraced(function* (threadId) {
    const { checkpoint, ended, leaf: start } = yield* persistent(openThread(store, threadId))
    const withIds = idsBehind(start.id)
    let leaf = start.id
    // The end of a turn goes behind this entry, so that parts are on no path. Other entries stay with the parts.
    let behind = start.id
    /** The ids of parts that may be stored although their append failed. */
    const unsure = new Set<string>()
    const append = (entries: ReadonlyArray<NewEntry>, atLeaf: boolean): Effect.Effect<Leaf, SessionError> =>
      Effect.catchIf(
        Effect.suspend(() => store.append(threadId, { leaf, behind: atLeaf ? leaf : behind, entries })),
        ({ reason }) => reason._tag === "Conflict" && reason.found !== null && unsure.delete(reason.found),
        ({ reason }) => {
          if (reason._tag === "Conflict") leaf = reason.found
          return append(entries, atLeaf)
        }
      )
    const moveTo = (appended: Leaf): void => {
      leaf = appended.id
      unsure.clear()
    }
    const part: Thread["part"] = Effect.fnUntraced(function* (entry) {
      const entries = withIds([entry], yield* Clock.currentTimeMillis)
      moveTo(
        yield* Effect.onError(append(entries, true), () =>
          Effect.sync(() => {
            for (const { id } of entries) unsure.add(id)
          })
        )
      )
    })
    return {
      checkpoint,
      ended,
      step: start.step,
      append: (added) =>
        Clock.clockWith((clock) => {
          // Retries use the same ids: entries whose acknowledgement was lost are not stored twice.
          const entries = withIds(added, clock.currentTimeMillisUnsafe())
          const isEnd = added.some(({ _tag }) => _tag === "Message" || _tag === "RunSettled")
          return Effect.map(persistent(append(entries, !isEnd)), (appended) => {
            moveTo(appended)
            behind = appended.id
            return appended.step
          })
        }),
      part: options?.parts === true ? part : undefined
    }
  })
})

/** Loads a thread at one moment, also while it grows. */
export const loadThread = (store: Service, threadId: string): Effect.Effect<LoadedThread, SessionError> =>
  persistent(load(store, threadId))
