/** Invalid and missing answers: their calls fail at once, and a lost connection is noticed. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { McpServers } from "../../src/mcp/index.ts"
import { type Behaviour, plain, scripted } from "./scripted.ts"
import { hostile, layer } from "./servers.ts"

const { McpServers: Servers } = McpServers

const echo = { server: "s", tool: "echo" }

const call = Effect.flatMap(Servers, (servers) => servers.call(echo, {}))

const failing = Effect.map(Effect.flip(call), ({ reason }) => reason)

describe("answers", { timeout: 30_000 }, () => {
  it.live.each([
    { result: 5 },
    { result: null },
    { result: [] },
    { error: null },
    { error: { message: "no code" } },
    { error: { code: 3.5, message: "half a code" } },
    { error: { code: 3, message: "both" }, result: { content: [] } },
    {}
  ])("what is no answer of the protocol fails its call: %j", (said) => {
    let isBad = true
    const answer: Behaviour = ({ id, method }, { reply, say }) =>
      method !== "tools/call"
        ? say({ id, error: { code: -32601, message: "Method not found" } })
        : isBad
          ? say({ id, ...said })
          : reply({ content: [] })
    const { layer: servers } = scripted(plain(false, () => ["echo"], answer))
    return Effect.gen(function* () {
      yield* (yield* Servers).tools
      assert.strictEqual(yield* failing, "Invalid")
      isBad = false
      yield* call
    }).pipe(Effect.provide(servers))
  })

  it.live("a deeply nested message fails its own call only", () =>
    Effect.gen(function* () {
      const { call: ask, status, tools } = yield* Servers
      yield* tools
      for (const tool of ["deepId", "deepResult"]) yield* Effect.ignore(ask({ server: "s", tool }, {}))
      assert.include(JSON.stringify(yield* ask(echo, { text: "still here" })), "still here")
      assert.strictEqual((yield* status)[0]?.state, "connected")
    }).pipe(Effect.provide(layer({ s: { ...hostile(), callTimeout: 5_000 } })))
  )

  it.live("a tool that lies too deep in itself is left out, and its server stays", () =>
    Effect.gen(function* () {
      const { status, tools } = yield* Servers
      assert.deepStrictEqual(yield* tools, [])
      const [{ error, state } = {}] = yield* status
      assert.deepStrictEqual([state, error], ["connected", undefined])
    }).pipe(Effect.provide(layer({ s: hostile("deepSchema") })))
  )
})

type Answer = (response: ServerResponse, request: IncomingMessage) => void

const events = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { "content-type": "text/event-stream" })

/** A server by HTTP that answers calls as it is told to. */
const serve = (answer: Answer) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly url: string; readonly close: () => void }>((resume) => {
      const server = createServer((request, response) => {
        let body = ""
        request.on("data", (part: Buffer) => {
          body += part.toString()
        })
        request.on("end", () => {
          if (request.method !== "POST") return void response.writeHead(405).end()
          const { id, method } = JSON.parse(body) as { readonly id?: number; readonly method: string }
          if (id === undefined) return void response.writeHead(202).end()
          if (method === "tools/call") return answer(response, request)
          const results: { readonly [method: string]: object } = {
            initialize: {
              protocolVersion: "2025-11-25",
              capabilities: { tools: {} },
              serverInfo: { name: "cut", version: "1" }
            },
            "tools/list": { tools: [{ name: "echo", inputSchema: { type: "object" } }] }
          }
          const result = results[method]
          const said = result === undefined ? { error: { code: -32601, message: "Method not found" } } : { result }
          response.writeHead(200, { "content-type": "application/json" })
          response.end(JSON.stringify({ jsonrpc: "2.0", id, ...said }))
        })
      })
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" ? address?.port : undefined
        const close = (): void => {
          server.closeAllConnections()
          server.close()
        }
        resume(Effect.succeed({ url: `http://127.0.0.1:${port}/mcp`, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

describe("answers by HTTP", { timeout: 30_000 }, () => {
  it.live.each([
    ["ends without the answer", (response) => void events(response).end()],
    ["ends in the middle of it", (response) => void events(response).end('data: {"jsonrpc":"2.0","id"')],
    ["has another answer", (response) => void events(response).end('data: {"jsonrpc":"2.0","id":999,"result":{}}\n\n')],
    [
      "is cut off",
      (response, request) => {
        events(response).write(": a sign of life\n\n")
        setImmediate(() => request.socket.destroy())
      }
    ],
    ["can't be taken up again", (response) => void events(response).end("id: 1\nretry: 5\ndata: \n\n")]
  ] satisfies ReadonlyArray<readonly [string, Answer]>)("a call whose stream %s is lost at once", ([, answer]) =>
    Effect.gen(function* () {
      const { url } = yield* serve(answer)
      yield* Effect.gen(function* () {
        yield* (yield* Servers).tools
        assert.strictEqual(yield* failing, "Lost")
      }).pipe(Effect.provide(layer({ s: { type: "http", url } })))
    })
  )
})
