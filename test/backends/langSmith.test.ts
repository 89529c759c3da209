/** A sandbox of LangSmith, over a server of this machine that has the shapes of its API, and a real shell behind it. */
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Redacted } from "effect"
import { Sandbox } from "effect-deepagents"
import * as LangSmithSandbox from "effect-deepagents/backends/LangSmithSandbox"
import { BackendConformance } from "effect-deepagents/testing/conformance"
import { FetchHttpClient } from "effect/http"
import { serve } from "../net/servers.ts"
import { isFull } from "../scale.ts"
import * as LocalShell from "./fixtures/localShell.ts"

const key = "very-secret-key-of-langsmith"
const apiKey = Redacted.make(key)

/** The content of a form with one file. */
const contentOf = (body: string): Uint8Array => {
  const begin = body.indexOf("\r\n\r\n") + 4
  return new Uint8Array(Buffer.from(body.slice(begin, body.lastIndexOf("\r\n--")), "utf8"))
}

/** The API and the servers of its sandboxes at once. `fail` answers everything with a failure. */
const langSmith = Effect.gen(function* () {
  const shell = yield* LocalShell.make()
  const boxes = new Map<string, string>()
  const state = { fail: undefined as undefined | { readonly status: number; readonly body: string }, polls: 0 }
  const calls: Array<string> = []
  const server = yield* serve((request, response, body) => {
    const url = new URL(request.url ?? "", "http://x")
    const json = (value: unknown, status = 200) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value))
    const refuse = (status: number, error: string, message: string) => json({ detail: { error, message } }, status)
    if (state.fail !== undefined) return response.writeHead(state.fail.status).end(state.fail.body)
    if (request.headers["x-api-key"] !== key) return refuse(401, "Unauthorized", "no such key")
    const parseBody = (): Record<string, never> => JSON.parse(body === "" ? "{}" : body)
    if (url.pathname.startsWith("/box/")) {
      const path = url.searchParams.get("path") ?? ""
      if (url.pathname.endsWith("/execute")) {
        const { command, shell: program, timeout } = parseBody()
        if (program !== "/bin/sh" || !Number.isInteger(timeout)) return refuse(422, "Invalid", "timeout")
        return void shell
          .run(command as never)
          .then(({ exitCode, stderr, stdout }) => json({ stdout, stderr, exit_code: exitCode }))
      }
      if (url.pathname.endsWith("/upload")) return void shell.put(path, contentOf(body)).then(() => json({}))
      return void shell.get(path).then(
        (content) => response.end(content),
        () => refuse(404, "FileNotFound", "no such file")
      )
    }
    const [, name = "", what = ""] = /^\/api\/v2\/sandboxes\/boxes\/?([^/]*)\/?(.*)$/.exec(url.pathname) ?? []
    const described = (one: string) => ({
      name: one,
      status: boxes.get(one),
      dataplane_url: `http://127.0.0.1:${request.socket.localPort}/box/${one}`
    })
    calls.push(`${request.method} ${url.pathname.replace("/api/v2/sandboxes", "")} ${body}`.trim())
    if (url.pathname.includes("/snapshots/")) {
      state.polls += 1
      return json({ id: "s", name: "n", status: state.polls > 1 ? "ready" : "building", fs_capacity_bytes: 1 })
    }
    if (name === "" && request.method === "GET") return json({ sandboxes: [...boxes.keys()].map(described) })
    if (name === "") {
      const made = `box-${boxes.size + 1}`
      boxes.set(made, "ready")
      return json(described(made))
    }
    if (!boxes.has(name)) return refuse(404, "NotFound", `no sandbox ${name}`)
    if (request.method === "DELETE") return json(boxes.delete(name))
    if (what === "stop" || what === "start") boxes.set(name, what === "stop" ? "stopped" : "ready")
    if (what === "snapshot") return json({ id: "0f8fad5b-d9cb-469f-a165-70867728950e", status: "building" })
    return what === "status" ? json({ status: boxes.get(name) }) : json(described(name))
  })
  return { boxes, calls, shell, state, url: server.url, root: join(shell.folder, "root") }
})

const describeError = (error: unknown): string => `${String(error)} ${JSON.stringify(error)}`

