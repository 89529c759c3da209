/**
 * Calls of interfaces (MCP Apps). `Server` of `effect-deepagents/server` sets the server whose interface makes the call at
 * work, and `Mcp.make` gives that run the tools that only interfaces may call.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { McpApps } from "effect-deepagents/mcp"
 *
 * const isOfPerson = Effect.map(McpApps.Calling, (server) => server === "")
 * ```
 */
import * as Context from "effect/Context"

/** The server whose interface calls a tool in this run; empty in all other runs. */
export const Calling = Context.Reference<string>("effect-deepagents/mcp/McpApps/Calling", { defaultValue: () => "" })
