/**
 * Definitions without a bound, lists with faults, and secrets that a server says again.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Tracer from "effect/Tracer"
import { Agent } from "../../src/index.ts"
import { Mcp, type McpConfig, McpConfigFile, McpServers } from "../../src/mcp/index.ts"
import { TestChatModel } from "../../src/testing/index.ts"
import { serve } from "../net/servers.ts"
import { type Behaviour, scripted, turns } from "./scripted.ts"
import { layer } from "./servers.ts"

const { McpServers: Servers } = McpServers

const open = { inputSchema: { type: "object" } }

/** A server with a list of its own, of whatever form. */
const listing =
  (tools: unknown, more: Behaviour = () => undefined): Behaviour =>
  (message, side, start) => {
    if (message.method === "initialize") {
      const capabilities = { tools: {}, logging: {} }
      return side.reply({ protocolVersion: "2025-11-25", capabilities, serverInfo: { name: "s", version: "1" } })
    }
    if (message.method === "tools/list") return side.reply({ tools })
    if (message.method === "server/discover")
      return side.say({ id: message.id, error: { code: -32601, message: "no" } })
    more(message, side, start)
  }

const large = (properties: number) => ({
  inputSchema: {
    type: "object",
    properties: Object.fromEntries(Array.from({ length: properties }, (_, n) => [`field_${n}`, { type: "string" }]))
  }
})

const offered = Servers.use((servers) =>
  Effect.gen(function* () {
    const names = (yield* servers.tools).map(({ tool }) => tool)
    const [status] = yield* servers.status
    return { names, status, problems: status?.problems ?? [] }
  })
)

describe("definitions", () => {
  it.live("a tool with a large definition is left out, with a warning that names the server and the tool", () =>
    Effect.gen(function* () {
      const { layer: s } = scripted(
        listing([
          { name: "small", ...open },
          { name: "huge", ...large(60_000) }
        ])
      )
      yield* Effect.gen(function* () {
        const { names, problems } = yield* offered
        assert.deepStrictEqual(names, ["small"])
        assert.match(problems.join(), /the tool "huge" is left out: its definition has \d{7} bytes.*maxDefinition/)
        const agent = Agent.make({ name: "a", prompt: "p", middleware: [Mcp.make()] })
        const events = yield* Stream.runCollect(Agent.stream(agent, "go"))
        const warnings = events.flatMap((event) => (event._tag === "Warning" ? [`${event.code} ${event.message}`] : []))
        assert.match(warnings.join(), /^mcp-server-problem the MCP server "s": the tool "huge" is left out/)
      }).pipe(Effect.provide([s, TestChatModel.script(["done"])]))
    })
  )

  it.live("the definitions of a server have a bound together; its options set both", () =>
    Effect.gen(function* () {
      const many = Array.from({ length: 30 }, (_, n) => ({ name: `t${n}`, ...large(300) }))
      const { layer: usual } = scripted(listing(many))
      const { names, problems } = yield* Effect.provide(offered, usual)
      assert.isBelow(JSON.stringify(many.slice(0, names.length)).length, 256_000)
      assert.isAbove(names.length, 10)
      assert.isBelow(names.length, 30)
      assert.match(
        problems.join(),
        new RegExp(`${30 - names.length} tools are left out.*"t${names.length}".*\`tools\``)
      )
      const { layer: wide } = scripted(listing(many), { maxDefinitions: 10_000_000 })
      assert.strictEqual((yield* Effect.provide(offered, wide)).names.length, 30)
      const { layer: narrow } = scripted(listing(many), { maxDefinition: 100 })
      assert.strictEqual((yield* Effect.provide(offered, narrow)).names.length, 0)
      const { layer: chosen } = scripted(listing(many), { tools: ["t29"] })
      assert.deepStrictEqual((yield* Effect.provide(offered, chosen)).names, ["t29"])
    })
  )

  it.live("a tool that is not of the protocol is left out alone, with a problem", () =>
    Effect.gen(function* () {
      const bad = [{ name: "bad", inputSchema: { type: "string" } }, { name: 1, ...open }, null, "x", { ...open }]
      const { counts, layer: s } = scripted(
        listing([{ name: "good", ...open }, ...bad], (message, side) => {
          if (message.method === "tools/call") side.reply({ content: [{ type: "text", text: "done" }] })
        })
      )
      yield* Effect.gen(function* () {
        const { names, problems, status } = yield* offered
        assert.deepStrictEqual(names, ["good"])
        assert.strictEqual(status?.state, "connected")
        assert.strictEqual(problems.length, bad.length)
        assert.match(problems.join("\n"), /the tool "bad" is left out.*inputSchema\.type.*its author must correct it/)
        const servers = yield* Servers
        const { content } = yield* servers.call({ server: "s", tool: "good" }, {})
        assert.deepStrictEqual(content, [{ type: "text", text: "done" }])
      }).pipe(Effect.provide(s))
      assert.isAtMost(counts.started, 2)
    })
  )

  it.effect("a server whose list is of no form is not started again and again", () =>
    Effect.gen(function* () {
      const { counts, layer: s } = scripted(listing("nonsense"))
      yield* Effect.gen(function* () {
        const servers = yield* Servers
        for (let second = 0; second < 60; second++) {
          yield* turns
          yield* turns
          yield* TestClock.adjust("1 second")
        }
        yield* turns
        const [status] = yield* servers.status
        assert.strictEqual(status?.state, "failed")
        assert.strictEqual(status?.error?.reason, "Invalid")
        assert.isUndefined(status?.retryAt)
        const started = counts.started
        assert.isAtMost(started, 6)
        yield* servers.reconnect("s")
        yield* turns
        assert.isAbove(counts.started, started)
      }).pipe(Effect.provide(s))
    })
  )
})

