/** An agent that is made in place has the same type as in a variable. */
import { Context, type Effect, Schema } from "effect"
import { Agent, type ChatModel, Middleware, type ModelError, Tool, type ToolContext } from "effect-deepagents"
import { DeepAgent } from "effect-deepagents/deep"
import { BackgroundSubagents, type BackgroundTasks, Handoffs, Subagents } from "effect-deepagents/middleware"
import { Inbox } from "effect-deepagents/rules"
import { McpAgent } from "effect-deepagents/server"
import { expectTypeOf } from "vitest"

class Orders extends Context.Service<Orders, { readonly find: Effect.Effect<string> }>()("test/Orders") {}
const find = Tool.make("find", { description: "d", parameters: {}, execute: () => Orders.use((orders) => orders.find) })
const base = { name: "a", description: "d", prompt: "p" } as const

type Model = ChatModel.ChatModel
type Failure = ModelError.ModelError

expectTypeOf(Agent.asTool(Agent.make(base))).toEqualTypeOf<Tool.Tool<Model | ToolContext.ToolContext>>()
expectTypeOf(Agent.make({ ...base, tools: [Agent.asTool(Agent.make({ ...base, tools: [find] }))] })).toEqualTypeOf<
  Agent.Agent<string, Failure, Model | Orders>
>()
expectTypeOf(Agent.make({ ...base, middleware: [Subagents.make({ agents: [Agent.make(base)] })] })).toEqualTypeOf<
  Agent.Agent<string, Failure, Model>
>()
expectTypeOf(
  Agent.make({
    ...base,
    middleware: [Subagents.make({ agents: [Subagents.fork(Agent.make({ ...base, tools: [find] }))] })]
  })
).toEqualTypeOf<Agent.Agent<string, Failure, Model | Orders>>()
expectTypeOf(Agent.make({ ...base, middleware: [Handoffs.make({ agents: [Agent.make(base)] })] })).toEqualTypeOf<
  Agent.Agent<string, Failure, Model>
>()
expectTypeOf(
  Agent.make({ ...base, middleware: [BackgroundSubagents.make({ agents: [Agent.make(base)] })] })
).toEqualTypeOf<Agent.Agent<string, Failure, Model | BackgroundTasks.BackgroundTasks>>()
expectTypeOf(DeepAgent.make({ ...base, subagents: [Agent.make({ ...base, tools: [find] })] })).toEqualTypeOf(
  DeepAgent.make({ ...base, tools: [find] })
)
const served = Agent.make({ ...base, tools: [find] })
expectTypeOf(Inbox.toAgents([Agent.make({ ...base, tools: [find] })])).toEqualTypeOf(Inbox.toAgents([served]))
expectTypeOf(McpAgent.layer({ agents: [Agent.make({ ...base, tools: [find] })] })).toEqualTypeOf(
  McpAgent.layer({ agents: [served] })
)
expectTypeOf(
  Agent.make({
    ...base,
    tools: [Agent.asTool(Agent.program({ name: "b", run: () => Orders.use((orders) => orders.find) }))]
  })
).toEqualTypeOf<Agent.Agent<string, Failure, Model | Orders>>()

// The prompt and the schema of the answer still count.
expectTypeOf(
  Agent.make({ ...base, prompt: Orders.use((orders) => orders.find), output: Schema.Struct({ a: Schema.Int }) })
).toEqualTypeOf<Agent.Agent<{ readonly a: number }, Failure, Model | Orders>>()
expectTypeOf(Agent.make({ ...base, middleware: [Middleware.make({ name: "m", prompt: "p" })] })).toEqualTypeOf<
  Agent.Agent<string, Failure, Model>
>()
