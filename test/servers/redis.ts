/** A real Redis for tests: `redis-server` from the PATH, gone with the scope. No package of npm brings one. */
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { Effect } from "effect"
import { freePort } from "./port.ts"

/** Whether there is one. Without it the suites on Redis are left out, and `test/announce.ts` says so. */
export const hasRedis = spawnSync("redis-server", ["--version"]).status === 0

/** What to do about it. */
export const howToInstall =
  "The suites on Redis need a redis-server on the PATH: apt-get install redis-server, or brew install redis."

/** The URL of a server of its own, empty, kept in memory only. */
export const redis = Effect.gen(function* () {
  const port = yield* freePort
  yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const server = spawn("redis-server", [
        "--port",
        String(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no"
      ])
      const failed = once(server, "error").then(() => {
        throw new Error(howToInstall)
      })
      const ready = (async () => {
        for await (const chunk of server.stdout) if (String(chunk).includes("Ready to accept connections")) return
        throw new Error("redis-server ended before it was ready")
      })()
      await Promise.race([ready, failed])
      server.stdout.resume()
      return server
    }),
    (server) =>
      Effect.promise(async () => {
        const ended = once(server, "exit")
        if (server.kill()) await ended
      })
  )
  return `redis://127.0.0.1:${port}`
})
