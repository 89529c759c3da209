import { assert, describe, it } from "@effect/vitest"
import * as Arr from "effect/Array"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as fc from "fast-check"
import { McpServers } from "../../src/mcp/index.ts"
import { nameAll } from "../../src/mcp/internal/catalog/names.ts"
import { lines } from "../../src/mcp/internal/wire/framing.ts"
import { normaliseName } from "../../src/support/text/names.ts"
import { isAlive } from "../backends/processes.ts"
import { scaled } from "../scale.ts"
import { hostile, layer } from "./servers.ts"

const { McpServers: Servers } = McpServers

const one = (server: string, tool: string) => ({ server, tool })

const pids = (log: string) => [...log.matchAll(/(?:pid|grandchild) (\d+)/gu)].map(([, pid]) => Number(pid))

describe("hostile servers", () => {
  it.live(
    "a banner, a message over the limit and a wrong answer cost no more than their call",
    () =>
      Effect.gen(function* () {
        const servers = yield* Servers
        yield* servers.tools
        const huge = yield* Effect.flip(servers.call(one("h", "huge"), { size: 30_000_000 }))
        assert.strictEqual(huge.reason, "Invalid")
        assert.match(huge.message, /over the limit of 1000000/)
        const bad = yield* Effect.flip(servers.call(one("h", "bad"), {}))
        assert.strictEqual(bad.reason, "Invalid")
        const other = yield* Effect.flip(servers.call(one("h", "bad"), { result: { task: { taskId: "1" } } }))
        assert.strictEqual(other.reason, "Invalid")
        const silent = yield* servers.call(one("h", "bad"), { result: {} })
        assert.deepStrictEqual(silent.content, [])
        const echo = yield* servers.call(one("h", "echo"), { text: "still here" })
        assert.deepStrictEqual(echo.content, [{ type: "text", text: "still here" }])
        const structured = yield* servers.call(one("h", "structured"), {})
        assert.deepStrictEqual(structured.content, [{ type: "text", text: '{"a":1}' }])
        const [status] = yield* servers.status
        assert.match(status?.log ?? "", /best server in the world/)
      }).pipe(Effect.provide(layer({ h: hostile("banner") }, { maxMessage: 1_000_000 }))),
    30_000
  )

  it.live(
    "a handshake without an end is given up in time, and the process is gone",
    () =>
      Effect.gen(function* () {
        const servers = yield* Servers
        const before = Date.now()
        assert.deepStrictEqual(yield* servers.tools, [])
        assert.isBelow(Date.now() - before, 15_000)
        const [status] = yield* servers.status
        assert.deepInclude(status, { state: "failed" })
        assert.strictEqual(status?.error?.reason, "TimedOut")
        const [first] = pids(status?.log ?? "")
        assert.isFalse(isAlive(first!))
      }).pipe(Effect.provide(layer({ h: { ...hostile("mute"), connectTimeout: 1_500 } }))),
    30_000
  )

  it.live(
    "closing a connection ends all processes of the server, also started ones and those that ignore signals",
    () =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const context = yield* Layer.buildWithScope(layer({ h: hostile("grandchild", "stubborn") }), scope)
        const servers = Context.get(context, Servers)
        yield* servers.tools
        const [status] = yield* servers.status
        const started = pids(status?.log ?? "")
        assert.strictEqual(started.length, 2)
        assert.deepStrictEqual(started.map(isAlive), [true, true])
        yield* Scope.close(scope, Exit.void)
        assert.deepStrictEqual(started.map(isAlive), [false, false])
      }),
    30_000
  )

  it.live(
    "5,000 tools in pages, cursors without an end, a storm of changes, noise",
    () =>
      Effect.gen(function* () {
        const servers = yield* Servers
        const tools = yield* servers.tools
        assert.strictEqual(tools.filter(({ server }) => server === "many").length, 5_011)
        assert.strictEqual(new Set(tools.map(({ name }) => name)).size, tools.length)
        yield* servers.call(one("endless", "storm"), {})
        yield* servers.call(one("endless", "echo"), {})
        const status = yield* servers.status
        assert.isTrue(status.every(({ log }) => log.length <= 20_000))
      }).pipe(
        Effect.provide(
          layer({
            many: { ...hostile("tools=5000", "page=500"), maxDefinitions: 10_000_000 },
            endless: hostile("endless", "noise")
          })
        )
      ),
    60_000
  )

  it.live(
    "a server that ends at the newer handshake gets the older one; no secret of ours reaches it",
    () =>
      Effect.gen(function* () {
        process.env["MCP_TEST_SECRET"] = "hunter2"
        const servers = yield* Servers
        yield* servers.tools
        const [status] = yield* servers.status
        assert.deepInclude(status, { state: "connected", protocolVersion: "2025-11-25" })
        assert.notInclude(status?.log ?? "", "hunter2")
        assert.include(status?.log ?? "", '"GIVEN":"yes"')
      }).pipe(Effect.provide(layer({ h: { ...hostile("exits", "env"), env: { GIVEN: "yes" } } }))),
    30_000
  )

  it.live(
    "a call without a sign of life is given up in time and cancelled, others are not",
    () =>
      Effect.gen(function* () {
        const servers = yield* Servers
        yield* servers.tools
        const slow = yield* Effect.flip(servers.call(one("h", "slow"), {}))
        assert.strictEqual(slow.reason, "TimedOut")
        assert.match(slow.message, /a call of "slow" without a sign of life took more than 1200 ms/)
        // Its words come for longer than that.
        const ticking = yield* servers.call(
          one("h", "ticking"),
          { times: 5, every: 400 },
          { onProgress: () => Effect.void }
        )
        assert.deepStrictEqual(ticking.content, [{ type: "text", text: "done" }])
        const [status] = yield* servers.status
        assert.match(status?.log ?? "", /cancelled/)
      }).pipe(Effect.provide(layer({ h: { ...hostile(), callTimeout: 1_200 } }))),
    30_000
  )

  it.live(
    "only the tools that are wanted and as they were pinned",
    () =>
      Effect.gen(function* () {
        const servers = yield* Servers
        const tools = yield* servers.tools
        assert.deepStrictEqual(
          tools.map(({ tool }) => tool),
          ["slow"]
        )
        const [status] = yield* servers.status
        assert.strictEqual(status?.problems.length, 2)
      }).pipe(
        Effect.provide(layer({ h: { ...hostile(), tools: ["slow", "echo", "ehco"], pins: { echo: "not this one" } } }))
      ),
    30_000
  )
})

