/** Answers of clients that are not of the form of their protocol: none of them approves. And messages that come again. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Latch, Layer, type Scope } from "effect"
import { Agent, Message, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Server } from "effect-deepagents/server"
import { TestChatModel } from "effect-deepagents/testing"
import { ask, serve } from "../door.ts"
import { services } from "./story.ts"

let paid = 0
let gate = Latch.makeUnsafe(true)
const pay = Tool.make("pay", {
  description: "Pays",
  parameters: {},
  execute: () => Effect.sync(() => `paid ${++paid}`)
})
const helper = Agent.make({
  name: "helper",
  prompt: "",
  tools: [pay],
  middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
})
const model = TestChatModel.reactive(({ messages }) => {
  const last = messages.at(-1)
  if (last?.role !== "human") return "It is done."
  const words = Message.text(last)
  return words === "pay"
    ? TestChatModel.calls([{ name: "pay", arguments: {} }])
    : () => Effect.as(gate.await, TestChatModel.text(`You said: ${words}`))
})
const runs = Server.layer({ helper }).pipe(Layer.provide(model))

const live = (name: string, test: (url: string) => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.live(name, () =>
    Effect.flatMap(serve(runs, { protocols: ["aiSdk", "agUi", "langGraph", "a2a"] }), test).pipe(
      Effect.scoped,
      Effect.provide(Layer.fresh(services))
    )
  )

const base64 = (text: string) => Buffer.from(text).toString("base64url")
const rpc = (method: string, params: object) => ({ jsonrpc: "2.0", id: 1, method, params })

/** The request of an answer, by protocol. */
const answers: Readonly<Record<string, (thread: string, id: string, answer: unknown) => readonly [string, object]>> = {
  "AG-UI": (thread, id, payload) => [
    "/ag-ui",
    { threadId: thread, runId: "r", messages: [], resume: [{ interruptId: id, status: "resolved", payload }] }
  ],
  "AI SDK": (thread, id, approved) => [
    "/api/chat",
    {
      id: thread,
      messages: [
        {
          id: "x",
          role: "assistant",
          parts: [{ type: "dynamic-tool", state: "approval-responded", approval: { id, approved } }]
        }
      ]
    }
  ],
  LangGraph: (thread, id, answer) => [
    `/langgraph/threads/${thread}/runs/wait`,
    { assistant_id: "helper", command: { resume: { [id]: answer } } }
  ],
  A2A: (thread, _, data) => [
    "/a2a",
    rpc("SendMessage", {
      message: { messageId: "m", taskId: `${base64("1")}.${base64(thread)}`, role: "ROLE_USER", parts: [{ data }] }
    })
  ]
}

const malformed: ReadonlyArray<unknown> = [
  "no",
  "true",
  1,
  [],
  {},
  { approved: "true" },
  { approved: 1 },
  { aproved: false },
  { Approved: true },
  { approved: null },
  { decisions: [{ type: "aprove" }] },
  { decisions: [] },
  { type: "reject" }
]

describe("an answer of another form", () => {
  for (const [protocol, requestOf] of Object.entries(answers)) {
    live(`approves nothing by ${protocol}`, (url) =>
      Effect.gen(function* () {
        paid = 0
        for (const [index, answer] of malformed.entries()) {
          const thread = `t${index}`
          yield* ask(`${url}/threads/${thread}/runs`, { body: { agent: "helper", input: "pay", id: "1" } })
          yield* ask(`${url}/threads/${thread}/events`)
          const id = String((yield* ask(`${url}/threads/${thread}/state`)).at("pending", 0, "id"))
          const [path, body] = requestOf(thread, id, answer)
          const { status, text } = yield* ask(url + path, { body })
          yield* ask(`${url}/threads/${thread}/events`)
          assert.isBelow(status, 500, text)
          assert.strictEqual(paid, 0, `${JSON.stringify(answer)}: ${text}`)
        }
      })
    )
  }
})

describe("messages that come again", () => {
  live("count once by a UUID in their context over A2A, and each time by another id", (url) =>
    Effect.gen(function* () {
      const send = (messageId: string) =>
        ask(`${url}/a2a`, {
          body: rpc("SendMessage", {
            message: { messageId, contextId: "c", role: "ROLE_USER", parts: [{ text: "Hi" }] }
          })
        })
      const id = crypto.randomUUID()
      const [first, again] = [yield* send(id), yield* send(id)]
      assert.isString(first.at("result", "task", "id"))
      assert.strictEqual(again.at("result", "task", "id"), first.at("result", "task", "id"))
      const others = [yield* send("m1"), yield* send("m1")].map((one) => one.at("result", "task", "id"))
      assert.lengthOf([...new Set([...others, first.at("result", "task", "id")])], 3)
      assert.strictEqual((yield* ask(`${url}/threads/c/history`)).at("messages", "length"), 6)
    })
  )

  live("over LangGraph wait for a run at work, are refused, or end it, as their strategy says", (url) =>
    Effect.gen(function* () {
      gate = Latch.makeUnsafe(false)
      const run = (content: string, strategy?: string) =>
        ask(`${url}/langgraph/threads/t/runs`, {
          body: {
            assistant_id: "helper",
            input: { messages: [{ role: "user", content }] },
            ...(strategy === undefined ? {} : { multitask_strategy: strategy }),
            if_not_exists: "create"
          }
        })
      assert.strictEqual((yield* run("one")).status, 200)
      while ((yield* ask(`${url}/threads/t/state`)).at("state") !== "working") yield* Effect.sleep("10 millis")
      assert.strictEqual((yield* run("two", "reject")).status, 409)
      assert.strictEqual((yield* run("three")).status, 200)
      assert.strictEqual((yield* run("four", "interrupt")).status, 200)
      yield* gate.open
      yield* ask(`${url}/threads/t/events`)
      const { text } = yield* ask(`${url}/threads/t/history`)
      assert.notInclude(text, "You said: one")
      assert.notInclude(text, "two")
      assert.include(text, "You said: four")
    })
  )
})
