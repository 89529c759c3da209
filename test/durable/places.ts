import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { bundle } from "../bundle.ts"
import { freePort } from "../servers/port.ts"

/** A folder that is gone with the scope. */
export const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-deepagents-durable-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** Ends a process and waits until it is gone. */
const end = (child: ChildProcess, signal: "SIGKILL" | "SIGTERM" = "SIGKILL") =>
  Effect.callback<void>((resume) => {
    if (child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
    child.once("exit", () => resume(Effect.void))
    child.kill(signal)
  })

/** A runner, once it takes part; killed with the scope. */
export const runner = Effect.fnUntraced(function* (url: string, path: string) {
  const port = yield* freePort
  const file = bundle(new URL("children/runner.ts", import.meta.url))
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, [file, url, String(port), path], {
        stdio: ["ignore", "pipe", "inherit"]
      })
    ),
    (process) => end(process)
  )
  yield* Effect.callback<void>((resume) => {
    child.stdout.on("data", (chunk) => {
      if (String(chunk).includes("ready")) resume(Effect.void)
    })
    child.once("exit", (code) => resume(Effect.die(new Error(`the runner ended with ${code}`))))
  })
  return { pid: child.pid ?? 0, kill: end(child), stop: end(child, "SIGTERM") }
})

/** How many shards each runner holds. */
const shards = SqlClient.SqlClient.use(
  (sql) =>
    sql<{ readonly pid: number; readonly held: number }>`
      SELECT pid, count(*)::int AS held FROM pg_locks
      WHERE locktype = 'advisory' AND granted AND objsubid = 2 GROUP BY pid ORDER BY pid`
)

/** Waits until the runners have divided the shards: handing over a shard stops its work. */
export const divided = Effect.gen(function* () {
  const before = yield* shards
  yield* Effect.sleep("1 second")
  const after = yield* shards
  const isWhole = after.length === 2 && after.reduce((sum, { held }) => sum + held, 0) === 30
  return isWhole && JSON.stringify(before) === JSON.stringify(after) ? undefined : yield* Effect.fail("not yet")
}).pipe(Effect.retry(Schedule.forever))
