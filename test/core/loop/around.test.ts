import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import {
  Agent,
  AgentState,
  type Checkpoint,
  Message,
  Middleware,
  Tool,
  ToolContext,
  ToolOutput,
  Usage
} from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"

const noting = (name: string, order: Array<string>) =>
  Middleware.make({
    name,
    wrapModelCall: (request, next) => {
      order.push(name)
      return next(request)
    }
  })

describe("additions around an agent", () => {
  it.effect("stands outside of the agent's own middleware, and does not change the agent", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const agent = Agent.make({ name: "a", prompt: "", middleware: [noting("own", order)] })
      const around = agent.pipe(Agent.around(noting("outer", order)), Agent.around(noting("outermost", order)))
      yield* Agent.run(around, "go")
      yield* Agent.run(agent, "go")
      assert.deepStrictEqual(order, ["outermost", "outer", "own", "own"])
    }).pipe(Effect.provide(TestChatModel.script(["one", "two"])))
  )
})

describe("an agent without some middleware", () => {
  const model = TestChatModel.reactive(() => "done")
  const order: Array<string> = []
  const inherited = Middleware.make({ name: "inherited", inherit: true })
  const ruling = Middleware.make({
    name: "ruling",
    rulings: (_run, calls) => Effect.succeed(calls.map(() => undefined))
  })
  const agent = Agent.make({
    name: "a",
    prompt: "",
    middleware: [inherited, ruling, noting("first", order), noting("second", order)]
  })

  it.effect("runs without it, and is not changed itself", () =>
    Effect.gen(function* () {
      yield* Agent.run(Agent.without(agent, ["first"]), "go")
      assert.deepStrictEqual(order.splice(0), ["second"])
      yield* Agent.run(agent, "go")
      assert.deepStrictEqual(order.splice(0), ["first", "second"])
    }).pipe(Effect.provide(model))
  )

  it.effect("does not run without a guard, nor for a misspelt name", () =>
    Effect.gen(function* () {
      for (const [names, problem] of [
        [["inherited"], "guards the agent"],
        [["second", "ruling"], "guards the agent"],
        [["secnod"], 'Did you mean "second"']
      ] as const) {
        const error = yield* Effect.flip(Agent.run(Agent.without(agent, names), "go"))
        assert.strictEqual(error.reason._tag, "InvalidAgent")
        assert.include(error.message, problem)
      }
      assert.deepStrictEqual(order, [])
    }).pipe(Effect.provide(model))
  )
})

describe("calls of which nobody knows whether they took effect", () => {
  const ran: Array<string> = []
  const tool = (name: string, annotations: Tool.Annotations) =>
    Tool.make(name, {
      description: "",
      parameters: {},
      annotations,
      execute: () => Effect.sync(() => (ran.push(name), "ran"))
    })
  const turn = Message.ai("", {
    toolCalls: ["known", "unknown", "often"].map((name) => ({ id: name, name, arguments: {} }))
  })
  const checkpoint: Checkpoint.Checkpoint = {
    messages: [Message.human("go"), turn],
    state: {},
    usage: Usage.zero,
    rounds: 1
  }

  it.effect("asks reconcilers for unknown calls, and not for repeatable ones", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [tool("known", {}), tool("unknown", {}), tool("often", { idempotent: true })]
      })
      const { messages } = yield* Agent.resume(agent, {
        checkpoint,
        unknownOutcome: (call) =>
          Effect.sync(() => {
            asked.push(call.name)
            return call.name === "known" ? ToolOutput.make("it was done") : undefined
          })
      })
      assert.deepStrictEqual(asked, ["known", "unknown"])
      assert.deepStrictEqual(ran, ["often"])
      assert.deepStrictEqual(
        messages.flatMap((message) =>
          message.role === "tool" ? [[message.isError, Message.text(message).slice(0, 11)]] : []
        ),
        [
          [false, "it was done"],
          [true, "This call w"],
          [false, "ran"]
        ]
      )
    }).pipe(Effect.provide(TestChatModel.script(["done"])))
  )
})

describe("the state of a run", () => {
  it.effect("counts the slots of the whole tree of agents", () =>
    Effect.gen(function* () {
      const slot = AgentState.slot("n", { schema: Schema.Finite, initial: 0 })
      const counts: Array<number> = []
      const write = Tool.make("write", {
        description: "",
        parameters: {},
        execute: Effect.fnUntraced(function* () {
          const { state } = yield* ToolContext.ToolContext
          yield* state.set(slot, 1)
          return "ok"
        })
      })
      const child = Agent.make({ name: "child", description: "", prompt: "", tools: [write] }).pipe(
        Agent.provide(TestChatModel.script([TestChatModel.calls([{ name: "write", arguments: {} }]), "done"]))
      )
      const watching = Middleware.make({
        name: "watching",
        wrapToolCall: Effect.fnUntraced(function* (call, next, run) {
          counts.push(yield* run.state.writes)
          const output = yield* next(call)
          counts.push(yield* run.state.writes)
          return output
        })
      })
      yield* Agent.run(
        Agent.make({ name: "a", prompt: "", tools: [write, Agent.asTool(child)], middleware: [watching] }),
        "go"
      )
      assert.deepStrictEqual(counts, [0, 1, 1, 2])
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([{ name: "write", arguments: {} }]),
          TestChatModel.calls([{ name: "child", arguments: { task: "x" } }]),
          "done"
        ])
      )
    )
  )
})
