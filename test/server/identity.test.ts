/** Two tenants on one server: no route of any protocol opens the threads of the other one, or tells that they are there. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Schema } from "effect"
import { Agent, Message, Tool } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Server } from "effect-deepagents/server"
import { TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"
import { ask, serve } from "./door.ts"
import { services } from "./packets/story.ts"

let paid = 0
const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { note: Schema.String },
  execute: () => Effect.sync(() => `paid ${++paid}`)
})
const helper = Agent.make({
  name: "helper",
  prompt: "",
  tools: [pay],
  middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
})

/** Repeats its input: a tenant hears its own words only. */
const model = TestChatModel.reactive(({ messages }) => {
  const last = messages.at(-1)
  const heard = messages.findLast(({ role }) => role === "human")
  const words = heard === undefined ? "" : Message.text(heard)
  return last?.role === "human" && words.includes("pay")
    ? TestChatModel.calls([{ name: "pay", arguments: { note: words } }])
    : `You said: ${words}`
})

const secret = "pay for the plum 7421"

/** The ids of a thread that waits for a decision. */
interface Ids {
  readonly thread: string
  readonly run: string
  readonly request: string
  readonly response: string
  readonly task: string
}

interface Try {
  readonly path: string
  readonly method?: string
  readonly body?: unknown
}

const rpc = (method: string, params: object): Try => ({ path: "/a2a", body: { jsonrpc: "2.0", id: 1, method, params } })
const say = (more: object) => ({
  message: { messageId: "m", role: "ROLE_USER", parts: [{ data: { approved: true } }], ...more }
})
const at = encodeURIComponent

/** An eavesdropper's requests, with foreign ids. */
const tries = (ids: Ids): ReadonlyArray<Try> => {
  const own = `/threads/${at(ids.thread)}`
  const graph = `/langgraph/threads/${at(ids.thread)}`
  const run = `${graph}/runs/${at(ids.run)}`
  const resume = { [ids.request]: { decisions: [{ type: "approve" }] } }
  const approval = { id: ids.request, approved: true }
  return [
    { path: own },
    { path: `${own}/state` },
    { path: `${own}/history` },
    { path: `${own}/events` },
    { path: `${own}/decisions`, body: { decisions: [{ _tag: "Approve", id: ids.request }] } },
    { path: `${own}/decisions`, body: { decisions: [] } },
    { path: `${own}/steer`, body: { input: "mine" } },
    { path: `${own}/cancel`, body: {} },
    { path: `${own}/fork`, body: {} },
    { path: `${own}/rewind`, body: { entry: null } },
    { path: `${own}/archive`, body: {} },
    { path: own, method: "DELETE" },
    { path: `${own}/files` },
    { path: `${own}/files/text?path=/plum.txt` },
    { path: `${own}/files/content?path=/plum.txt` },
    { path: `/api/chat/${at(ids.thread)}/stream` },
    {
      path: "/api/chat",
      body: {
        id: ids.thread,
        trigger: "submit-message",
        messages: [
          {
            id: `${ids.run}-answer`,
            role: "assistant",
            parts: [{ type: "dynamic-tool", toolCallId: "call-1", state: "approval-responded", approval }]
          }
        ]
      }
    },
    {
      path: "/ag-ui",
      body: {
        threadId: ids.thread,
        runId: "r",
        messages: [],
        resume: [{ interruptId: ids.request, status: "resolved", payload: { approved: true } }]
      }
    },
    { path: `/v1/responses/${at(ids.response)}` },
    { path: `/v1/responses/${at(ids.response)}?stream=true&starting_after=3` },
    { path: graph },
    { path: graph, method: "PATCH", body: { metadata: { title: "mine" } } },
    { path: `${graph}/state` },
    { path: `${graph}/history`, body: {} },
    {
      path: `${graph}/runs`,
      body: { assistant_id: "helper", input: { messages: [{ role: "user", content: "mine" }] } }
    },
    { path: `${graph}/runs/wait`, body: { assistant_id: "helper", command: { resume } } },
    { path: `${graph}/runs/stream`, body: { assistant_id: "helper", input: null } },
    { path: run },
    { path: `${run}/join` },
    { path: `${run}/stream` },
    { path: `${run}/cancel`, body: {} },
    { path: "/langgraph/threads/search", body: { ids: [ids.thread] } },
    rpc("GetTask", { id: ids.task }),
    rpc("CancelTask", { id: ids.task }),
    rpc("SubscribeToTask", { id: ids.task }),
    rpc("SendMessage", say({ taskId: ids.task })),
    rpc("SendStreamingMessage", say({ taskId: ids.task })),
    rpc("ListTasks", { contextId: ids.thread })
  ]
}