describe("a sandbox of LangSmith", () => {
  it.live(
    "works as any sandbox does, and ends with its layer",
    () =>
      Effect.gen(function* () {
        const { boxes, calls, root, url } = yield* langSmith
        yield* Effect.gen(function* () {
          const box = yield* LangSmithSandbox.make({ apiKey, url, root, snapshot: "python", create: { vcpus: 2 } })
          assert.strictEqual(box.id, "box-1")
          const text = "ä 'x'\n".repeat(20_000)
          yield* box.write("/a b/large.txt", text)
          assert.strictEqual(
            (yield* box.execute("wc -c < 'a b/large.txt'")).output.trim(),
            String(Buffer.byteLength(text))
          )
          yield* box.edit("/a b/large.txt", [{ old: "ä 'x'\n".repeat(20_000), new: "short\n" }])
          assert.strictEqual(
            (yield* box.execute("cat 'a b/large.txt'; cat; exit 4", { stdin: "in" })).output,
            "short\nin"
          )
          const late = yield* Effect.flip(box.execute("echo begun; sleep 20", { timeout: "1 second" }))
          assert.deepStrictEqual(late.reason, { _tag: "TimedOut", limit: 1_000 })
          assert.deepStrictEqual([...boxes], [["box-1", "ready"]])
        }).pipe(Effect.scoped)
        assert.deepStrictEqual([...boxes], [])
        assert.deepStrictEqual(calls, [
          'POST /boxes {"timeout":120,"vcpus":2,"snapshot_name":"python","wait_for_ready":true}',
          "DELETE /boxes/box-1"
        ])
      }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer)),
    30_000
  )

  it.live("is stopped and started, listed, kept, and copied", () =>
    Effect.gen(function* () {
      const { boxes, calls, root, url } = yield* langSmith
      const account = { apiKey, url }
      const box = yield* LangSmithSandbox.make({ ...account, root, keep: true })
      yield* box.pause
      assert.deepStrictEqual(yield* LangSmithSandbox.list(account), [{ id: "box-1", state: "stopped" }])
      yield* box.resume
      yield* box.pause
      const snapshot = yield* box.snapshot
      // Named again, it is woken and left.
      yield* Effect.scoped(LangSmithSandbox.make({ ...account, root, sandboxId: "box-1" }))
      assert.strictEqual(boxes.get("box-1"), "ready")
      yield* Effect.scoped(LangSmithSandbox.make({ ...account, root, snapshot }))
      assert.include(calls.join("\n"), `"snapshot_id":"${snapshot}"`)
      assert.deepStrictEqual([...boxes.keys()], ["box-1"])
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )

  it.live("is made from a manifest", () =>
    Effect.gen(function* () {
      const { calls, root, url } = yield* langSmith
      const box = yield* LangSmithSandbox.make({
        apiKey,
        url,
        root,
        create: { idle_ttl_seconds: 60, run_config: { user: "1000", env_vars: { LANG: "C", CI: "0" } } },
        manifest: {
          image: "python",
          network: "open",
          environment: { CI: "1" },
          files: { "/a.md": "hi\n" },
          limits: { cpus: 2, memoryBytes: 2 ** 31 }
        }
      })
      assert.strictEqual((yield* box.execute("cat a.md")).output, "hi\n")
      assert.deepStrictEqual(JSON.parse((calls[0] ?? "").replace(/^POST \/boxes /, "")), {
        timeout: 120,
        idle_ttl_seconds: 60,
        run_config: { user: "1000", env_vars: { LANG: "C", CI: "1" } },
        vcpus: 2,
        mem_bytes: 2 ** 31,
        snapshot_name: "python",
        wait_for_ready: true
      })
      // @ts-expect-error a sandbox of LangSmith has a network, and its manifest says so
      const closed = LangSmithSandbox.make({ apiKey, url, root, manifest: { image: "python", network: "none" } })
      assert.include((yield* Effect.flip(Effect.scoped(closed))).message, "manifest.network")
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )

  it.live("says what the server says, and never the key", () =>
    Effect.gen(function* () {
      const { root, state, url } = yield* langSmith
      const messageOf = (options: Partial<LangSmithSandbox.Options>) =>
        Effect.map(Effect.flip(Effect.scoped(LangSmithSandbox.make({ apiKey, url, root, ...options }))), (error) => {
          assert.notInclude(describeError(error), key)
          return error.message
        })
      assert.include(yield* messageOf({ apiKey: Redacted.make("wrong") }), "answered 401; check the key: no such key")
      assert.include(yield* messageOf({ sandboxId: "none" }), "no sandbox none")
      assert.include(yield* messageOf({ url: "http://127.0.0.1:1" }), "LangSmith: ")
      state.fail = { status: 500, body: `<html>${key} is\nbroken` }
      assert.include(yield* messageOf({}), "answered 500: <html>[hidden] is broken")
      state.fail = { status: 200, body: "[]" }
      assert.include(yield* messageOf({}), "check the address")
      // The key goes to no server that is not encrypted, if the API itself is.
      state.fail = { status: 200, body: JSON.stringify({ name: "b", status: "ready", dataplane_url: "ftp://evil/" }) }
      assert.include(yield* messageOf({}), "has no server that is reached by https")
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )

  it.live("reads its key from the configuration", () =>
    Effect.gen(function* () {
      const { root, url } = yield* langSmith
      const said = yield* Sandbox.Sandbox.use((box) => box.execute("echo hi")).pipe(
        Effect.provide(LangSmithSandbox.layerConfig({ root, url })),
        Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown({ LANGSMITH_API_KEY: key }))
      )
      assert.strictEqual(said.output, "hi\n")
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )
})

const subject = Layer.unwrap(
  Effect.map(langSmith, ({ root, url }) =>
    Layer.provide(LangSmithSandbox.layer({ apiKey, url, root }), FetchHttpClient.layer)
  )
)

describe.concurrent("a sandbox of LangSmith is held to the suite of commands", () => {
  const checks = BackendConformance.sandboxSuite({
    layer: subject,
    secret: "CONFORMANCE_SECRET",
    processes: true,
    streams: BackendConformance.absent("its output comes at the end")
  })
  for (const check of checks.filter((_, index) => isFull || index % 4 === 0)) {
    const test = check.absent === undefined ? it.live : it.live.skip
    test(check.name, () => check.run, 60_000)
  }
})
