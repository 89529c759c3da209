import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, Message, Tool } from "effect-deepagents"
import { Budget, RunStatus, Summarization } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"

const work = Tool.make("work", {
  description: "",
  parameters: { n: Schema.Finite },
  execute: ({ n }) => Effect.as(TestClock.adjust("1 minute"), `done ${n}`)
})

describe("RunStatus", () => {
  it.effect("tells each turn what is left, in the request alone", () =>
    Effect.gen(function* () {
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [work],
        middleware: [
          Budget.make({ cost: 2, time: "10 minutes", toolCalls: 5, onExhausted: "finalAnswer" }),
          Summarization.make({ contextWindowTokens: 1_000 }),
          RunStatus.make()
        ]
      })
      const { messages } = yield* Agent.run(agent, "go")
      const requests = yield* TestChatModel.requests
      assert.deepStrictEqual(
        requests.map((request) => {
          const last = request.messages.at(-1)
          return last === undefined ? "" : Message.text(last).replace(/\d+ %/, "n %")
        }),
        [
          "[Round 1. Left: 2.00 of money, 10 minutes, 5 tool calls. The conversation has n % of the length at which it is summarised.]",
          "[Round 2. Left: 1.50 of money, 9 minutes, 4 tool calls. The conversation has n % of the length at which it is summarised.]"
        ]
      )
      assert.isTrue(messages.every(({ source }) => source === undefined))
      // Each request begins with the one before, except for the status.
      const [first, second] = requests
      assert.deepStrictEqual(second?.messages.slice(0, 1), first?.messages.slice(0, 1))
    }).pipe(
      Effect.provide(
        TestChatModel.script(
          [TestChatModel.calls([{ name: "work", arguments: { n: 1 } }], { usage: { outputTokens: 500_000 } }), "end"],
          { prices: { input: 1, output: 1 } }
        )
      )
    )
  )

  it.effect("without a budget tells the round", () =>
    Effect.gen(function* () {
      yield* Agent.run(Agent.make({ name: "a", prompt: "", middleware: [RunStatus.make()] }), "go")
      const [request] = yield* TestChatModel.requests
      assert.strictEqual(Message.text(request?.messages.at(-1) ?? Message.human("")), "[Round 1.]")
    }).pipe(Effect.provide(TestChatModel.script(["end"])))
  )
})
