import { execFile } from "node:child_process"
import { createServer, type Server } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { bundle } from "../bundle.ts"

const events = (lines: ReadonlyArray<readonly [event: string | undefined, data: unknown]>) =>
  lines
    .map(([event, data]) => `${event === undefined ? "" : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`)
    .join("")

const chunk = (delta: object, finish: string | null) => ({
  id: "c",
  object: "chat.completion.chunk",
  created: 1,
  model: "x",
  choices: [{ index: 0, delta, finish_reason: finish }]
})

const openai = `${events([
  [undefined, chunk({ role: "assistant", content: "by proxy" }, null)],
  [undefined, chunk({}, "stop")]
])}data: [DONE]\n\n`

const anthropic = events(
  [
    {
      type: "message_start",
      message: {
        id: "m",
        type: "message",
        role: "assistant",
        model: "claude-x",
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 1, output_tokens: 1 }
      }
    },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "by proxy" } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 2 } },
    { type: "message_stop" }
  ].map((event) => [event.type, event] as const)
)

/** A proxy that answers in the place of the host it is asked for, and remembers which that was. */
const proxy = Effect.acquireRelease(
  Effect.callback<{ readonly server: Server; readonly hosts: Array<string>; readonly port: number }>((resume) => {
    const hosts: Array<string> = []
    const server = createServer((request, response) => {
      hosts.push(request.headers.host ?? "")
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.end((request.url ?? "").endsWith("/messages") ? anthropic : openai)
    })
    // A request through a tunnel is answered in it.
    server.on("connect", (_request, socket) => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n")
      server.emit("connection", socket)
    })
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      resume(Effect.succeed({ server, hosts, port }))
    })
  }),
  ({ server }) => Effect.sync(() => (server.closeAllConnections(), server.close()))
)

const ask = (which: string, env: Record<string, string>) =>
  Effect.callback<string>((resume) => {
    const child = bundle(new URL("proxy-child.ts", import.meta.url))
    execFile(
      process.execPath,
      [child, which],
      { env: { PATH: process.env["PATH"] ?? "", ...env }, timeout: 60_000 },
      (error, stdout, stderr) => resume(Effect.succeed(error === null ? stdout.trim() : stderr))
    )
  })

describe("a proxy by the environment", () => {
  for (const which of ["openai", "anthropic"]) {
    it.live(
      `is what ${which}'s requests go through`,
      () =>
        Effect.gen(function* () {
          const { hosts, port } = yield* proxy
          const env = { NODE_USE_ENV_PROXY: "1", HTTP_PROXY: `http://127.0.0.1:${port}` }
          assert.strictEqual(yield* ask(which, env), "by proxy")
          assert.deepStrictEqual(hosts, ["model.invalid"])
          // Without it there is no such host.
          assert.include(yield* ask(which, {}), "ModelError")
        }).pipe(Effect.scoped),
      60_000
    )
  }
})
