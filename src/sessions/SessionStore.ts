/**
 * Stores threads, so that they outlive a run, and makes runs write to them.
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
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Checkpoint } from "../core/Checkpoint.ts"
import { Journal } from "../core/Journal.ts"
import type { SessionError } from "../core/SessionError.ts"
import { type Service, SessionStore } from "../core/SessionStore.ts"
import { makeEffectCheck, makeLayerCheck } from "../support/options/check.ts"
import { load } from "./internal/checkpoint.ts"
import * as shapes from "./internal/shapes.ts"
import * as Copying from "./internal/transfer/copying.ts"
import { type JournalOptions, makeJournal } from "./journal.ts"

export type { CopyResult } from "./internal/transfer/copying.ts"

export * from "../core/SessionStore.ts"
export { CopyError } from "./internal/transfer/copying.ts"

/**
 * Makes runs with a `threadId` resume the thread of the store, and write to it. It creates a missing thread, and fails
 * with `Archived` for an archived one. Runs of this process on one thread queue. Operations are retried for about three
 * seconds while the store is `Unavailable`.
 */
export const journal: Layer.Layer<Journal, never, SessionStore> = Layer.effect(
  Journal,
  Effect.map(SessionStore, (store) => makeJournal(store))
)

const refuseJournalWith = makeLayerCheck("SessionStore.journalWith", shapes.sessionStoreJournalWith)

/** Like {@link journal}, with options. */
export const journalWith = (options: JournalOptions): Layer.Layer<Journal, never, SessionStore> =>
  refuseJournalWith(options) ??
  Layer.effect(
    Journal,
    Effect.map(SessionStore, (store) => makeJournal(store, options))
  )

/** Reads the checkpoint of a thread from its beginning: messages, state, usage. `undefined` for an empty thread. */
export const checkpoint = (threadId: string): Effect.Effect<Checkpoint | undefined, SessionError, SessionStore> =>
  SessionStore.use((store) => Effect.map(load(store, threadId), (loaded) => loaded.checkpoint))

const refuseCopy = makeEffectCheck("SessionStore.copy", shapes.sessionStoreCopy)

/**
 * Copies all threads of a store to another one, with dates, metadata, labels, branches and archived state, and verifies
 * each by a digest. It closes the source first: reads go on, and every change fails with `Moved`.
 *
 * Run it again to continue an interrupted copy: threads in the target are verified, and not copied again. Unreadable or
 * different threads are in the `CopyError`; all others are copied.
 */
export const copy = (
  source: Service,
  target: Service,
  options: {
    /** Tells people where the threads are now: the mark of the source and later failures contain it. No passwords. */
    readonly name: string
  }
): Effect.Effect<Copying.CopyResult, SessionError | Copying.CopyError> =>
  refuseCopy(options) ?? Copying.copy(source, target, options)

/**
 * Opens a store again after a {@link copy}, and gives the name of the copy. Use it only if nobody wrote to the copy: a
 * thread that goes on in both stores does its work twice.
 */
export const reopen = (store: Service): Effect.Effect<string | undefined, SessionError> => Copying.reopen(store)
