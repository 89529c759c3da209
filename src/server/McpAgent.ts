/**
 * Serves agents and tools by the Model Context Protocol, to an editor, a desktop program or another agent.
 *
 * ```ts
 * import { NodeRuntime, NodeStdio } from "@effect/platform-node"
 * import { Layer } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { McpAgent } from "effect-deepagents/server"
 * import { TestChatModel } from "effect-deepagents/testing"
 *
 * const writer = Agent.make({ name: "writer", description: "Writes a text", prompt: "You write." })
 *
 * const server = McpAgent.layerStdio({ name: "office", version: "1.0.0", agents: [writer] }).pipe(
 *   Layer.provide([NodeStdio.layer, TestChatModel.script([])])
 * )
 *
 * const main = () => NodeRuntime.runMain(Layer.launch(server))
 * ```
 *
 * Each agent and each tool is a tool of the server. Questions of a run go to the client's user, as an elicitation, or as
 * `InputRequired` from protocol 2026-07-28 on. So a server needs no `Approvals`. If the client can't ask, the question is
 * rejected.
 */
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import type { IllegalArgumentError } from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { HttpRouter, PathInput } from "effect/http/HttpRouter"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import type { Scope } from "effect/Scope"
import type { Stdio } from "effect/Stdio"
import type * as Agent from "../core/Agent.ts"
import type { Approvals } from "../core/Approval.ts"
import type { Service as BackendService } from "../core/Backend.ts"
import type * as Tool from "../core/Tool.ts"
import type { ToolContext } from "../core/ToolContext.ts"
import { quietConsole } from "../support/effect/quiet.ts"
import { TaggedError } from "../support/effect/taggedError.ts"
import { defined } from "../support/json/defined.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import * as Calls from "./internal/mcp/calls.ts"
import { offerFiles, offerSkills } from "./internal/mcp/files.ts"
import { hosts } from "./internal/mcp/hosts.ts"
import { ofAgent, ofTool, type Work } from "./internal/mcp/work.ts"
import * as shapes from "./internal/shapes.ts"

/** The options describe no valid server: `name` is the agent, the tool or the option with the `problem`. */
export class McpAgentError extends TaggedError<McpAgentError>()("McpAgentError", {
  name: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `${JSON.stringify(this.name)} can't be offered by an MCP server: ${this.problem}`
  }
}

type AnyAgent = Agent.Agent<unknown, unknown, unknown>
type AnyTool = Tool.Tool<unknown>

/**
 * The agents and tools to offer. With a `Journal` in the context, an agent takes the argument `thread`, the name of a
 * conversation. Any client that knows the name may continue it.
 */
export interface Options<
  Agents extends ReadonlyArray<AnyAgent> = ReadonlyArray<AnyAgent>,
  Tools extends ReadonlyArray<AnyTool> = ReadonlyArray<AnyTool>
> {
  /** The agents that the server offers as tools. Default: none. */
  readonly agents?: Agents | undefined
  /** Tools that the server offers besides. Default: none. */
  readonly tools?: Tools | undefined
  /**
   * Offers the files of a backend as resources (`backend:///path`), by its own rules. The first 1,000 are listed.
   * Default: none.
   */
  readonly backend?: BackendService | undefined
  /** Offers each skill in these directories of the backend as a prompt. Default: none. */
  readonly skills?:
    | {
        /** The directories of skills in the backend. */
        readonly sources: ReadonlyArray<string>
      }
    | undefined
}

/** The name of the server, as clients show it, and instructions for its use. */
export interface Server {
  /** The name of the server, as clients show it. */
  readonly name: string
  /** The version of the server. */
  readonly version: string
  /** Tells clients how to use the server. Default: nothing. */
  readonly instructions?: string | undefined
}

/** The services that the agents and tools of a server need. */
type Services<Agents extends ReadonlyArray<AnyAgent>, Tools extends ReadonlyArray<AnyTool>> = Exclude<
  Agent.Services<Agents[number]> | Tool.Services<Tools[number]>,
  Approvals | ToolContext
>

const legal = /^[A-Za-z0-9_.-]{1,128}$/

const decodeSchema = Schema.decodeUnknownEffect(McpSchema.ToolJson)

const describeWork = Effect.fnUntraced(function* ({ annotations, description, name, parameters }: Work) {
  if (!legal.test(name)) {
    const problem = "a name has 1 to 128 letters, digits, `_`, `-` and `.`"
    return yield* new McpAgentError({ name, problem })
  }
  const inputSchema = yield* Effect.mapError(
    decodeSchema(parameters),
    ({ message }) => new McpAgentError({ name, problem: `its parameters are no JSON Schema of an object: ${message}` })
  )
  const { destructive, idempotent, openWorld, readOnly } = annotations
  return new McpSchema.Tool({
    name,
    description,
    inputSchema,
    annotations: defined({
      readOnlyHint: readOnly,
      destructiveHint: destructive,
      idempotentHint: idempotent,
      openWorldHint: openWorld
    })
  })
})

