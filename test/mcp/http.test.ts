/**
 * Servers that are reached by HTTP: by both transports, after a restart, and with answers over the limit.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { McpServers } from "../../src/mcp/index.ts"
import { everything, layer, until } from "./servers.ts"

const { McpServers: Servers } = McpServers

const freePort = Effect.callback<number>((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    server.close(() => resume(Effect.succeed(typeof address === "object" ? (address?.port ?? 0) : 0)))
  })
})

/** Starts server-everything; it is killed with the scope, or before. */
const start = (mode: "sse" | "streamableHttp", port: number) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      spawn(everything.command, [...(everything.args ?? []), mode], {
        env: { ...process.env, PORT: String(port) },
        stdio: "ignore"
      })
    ),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )

const killed = (child: ChildProcess) =>
  Effect.callback<void>((resume) => {
    child.once("exit", () => resume(Effect.void))
    child.kill("SIGKILL")
  })

const sum = Servers.use((servers) => servers.call({ server: "s", tool: "get-sum" }, { a: 2, b: 3 }))

describe("servers by HTTP", () => {
  it.live.each(["sse", "http"] as const)(
    "a server of the older transport, by the type %s",
    (type) =>
      Effect.gen(function* () {
        const port = yield* freePort
        yield* start("sse", port)
        yield* Effect.gen(function* () {
          yield* until("s", ({ state }) => state === "connected")
          assert.include(JSON.stringify(yield* sum), "5")
        }).pipe(Effect.provide(layer({ s: { type, url: `http://127.0.0.1:${port}/sse` } })))
      }),
    60_000
  )

  it.live(
    "a server that was killed and started again is connected to again",
    () =>
      Effect.gen(function* () {
        const port = yield* freePort
        const first = yield* start("streamableHttp", port)
        yield* Effect.gen(function* () {
          yield* until("s", ({ state }) => state === "connected")
          assert.include(JSON.stringify(yield* sum), "5")
          yield* killed(first)
          const error = yield* Effect.flip(sum)
          assert.oneOf(error.reason, ["Lost", "Unavailable"])
          yield* start("streamableHttp", port)
          const again = yield* Effect.retry(sum, { times: 5 })
          assert.include(JSON.stringify(again), "5")
          const [status] = yield* Servers.use(({ status: all }) => all)
          assert.strictEqual(status?.state, "connected")
        }).pipe(Effect.provide(layer({ s: { type: "http", url: `http://127.0.0.1:${port}/mcp` } })))
      }),
    90_000
  )

  it.live(
    "an answer over the limit costs its call and not the connection, as JSON and as an event",
    () =>
      Effect.gen(function* () {
        let handshakes = 0
        const results: { readonly [method: string]: unknown } = {
          initialize: {
            protocolVersion: "2025-11-25",
            capabilities: { tools: {} },
            serverInfo: { name: "large", version: "1" }
          },
          "tools/list": { tools: ["json", "event", "small"].map((name) => ({ name, inputSchema: { type: "object" } })) }
        }
        const answer = (request: IncomingMessage, response: ServerResponse, text: string): void => {
          const { id, method, params } = JSON.parse(text || "{}")
          if (method === "initialize") handshakes++
          if (request.method !== "POST") return void response.writeHead(405).end()
          if (id === undefined) return void response.writeHead(202).end()
          const { name = "" } = params ?? {}
          const called = { content: [{ type: "text", text: name === "small" ? "small" : "x".repeat(3_000_000) }] }
          const result = method === "tools/call" ? called : results[method]
          const error = { code: -32601, message: "Method not found" }
          const body = JSON.stringify({ jsonrpc: "2.0", id, ...(result === undefined ? { error } : { result }) })
          if (name === "event") {
            response.writeHead(200, { "content-type": "text/event-stream" }).end(`event: message\ndata: ${body}\n\n`)
          } else response.writeHead(200, { "content-type": "application/json" }).end(body)
        }
        const server = yield* Effect.acquireRelease(
          Effect.sync(() =>
            createServer((request, response) => {
              let text = ""
              request.setEncoding("utf8")
              request.on("data", (chunk: string) => (text += chunk))
              request.on("end", () => answer(request, response, text))
            })
          ),
          (made) => Effect.sync(() => made.close().closeAllConnections())
        )
        const port = yield* freePort
        yield* Effect.callback<void>((resume) => {
          server.listen(port, "127.0.0.1", () => resume(Effect.void))
        })
        yield* Effect.gen(function* () {
          const servers = yield* Servers
          for (const tool of ["json", "event"]) {
            const error = yield* Effect.flip(servers.call({ server: "s", tool }, {}))
            assert.strictEqual(error.reason, "Invalid", tool)
            assert.match(error.message, /over the limit of 1000000/u)
          }
          assert.include(JSON.stringify(yield* servers.call({ server: "s", tool: "small" }, {})), "small")
          assert.strictEqual(handshakes, 1)
        }).pipe(
          Effect.provide(layer({ s: { type: "http", url: `http://127.0.0.1:${port}/mcp` } }, { maxMessage: 1_000_000 }))
        )
      }),
    30_000
  )
})