describe("calls", () => {
  it.effect("a call that says again and again that it makes progress ends at the limit", () =>
    Effect.gen(function* () {
      let token: unknown
      let tell: ((progress: number) => void) | undefined
      const { layer: s } = scripted(
        listing([{ name: "slow", ...open }], (message, side) => {
          if (message.method !== "tools/call") return
          token = (message.params?.["_meta"] as { progressToken?: unknown } | undefined)?.progressToken
          tell = (progress) =>
            side.say({ method: "notifications/progress", params: { progressToken: token, progress } })
        }),
        { callTimeout: 60_000, maxCallTime: 600_000 }
      )
      yield* Effect.gen(function* () {
        const servers = yield* Servers
        yield* servers.tools
        const call = yield* Effect.forkChild(Effect.flip(servers.call({ server: "s", tool: "slow" }, {})))
        yield* turns
        for (let half = 1; half < 20; half++) {
          tell?.(half)
          yield* turns
          yield* TestClock.adjust("30 seconds")
        }
        assert.isUndefined(call.pollUnsafe())
        tell?.(21)
        yield* turns
        yield* TestClock.adjust("30 seconds")
        const error = yield* Fiber.join(call)
        assert.strictEqual(error.reason, "TimedOut")
        assert.match(error.message, /a call of "slow" took more than 600000 ms/)
      }).pipe(Effect.provide(s))
    })
  )
})

const key = "sk-4fQ9z/T71xx+b"

/** The forms of the secret, in which it may be said. */
const leaks = [key, key.toUpperCase(), Buffer.from(key).toString("hex"), Buffer.from(key).toString("base64"), "4fQ9z"]

const assertClean = (values: ReadonlyArray<unknown>) => {
  const text = values.map((value) => (typeof value === "string" ? value : JSON.stringify(value))).join("\n")
  for (const leak of leaks) assert.notInclude(text, leak)
  return text
}

/** Collects spans and logs. */
const watching = (seen: Array<unknown>) =>
  Layer.merge(
    Layer.succeed(
      Tracer.Tracer,
      Tracer.make({
        span: (options) => {
          const span = new Tracer.NativeSpan(options)
          const end = span.end.bind(span)
          return Object.assign(span, {
            end: (time: bigint, exit: Parameters<typeof end>[1]) => {
              seen.push(span.name, [...span.attributes], exit._tag === "Failure" ? Cause.pretty(exit.cause) : "")
              end(time, exit)
            }
          })
        }
      })
    ),
    Logger.layer([Logger.make((options) => seen.push(String(options.message)))])
  )

