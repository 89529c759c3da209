import { Context, Effect } from "effect"
import { Agent, type Backend, type ChatModel, type ModelError, Tool } from "effect-deepagents"
import { Handoffs, Memory, Skills } from "effect-deepagents/middleware"
import { expectTypeOf } from "vitest"

class Orders extends Context.Service<Orders, { readonly count: Effect.Effect<number, "down"> }>()("Orders") {}

const count = Tool.make("count", {
  description: "",
  parameters: {},
  execute: () => Orders.use((orders) => Effect.map(orders.count, String))
})

const clerk = Agent.make({
  name: "clerk",
  prompt: Effect.fail("no prompt" as const),
  tools: [count],
  middleware: [Handoffs.peers({ lead: "" })]
})

// The agent needs the services of the other agents; their failures are told to its model.
expectTypeOf(Agent.make({ name: "lead", prompt: "", middleware: [Handoffs.make({ agents: [clerk] })] })).toEqualTypeOf<
  Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel | Orders>
>()

// Memory and skills need the backend that has the files, and nothing else.
expectTypeOf(
  Agent.make({ name: "lead", prompt: "", middleware: [Memory.make({ sources: [] }), Skills.make({ sources: [] })] })
).toEqualTypeOf<Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel | Backend.Backend>>()
expectTypeOf(Skills.scan([])).toEqualTypeOf<Effect.Effect<Skills.ScanResult, never, Backend.Backend>>()
