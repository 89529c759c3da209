/** Editors kill the agents that they start: the next start finds the compiled code nevertheless. */
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"

const initialize = { jsonrpc: "2.0", id: 0, method: "initialize", params: { protocolVersion: 1 } }

describe("deepagents acp", () => {
  it.live(
    "keeps its compiled code before an editor kills it",
    () =>
      Effect.gen(function* () {
        const home = mkdtempSync(join(tmpdir(), "deepagents-compiled-"))
        const child = yield* Effect.acquireRelease(
          Effect.sync(() =>
            spawn(process.execPath, ["--conditions=@effect-deepagents/source", "src/cli/bin.ts", "acp"], {
              stdio: ["pipe", "pipe", "ignore"],
              env: { PATH: process.env["PATH"], HOME: home, XDG_CACHE_HOME: join(home, "cache") }
            })
          ),
          (started) => Effect.sync(() => started.kill("SIGKILL"))
        )
        child.stdin.write(`${JSON.stringify(initialize)}\n`)
        const cache = join(home, "cache/deepagents/node")
        const count = () => (existsSync(cache) ? readdirSync(cache, { recursive: true }).length : 0)
        while (count() < 2) yield* Effect.sleep("100 millis")
        assert.isNull(child.exitCode, "it is at work still")
      }).pipe(Effect.scoped),
    30_000
  )
})
