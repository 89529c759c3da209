/**
 * Threads that outlive a run: the store of sessions, and what makes runs write to it.
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
 *
 * const agent = Agent.make({ name: "helper", prompt: "You help." })
 * const sessions = SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))
 *
 * const program = Effect.gen(function* () {
 *   yield* Agent.run(agent, "My name is Ada", { threadId: "ada" })
 *   return yield* Agent.run(agent, "What is my name?", { threadId: "ada" })
 * }).pipe(Effect.provide(sessions))
 * ```
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Checkpoint } from "../core/Checkpoint.ts"
import { Journal, type Thread } from "../core/Journal.ts"
import { make as failure, type SessionError } from "../core/SessionError.ts"
import { type Leaf, type NewEntry, type Service, SessionStore } from "../core/SessionStore.ts"
import { load, loadAt, type Loaded } from "./internal/checkpoint.ts"
import * as Copying from "./internal/copying.ts"
import { take } from "./internal/turns.ts"
import { idsBehind, persistent } from "./internal/write.ts"

export * from "../core/SessionStore.ts"
export { type Copied, CopyError } from "./internal/copying.ts"
export { type Loaded, persistent }

/** The thread, made if it is not there. */
const opened = Effect.fnUntraced(function* (store: Service, threadId: string) {
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

/**
 * `busy` says what becomes of a run while another one of this process is at work on its thread, by whatever chat,
 * handler or tool: it waits (`queue`, the default), or fails with `Busy` (`refuse`), before it asks or stores anything.
 *
 * `parts` stores what the model streams at most 100 ms late, so that a crash does not lose the turn that was under way:
 * the thread then ends with a partial answer (`Message.isPartial`). A turn that ended takes the place of its parts,
 * which stay in the thread as a branch. A part that can't be stored is a `Warning`, and stops nothing.
 */
export interface JournalOptions {
  readonly busy?: "queue" | "refuse" | undefined
  readonly parts?: boolean | undefined
}

/** A journal that writes to a store. */
export const makeJournal = (store: Service, options?: JournalOptions): Journal["Service"] => ({
  hold: (threadId) => take(store, threadId, options?.busy ?? "queue"),
  open: Effect.fnUntraced(function* (threadId) {
    const { checkpoint, ended, leaf: start } = yield* persistent(opened(store, threadId))
    const withIds = idsBehind(start.id)
    let leaf = start.id
    // What ends a turn goes behind this, so that its parts are on no path; what comes meanwhile is kept with them.
    let behind = start.id
    /** The ids of parts whose answers were lost: the thread may stand there. */
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
    const stored = (appended: Leaf): void => {
      leaf = appended.id
      unsure.clear()
    }
    const part: Thread["part"] = Effect.fnUntraced(function* (entry) {
      const entries = withIds([entry], yield* Clock.currentTimeMillis)
      stored(
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
          // The ids stay the same when it is tried again, so what was stored before the answer was lost is not doubled.
          const entries = withIds(added, clock.currentTimeMillisUnsafe())
          const isEnd = added.some(({ _tag }) => _tag === "Message" || _tag === "RunSettled")
          return Effect.map(persistent(append(entries, !isEnd)), (appended) => {
            stored(appended)
            behind = appended.id
            return appended.step
          })
        }),
      part: options?.parts === true ? part : undefined
    }
  })
})

/**
 * Makes runs with a `threadId` write to the store, and begin with what the thread has come to. A thread that is not
 * there is made; one that is archived fails with `Archived`. One run of this process at a time is at work on a thread:
 * a second one waits for it. While the store is `Unavailable`, each operation is tried again for about three seconds.
 */
export const journal: Layer.Layer<Journal, never, SessionStore> = Layer.effect(
  Journal,
  Effect.map(SessionStore, (store) => makeJournal(store))
)

/** Like {@link journal}, with options. */
export const journalWith = (options: JournalOptions): Layer.Layer<Journal, never, SessionStore> =>
  Layer.effect(
    Journal,
    Effect.map(SessionStore, (store) => makeJournal(store, options))
  )

/** The checkpoint of a thread, `undefined` if it is empty: messages, state, usage. It is read from its beginning. */
export const checkpoint = (threadId: string): Effect.Effect<Checkpoint | undefined, SessionError, SessionStore> =>
  SessionStore.use((store) => Effect.map(load(store, threadId), (loaded) => loaded.checkpoint))

/** Reads a thread as it stands: all of it at one moment, however it grows meanwhile. */
export const loadThread = (store: Service, threadId: string): Effect.Effect<Loaded, SessionError> =>
  persistent(load(store, threadId))

/**
 * `name` tells people where the threads of the source are now: its mark and the failures of later changes say it. Write no
 * password in it.
 */
export interface CopyOptions {
  readonly name: string
}

/**
 * Copies all threads of a store to another one, with their dates, metadata, labels, branches and archived state, and
 * verifies each by a digest. The source is closed first: it is read as before, and fails every change with `Moved`.
 *
 * A copy that was cut off, or that runs twice, goes on: a thread that is in the target is verified and not copied again.
 * A thread that can't be read, or that differs, is in the `CopyError`; all others are copied.
 */
export const copy = (
  source: Service,
  target: Service,
  options: CopyOptions
): Effect.Effect<Copying.Copied, SessionError | Copying.CopyError> => Copying.copy(source, target, options)

/**
 * Has a store take changes again after a {@link copy}, and gives the place that its threads were copied to. Do this only
 * where nothing was written to the copy: a thread that goes on in both would do its work twice.
 */
export const reopen = (store: Service): Effect.Effect<string | undefined, SessionError> => Copying.reopen(store)
