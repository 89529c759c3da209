import { Context, Effect, Schema } from "effect"
import {
  type Agent,
  type Approval,
  type Backend,
  type ChatModel,
  type ModelError,
  type Sandbox,
  Tool
} from "effect-deepagents"
import { DeepAgent } from "effect-deepagents/deep"
import { expectTypeOf } from "vitest"

class Orders extends Context.Service<Orders, { readonly count: Effect.Effect<number> }>()("Orders") {}

const count = Tool.make("count", {
  description: "",
  parameters: {},
  execute: () => Orders.use((orders) => Effect.map(orders.count, String))
})

type Deep<Output, R> = Agent.Agent<Output, ModelError.ModelError, ChatModel.ChatModel | Backend.Backend | R>

expectTypeOf(DeepAgent.make({ name: "a", prompt: "" })).toEqualTypeOf<Deep<string, never>>()

// What tools need, the agent needs; `execute` needs a sandbox.
expectTypeOf(DeepAgent.make({ name: "a", prompt: "", tools: [count], execute: true })).toEqualTypeOf<
  Deep<string, Orders | Sandbox.Sandbox>
>()

// An answer in a schema; an agent that may be suspended may have none.
expectTypeOf(
  DeepAgent.make({
    name: "a",
    prompt: "",
    output: Schema.Struct({ city: Schema.String }),
    approvals: { mode: "suspend", destructive: true }
  })
).toEqualTypeOf<Deep<{ readonly city: string } | undefined, never>>()

// Asking while the run waits needs somebody to ask.
expectTypeOf(DeepAgent.make({ name: "a", prompt: "", approvals: { mode: "ask", destructive: true } })).toEqualTypeOf<
  Deep<string, Approval.Approvals>
>()

// What sub-agents need, the agent needs.
const clerk = DeepAgent.subagent({ name: "clerk", description: "counts", prompt: "", tools: [count] })
expectTypeOf(clerk).toEqualTypeOf<Deep<string, Orders>>()
expectTypeOf(DeepAgent.make({ name: "a", prompt: "", subagents: [clerk] })).toEqualTypeOf<Deep<string, Orders>>()
