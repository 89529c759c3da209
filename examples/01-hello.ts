/**
 * The smallest useful agent: a model, a tool, and a service that the tool needs. The types say all three.
 */
import assert from "node:assert/strict"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Context, Effect, Layer, Schema } from "effect"
import { Agent, type ChatModel, type ModelError, Tool } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"

class OrderNotFound extends Schema.TaggedError<OrderNotFound>()("OrderNotFound", { orderId: Schema.String }) {}

class Orders extends Context.Service<
  Orders,
  { readonly find: (orderId: string) => Effect.Effect<string, OrderNotFound> }
>()("examples/Orders") {
  static readonly layer = Layer.succeed(Orders, {
    find: (orderId) =>
      orderId === "42" ? Effect.succeed("shipped on Monday") : Effect.fail(new OrderNotFound({ orderId }))
  })
}

const lookup = Tool.make("lookup_order", {
  description: "Find an order by its id",
  parameters: { orderId: Schema.String },
  execute: ({ orderId }) => Orders.use((orders) => orders.find(orderId))
})

const support: Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel | Orders> = Agent.make({
  name: "support",
  prompt: "You help customers.",
  tools: [lookup]
})

// In the place of a real model, so that the example runs without a key.
const model = TestChatModel.script([
  TestChatModel.calls([{ name: "lookup_order", arguments: { orderId: "42" } }]),
  "Order 42 was shipped on Monday."
])

const program = Effect.gen(function* () {
  const answer = yield* Agent.run(support, "Where is order 42?")
  yield* Console.log(answer.text)
  assert.equal(answer.text, "Order 42 was shipped on Monday.")
  assert.equal(answer.rounds, 2)
})

NodeRuntime.runMain(program.pipe(Effect.provide([model, Orders.layer])))
