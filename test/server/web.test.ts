/** The server as a Web handler, of requests and responses alone: as on serverless platforms, Bun and Deno. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { Agent, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Server } from "effect-deepagents/server"
import { MemorySessions } from "effect-deepagents/sessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { HttpRouter } from "effect/http"

let paid = 0
const pay = Tool.make("pay", {
  description: "Pays",
  parameters: {},
  execute: () => Effect.sync(() => `paid ${++paid}`)
})
const helper = Agent.make({
  name: "helper",
  prompt: "You help.",
  tools: [pay],
  middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
})
const model = TestChatModel.reactive(({ messages }) =>
  messages.at(-1)?.role === "tool"
    ? TestChatModel.text("All of it is paid.", { chunkSize: 4 })
    : TestChatModel.calls([{ name: "pay", arguments: {} }], { text: "I shall pay.", chunkSize: 4 })
)
const auth = Server.bearer({
  verify: (token) =>
    Redacted.value(token) === "token-of-ada"
      ? Effect.succeed({ tenant: "acme", id: "ada", roles: [] })
      : Effect.fail(new Server.Unauthorized())
})

const site = "https://agents.example.com"

/** A handler on stores that outlive it. */
const makeHandler = (options: Server.HttpOptions = {}) =>
  Effect.gen(function* () {
    const stores = yield* Effect.context<Layer.Success<typeof services>>()
    const runs = Server.layer({ helper }).pipe(Layer.provide([model, Layer.succeedContext(stores)]))
    const app = Server.http({ hosts: ["agents.example.com"], ...options }).pipe(
      Layer.provide([Layer.fresh(runs), auth, Layer.succeedContext(stores)])
    )
    const { handler } = yield* Effect.acquireRelease(
      Effect.sync(() => HttpRouter.toWebHandler(app, { disableLogger: true })),
      ({ dispose }) => Effect.promise(dispose)
    )
    return (path: string, init: RequestInit & { readonly at?: string } = {}) => {
      const { at = site, body, headers } = init
      return Effect.promise(() =>
        handler(
          new Request(`${at}${path}`, {
            ...init,
            method: init.method ?? (body === undefined ? "GET" : "POST"),
            headers: {
              authorization: "Bearer token-of-ada",
              ...(body === undefined ? {} : { "content-type": "application/json" }),
              ...headers
            }
          })
        )
      )
    }
  })

const services = Layer.mergeAll(MemorySessions.layer, Storage.layerMemory)

const live = (name: string, test: Effect.Effect<void, unknown, Layer.Success<typeof services>>) =>
  it.live(name, () => test.pipe(Effect.provide(Layer.fresh(services))))

const textOf = (response: Response) => Effect.promise(() => response.text())
const idsIn = (text: string) => [...text.matchAll(/^id: (.+)$/gmu)].map(([, id]) => id ?? "")
const input = JSON.stringify({ agent: "helper", input: "Pay", id: "1" })

/** Reads a response until a text came, and leaves. */
const readUntil = (response: Response, word: string) =>
  Effect.promise(async () => {
    let text = ""
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: "" }
      if (done) return text
      text += value
      if (!text.includes(word)) continue
      await reader?.cancel()
      return text
    }
  })

describe("a Web handler", () => {
  live(
    "streams a run, goes on behind Last-Event-ID, and resumes by a decision, also of the next process",
    Effect.gen(function* () {
      paid = 0
      const [last, id] = yield* Effect.scoped(
        Effect.gen(function* () {
          const ask = yield* makeHandler()
          const taken = yield* ask("/threads/t/runs", { body: input })
          assert.strictEqual(taken.status, 202)
          const first = yield* ask("/threads/t/events")
          assert.strictEqual(first.headers.get("content-type"), "text/event-stream")
          const head = yield* readUntil(first, "TextDelta")
          // It left, and the run goes on.
          const seen = idsIn(head).slice(0, 3)
          const rest = yield* ask("/threads/t/events", { headers: { "last-event-id": seen[2] ?? "" } })
          const tail = yield* textOf(rest)
          assert.match(tail, /"_tag":"ApprovalRequested"/u)
          // Each event of the log comes once, in order.
          const numbers = [...seen, ...idsIn(tail)].map((id) => Number.parseInt(id.split(".")[3] ?? "", 10))
          assert.deepStrictEqual(
            numbers,
            Array.from(numbers, (_, index) => index + 1)
          )
          const state = JSON.parse(yield* Effect.flatMap(ask("/threads/t/state"), textOf))
          assert.strictEqual(state.state, "waiting")
          return [idsIn(tail).at(-1) ?? "", String(state.pending[0].id)] as const
        })
      )
      // The process ended: another one has the thread.
      yield* Effect.scoped(
        Effect.gen(function* () {
          const ask = yield* makeHandler()
          const decisions = JSON.stringify({ decisions: [{ _tag: "Approve", id }] })
          assert.strictEqual((yield* ask("/threads/t/decisions", { body: decisions })).status, 202)
          const behind = yield* ask("/threads/t/events", { headers: { "last-event-id": last } })
          const text = yield* textOf(behind)
          assert.match(text, /All of it is paid[^]*"_tag":"RunCompleted"/u)
          assert.notInclude(text, "I shall pay.")
          const again = yield* Effect.flatMap(ask("/threads/t/decisions", { body: decisions }), textOf)
          assert.include(again, '"isNew":false')
          assert.strictEqual(paid, 1)
        })
      )
    })
  )

  live(
    "lets in whom the guard lets in, by the host of the address, and serves the clients' protocols",
    Effect.scoped(
      Effect.gen(function* () {
        const ask = yield* makeHandler({ protocols: ["openAi", "a2a"], maxBody: 2_000 })
        const statusOf = (...args: Parameters<typeof ask>) => Effect.map(ask(...args), ({ status }) => status)
        assert.strictEqual(yield* statusOf("/threads"), 200)
        assert.strictEqual(yield* statusOf("/threads", { at: "https://evil.test" }), 421)
        assert.strictEqual(yield* statusOf("/threads", { headers: { host: "evil.test" } }), 421)
        assert.strictEqual(yield* statusOf("/threads", { headers: { authorization: "" } }), 401)
        assert.strictEqual(yield* statusOf("/threads/t/runs", { body: "x".repeat(3_000) }), 413)
        assert.strictEqual(
          yield* statusOf("/threads/t/runs", { body: input, headers: { origin: "https://evil.test" } }),
          403
        )
        assert.strictEqual(yield* statusOf("/threads/t/runs", { body: input, headers: { origin: site } }), 202)
        assert.strictEqual(yield* statusOf("/threads/t/socket", { headers: { upgrade: "websocket" } }), 426)
        const card = yield* Effect.flatMap(ask("/.well-known/agent-card.json"), textOf)
        assert.include(card, `${site}/a2a`)
        const completion = JSON.stringify({
          model: "helper",
          messages: [{ role: "user", content: "Pay" }],
          stream: true
        })
        assert.match(
          yield* Effect.flatMap(ask("/v1/chat/completions", { body: completion }), textOf),
          /I s[^]*\[DONE\]/u
        )
      })
    )
  )
})
