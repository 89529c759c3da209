import { existsSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { AcpServer } from "effect-deepagents/acp"
import { MemorySessions } from "effect-deepagents/sessions"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"
import { coder, models } from "./agents.ts"
import { makeFolder, openServer } from "./editor.ts"

interface Answer {
  readonly id?: unknown
  readonly method?: string
  readonly result?: { readonly sessionId?: string }
  readonly error?: { readonly code: number }
}

/** A client that writes lines, and reads lines. */
const openClient = Effect.fnUntraced(function* (maxMessageBytes = 1_000_000) {
  const server = Layer.launch(AcpServer.layer({ agents: { coder }, maxMessageBytes }))
  const { input, output, over } = yield* openServer(Effect.provide(server, [models, MemorySessions.layer]))
  const writer = input.getWriter()
  const reader = output.getReader()
  const waiting = new Map<string, (answer: Answer) => void>()
  const requests: Array<Answer> = []
  let rest = ""
  const readNext = async (): Promise<void> => {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      rest += Buffer.from(value).toString("utf8")
      const lines = rest.split("\n")
      rest = lines.pop() ?? ""
      for (const line of lines) {
        const answer: Answer = JSON.parse(line)
        if (answer.method !== undefined && answer.id !== undefined) requests.push(answer)
        waiting.get(JSON.stringify(answer.id))?.(answer)
      }
    }
  }
  void readNext().catch(() => {})
  let last = 0
  const send = (line: string) => writer.write(Buffer.from(`${line}\n`))
  const ask = (method: string, params: unknown, id: unknown = `q${(last += 1)}`) =>
    new Promise<Answer>((resolve) => {
      waiting.set(JSON.stringify(id), resolve)
      void send(JSON.stringify({ jsonrpc: "2.0", id, method, params }))
    })
  return { ask, send, requests, over, leave: () => writer.close() }
})

const begin = Effect.fnUntraced(function* () {
  const client = yield* openClient()
  const cwd = makeFolder()
  yield* Effect.promise(() => client.ask("initialize", { protocolVersion: 1, clientCapabilities: {} }))
  const opened = yield* Effect.promise(() => client.ask("session/new", { cwd, mcpServers: [] }))
  return { ...client, cwd, sessionId: opened.result?.sessionId ?? "" }
})

const methods = [
  "initialize",
  "authenticate",
  "session/new",
  "session/load",
  "session/resume",
  "session/list",
  "session/close",
  "session/delete",
  "session/set_mode",
  "session/set_config_option",
  "session/prompt",
  "session/cancel",
  "fs/read_text_file",
  "nonsense"
]

/** Lines that no editor writes: broken JSON, wrong types, unknown methods, answers to nothing, ids that come twice. */
const lines = fc.oneof(
  fc.string({ maxLength: 60 }).map((text) => text.replaceAll(/[\n\r]/g, " ")),
  fc.json(),
  fc
    .record({
      jsonrpc: fc.constantFrom("2.0", "1.0", 2),
      id: fc.constantFrom(1, "1", null, 1.5),
      method: fc.constantFrom(...methods),
      params: fc.oneof(
        fc.jsonValue(),
        fc.record({
          sessionId: fc.constantFrom("none", "__proto__", 7, null),
          cwd: fc.constantFrom("relative", "/tmp/\0", "/no/such/folder", 3),
          mcpServers: fc.constantFrom([], null, [{ name: "x" }], "many"),
          prompt: fc.constantFrom([], "hi", [{ type: "audio", data: "", mimeType: "a/b" }], [{ type: "text" }])
        })
      )
    })
    .map((message) => JSON.stringify(message)),
  fc
    .record({ jsonrpc: fc.constant("2.0"), id: fc.nat(5), result: fc.jsonValue() })
    .map((message) => JSON.stringify(message))
)

describe("AcpServer: hostile clients", { timeout: 60_000 }, () => {
  it.live("answers anything, and serves the next request", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const client = yield* begin()
        yield* Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(fc.array(lines, { maxLength: 20 }), async (written) => {
              for (const line of written) await client.send(line)
              const listed = await client.ask("session/list", {})
              assert.isDefined(listed.result)
            }),
            { numRuns: scaled(200) }
          )
        )
      })
    )
  )

  it.live("lets nothing run by answers that come unasked, twice, or for another question", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const client = yield* begin()
        const file = join(client.cwd, "a.txt")
        const approved = { outcome: { outcome: "selected", optionId: "once" } }
        for (const id of [0, 1, 2, "0", "1", null]) {
          yield* Effect.promise(() => client.send(JSON.stringify({ jsonrpc: "2.0", id, result: approved })))
        }
        const prompt = { sessionId: client.sessionId, prompt: [{ type: "text", text: `write ${file}` }] }
        const running = client.ask("session/prompt", prompt)
        yield* Effect.suspend(() => (client.requests.length > 0 ? Effect.void : Effect.fail("not yet"))).pipe(
          Effect.eventually
        )
        const id = client.requests[0]?.id
        const wrong = JSON.stringify({ jsonrpc: "2.0", id: `${String(id)}x`, result: approved })
        const refused = JSON.stringify({ jsonrpc: "2.0", id, result: { outcome: { outcome: "cancelled" } } })
        const late = JSON.stringify({ jsonrpc: "2.0", id, result: approved })
        for (const line of [wrong, refused, late]) yield* Effect.promise(() => client.send(line))
        yield* Effect.promise(() => running)
        assert.isFalse(existsSync(file))
      })
    )
  )

  it.live("ends the connection for a message that is too large, and with a client that dies while it is asked", () =>
    Effect.gen(function* () {
      yield* Effect.scoped(
        Effect.gen(function* () {
          const client = yield* begin()
          void client.send("x".repeat(2_000_000)).catch(() => {})
          yield* Effect.exit(client.over)
        })
      )
      yield* Effect.scoped(
        Effect.gen(function* () {
          const client = yield* begin()
          const file = join(client.cwd, "a.txt")
          void client.ask("session/prompt", {
            sessionId: client.sessionId,
            prompt: [{ type: "text", text: `write ${file}` }]
          })
          yield* Effect.suspend(() => (client.requests.length > 0 ? Effect.void : Effect.fail("not yet"))).pipe(
            Effect.eventually
          )
          yield* Effect.promise(() => client.leave())
          yield* Effect.exit(client.over)
          assert.isFalse(existsSync(file))
        })
      )
    })
  )
})
