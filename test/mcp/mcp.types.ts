import { type Cause, Context, Effect, type Layer, type Stdio } from "effect"
import { Agent, type ChatModel, type Middleware, Tool, type ToolContext } from "effect-deepagents"
import { Mcp, McpOAuth, McpServers, type McpError } from "effect-deepagents/mcp"
import { McpAgent } from "effect-deepagents/server"
import type { CredentialStore } from "effect-deepagents/stores"
import type { HttpClient } from "effect/http"
import type { ChildProcessSpawner } from "effect/process"
import { expectTypeOf } from "vitest"

type Servers = McpServers.McpServers

// Servers need the services of their transport, and building the layer never fails.
expectTypeOf(McpServers.layer({ s: { type: "http", url: "https://example.com" } })).toEqualTypeOf<
  Layer.Layer<Servers, never, HttpClient.HttpClient | ChildProcessSpawner.ChildProcessSpawner>
>()
// @ts-expect-error a server has a type
McpServers.layer({ s: { command: "x" } })
// @ts-expect-error there is no such grant
McpServers.layer({ s: { type: "http", url: "https://example.com", oauth: { grant: "password" } } })

// A call without handlers fails with McpError alone; errors and services of handlers are added.
type Reply = Effect.Success<ReturnType<NonNullable<McpServers.CallOptions["onQuestion"]>>>
declare const ask: Effect.Effect<Reply, "nobody", Desk>
class Desk extends Context.Service<Desk, {}>()("Desk") {}
declare const servers: McpServers.Service
const tool = { server: "s", tool: "t" }
expectTypeOf(servers.call(tool, {})).toEqualTypeOf<Effect.Effect<McpServers.Result, McpError.McpError>>()
expectTypeOf(servers.call(tool, {}, { onQuestion: () => ask })).toEqualTypeOf<
  Effect.Effect<McpServers.Result, McpError.McpError | "nobody", Desk>
>()

expectTypeOf(Mcp.make()).toEqualTypeOf<
  Middleware.AskingMiddleware<McpError.McpError, Servers | ToolContext.ToolContext | ChatModel.ChatModel>
>()

// A server needs the services of its agents and tools, except approvals: its clients decide.
const asks = Tool.make("asks", { description: "Asks", parameters: {}, execute: () => Effect.as(Desk, "done") })
const clerk = Agent.make({ name: "clerk", prompt: "", tools: [asks], middleware: [Mcp.make()] })
expectTypeOf(McpAgent.layerStdio({ name: "a", version: "1", agents: [clerk] })).toEqualTypeOf<
  Layer.Layer<
    never,
    McpAgent.McpAgentError | Cause.IllegalArgumentError,
    ChatModel.ChatModel | Servers | Desk | Stdio.Stdio
  >
>()
expectTypeOf(McpAgent.layerStdio({ name: "a", version: "1", tools: [asks] })).toEqualTypeOf<
  Layer.Layer<never, McpAgent.McpAgentError | Cause.IllegalArgumentError, Desk | Stdio.Stdio>
>()

declare const oauth: McpOAuth.Options
expectTypeOf(McpOAuth.layer(oauth)).toEqualTypeOf<Layer.Layer<never, never, CredentialStore.CredentialStore>>()
