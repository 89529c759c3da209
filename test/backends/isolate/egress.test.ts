/** The one way from commands in bubblewrap to the network: a proxy with rules, and secrets that no command sees. */
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import * as OsSandbox from "effect-deepagents/backends/OsSandbox"
import { Secrets } from "effect-deepagents/net"
import * as NodeEgress from "effect-deepagents/net/NodeEgress"
import * as NodeNetwork from "effect-deepagents/net/NodeNetwork"
import { canary, describeIsolated, folders } from "./box.ts"

/** An "internet" of this machine, which keeps its requests. */
const internet = Effect.acquireRelease(
  Effect.promise(
    () =>
      new Promise<{ readonly port: number; readonly got: Array<string>; readonly server: http.Server }>((resolve) => {
        const got: Array<string> = []
        const server = http.createServer((request, response) => {
          got.push(`${request.method} ${request.headers.host} ${request.url} ${JSON.stringify(request.headers)}`)
          response.end(`answer to ${request.headers["authorization"] ?? "nobody"}\n`)
        })
        server.listen(0, "127.0.0.1", () => resolve({ port: (server.address() as AddressInfo).port, got, server }))
      })
  ),
  ({ server }) => Effect.sync(() => server.close())
)

type Found = (error: null, addresses: ReadonlyArray<{ readonly address: string; readonly family: number }>) => void

/** All names lead to this machine. */
const resolve = ((_host: string, _options: unknown, found: Found) =>
  found(null, [{ address: "127.0.0.1", family: 4 }])) as never

describeIsolated("the network of commands in bubblewrap", () => {
  it.live(
    "is a proxy with rules, and nothing else",
    () =>
      Effect.gen(function* () {
        const { root } = yield* folders
        const { got, port } = yield* internet
        const host = `allowed.test:${port}`
        const rules = { allow: [host], allowPrivate: [host] }
        const secrets = Secrets.layer({
          KEY: { value: Redacted.make(canary), hosts: ["allowed.test"] }
        })
        const layer = OsSandbox.make({
          root,
          ripgrep: false,
          egress: (listener) => NodeEgress.start({ rules, resolve, listener })
        })
        const box = yield* Effect.provide(layer, Layer.merge(NodeNetwork.layer(rules), secrets))
        const run = (command: string) => Effect.map(box.execute(command), ({ output }) => output)
        // Programs that know proxies by their variables.
        assert.strictEqual(yield* run(`curl -s http://allowed.test:${port}/a`), "answer to nobody\n")
        const fetched = `fetch("http://allowed.test:${port}/b").then((r) => r.text()).then((t) => process.stdout.write(t))`
        assert.strictEqual(yield* run(`${process.execPath} -e '${fetched}'`), "answer to nobody\n")
        assert.include(yield* run(`git ls-remote http://allowed.test:${port}/c.git 2>&1`), "not valid")
        assert.strictEqual(got.length, 3)
        // Many at once: none of them waits for an acceptor that is not there.
        const many = `for i in 1 2 3 4 5 6 7 8; do curl -s -m 20 http://allowed.test:${port}/$i & done; wait`
        assert.strictEqual(yield* run(many), "answer to nobody\n".repeat(8))
        assert.strictEqual(got.length, 11)
        for (const command of [
          `curl -s http://other.test:${port}/`,
          `curl -s http://allowed.test:1/`,
          `curl -s http://127.0.0.1:${port}/`,
          `curl -s -x "$http_proxy" http://127.0.0.1:${port}/`,
          `curl -s --noproxy '*' http://127.0.0.1:${port}/`,
          `curl -s --noproxy '*' --resolve allowed.test:${port}:127.0.0.1 http://allowed.test:${port}/`,
          `curl -s -H 'host: allowed.test:${port}' -x "$http_proxy" http://other.test:${port}/`,
          `curl -sp -x "$http_proxy" http://other.test:${port}/`,
          `curl -s -x http://egress:wrong@127.0.0.1:3128 http://allowed.test:${port}/`
        ])
          assert.notInclude(yield* run(command), "answer", command)
        assert.strictEqual(got.length, 11)
        // The value of a secret is nowhere in the sandbox.
        const looked = yield* run(
          `env; cat /proc/*/environ; curl -s -H 'authorization: {{secret:KEY}}' "$EGRESS_URL/http://allowed.test:${port}/d"`
        )
        assert.notInclude(looked, canary)
        assert.include(looked, "https only")
        assert.notInclude(got.join("\n"), canary)
      }),
    40_000
  )

  it.live("is closed without egress, and says so", () =>
    Effect.gen(function* () {
      const { root } = yield* folders
      const box = yield* OsSandbox.make({ root, ripgrep: false })
      const { exitCode, output } = yield* box.execute("curl -sS http://example.com")
      assert.notStrictEqual(exitCode, 0)
      assert.include(output, "Could not resolve host")
    })
  )
})
