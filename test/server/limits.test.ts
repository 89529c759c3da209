/** A tenant's limits: requests in a minute, open readers, and the spending of its runs. Other tenants do not notice. */
import { type ClientRequest, request } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent } from "effect-deepagents"
import { Budget } from "effect-deepagents/middleware"
import { Server } from "effect-deepagents/server"
import { MemorySessions } from "effect-deepagents/sessions"
import { Ledger, Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { scaled } from "../scale.ts"
import { ask, readFrames, serve } from "./door.ts"
import { foldFrames, showState } from "./reader.ts"

const services = Layer.mergeAll(MemorySessions.layer, Storage.layerMemory)
const model = TestChatModel.reactive(() => "Hello.")

const authorization = "Bearer token-of-ada"

/** Opens a reader that reads nothing; with `isAwaited`, it has the head of its response. */
const open = (url: string, isAwaited = true): Effect.Effect<ClientRequest> =>
  Effect.callback((resume) => {
    const one = request(url, { agent: false, headers: { authorization } })
    one.on("error", () => undefined)
    if (isAwaited) one.on("response", (response) => (response.pause(), resume(Effect.succeed(one))))
    else one.on("socket", (socket) => socket.on("connect", () => resume(Effect.succeed(one))))
    one.end()
  })

/** Reads until the server has seen that enough others are gone. */
const untilServed = (url: string) =>
  ask(url).pipe(
    Effect.tap(({ status }) => (status === 200 ? Effect.void : Effect.sleep("5 millis"))),
    Effect.repeat({ until: ({ status }) => status === 200 }),
    Effect.timeout("20 seconds")
  )

describe("a tenant", () => {
  it.live("has its requests counted, over all routes, and is told when to come again", () =>
    Effect.gen(function* () {
      const helper = Agent.make({ name: "helper", prompt: "" })
      const runs = Server.layer({ helper }).pipe(Layer.provide(model))
      const url = yield* serve(runs, { rate: 5 })
      for (let index = 0; index < 5; index++) assert.strictEqual((yield* ask(`${url}/threads`)).status, 200)
      for (const path of ["threads", "agents", "threads/t/state", "metrics"]) {
        const refused = yield* ask(`${url}/${path}`)
        assert.deepStrictEqual([refused.status, refused.at("code")], [429, "Rate"], path)
      }
      const late = yield* Effect.promise(() =>
        fetch(`${url}/threads`, { headers: { authorization: "Bearer token-of-ada" } })
      )
      assert.match(late.headers.get("retry-after") ?? "", /^\d+$/)
      const taken = yield* ask(`${url}/threads/t/runs`, { body: { agent: "helper", input: "x" } })
      assert.strictEqual(taken.status, 429)
      assert.strictEqual((yield* ask(`${url}/threads`, { token: "token-of-eve" })).status, 200)
      assert.strictEqual((yield* ask(`${url}/health`, { token: "" })).status, 200)
      assert.strictEqual((yield* ask(`${url}/threads`, { token: "token-of-mallory" })).status, 401)
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )

  it.live("has its open readers counted in each protocol, and its input is not taken when they are too many", () =>
    Effect.gen(function* () {
      const helper = Agent.make({ name: "helper", prompt: "" })
      const runs = Server.layer({ helper }).pipe(Layer.provide(model))
      const protocols = ["aiSdk", "agUi", "openAi", "langGraph", "a2a"] as const
      const url = yield* serve(runs, { readers: 2, protocols })
      yield* ask(`${url}/threads/t/runs`, { body: { agent: "helper", input: "x" } })
      const events = `${url}/threads/t/events?follow=true`
      const [one, two] = [yield* open(events), yield* open(events)]
      const user = { id: "m", role: "user", content: "x", parts: [{ type: "text", text: "x" }] }
      const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "x" }] }
      const rpc = { jsonrpc: "2.0", id: 1, params: { message } }
      const wanted: ReadonlyArray<readonly [string, object?]> = [
        ["/threads/t/events"],
        ["/api/chat", { id: "new", messages: [user] }],
        ["/ag-ui", { threadId: "new", runId: "r", messages: [user] }],
        ["/v1/chat/completions", { model: "helper", messages: [user] }],
        ["/v1/responses", { model: "helper", input: "x" }],
        ["/langgraph/runs/stream", { assistant_id: "helper", input: { messages: [user] } }],
        ["/langgraph/runs/wait", { assistant_id: "helper", input: { messages: [user] } }],
        ["/a2a", { ...rpc, method: "SendMessage" }],
        ["/a2a", { ...rpc, method: "SendStreamingMessage" }]
      ]
      for (const [path, body] of wanted) {
        const refused = yield* ask(`${url}${path}`, body === undefined ? {} : { body })
        assert.deepStrictEqual([refused.status, refused.at("code")], [429, "Readers"], `${path} ${refused.text}`)
        assert.strictEqual(refused.header("retry-after"), "5", path)
      }
      const handshake = { connection: "upgrade", upgrade: "websocket", "sec-websocket-version": "13" }
      const socket = request(`${url}/threads/t/socket`, {
        headers: { authorization, ...handshake, "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" }
      })
      const status = yield* Effect.callback<number | undefined>((resume) => {
        socket.on("response", ({ statusCode }) => resume(Effect.succeed(statusCode)))
        socket.on("upgrade", () => resume(Effect.succeed(101)))
        socket.end()
      })
      assert.strictEqual(status, 429)
      assert.strictEqual((yield* ask(`${url}/threads`)).at("threads", "length"), 1)
      // Others read, and requests that are answered at once are no readers.
      assert.strictEqual((yield* ask(`${url}/threads/t/state`)).status, 200)
      yield* ask(`${url}/threads/e/runs`, { token: "token-of-eve", body: { agent: "helper", input: "x" } })
      assert.strictEqual((yield* ask(`${url}/threads/e/events`, { token: "token-of-eve" })).status, 200)
      one.destroy()
      yield* untilServed(`${url}/threads/t/events`)
      // A reader whose answer ended is gone.
      assert.strictEqual((yield* ask(`${url}/v1/responses`, { body: { model: "helper", input: "x" } })).status, 200)
      assert.strictEqual((yield* ask(`${url}/threads/t/events`)).status, 200)
      two.destroy()
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )

  it.live("has no reader left behind connections that were cut, slow ones and waiting ones among them", () =>
    Effect.gen(function* () {
      const [wave, waves] = [20, scaled(50)]
      const long = TestChatModel.reactive(() => "Hello. ".repeat(20_000))
      const runs = Server.layer({ helper: Agent.make({ name: "helper", prompt: "" }) }).pipe(Layer.provide(long))
      const url = yield* serve(runs, { readers: wave })
      yield* ask(`${url}/threads/t/runs`, { body: { agent: "helper", input: "x" } })
      yield* ask(`${url}/threads/t/events`)
      for (let at = 0; at < waves; at++) {
        const readers = yield* Effect.all(
          Array.from({ length: wave }, (_, index) =>
            open(`${url}/threads/t/events${index % 2 === 0 ? "?follow=true" : ""}`, index % 3 > 0)
          ),
          { concurrency: wave }
        )
        // Some are cut before their first byte, some in the middle, some while they wait.
        for (const one of readers) one.destroy()
        yield* untilServed(`${url}/threads/t/events`)
      }
      // As many as the limit are there again, so that not one was left.
      const all = yield* Effect.all(Array.from({ length: wave }, () => open(`${url}/threads/t/events?follow=true`)))
      assert.strictEqual((yield* ask(`${url}/threads/t/events`)).status, 429)
      for (const one of all) one.destroy()
      yield* untilServed(`${url}/threads/t/events`)
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )

  it.live("spends from accounts of its own, over all of its threads", () =>
    Effect.gen(function* () {
      const clerk = Agent.make({
        name: "helper",
        prompt: "",
        middleware: [
          Budget.accounts({
            caps: () =>
              Effect.map(
                Server.Caller,
                ({ tenant }) => ({ account: `tenant:${tenant}`, window: "ever", max: { modelCalls: 2 } }) as const
              ),
            onExhausted: "finalAnswer"
          })
        ]
      })
      const runs = Server.layer({ helper: clerk }).pipe(Layer.provide([model, Ledger.layerMemory]))
      const url = yield* serve(runs)
      const endOf = (thread: string, token: string) =>
        Effect.gen(function* () {
          yield* ask(`${url}/threads/${thread}/runs`, { token, body: { agent: "helper", input: "x" } })
          const { frames } = yield* readFrames(`${url}/threads/${thread}/events`, { token })
          return showState(foldFrames(frames)).end
        })
      const ends = yield* Effect.forEach(["a", "b", "c"], (thread) => endOf(thread, "token-of-ada"))
      assert.deepStrictEqual(ends, ["RunCompleted completed", "RunCompleted completed", "RunCompleted budget:rounds"])
      assert.strictEqual(yield* endOf("a", "token-of-eve"), "RunCompleted completed")
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )
})