describe("secrets that a server says again", () => {
  it.live("keeps secrets of a server's environment out of descriptions, results, errors, events and logs", () =>
    Effect.gen(function* () {
      const say = (text: string) => ({ content: [{ type: "text", text }], structuredContent: { [text]: text } })
      const { layer: s } = scripted(
        listing(
          ["ok", "fails"].map((name) => ({ name, description: `It has ${key}`, ...open })),
          (message, side) => {
            if (message.method !== "tools/call") return
            side.say({ method: "notifications/message", params: { level: "info", data: `log ${key}` } })
            if (message.params?.["name"] === "ok") side.reply(say(leaks.slice(0, 4).join(" ")))
            else side.say({ id: message.id, error: { code: -32000, message: `no: ${key}` } })
          }
        ),
        {
          approval: "never",
          env: { KEY: Redacted.make(key), ROOT: Redacted.make("/srv/project"), MODE: Redacted.make("production") }
        }
      )
      yield* Effect.gen(function* () {
        const servers = yield* Servers
        const failure = yield* Effect.flip(servers.call({ server: "s", tool: "fails" }, {}))
        const model = TestChatModel.script([
          TestChatModel.calls([
            { name: "s__ok", arguments: {} },
            { name: "s__fails", arguments: {} }
          ]),
          "done"
        ])
        const agent = Agent.make({ name: "a", prompt: "p", middleware: [Mcp.make()] })
        const events = yield* Effect.provide(Stream.runCollect(Agent.stream(agent, "go")), model)
        const tools = (yield* servers.tools).map(({ description, parameters }) => ({ description, parameters }))
        const text = assertClean([failure.message, String(failure.cause), events, tools, yield* servers.status])
        assert.include(text, "[secret KEY]")
      }).pipe(Effect.provide(s))
    })
  )

  it.live(
    "keeps secrets of an address and of headers out of spans, errors and results, and leaves paths and words alone",
    () =>
      Effect.gen(function* () {
        const server = yield* serve((request, response, body) => {
          const { id, method, params } = JSON.parse(body === "" ? "{}" : body)
          if (request.method !== "POST") return void response.writeHead(405).end()
          if (id === undefined) return void response.writeHead(202).end()
          if (params?.name === "breaks") {
            return void response.writeHead(500).end(`${request.url} ${request.headers["authorization"]}`)
          }
          const text = `${request.url} ${request.headers["authorization"]} production /srv/project`
          const results: Record<string, unknown> = {
            initialize: {
              protocolVersion: "2025-11-25",
              capabilities: { tools: {} },
              serverInfo: { name: "s", version: "1" }
            },
            "tools/list": { tools: ["ok", "breaks"].map((name) => ({ name, ...open })) },
            "tools/call": { content: [{ type: "text", text }] }
          }
          const answer =
            results[method] === undefined ? { error: { code: -32601, message: "no" } } : { result: results[method] }
          response
            .writeHead(200, { "content-type": "application/json" })
            .end(JSON.stringify({ jsonrpc: "2.0", id, ...answer }))
        })
        const word = encodeURIComponent(key)
        const configs: Record<string, McpConfig.Server> = {
          query: { type: "http", url: `${server.url}/mcp?key=${word}` },
          path: { type: "http", url: Redacted.make(`${server.url}/mcp/${word}/x`) },
          header: {
            type: "http",
            url: `${server.url}/mcp`,
            headers: { authorization: Redacted.make(`Bearer ${key}`), mode: Redacted.make("production") }
          },
          gone: { type: "http", url: `http://127.0.0.1:1/mcp?key=${word}` }
        }
        const seen: Array<unknown> = []
        yield* Effect.gen(function* () {
          const servers = yield* Servers
          yield* servers.tools
          for (const name of ["query", "path", "header"]) {
            const result = yield* servers.call({ server: name, tool: "ok" }, {})
            const failure = yield* Effect.flip(servers.call({ server: name, tool: "breaks" }, {}))
            yield* Effect.logError("failed", failure)
            seen.push(result, failure.message, String(failure.cause), JSON.stringify(failure))
            const text = JSON.stringify(result)
            assert.match(text, /\[secret /)
            assert.include(text, "production /srv/project")
          }
          seen.push(yield* servers.status)
        }).pipe(Effect.withSpan("all"), Effect.provide(layer(configs)), Effect.provide(watching(seen)))
        assert.include(server.seen.map(({ url }) => url).join(), word)
        const text = assertClean(seen)
        assert.notInclude(text, word)
        assert.include(text, "all")
      })
  )

  it.effect("an address of a file with a value of the environment is a secret", () =>
    Effect.gen(function* () {
      const file = JSON.stringify({
        mcpServers: {
          a: { url: "https://mcp.example.com/${KEY}" },
          b: { url: "https://mcp.example.com/", maxDefinition: 5000, maxCallTime: 1000 }
        }
      })
      const { servers, warnings } = yield* McpConfigFile.parse("/srv/.mcp.json", file)
      const { a, b } = servers
      assert.deepStrictEqual(warnings, [])
      assert.isTrue(a?.type === "http" && Redacted.isRedacted(a.url) && Redacted.value(a.url).endsWith(key))
      assert.deepStrictEqual(b, {
        type: "http",
        url: "https://mcp.example.com/",
        maxDefinition: 5000,
        maxCallTime: 1000
      })
    }).pipe(Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ KEY: key }))))
  )
})
