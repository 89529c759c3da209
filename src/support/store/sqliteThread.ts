/** Runs slow queries of an SQLite file in a thread, so that they never block the event loop. */
import type { Worker } from "node:worker_threads"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Row } from "effect/sql/SqlConnection"
import { startWorker } from "./textWorker.ts"

const work = `
const { parentPort, workerData } = require("node:worker_threads")
const { DatabaseSync } = require("node:sqlite")
const database = new DatabaseSync(workerData.path, { readOnly: true, timeout: 10000 })
parentPort.on("message", ({ id, sql, params }) => {
  try { parentPort.postMessage({ id, rows: database.prepare(sql).all(...params) }) }
  catch { parentPort.postMessage({ id }) }
})`

/** Reads the rows of a statement; `undefined` if the thread can't, and the caller must read them. */
export type Aside = (sql: string, params: ReadonlyArray<unknown>) => Effect.Effect<ReadonlyArray<Row> | undefined>

/** A statement that was sent to the thread. */
interface SentStatement {
  readonly sql: string
  readonly params: ReadonlyArray<unknown>
  readonly answer: (rows: ReadonlyArray<Row> | undefined) => void
}

/** Starts the thread with the first statement, and ends it with the scope. */
export const make = Effect.fnUntraced(function* (path: string): Effect.fn.Return<Aside, never, Scope.Scope> {
  const queries = new Map<number, SentStatement>()
  let worker: Worker | undefined
  let isOver = false
  let last = 0

  const forget = (id: number): SentStatement | undefined => {
    const one = queries.get(id)
    queries.delete(id)
    if (queries.size === 0) worker?.unref()
    return one
  }

  const stop = (): void => {
    void worker?.terminate()
    worker = undefined
  }

  const giveUp = (failed?: Worker): void => {
    // A terminated thread may still report an error.
    if (worker !== failed) return
    isOver = true
    stop()
    for (const id of queries.keys()) forget(id)?.answer(undefined)
  }

  const start = (): Worker | undefined => {
    const started = startWorker(work, { path }, giveUp)
    // The worker above sends nothing else.
    started?.on("message", ({ id, rows }: { readonly id: number; readonly rows?: ReadonlyArray<Row> }) => {
      if (worker === started) forget(id)?.answer(rows)
    })
    return started
  }

  const post = (id: number, { params, sql }: SentStatement): void => {
    worker ??= start()
    worker?.ref()
    worker?.postMessage({ id, sql, params })
  }

  /** Terminates the thread if it runs the cancelled statement, and sends the other statements again. */
  const cancel = (id: number): void => {
    const isFirst = queries.keys().next().value === id
    forget(id)
    if (!isFirst) return
    stop()
    for (const [other, one] of queries) post(other, one)
  }

  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isOver = true
      stop()
      for (const id of queries.keys()) forget(id)?.answer(undefined)
    })
  )

  return (sql, params) =>
    Effect.callback<ReadonlyArray<Row> | undefined>((resume) => {
      if (isOver) return resume(Effect.undefined)
      const id = last++
      const one = { sql, params, answer: (rows: ReadonlyArray<Row> | undefined) => resume(Effect.succeed(rows)) }
      queries.set(id, one)
      post(id, one)
      return Effect.sync(() => cancel(id))
    })
})
