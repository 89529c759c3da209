/**
 * Gives an agent the tools of servers of the Model Context Protocol, which come and go.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { Mcp } from "effect-deepagents/mcp"
 *
 * const agent = Agent.make({
 *   name: "clerk",
 *   prompt: "You look after the tickets.",
 *   middleware: [Mcp.make({ servers: ["tickets"] })]
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import type { ChatModel } from "../core/ChatModel.ts"
import * as Middleware from "../core/Middleware.ts"
import type { Run } from "../core/Run.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import * as Tool from "../core/Tool.ts"
import type { ToolContext } from "../core/ToolContext.ts"
import * as ToolOutput from "../core/ToolOutput.ts"
import * as Attached from "../support/effect/attached.ts"
import { handlers } from "./internal/asking.ts"
import { resourceTools } from "./internal/catalog/resourceTools.ts"
import * as shapes from "./internal/shapes.ts"
import { Calling } from "./McpApps.ts"
import { McpError } from "./McpError.ts"
import { McpServers, type ServerTool, type Service, type Status } from "./McpServers.ts"

/** The name of this middleware: one of yours with it takes its place in a deep agent. */
export const name = "Mcp"

/** The servers and tools that an agent gets. */
export interface Options {
  /** The names of the servers whose tools the agent gets. Default: all servers. */
  readonly servers?: ReadonlyArray<string> | undefined
  /** Adds the two tools that list and read resources. Default: `true`. */
  readonly resources?: boolean | undefined
}

/** Services that a call needs beside the servers. */
type Needs = ToolContext | ChatModel

const needsApproval = ({ annotations, server }: ServerTool, servers: Service): boolean => {
  const rule = servers.config(server)?.approval ?? "annotated"
  return rule === "always" || (rule === "annotated" && annotations.readOnly !== true)
}

/** Repeats a call that was lost with its connection, if a repetition is harmless. */
const retryCall =
  ({ annotations }: ServerTool) =>
  <A, E, R>(call: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    annotations.readOnly === true || annotations.idempotent === true
      ? Effect.retry(call, { times: 1, while: (error) => error instanceof McpError && error.reason === "Lost" })
      : call

/** A tool of a server as one of an agent. */
const toolOf = (tool: ServerTool, servers: Service): Tool.Tool<Needs> => {
  const agentTool = Tool.dynamic(tool.name, {
    description: tool.description,
    parameters: tool.parameters,
    annotations: { ...tool.annotations, server: tool.server, serverTool: tool.tool },
    execute: (args) =>
      Effect.gen(function* () {
        const sampling = servers.config(tool.server)?.sampling
        const result = yield* retryCall(tool)(servers.call(tool, args, yield* handlers(tool.server, sampling)))
        const { content, isError, sources, structured } = result
        return ToolOutput.make(content, { isError, sources, details: structured })
      })
  })
  return needsApproval(tool, servers) ? { ...agentTool, needsApproval: true } : agentTool
}

interface MadeTools {
  readonly calling: string
  readonly of: ReadonlyArray<ServerTool>
  readonly reads: boolean
  readonly tools: ReadonlyArray<Tool.Tool<Needs>>
}

/** Refuses names that no server has: they would give nothing, silently. */
const checkNames = (servers: Service, wanted: ReadonlyArray<string>, all: ReadonlyArray<Status>) => {
  const unknown = wanted.find((one) => servers.config(one) === undefined)
  if (unknown === undefined) return Effect.void
  const near = Middleware.findTool(new Set(all.map((status) => status.name)), unknown)
  const hint = near === undefined ? `there are: ${all.map((status) => status.name).join(", ")}` : `is "${near}" meant?`
  return new McpError({
    server: unknown,
    reason: "UnknownServer",
    message: `there is no MCP server "${unknown}"; ${hint}`
  })
}

/** News of a server that a run has been told. */
const toldOf = ({ error, problems, state }: Status): string =>
  state === "connected" ? problems.join("; ") : state === "disabled" ? "" : (error?.message ?? "")

/** Tells a run of servers that are not there, once each time that something changes. */
const warn = (run: Run, warnings: Map<string, string>, { name: server, ...status }: Status): Effect.Effect<void> => {
  const message = toldOf({ name: server, ...status })
  if (message === (warnings.get(server) ?? "")) return Effect.void
  warnings.set(server, message)
  if (message === "") return Effect.void
  const code = status.state === "connected" ? "mcp-server-problem" : "mcp-server-unavailable"
  return run.warn(code, status.state === "connected" ? `the MCP server "${server}": ${message}` : message)
}

const parts = ({ resources = true, servers: wanted }: Options) => {
  const toolsByService = new WeakMap<Service, MadeTools>()
  const warningsByRun = Attached.make<Run, Map<string, string>>()
  return {
    name,
    asks: true as const,
    tools: (run: Run): Effect.Effect<ReadonlyArray<Tool.Tool<Needs>>, McpError, McpServers> =>
      Effect.gen(function* () {
        const servers = yield* McpServers
        const all = yield* servers.tools
        const status = yield* servers.status
        yield* checkNames(servers, wanted ?? [], status)
        const selection = status.filter((one) => wanted === undefined || wanted.includes(one.name))
        const warnings = warningsByRun.get(run) ?? new Map<string, string>()
        warningsByRun.set(run, warnings)
        yield* Effect.forEach(selection, (one) => warn(run, warnings, one), { discard: true })
        const last = toolsByService.get(servers)
        const reads = resources && (last?.reads === true || selection.some(({ hasResources }) => hasResources))
        const calling = yield* Calling
        // The same array says that nothing changed.
        if (last?.of === all && last.reads === reads && last.calling === calling) return last.tools
        const own = all.filter(
          ({ callers, server }) =>
            (wanted?.includes(server) ?? true) &&
            (callers?.some((one) => one === "model" || (one === "app" && server === calling)) ?? true)
        )
        const tools = [...own.map((tool) => toolOf(tool, servers)), ...(reads ? resourceTools(servers, wanted) : [])]
        toolsByService.set(servers, { calling, of: all, reads, tools })
        return tools
      })
  }
}

const refuseMake = makeMiddlewareCheck(name, shapes.mcpMake)

/**
 * Gives an agent the tools of servers, named `server__tool` in a form that models accept. A person is asked about calls
 * according to the server's configuration: by default, about tools that are not annotated as read-only. A rule of
 * `HumanInTheLoop` replaces that. With `Approvals` in the context, the run waits for the answer. Otherwise the run is
 * suspended, and the resumed run repeats the call with the answer.
 *
 * A call that is lost with its connection is repeated once if its tool is annotated as read-only or idempotent.
 *
 * An unavailable server emits a `Warning` (`mcp-server-unavailable`); its tools appear when it does. Questions of a
 * server during a call use `ToolContext.ask`. Its requests for the model go through the run and its budget if the
 * configuration allows them. Progress emits `ToolProgress` events, log lines emit `Custom` ones (`mcp-log`).
 *
 * The run fails with `McpError` if `servers` names an unconfigured server.
 */
export const make = (options: Options = {}): Middleware.AskingMiddleware<McpError, McpServers | Needs> =>
  refuseMake(options) ?? Middleware.make<McpError, McpServers | Needs>(parts(options))
