/**
 * State that tools write and conditions read: a typed slot, a condition that ends the run, and a second run that goes on
 * from the first.
 */
import assert from "node:assert/strict"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Schema } from "effect"
import { Agent, AgentState, StopWhen, Tool, ToolOutput } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"

const basket = AgentState.slot("basket", { schema: Schema.Array(Schema.String), initial: [] })

const add = Tool.make("add_to_basket", {
  description: "Puts an item into the basket",
  parameters: { item: Schema.String },
  // What a tool writes is kept if it succeeds, all of it, and parallel calls lose nothing.
  execute: ({ item }) =>
    Effect.succeed(ToolOutput.make("added", { state: [AgentState.change(basket, (items) => [...items, item])] }))
})

const full = StopWhen.stateIs(basket, (items) => items.length >= 3)

const shopper = Agent.make({
  name: "shopper",
  prompt: "You shop.",
  tools: [add],
  stopWhen: [full]
})

const model = TestChatModel.script([
  TestChatModel.calls([
    { name: "add_to_basket", arguments: { item: "tea" } },
    { name: "add_to_basket", arguments: { item: "milk" } }
  ]),
  TestChatModel.calls([{ name: "add_to_basket", arguments: { item: "sugar" } }]),
  TestChatModel.calls([{ name: "add_to_basket", arguments: { item: "spoon" } }])
])

const program = Effect.gen(function* () {
  const first = yield* Agent.run(shopper, "Buy what I need for tea.")
  const items = yield* Effect.fromResult(AgentState.read(first.state, basket))
  yield* Console.log(`${first.stopReason} after ${first.rounds} rounds: ${items.join(", ")}`)
  assert.equal(first.stopReason, "stopCondition")
  assert.deepEqual(items, ["tea", "milk", "sugar"])

  // State and messages are plain JSON values: they may have been stored in between.
  const second = yield* Agent.run(shopper, "And a spoon.", { history: first.messages, state: first.state })
  yield* Console.log(`state: ${JSON.stringify(second.state)}`)
  assert.deepEqual(second.state, { basket: ["tea", "milk", "sugar", "spoon"] })
})

NodeRuntime.runMain(program.pipe(Effect.provide(model)))
