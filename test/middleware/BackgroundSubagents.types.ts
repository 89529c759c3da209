import { Context, Effect, type Layer, Redacted } from "effect"
import { Agent, type ChatModel, type ModelError, Tool } from "effect-deepagents"
import { BackgroundSubagents, BackgroundTasks, RemoteAgents, Subagents } from "effect-deepagents/middleware"
import type { HttpClient } from "effect/http"
import { expectTypeOf } from "vitest"

class Orders extends Context.Service<Orders, { readonly count: Effect.Effect<number, "down"> }>()("Orders") {}

const count = Tool.make("count", {
  description: "",
  parameters: {},
  execute: () => Orders.use((orders) => Effect.map(orders.count, String))
})

const plain = Agent.make({ name: "plain", prompt: "" })
const clerk = Agent.make({ name: "clerk", prompt: "", tools: [count] })
const remote = RemoteAgents.make({
  name: "remote",
  description: "",
  url: "https://agents.example.com",
  agentId: "agent",
  headers: { "x-api-key": Redacted.make("key"), "x-tenant": "a" }
})

// The agent and the supervisor need the services of the agents; their failures are told to its model.
expectTypeOf(
  Agent.make({
    name: "lead",
    prompt: "",
    middleware: [BackgroundSubagents.make({ agents: [plain, Subagents.fork(clerk)] })]
  })
).toEqualTypeOf<
  Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel | Orders | BackgroundTasks.BackgroundTasks>
>()

// One on a server needs an HTTP client.
expectTypeOf(
  Agent.make({ name: "lead", prompt: "", middleware: [BackgroundSubagents.make({ agents: [remote] })] })
).toEqualTypeOf<
  Agent.Agent<
    string,
    ModelError.ModelError,
    ChatModel.ChatModel | HttpClient.HttpClient | BackgroundTasks.BackgroundTasks
  >
>()

expectTypeOf(remote).toEqualTypeOf<BackgroundTasks.Worker<HttpClient.HttpClient>>()
expectTypeOf(BackgroundTasks.layer()).toEqualTypeOf<Layer.Layer<BackgroundTasks.BackgroundTasks>>()

// Who needs nothing else is left with nothing else.
expectTypeOf(
  Agent.make({ name: "lead", prompt: "", middleware: [BackgroundSubagents.make({ agents: [] })] })
).toEqualTypeOf<Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel | BackgroundTasks.BackgroundTasks>>()

// @ts-expect-error an address is given by the program
RemoteAgents.make({ name: "remote", description: "", agentId: "agent" })
