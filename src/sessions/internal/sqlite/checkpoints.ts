/**
 * Writes the log of an SQLite file back in a thread of its own, so that the event loop never waits for the disk's sync.
 */
import type { Worker } from "node:worker_threads"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { startWorker } from "../../../support/store/textWorker.ts"

/** The bytes of a log to write back. */
const most = 8 * 1024 * 1024

/** The pages that a write changes, with those of indexes. The log stores whole pages. */
const pages = 3

/**
 * The first checkpoint blocks nobody. The second waits shortly for writers, writes back their new pages, and restarts
 * the log. The log keeps its size, because overwriting syncs in half the time of growing, unless it is far too large.
 */
const work = `
const { statSync } = require("node:fs")
const { parentPort, workerData } = require("node:worker_threads")
const { DatabaseSync } = require("node:sqlite")
const database = new DatabaseSync(workerData.path, { timeout: 10 })
const isLarge = () => statSync(workerData.path + "-wal").size > workerData.most
parentPort.on("message", () => {
  for (const mode of ["PASSIVE", "RESTART"]) {
    try { database.exec("PRAGMA wal_checkpoint(" + (mode === "RESTART" && isLarge() ? "TRUNCATE" : mode) + ")") } catch {}
  }
  parentPort.postMessage("done")
})`

/** Gives a function to report each write with its approximate bytes. Calls `fallback` if no thread can start. */
export const make = Effect.fnUntraced(function* (
  path: string,
  pageSize: number,
  fallback: () => void
): Effect.fn.Return<(bytes: number) => void, never, Scope.Scope> {
  let worker: Worker | undefined
  let isBusy = false
  let isOver = false
  let bytes = 0

  const giveUp = () => {
    if (!isOver) fallback()
    isOver = true
  }

  const start = (): Worker | undefined => {
    const started = startWorker(work, { path, most: 8 * most }, giveUp)
    started?.on("message", () => {
      isBusy = false
    })
    started?.unref()
    return started
  }

  yield* Effect.addFinalizer(() =>
    Effect.promise(async () => {
      isOver = true
      await worker?.terminate()
    })
  )

  return (more) => {
    bytes += more + pages * pageSize
    if (bytes < most || isBusy || isOver) return
    bytes = 0
    worker ??= start()
    isBusy = worker !== undefined
    worker?.postMessage("checkpoint")
  }
})
