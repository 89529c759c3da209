/**
 * Writes the log of an SQLite file back in a thread of its own, so that the event loop never waits for the disk's sync.
 */
import { statSync } from "node:fs"
import { Worker } from "node:worker_threads"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"

/** The log is looked at after so many writes, or so many bytes. */
const often = 32
const large = 1024 * 1024

/** A log of so many bytes is written back. */
const most = 4 * 1024 * 1024

/**
 * The first checkpoint holds up nobody. The second waits for writers for a moment, and holds them up for as long as it
 * takes to write back what they wrote meanwhile; then the log begins anew.
 */
const work = `
const { parentPort, workerData } = require("node:worker_threads")
const { DatabaseSync } = require("node:sqlite")
const database = new DatabaseSync(workerData, { timeout: 10 })
parentPort.on("message", () => {
  for (const mode of ["PASSIVE", "TRUNCATE"]) {
    try { database.exec("PRAGMA wal_checkpoint(" + mode + ")") } catch {}
  }
  parentPort.postMessage("done")
})`

/**
 * Gives what is to be told of each write, and of about how many bytes it was. `fallback` is called where there can be no
 * such thread.
 */
export const make = Effect.fnUntraced(function* (
  path: string,
  fallback: () => void
): Effect.fn.Return<(bytes: number) => void, never, Scope.Scope> {
  let worker: Worker | undefined
  let isBusy = false
  let isOver = false
  let writes = 0
  let bytes = 0

  const giveUp = () => {
    if (!isOver) fallback()
    isOver = true
  }

  const start = (): Worker | undefined => {
    const started = Result.try(
      () => new Worker(work, { eval: true, workerData: path, execArgv: ["--disable-warning=ExperimentalWarning"] })
    )
    if (Result.isFailure(started)) {
      giveUp()
      return undefined
    }
    started.success.on("error", giveUp)
    started.success.on("message", () => {
      isBusy = false
    })
    started.success.unref()
    return started.success
  }

  yield* Effect.addFinalizer(() =>
    Effect.promise(async () => {
      isOver = true
      await worker?.terminate()
    })
  )

  return (more) => {
    writes++
    bytes += more
    if ((writes < often && bytes < large) || isBusy || isOver) return
    writes = 0
    bytes = 0
    if ((statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) < most) return
    worker ??= start()
    isBusy = worker !== undefined
    worker?.postMessage("checkpoint")
  }
})