describe("framing", () => {
  it("gives the same messages however they are cut", () => {
    fc.assert(
      fc.property(fc.array(fc.string()), fc.array(fc.nat(20), { minLength: 1 }), (texts, cuts) => {
        const wanted = texts.map((text) => text.replaceAll("\n", ""))
        const bytes = new TextEncoder().encode(wanted.map((text) => `${text}\n`).join(""))
        const feed = lines(1_000_000)
        const found: Array<string> = []
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const size = (cuts[turn % cuts.length] ?? 0) + 1
          for (const frame of feed(bytes.slice(at, at + size))) {
            if (frame._tag === "Whole") found.push(new TextDecoder().decode(frame.bytes))
          }
          at += size
        }
        // A decoder takes a byte order mark away.
        assert.deepStrictEqual(
          found,
          wanted.map((text) => new TextDecoder().decode(new TextEncoder().encode(text)))
        )
      }),
      { numRuns: scaled(200) }
    )
  })

  it("answers the request whose answer is too long, and no other", () => {
    const long = "x".repeat(5_000)
    const answerTo = (text: string) => {
      const [frame] = lines(1_000)(new TextEncoder().encode(`${text}\n`))
      return frame?._tag === "TooLong" && frame.answer !== undefined && "id" in frame.answer
        ? frame.answer.id
        : undefined
    }
    assert.strictEqual(answerTo(`{"jsonrpc":"2.0","id":7,"result":{"id":3,"a":"${long}"}}`), 7)
    assert.strictEqual(answerTo(`{"result":{"a":"${long}"},"jsonrpc":"2.0","id":8}`), 8)
    assert.isUndefined(answerTo(`{"result":{"id":5,"a":"${long}"},"jsonrpc":"2.0"}`))
  })
})

it("gives each tool a unique name that models accept, in any order of the servers", () => {
  const name = fc.oneof(fc.string(), fc.constantFrom("a", "a__b", "b", "b__c", "A", "a-b", "x".repeat(70)))
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.record({ server: name, tool: name }), {
        selector: ({ server, tool }) => JSON.stringify([server, tool])
      }),
      (some) => {
        // A server can work out the marks, and call a tool of its own so, and another one as that is called then.
        const marks = (of: typeof some) =>
          nameAll(of).map((made) => ({ server: made.slice(0, 1), tool: made.slice(3) }))
        const origins = Arr.dedupe([...some, ...marks(some), ...marks([...some, ...marks(some)])])
        const names = nameAll(origins)
        assert.isTrue(names.every((made) => /^[A-Za-z0-9_-]{1,64}$/u.test(made)))
        assert.strictEqual(new Set(names.map(normaliseName)).size, names.length)
        assert.deepStrictEqual(nameAll(origins.toReversed()).toReversed(), names)
      }
    ),
    { numRuns: scaled(400) }
  )
})
