/** Allows one run at a time on a session, over all processes. */
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as Effect from "effect/Effect"
import * as SqliteFiles from "../../../support/store/sqliteFiles.ts"
import { makeFolder, type Places } from "../config/places.ts"
import { Failure } from "../failure.ts"

/** SQLite's code for a locked file. */
const busy = 5

/**
 * Locks a session until the scope ends. The lock is one of an SQLite file: the system releases it however the process
 * ends, while a file with a process id would outlive a `kill -9`. A failure says which process is at work, once.
 */
export const hold = Effect.fnUntraced(function* ({ data }: Places, threadId: string, isToldAlready = false) {
  const folder = yield* makeFolder(join(data, "threads", threadId))
  const toFailure = (cause: unknown) => {
    const isBusy = cause instanceof Error && "errcode" in cause && cause.errcode === busy
    const elsewhere = isToldAlready
      ? "The other process is still at work on it."
      : `Another process is at work on session ${threadId}. Wait until it is done. If no tool call and no approval is open in it, you can go on in a copy: deepagents sessions fork ${threadId}`
    return new Failure({
      exit: "failed",
      message: isBusy ? elsewhere : `Session ${threadId} can't be locked: ${String(cause)}`
    })
  }
  const path = join(folder, "lock")
  const open = Effect.acquireRelease(Effect.try({ try: () => new DatabaseSync(path), catch: toFailure }), (opened) =>
    Effect.sync(() => opened.close())
  )
  const file = yield* SqliteFiles.opening(path, open)
  yield* Effect.try({ try: () => file.exec("BEGIN EXCLUSIVE"), catch: toFailure })
})

/** Tells whether a process is at work on a session. */
export const isHeld = (places: Places, threadId: string) =>
  Effect.scoped(
    Effect.match(hold(places, threadId), {
      onFailure: () => true,
      onSuccess: () => false
    })
  )
