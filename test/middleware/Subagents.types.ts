import { Effect, Context } from "effect"
import { Agent, type ChatModel, type ModelError, Tool } from "effect-deepagents"
import { Subagents } from "effect-deepagents/middleware"
import { expectTypeOf } from "vitest"

class Orders extends Context.Service<Orders, { readonly count: Effect.Effect<number, "down"> }>()("Orders") {}

const count = Tool.make("count", {
  description: "",
  parameters: {},
  execute: () => Orders.use((orders) => Effect.map(orders.count, String))
})

const plain = Agent.make({ name: "plain", prompt: "" })
const clerk = Agent.make({ name: "clerk", prompt: "", tools: [count] })

// The agent needs the services of its sub-agents; their failures are told to its model.
expectTypeOf(
  Agent.make({ name: "lead", prompt: "", middleware: [Subagents.make({ agents: [plain, Subagents.fork(clerk)] })] })
).toEqualTypeOf<Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel | Orders>>()
