import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { type McpConfig, McpServers } from "../../src/mcp/index.ts"
import { everything, filesystem, hostile, layer, platform, until } from "./servers.ts"

const { McpServers: Servers } = McpServers

describe("McpServers", () => {
  it.effect("names the type that a server of an editor's file lacks", () =>
    Effect.gen(function* () {
      const wrong: ReadonlyArray<readonly [unknown, RegExp]> = [
        [{ files: { command: "npx" } }, /the server "files" has no type; a server with a command has type: "stdio"/],
        [{ far: { url: "https://mcp.example" } }, /the server "far" has no type; a server with a url has type: "http"/],
        [{ files: { type: "stdoi", command: "npx" } }, /no such type\. Did you mean "stdio"\?/],
        [
          { mcpServers: { files: { command: "npx" } } },
          /"mcpServers" has no type; give the servers by their names, or/
        ],
        [{ files: "npx" }, /the server "files" is no object with a type/]
      ]
      for (const [servers, message] of wrong) {
        // As a program without types gives them.
        const built = Layer.build(McpServers.layer(servers as McpConfig.Servers).pipe(Layer.provide(platform)))
        const exit = yield* Effect.exit(Effect.scoped(built))
        assert.match(exit._tag === "Failure" ? Cause.pretty(exit.cause) : "", message)
      }
    })
  )

  it.live(
    "connects to all servers at once, and goes on without the missing server",
    () =>
      Effect.gen(function* () {
        const servers = yield* Servers
        const tools = yield* servers.tools
        assert.includeMembers(
          tools.map(({ name }) => name),
          ["everything__echo", "files__read_text_file"]
        )
        assert.strictEqual(yield* servers.tools, tools)
        assert.deepInclude(
          tools.find(({ tool }) => tool === "read_text_file"),
          {
            server: "files",
            annotations: { readOnly: true, openWorld: false }
          }
        )
        const status = yield* servers.status
        assert.deepStrictEqual(
          status.map(({ name, state }) => [name, state]),
          [
            ["everything", "connected"],
            ["files", "connected"],
            ["missing", "failed"],
            ["off", "disabled"]
          ]
        )
        assert.match(status[2]?.error?.message ?? "", /there is no program "no-such-command" here/)
        const echo = yield* servers.call({ server: "everything", tool: "echo" }, { message: "hello" })
        assert.deepStrictEqual(echo.content, [{ type: "text", text: "Echo: hello" }])
        const links = yield* servers.call({ server: "everything", tool: "get-resource-links" }, {})
        assert.strictEqual(links.sources[0]?.key, "demo://resource/dynamic/blob/1")
        const image = yield* servers.call({ server: "everything", tool: "get-tiny-image" }, {})
        assert.strictEqual(image.content[1]?.type, "image")
        const weather = yield* servers.call(
          { server: "everything", tool: "get-structured-content" },
          { location: "New York" }
        )
        assert.hasAllKeys(weather.structured, ["temperature", "conditions", "humidity"])
        const unknown = yield* Effect.flip(servers.call({ server: "nobody", tool: "x" }, {}))
        assert.match(unknown.message, /there is no MCP server "nobody"; there are: everything, files, missing/)
        assert.strictEqual((yield* Effect.flip(servers.call({ server: "off", tool: "x" }, {}))).reason, "Disabled")
      }).pipe(
        Effect.provide(
          layer({
            everything,
            files: filesystem("/tmp"),
            missing: { type: "stdio", command: "no-such-command" },
            off: { ...everything, enabled: false }
          })
        )
      ),
    30_000
  )

  it.live(
    "tells servers its folders as addresses of files, also as Windows writes them",
    () =>
      Effect.gen(function* () {
        const servers = yield* Servers
        const { content } = yield* servers.call({ server: "everything", tool: "get-roots-list" }, {})
        const said = JSON.stringify(content)
        for (const uri of ["file:///srv/a%20b%23", "file:///C:/work/a%20b", "file:///d:/x", "file://host/share/x"]) {
          assert.include(said, uri)
        }
      }).pipe(
        Effect.provide(
          McpServers.layer(
            { everything },
            { roots: ["/srv/a b#", "C:\\work\\a b", "d:/x", "\\\\host\\share\\x", "file:///as/it/is"] }
          ).pipe(Layer.provide(platform))
        )
      ),
    30_000
  )

  it.live(
    "a server that dies in a call fails this call, and is connected to again",
    () =>
      Effect.gen(function* () {
        const servers = yield* Servers
        const before = yield* servers.tools
        const error = yield* Effect.flip(servers.call({ server: "h", tool: "die" }, {}))
        assert.deepInclude(error, { reason: "Lost", isRetryable: true })
        const echo = yield* servers.call({ server: "h", tool: "echo" }, { text: "back" })
        assert.deepStrictEqual(echo.content, [{ type: "text", text: "back" }])
        assert.deepStrictEqual(
          (yield* servers.tools).map(({ name }) => name),
          before.map(({ name }) => name)
        )
      }).pipe(Effect.provide(layer({ h: hostile() }))),
    30_000
  )

  it.live(
    "an interrupted call is cancelled at the server",
    () =>
      Effect.gen(function* () {
        const servers = yield* Servers
        yield* servers.tools
        const fiber = yield* Effect.forkChild(servers.call({ server: "h", tool: "slow" }, {}))
        yield* Effect.sleep(50)
        yield* Fiber.interrupt(fiber)
        yield* servers.call({ server: "h", tool: "echo" }, {})
        // What it says beside the protocol comes by another way, and may be later.
        yield* servers.status.pipe(
          Effect.delay(20),
          Effect.repeat({ until: ([status]) => /cancelled/u.test(status?.log ?? "") }),
          Effect.timeout("15 seconds")
        )
        yield* until("h", ({ state }) => state === "connected")
      }).pipe(Effect.provide(layer({ h: hostile() }))),
    30_000
  )

  it.live(
    "tells of the changes of a resource, once for all who listen",
    () =>
      Effect.gen(function* () {
        const servers = yield* Servers
        yield* servers.tools
        const uri = "demo://resource/dynamic/text/1"
        const next = Stream.runHead(servers.updates("everything", uri))
        const both = yield* Effect.forkChild(Effect.all([next, next], { concurrency: "unbounded" }))
        yield* Effect.sleep(200)
        yield* servers.call({ server: "everything", tool: "toggle-subscriber-updates" }, {})
        const [first, second] = yield* Fiber.join(both)
        assert.isTrue(Option.isSome(first) && Option.isSome(second))
        const refused = yield* Effect.flip(Stream.runHead(servers.updates("h", uri)))
        assert.match(refused.message, /"h": it offers no subscriptions to resources/)
      }).pipe(Effect.provide(layer({ everything, h: hostile() }))),
    30_000
  )

  it.live(
    "reports an unreachable server with the next step, and without possible secrets",
    () => {
      const node = (...args: ReadonlyArray<string>) => ({ type: "stdio" as const, command: process.execPath, args })
      const failures: { readonly [name: string]: readonly [McpConfig.Server, RegExp] } = {
        command: [{ type: "stdio", command: "nodde", args: ["hunter2"] }, /no program "nodde" here: install it/],
        folder: [{ ...node("hunter2"), cwd: "/nowhere" }, /its folder "\/nowhere" can't be used/],
        program: [node("/nowhere/server.js"), /it said: Error: Cannot find module '\/nowhere\/server\.js' \(/],
        says: [node("-e", "console.error('set KEY'); process.exit(1)"), /it said: set KEY \(/],
        address: [{ type: "http", url: "example.com?token=hunter2" }, /"example\.com" is not an address of http/],
        scheme: [{ type: "http", url: "htps://ada:hunter2@host/x#hunter2" }, /"…@host\/x" is not an address of http/],
        password: [{ type: "http", url: "http://ada:hunter2@127.0.0.1:1/" }, /a password stands in its address/],
        port: [{ type: "http", url: "http://127.0.0.1:1/?token=hunter2" }, /connect ECONNREFUSED 127\.0\.0\.1:1/]
      }
      const servers = Object.fromEntries(Object.entries(failures).map(([name, [server]]) => [name, server]))
      return Effect.gen(function* () {
        const service = yield* McpServers.McpServers
        yield* service.tools
        const all = yield* service.status
        for (const { error, log, name } of all) {
          assert.match(error?.message ?? "", failures[name]?.[1] ?? /^$/)
          assert.notInclude(`${error?.message}${log}`, "hunter2")
        }
        assert.lengthOf(all, Object.keys(failures).length)
      }).pipe(Effect.provide(layer(servers)))
    },
    60_000
  )
})
