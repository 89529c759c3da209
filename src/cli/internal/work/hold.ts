/** One run at a time on a session, over all processes. */
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as Effect from "effect/Effect"
import { makeFolder, type Places } from "../config/places.ts"
import { Failure } from "../failure.ts"

/** The code of SQLite for a file that somebody else has locked. */
const busy = 5

/**
 * Holds a session until the scope ends. It is the lock of an SQLite file, which the system takes back however a process
 * ends; a file that says who is at work would outlive a `kill -9`. One that can't be had is explained, unless that was
 * told already.
 */
export const hold = Effect.fnUntraced(function* ({ data }: Places, threadId: string, isToldAlready = false) {
  const folder = yield* makeFolder(join(data, "threads", threadId))
  const refused = (cause: unknown) => {
    const isBusy = cause instanceof Error && "errcode" in cause && cause.errcode === busy
    const elsewhere = isToldAlready
      ? "The other process is still at work on it."
      : `Another process is at work on session ${threadId}. Wait until it is done, or go on in a copy: deepagents sessions fork ${threadId}`
    return new Failure({
      exit: "failed",
      message: isBusy ? elsewhere : `Session ${threadId} can't be locked: ${String(cause)}`
    })
  }
  const file = yield* Effect.acquireRelease(
    Effect.try({ try: () => new DatabaseSync(join(folder, "lock")), catch: refused }),
    (opened) => Effect.sync(() => opened.close())
  )
  yield* Effect.try({ try: () => file.exec("BEGIN EXCLUSIVE"), catch: refused })
})