/** A tenant's allowed requests with any id: it begins threads of its own. */
const starts = (id: string): ReadonlyArray<Try> => [
  { path: `/threads/${at(id)}/runs`, body: { agent: "helper", input: "mine" } },
  {
    path: "/api/chat",
    body: {
      id,
      trigger: "submit-message",
      messages: [{ id: "u", role: "user", parts: [{ type: "text", text: "mine" }] }]
    }
  },
  { path: "/ag-ui", body: { threadId: id, runId: "r", messages: [{ id: "u2", role: "user", content: "mine" }] } },
  { path: "/v1/responses", body: { model: "helper", input: "mine", conversation: id } },
  { path: "/langgraph/threads", body: { thread_id: id, if_exists: "do_nothing" } },
  rpc("SendMessage", { message: { messageId: "m", contextId: id, role: "ROLE_USER", parts: [{ text: "mine" }] } })
]

/** An eavesdropper's packets over a WebSocket. */
const packets = ({ request }: Ids): ReadonlyArray<object> => [
  { type: "decide", ref: "1", decisions: [{ _tag: "Approve", id: request }] },
  { type: "decide", ref: "2", decisions: [] },
  { type: "steer", ref: "3", input: "mine" },
  { type: "cancel", ref: "4" }
]

/** Sends packets to a thread, and returns their answers and the other packets until then. */
const talk = (url: string, token: string, thread: string, all: ReadonlyArray<object>) =>
  Effect.callback<ReadonlyArray<string>>((resume) => {
    const heard: Array<string> = []
    // The types are for browsers, whose client sends no headers.
    const socket: WebSocket = Reflect.construct(WebSocket, [
      `${url.replace("http", "ws")}/threads/${at(thread)}/socket`,
      { headers: { authorization: `Bearer ${token}` } }
    ])
    const end = () => resume(Effect.succeed(heard))
    socket.addEventListener("open", () => {
      for (const one of all) socket.send(JSON.stringify(one))
    })
    socket.addEventListener("message", ({ data }) => {
      heard.push(String(data))
      if (heard.filter((text) => /"type":"(?:ack|refused)"/u.test(text)).length >= all.length) socket.close()
    })
    socket.addEventListener("close", end)
    socket.addEventListener("error", end)
  })

const base64 = (text: string) => Buffer.from(text).toString("base64url")

const idsOf = (thread: string, run: string, request: string): Ids => ({
  thread,
  run,
  request,
  response: `resp_${run}.${base64(thread)}`,
  task: `${base64(run)}.${base64(thread)}`
})

const files = MemoryBackend.make({ files: { "/plum.txt": secret } })

const protocols = ["aiSdk", "agUi", "openAi", "langGraph", "a2a"] as const

