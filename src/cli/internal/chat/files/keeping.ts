/** Keeps the files of turns while a chat runs. */
import * as Effect from "effect/Effect"
import { SessionStore } from "../../../../core/SessionStore.ts"
import { cleanLine } from "../../../../support/text/clean.ts"
import { type Room, threadOf } from "../room.ts"

/** Warns instead of failing: a chat goes on without checkpoints. */
const orWarn = <A, E, R, R2>({ ui }: Room<E, R>, work: Effect.Effect<A, { readonly message: string }, R2>) =>
  Effect.matchEffect(work, {
    onFailure: ({ message }) =>
      Effect.sync(() => ui.note("warning", `Files are not kept for /undo: ${cleanLine(message)}`)),
    onSuccess: () => Effect.void
  })

/** Ends restores that a crash cut off, and says so. */
export const mendFiles = Effect.fnUntraced(function* <E, R>(room: Room<E, R>) {
  const { checkpoints, store, ui } = room
  if (checkpoints === undefined) return
  const completed = Effect.map(Effect.provideService(checkpoints.complete, SessionStore, store), (all) => {
    for (const { failed, kept, restored } of all) {
      ui.note("info", `── a restore that was cut off was done again (${restored} paths)`)
      const leftPaths = [...kept, ...failed.map(({ path }) => path)].map(cleanLine)
      if (leftPaths.length > 0) ui.note("warning", `It left these paths as they are: ${leftPaths.join(", ")}`)
    }
  })
  yield* orWarn(room, completed)
})

/** Ends a turn that a crash cut off behind its answer. Another process that is at work ends its own. */
export const settleFiles = Effect.fnUntraced(function* <E, R>(room: Room<E, R>) {
  const { at, checkpoints, options, ui } = room
  if (checkpoints === undefined) return
  const settled = Effect.flatMap(threadOf(room), (thread) => checkpoints.settle(at.threadId, thread?.leaf.id ?? null))
  yield* Effect.matchEffect(options.hold?.(at.threadId) ?? Effect.void, {
    onFailure: ({ message }) => Effect.sync(() => ui.note("warning", message)),
    onSuccess: () => orWarn(room, settled)
  })
}, Effect.scoped)
