/** Starts the threads of an SQLite file. */
import { Worker } from "node:worker_threads"
import * as Result from "effect/Result"

/** Starts a thread that runs a text. Gives `undefined`, and calls `onFailure`, if it can't start; later errors call it too. */
export const startWorker = (
  text: string,
  workerData: object,
  onFailure: (worker?: Worker) => void
): Worker | undefined => {
  const execArgv = ["--disable-warning=ExperimentalWarning"]
  const started = Result.try(() => new Worker(text, { eval: true, workerData, execArgv }))
  if (Result.isFailure(started)) {
    onFailure()
    return undefined
  }
  const worker = started.success
  worker.on("error", () => onFailure(worker))
  return worker
}