describe("identity", () => {
  it.live(
    "tells a tenant the same of another one's ids and of unknown ones, and changes nothing, over all protocols",
    () =>
      Effect.gen(function* () {
        const runs = Server.layer({ helper }).pipe(Layer.provide(Layer.fresh(model)))
        const url = yield* serve(runs, { protocols, files: () => files })
        const run = "0123456789abcdef0123456789abcdef"
        yield* ask(`${url}/threads/report-7/runs`, { body: { agent: "helper", input: secret, id: run } })
        yield* ask(`${url}/threads/report-7/events`)
        const state = yield* ask(`${url}/threads/report-7/state`)
        const request = String(state.at("pending", 0, "id"))
        const look = Effect.forEach(
          ["/threads", "/threads/report-7/history", "/threads/report-7/state", "/inbox"],
          (path) => Effect.map(ask(url + path), ({ text }) => text)
        )
        const before = yield* look
        const real = idsOf("report-7", run, request)
        const as = (token: string) => (one: Try) => {
          const { body, method, path } = one
          return ask(url + path, {
            token,
            ...(body === undefined ? {} : { body }),
            ...(method === undefined ? {} : { method })
          })
        }
        const eve = as("token-of-eve")
        // The owner gets something for each of the ids: they are real.
        const opened = yield* Effect.forEach(
          [
            { path: `/v1/responses/${real.response}` },
            rpc("GetTask", { id: real.task }),
            { path: `/langgraph/threads/report-7/runs/${run}` }
          ],
          as("token-of-ada")
        )
        for (const { status, text } of opened) assert.strictEqual(status, 200, text)
        for (const { text } of opened.slice(0, 2)) assert.include(text, "7421")
        const text = yield* ask(`${url}/threads/report-7/files/text?path=/plum.txt`)
        assert.include(text.text, "7421")
        const withoutIds = (text: string, ids: Ids) =>
          Object.values(ids)
            .reduce((rest, id) => rest.replaceAll(id, "ID").replaceAll(at(id), "ID"), text)
            .replaceAll(/"(?:timestamp|created_at|updated_at)":"[^"]*"/gu, "")
        const count = tries(real).length
        const compare = Effect.fnUntraced(function* (index: number, ids: Ids) {
          const unknown = idsOf("nothing-7", "fedcba9876543210fedcba9876543210", "no-such-request")
          const [mine, other] = [tries(ids)[index], tries(unknown)[index]]
          if (mine === undefined || other === undefined) return
          const [foreign, none] = [yield* eve(mine), yield* eve(other)]
          const name = `${mine.method ?? ""} ${mine.path} ${JSON.stringify(mine.body) ?? ""}: ${foreign.text}`
          assert.notInclude(foreign.text, "7421", name)
          assert.notInclude([400, 500], foreign.status, name)
          assert.deepStrictEqual(
            [foreign.status, withoutIds(foreign.text, ids)],
            [none.status, withoutIds(none.text, unknown)],
            name
          )
        })
        for (let index = 0; index < count; index++) yield* compare(index, real)
        assert.deepStrictEqual(yield* look, before)
        // Over a WebSocket, too: a foreign thread is a missing one.
        const missing = idsOf("nothing-7", run, request)
        const [foreign, none] = [
          yield* talk(url, "token-of-eve", real.thread, packets(real)),
          yield* talk(url, "token-of-eve", missing.thread, packets(missing))
        ]
        assert.deepStrictEqual(
          foreign.map((text) => withoutIds(text, real)),
          none.map((text) => withoutIds(text, missing))
        )
        assert.lengthOf(foreign, packets(real).length)
        assert.notInclude(foreign.join(), "7421")
        assert.deepStrictEqual(yield* look, before)
        const prefix = fc.constantFrom("", "t/acme/", "../acme/", "acme/", "t%2Facme%2F")
        const guess = fc.oneof(fc.constant("report-7"), fc.constant("REPORT-7"), fc.stringMatching(/^[\w-]{8,40}$/u))
        yield* Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(fc.nat({ max: count - 1 }), prefix, guess, fc.boolean(), (index, front, id, isKnown) =>
              Effect.runPromise(compare(index, idsOf(front + id, isKnown ? run : "f".repeat(32), request)))
            ),
            { numRuns: scaled(160) }
          )
        )
        assert.deepStrictEqual(yield* look, before)
        // With the id of another one's thread, a tenant begins a thread of its own.
        for (const one of starts("report-7")) {
          const { status, text } = yield* eve(one)
          assert.oneOf(status, [200, 202], `${one.path}: ${text}`)
          assert.notInclude(text, "7421")
          yield* ask(`${url}/threads/report-7/events`, { token: "token-of-eve" })
        }
        assert.deepStrictEqual(yield* look, before)
        for (const path of ["/threads/report-7/history", "/threads", "/inbox", "/langgraph/threads/report-7"]) {
          assert.notInclude((yield* ask(url + path, { token: "token-of-eve" })).text, "7421")
        }
        assert.strictEqual(paid, 0)
        yield* ask(`${url}/threads/report-7/decisions`, { body: { decisions: [{ _tag: "Approve", id: request }] } })
        yield* ask(`${url}/threads/report-7/events`)
        assert.strictEqual(paid, 1)
      }).pipe(Effect.provide(Layer.fresh(services))),
    30_000
  )
})
