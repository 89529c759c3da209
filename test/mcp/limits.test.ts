/** Messages over a limit, and calls cancelled before they begin: neither affects other calls. */
import { spawn } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { type McpConfig, McpServers } from "../../src/mcp/index.ts"
import { isFull } from "../scale.ts"
import { hostile, layer } from "./servers.ts"

const { McpServers: Servers } = McpServers

const byHttp = (...behaviour: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly url: string; readonly kill: () => void }>((resume) => {
      const script = fileURLToPath(new URL("./hostileHttp.mjs", import.meta.url))
      const child = spawn(process.execPath, [script, ...behaviour], { stdio: ["ignore", "pipe", "inherit"] })
      createInterface({ input: child.stdout }).once("line", (url) =>
        resume(Effect.succeed({ url, kill: () => void child.kill("SIGKILL") }))
      )
    }),
    ({ kill }) => Effect.sync(kill)
  )

/** The growth of this process in megabytes while an effect runs. */
const growth = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const before = process.memoryUsage().rss
  let most = before
  const look = setInterval(() => (most = Math.max(most, process.memoryUsage().rss)), 5)
  const value = yield* Effect.ensuring(
    effect,
    Effect.sync(() => clearInterval(look))
  )
  return { value, megabytes: (most - before) / 1e6 }
})

describe("limits", { timeout: 120_000 }, () => {
  it.live.each(["stdio", "body", "events"] as const)(
    "a result of 100 MB is not kept (%s), and calls beside it go on",
    (way) =>
      Effect.gen(function* () {
        const config: McpConfig.Server = way === "stdio" ? hostile() : { type: "http", url: (yield* byHttp(way)).url }
        yield* Effect.gen(function* () {
          const servers = yield* Servers
          yield* servers.tools
          const call = (megabytes: number) =>
            way === "stdio"
              ? servers.call({ server: "s", tool: "huge" }, { size: megabytes * 1_000_000 })
              : servers.call({ server: "s", tool: "text" }, { megabytes })
          yield* call(1)
          const { megabytes, value } = yield* growth(
            Effect.all([Effect.flip(call(100)), call(1), call(0)], { concurrency: "unbounded" })
          )
          const [failed, ...others] = value
          assert.strictEqual(failed.reason, "Invalid")
          assert.match(failed.message, /the answer of 1000000\d\d bytes is over the limit of 2000000/)
          assert.isTrue(others.every(({ content }) => content.length === 1))
          assert.isBelow(megabytes, 100)
          yield* call(1)
          const [status] = yield* servers.status
          assert.strictEqual(status?.state, "connected")
        }).pipe(Effect.provide(layer({ s: config }, { maxMessage: 2_000_000 })))
      })
  )

  const findMarked = (mark: string) =>
    readdirSync("/proc").filter((pid) => {
      if (!/^\d+$/u.test(pid)) return false
      const readProcess = (file: string) => {
        try {
          return readFileSync(`/proc/${pid}/${file}`, "utf8")
        } catch {
          return ""
        }
      }
      return readProcess("cmdline").includes(mark) && !/State:\s+[ZX]/u.test(readProcess("status"))
    })

  const moments = isFull ? [0, 0, 1, 2, 5, 10, 20, 40, 80, 160] : [0, 5, 40]

  it.live("leaves no process when a layer is interrupted, at any moment", () =>
    Effect.gen(function* () {
      const mark = `mark-${process.pid}-${Math.random().toString(36).slice(2)}`
      for (const moment of moments) {
        const scope = yield* Scope.make()
        const context = yield* Layer.buildWithScope(layer({ s: hostile("stubborn", "grandchild", mark) }), scope)
        const waiting = yield* Effect.forkChild(Context.get(context, Servers).tools)
        if (moment > 0) yield* Effect.sleep(moment)
        yield* Scope.close(scope, Exit.void)
        yield* Fiber.interrupt(waiting)
        assert.deepStrictEqual(findMarked(mark), [], `after ${moment} ms`)
      }
    })
  )

  it.live("makes the next call after an interrupted one, at any moment", () =>
    Effect.gen(function* () {
      const servers = yield* Servers
      const echo = { server: "s", tool: "echo" }
      for (const moment of moments) {
        // The first of them are given up before there is a connection.
        for (const tool of ["slow", "echo"]) {
          const fiber = yield* Effect.forkChild(servers.call({ server: "s", tool }, {}), { startImmediately: true })
          if (moment > 0) yield* Effect.sleep(moment)
          yield* Fiber.interrupt(fiber)
        }
      }
      assert.deepStrictEqual((yield* servers.call(echo, { text: "still" })).content, [{ type: "text", text: "still" }])
      const [status] = yield* servers.status
      assert.strictEqual(status?.state, "connected")
    }).pipe(Effect.provide(layer({ s: hostile() })))
  )
})
