import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Data, Effect, Exit, Layer, Schema } from "effect"
import { Agent, AgentState, type Message, type ModelError, Tool, ToolOutput } from "effect-deepagents"
import { ModelRetry } from "effect-deepagents/middleware"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"

class Orders extends Context.Service<Orders, { readonly find: (id: string) => Effect.Effect<string> }>()("Orders") {
  static readonly test = Layer.succeed(Orders, { find: (id) => Effect.succeed(`order ${id}: shipped`) })
}

const last = AgentState.slot("last-order", { schema: Schema.String, initial: "" })

const lookup = Tool.make("lookup_order", {
  description: "Find an order by its id",
  parameters: { orderId: Schema.String },
  execute: ({ orderId }) =>
    Effect.map(
      Orders.use((orders) => orders.find(orderId)),
      (text) => ToolOutput.make(text, { state: [AgentState.assign(last, orderId)] })
    )
})

const support = Agent.make({ name: "support", prompt: "You help customers.", tools: [lookup] })

const model = [TestChatModel.calls([{ name: "lookup_order", arguments: { orderId: "42" } }]), "It has shipped."]
const input = "Where is order 42?"

/** The differences that a scenario reports. */
const differencesOf = (expect: AgentTest.Scenario<string, ModelError.ModelError, never>["expect"]) =>
  AgentTest.scenario({ agent: support, model, input, expect }).pipe(
    Effect.provide(Orders.test),
    Effect.exit,
    Effect.map((exit) => (Exit.isFailure(exit) ? Cause.pretty(exit.cause).split("\n    at ")[0]?.split("\n") : []))
  )

describe("AgentTest.scenario", () => {
  it.effect("checks every side of a run", () =>
    AgentTest.scenario({
      agent: support,
      model,
      input,
      expect: {
        stopReason: "completed",
        text: /shipped/,
        rounds: 2,
        messages: [
          ["human", input],
          ["ai", ""],
          ["tool", "order 42: shipped"],
          ["ai", (text) => text.startsWith("It")]
        ],
        calls: [{ name: "lookup_order", arguments: { orderId: "42" }, result: /42/, isError: false }],
        events: ["RunStarted", "ToolCompleted", { _tag: "TextDelta", text: "It has shipped." }, "RunCompleted"],
        absent: ["Warning"],
        state: { "last-order": "42" }
      }
    }).pipe(
      Effect.map(({ error, requests, result }) => {
        assert.isUndefined(error)
        assert.strictEqual(result?.text, "It has shipped.")
        assert.strictEqual(requests[0]?.systemPrompt, "You help customers.")
      }),
      Effect.provide(Orders.test)
    )
  )

  for (const [field, expect, difference] of [
    ["stopReason", { stopReason: "refused" }, 'stopReason: expected "refused", got "completed"'],
    ["text", { text: /Paris/ }, 'text: expected /Paris/, got "It has shipped."'],
    ["output", { output: "no" }, 'output: expected "no", got "It has shipped."'],
    ["usage", { usage: { inputTokens: 3 } }, "usage.inputTokens: expected 3, got 0"],
    ["state", { state: { "last-order": "41" } }, 'state.last-order: expected "41", got "42"'],
    ["failure", { failure: "ModelError" }, 'failure: expected {"_tag":"ModelError"}, got nothing'],
    ["absent", { absent: ["TextDelta"] }, "absent: expected"],
    ["calls", { calls: ["search"] }, 'calls[0].name: expected "search", got "lookup_order"'],
    [
      "calls",
      { calls: [{ name: "lookup_order", arguments: { orderId: "7" } }] },
      'calls[0].arguments.orderId: expected "7", got "42"'
    ],
    ["calls", { calls: [] }, "calls: expected 0 elements, got 1"],
    ["events", { events: ["TextDelta", "TextDelta"] }, "events: expected 2 elements, got 1"],
    ["events", { events: [{ _tag: "TextDelta", text: "x" }] }, 'events[0].text: expected "x", got "It has shipped."'],
    ["events", { events: ["RunCompleted", "RunStarted"] }, 'events[0]._tag: expected "RunCompleted", got "RunStarted"']
  ] as const) {
    it.effect(`reports the path of a difference: ${field}`, () =>
      Effect.gen(function* () {
        const [, ...found] = (yield* differencesOf(expect)) ?? []
        assert.isTrue(found[0]?.startsWith(difference), found.join("\n"))
      })
    )
  }

  it.effect("reports every difference at once", () =>
    Effect.gen(function* () {
      const messages: ReadonlyArray<readonly [Message.Message["role"], string]> = [
        ["human", input],
        ["ai", "?"],
        ["tool", "?"],
        ["ai", "It has shipped."]
      ]
      assert.deepStrictEqual((yield* differencesOf({ rounds: 3, messages }))?.slice(1), [
        "rounds: expected 3, got 2",
        'messages[1][1]: expected "?", got ""',
        'messages[2][1]: expected "?", got "order 42: shipped"'
      ])
    })
  )

  it.effect("describes a failure, by its tag or its fields", () =>
    Effect.gen(function* () {
      const options = { agent: support, model: [TestChatModel.fail({ _tag: "Authentication" })], input }
      yield* AgentTest.scenario({ ...options, expect: { failure: "ModelError", events: ["RunFailed"] } })
      const expect = { failure: { _tag: "ModelError", reason: { _tag: "Authentication" } } } as const
      const { error, result } = yield* AgentTest.scenario({ ...options, expect })
      assert.strictEqual(error?._tag, "ModelError")
      assert.isUndefined(result)
    }).pipe(Effect.provide(Orders.test))
  )

  it.effect("fails as the run did, if no failure is expected", () =>
    Effect.gen(function* () {
      class Closed extends Data.TaggedError("Closed")<{}> {}
      const agent = Agent.make({ name: "closed", prompt: Effect.fail(new Closed()) })
      const error = yield* Effect.flip(AgentTest.scenario({ agent, model: [], input, expect: {} }))
      assert.strictEqual(error._tag, "Closed")
    })
  )

  it.effect("moves the clock while the run waits", () =>
    AgentTest.scenario({
      agent: Agent.make({ name: "patient", prompt: "You answer.", middleware: [ModelRetry.make()] }),
      model: [TestChatModel.fail({ _tag: "Transport" }, { after: "Beca" }), "Because."],
      input: "Why?",
      adjust: "1 second",
      expect: {
        text: "Because.",
        events: [
          { _tag: "TextDelta", text: "Beca" },
          { _tag: "Warning", code: "model-retry" },
          "TurnRestarted",
          { _tag: "TextDelta", text: "Because." }
        ]
      }
    })
  )

  it.effect("takes a model that answers by request", () =>
    AgentTest.scenario({
      agent: support,
      model: TestChatModel.reactive(({ messages }) => `${messages.length} message`),
      input,
      expect: { text: "1 message", calls: [] }
    }).pipe(Effect.provide(Orders.test))
  )
})
