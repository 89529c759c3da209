/** Processes that commands under test have started. */
import { existsSync, readFileSync } from "node:fs"
import { Effect } from "effect"

export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    // One that is dead and waits for its parent is no process any more.
    return process.platform !== "linux" || !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
  } catch {
    return false
  }
}

/** Waits until a process is gone: signals take a moment to arrive, and a busy machine takes longer. */
export const awaitGone = (pid: number, within = 10_000) =>
  Effect.gen(function* () {
    const until = Date.now() + within
    while (isAlive(pid) && Date.now() < until) yield* Effect.sleep("5 millis")
    return !isAlive(pid)
  })

/** A process id that a command has written to a file. */
export const pidIn = (file: string) =>
  Effect.gen(function* () {
    for (;;) {
      const text = existsSync(file) ? readFileSync(file, "utf8") : ""
      if (text.endsWith("\n")) return Number(text)
      yield* Effect.sleep("5 millis")
    }
  })

/** A command that starts a process, which starts another one; their ids are in the files `child` and `inner`. */
export const family = `sh -c 'sleep 60 & echo $! > inner; wait' & echo $! > child
until [ -s inner ]; do sleep 0.01; done`
