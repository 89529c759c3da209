/**
 * The server scenarios of the protocol's own suite, against a server of `McpAgent.layerHttp`.
 */
import { execFile } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { NodeHttpServer } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { HttpRouter, HttpServer } from "effect/http"
import * as Layer from "effect/Layer"
import { isFull } from "../scale.ts"
import { server } from "./conformanceServer.ts"

const suite = fileURLToPath(
  new URL("../../node_modules/@modelcontextprotocol/conformance/dist/index.js", import.meta.url)
)

/** The scenarios of each revision, without extensions, and the number of their checks. */
const revisions = [
  // Effect's server has no subscriptions to resources: `resources-subscribe` and `resources-unsubscribe` fail. One more
  // scenario, `server-sse-polling`, makes no check: the server closes no stream in the middle of a call.
  { version: "2025-11-25", passed: 78, failing: ["resources-subscribe", "resources-unsubscribe"] },
  { version: "2026-07-28", passed: 152, failing: [] }
]

/** A few scenarios that `McpAgent` implements by itself, for every run of the tests. */
const few: ReadonlyArray<readonly [string, string]> = [
  ["2025-11-25", "elicitation-sep1034-defaults"],
  ["2025-11-25", "dns-rebinding-protection"],
  ["2026-07-28", "input-required-result-tampered-state"]
]

const served = Effect.gen(function* () {
  const context = yield* Layer.build(
    HttpRouter.serve(server, { disableLogger: true, disableListenLog: true }).pipe(
      Layer.provideMerge(
        NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1", gracefulShutdownTimeout: "50 millis" })
      )
    )
  )
  const { address } = yield* Effect.provide(HttpServer.HttpServer, context)
  return address._tag === "InetAddressV4" ? `http://127.0.0.1:${address.port}/mcp` : assert.fail("no port")
})

/** The report of the suite for these arguments. */
const run = Effect.fnUntraced(function* (version: string, ...which: ReadonlyArray<string>) {
  const url = yield* served
  const folder = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "mcp-conformance-"))),
    (made) => Effect.promise(() => rm(made, { recursive: true, force: true }))
  )
  const given = [suite, "server", "--url", url, "--spec-version", version, "--timeout", "60000", "-o", folder, ...which]
  return yield* Effect.callback<string>((resume) => {
    const child = execFile(process.execPath, given, { maxBuffer: 2 ** 26 }, (_, stdout, stderr) =>
      resume(Effect.succeed(`${stdout}${stderr}`))
    )
    return Effect.sync(() => child.kill())
  })
})

describe("the conformance suite of the protocol, against a server", () => {
  it.live.each(few)(
    "%s: %s",
    ([version, scenario]) =>
      Effect.gen(function* () {
        const output = yield* run(version, "--scenario", scenario)
        assert.match(output, /Passed: (\d+)\/\1, 0 failed/u, output.slice(-2_000))
      }),
    120_000
  )

  it.live.each(isFull ? revisions : [])(
    "all of $version",
    ({ failing, passed, version }) =>
      Effect.gen(function* () {
        const output = yield* run(version, "--suite", "all")
        const failed = [...output.matchAll(/^✗ (\S+):/gmu)].map(([, name]) => name)
        assert.deepStrictEqual(failed, failing, output.slice(-4_000))
        assert.match(
          /^Total: .*$/mu.exec(output)?.[0] ?? "",
          new RegExp(`${passed} passed, ${failing.length} failed`, "u")
        )
      }),
    600_000
  )
})