const offer = Effect.fnUntraced(function* ({ agents = [], backend, skills, tools = [] }: Options) {
  const server = yield* McpServer.McpServer
  const context = yield* Effect.context<never>()
  const works = [...agents.map((agent) => ofAgent(agent, context)), ...tools.map((tool) => ofTool(tool, context))]
  const names = works.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) < index)
  if (twice !== undefined) return yield* new McpAgentError({ name: twice, problem: "there are two of this name" })
  if (skills !== undefined && backend === undefined) {
    return yield* new McpAgentError({ name: "skills", problem: "they are read from a backend; give `backend` too" })
  }
  const call = yield* Calls.make
  const listAgain = backend === undefined ? Effect.void : yield* offerFiles(server, backend)
  yield* listAgain
  if (backend !== undefined && skills !== undefined) yield* offerSkills(server, backend, skills.sources)
  for (const work of works) {
    yield* server.addTool({
      tool: yield* describeWork(work),
      annotations: Context.empty(),
      handle: (args: unknown) => Effect.ensuring(work.run(args, call), listAgain)
    })
  }
})

/** Captures the whole context for the runs. The public layers have its services in their types. */
const registrationsOf = (options: Options) => Layer.effectDiscard(offer(options))

const refuseLayer = makeLayerCheck("McpAgent.layer", shapes.mcpAgentLayer)

/** Adds agents and tools to an `McpServer` of Effect. */
export const layer = <
  const Agents extends ReadonlyArray<AnyAgent> = readonly [],
  const Tools extends ReadonlyArray<AnyTool> = readonly []
>(
  options: Options<Agents, Tools>
): Layer.Layer<never, McpAgentError, McpServer.McpServer | Exclude<Services<Agents, Tools>, Scope>> =>
  refuseLayer(options) ?? registrationsOf(options)

const protocols = [
  McpProtocol.v2026_07_28,
  McpProtocol.v2025_11_25,
  McpProtocol.v2025_06_18,
  McpProtocol.v2025_03_26
] as const

const toStderr = Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])

const refuseLayerStdio = makeLayerCheck("McpAgent.layerStdio", shapes.mcpAgentLayerStdio)

/** Serves on standard input and output. Logs and the output of `console` go to stderr. */
export const layerStdio = <
  const Agents extends ReadonlyArray<AnyAgent> = readonly [],
  const Tools extends ReadonlyArray<AnyTool> = readonly []
>(
  options: Server & Options<Agents, Tools>
): Layer.Layer<
  never,
  McpAgentError | IllegalArgumentError,
  Stdio | Exclude<Services<Agents, Tools>, McpServer.McpServer | Scope>
> =>
  refuseLayerStdio(options) ??
  McpServer.layerStdio({ ...identityOf(options), protocols, registrations: registrationsOf(options) }).pipe(
    Layer.provide([toStderr, Layer.effectDiscard(quietConsole)])
  )

const identityOf = ({ instructions, name, version }: Server) => defined({ name, version, instructions })

const refuseLayerHttp = makeLayerCheck("McpAgent.layerHttp", shapes.mcpAgentLayerHttp)

/**
 * Serves by streamable HTTP, at a path of an `HttpRouter`. Authentication is the job of the router's middleware. Provide
 * further registrations of Effect's `McpServer` (a prompt, a resource) with this layer.
 */
export const layerHttp = <
  const Agents extends ReadonlyArray<AnyAgent> = readonly [],
  const Tools extends ReadonlyArray<AnyTool> = readonly []
>(
  options: Server &
    Options<Agents, Tools> & {
      /** The path of the server in the router. */
      readonly path: PathInput
      /** Values of the header `Host`. Default: `localhost`, `127.0.0.1`, `[::1]`, so that no page reaches the server. */
      readonly allowedHosts?: ReadonlyArray<string> | undefined
      /** Values of the header `Origin` beside the server's own. Default: none. */
      readonly allowedOrigins?: ReadonlyArray<string> | undefined
    }
): Layer.Layer<
  McpServer.McpServer,
  McpAgentError | IllegalArgumentError,
  HttpRouter | Exclude<Services<Agents, Tools>, McpServer.McpServer | Scope>
> =>
  refuseLayerHttp(options) ??
  McpServer.layerHttp({
    ...identityOf(options),
    path: options.path,
    protocols,
    allowSessionTermination: true,
    allowedOrigins: options.allowedOrigins ?? [],
    registrations: registrationsOf(options)
  }).pipe(Layer.provide(hosts(options.allowedHosts)))
