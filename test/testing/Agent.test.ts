import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import { Agent, Message, Tool } from "effect-deepagents"
import { AgentTest, TestChatModel, TestIds } from "effect-deepagents/testing"

class Orders extends Context.Service<Orders, { readonly find: (id: string) => Effect.Effect<string> }>()("Orders") {
  static readonly test = Layer.succeed(Orders, { find: (id) => Effect.succeed(`order ${id}: shipped`) })
}

const lookup = Tool.make("lookup_order", {
  description: "Find an order by its id",
  parameters: { orderId: Schema.String },
  execute: ({ orderId }) => Orders.use((orders) => orders.find(orderId))
})

const support = Agent.make({ name: "support", prompt: "You help customers.", tools: [lookup] })

const script = TestChatModel.script([
  TestChatModel.calls([{ name: "lookup_order", arguments: { orderId: "42" } }]),
  "It has shipped."
])

describe("a user's test", () => {
  it.effect("answers with the order's state", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(support, "Where is order 42?")
      assert.include(result.text, "shipped")
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])

      const [first, second] = yield* TestChatModel.requests
      assert.strictEqual(first?.systemPrompt, "You help customers.")
      assert.deepStrictEqual(
        first?.messages.map((message) => message.role),
        ["human"]
      )
      assert.strictEqual(Message.text(second!.messages.at(-1)!), "order 42: shipped")
    }).pipe(Effect.provide([script, Orders.test]))
  )

  it.effect("a script that is too short fails the run with the request", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Agent.run(support, "Where is order 42?"))
      assert.include(error.message, "the script has 1 turn and was asked for turn 2")
      assert.include(error.message, "order 42: shipped")
    }).pipe(
      Effect.provide([
        TestChatModel.script([TestChatModel.calls([{ name: "lookup_order", arguments: { orderId: "42" } }])]),
        Orders.test
      ])
    )
  )

  it.effect("each agent may have a script of its own", () =>
    Effect.gen(function* () {
      const clerk = Agent.provide(support, script)
      const boss = Agent.make({
        name: "boss",
        prompt: "You delegate.",
        tools: [Agent.asTool(clerk, { name: "ask_clerk", description: "Asks the clerk" })]
      })
      const result = yield* Agent.run(boss, "And order 42?")
      assert.strictEqual(result.text, "The clerk says it has shipped.")
      assert.lengthOf(yield* TestChatModel.requests, 2)
    }).pipe(
      Effect.provide([
        TestChatModel.script([
          TestChatModel.calls([{ name: "ask_clerk", arguments: { task: "Where is 42?" } }]),
          "The clerk says it has shipped."
        ]),
        Orders.test
      ])
    )
  )
})

describe("AgentTest.collect", () => {
  it.effect("gives the events of a run that ends", () =>
    Effect.gen(function* () {
      const events = yield* AgentTest.events(support, "Where is order 42?")
      assert.strictEqual(events[0]?._tag, "RunStarted")
      assert.strictEqual(events.at(-1)?._tag, "RunCompleted")
      assert.lengthOf(
        events.filter((event) => event._tag === "ToolCompleted"),
        1
      )
    }).pipe(Effect.provide([script, Orders.test]))
  )

  it.effect("collects the events of a failing run up to RunFailed", () =>
    Effect.gen(function* () {
      const { error, events } = yield* AgentTest.collect(support, "Where is order 42?")
      assert(error?._tag === "ModelError")
      assert.strictEqual(error.reason._tag, "Authentication")
      const last = events.at(-1)
      assert(last?._tag === "RunFailed")
      assert.strictEqual(last.error.tag, "ModelError")
      assert.isTrue(events.some((event) => event._tag === "TextDelta"))
    }).pipe(
      Effect.provide([
        TestChatModel.script([TestChatModel.fail({ _tag: "Authentication" }, { after: "It" })]),
        Orders.test
      ])
    )
  )
})

describe("AgentTest.collect, of a run that dies", () => {
  it.effect("has no error, and a last event that tells of the defect", () =>
    Effect.gen(function* () {
      const broken = Agent.make({ name: "broken", prompt: Effect.die(new Error("a bug")) })
      const { error, events } = yield* AgentTest.collect(broken, "Hi")
      assert.isUndefined(error)
      const last = events.at(-1)
      assert(last?._tag === "RunFailed")
      assert.include(last.error.message, "a bug")
    }).pipe(Effect.provide(TestChatModel.script([])))
  )
})

describe("AgentTest.pairingProblems", () => {
  const call = (id: string) => ({ id, name: "f", arguments: {} })
  const answer = (toolCallId: string) => Message.tool("ok", { toolCallId, toolName: "f" })
  const two = Message.ai("", { toolCalls: [call("a")], malformedToolCalls: [{ id: "b", raw: "{", problem: "" }] })

  it("finds no problem if each call is answered in order", () => {
    assert.deepStrictEqual(
      AgentTest.pairingProblems([Message.human("Hi"), two, answer("a"), answer("b"), Message.ai("Done")]),
      []
    )
  })

  it.each([
    ["an unanswered call", [two, answer("a")], ["call b is not answered before the end"]],
    [
      "a late answer",
      [two, answer("a"), Message.human("?"), answer("b")],
      ["call b is not answered before message 2 (human)", "message 3 (tool) answers call b, which is not open"]
    ],
    ["another order", [two, answer("b"), answer("a")], ["message 1 (tool) answers call b before call a"]],
    [
      "a second answer",
      [two, answer("a"), answer("a"), answer("b")],
      ["message 2 (tool) answers call a, which is not open"]
    ],
    ["an answer to nobody", [Message.human("Hi"), answer("x")], ["message 1 (tool) answers call x, which is not open"]]
  ] as const)("finds %s", (_, messages, problems) => {
    assert.deepStrictEqual(AgentTest.pairingProblems(messages), problems)
  })
})

describe("TestIds", () => {
  it.effect("makes a run's ids foretellable, and starts anew with each layer", () => {
    const ids = Effect.gen(function* () {
      const events = yield* AgentTest.events(support, Message.human("Where is order 42?", { id: "question" }))
      return events.flatMap((event) => (event._tag === "MessageAppended" ? [event.message.id] : [event.runId]))
    }).pipe(Effect.provide([script, Orders.test, TestIds.layer("it")]))
    return Effect.gen(function* () {
      const first = yield* ids
      assert.isTrue(first.every((id) => id === "question" || /^it-[1-9]$/.test(id)))
      assert.strictEqual(new Set(first).size, 5, "the run, and four messages")
      assert.deepStrictEqual(yield* ids, first)
    })
  })
})
