/** MCP servers from the files of the user and of a trusted project. */
import { homedir } from "node:os"
import { join, resolve } from "node:path"
import type { NodeServices } from "@effect/platform-node/NodeServices"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import manifest from "../../../../package.json" with { type: "json" }
import type { Server, Servers } from "../../../mcp/McpConfig.ts"
import * as McpConfigFile from "../../../mcp/McpConfigFile.ts"
import * as McpServers from "../../../mcp/McpServers.ts"
import * as ToolSchema from "../../../models/ToolSchema.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import { itemsOf, type Project } from "./items.ts"
import { type Places, textOf, userServers } from "./places.ts"
import type { Authorization } from "./signIn.ts"

export type Origin = "editor" | "user" | "project"

export interface FoundServer {
  readonly name: string
  readonly origin: Origin
  readonly file: string
  readonly server: Server
}

export interface FoundServers {
  readonly servers: ReadonlyArray<FoundServer>
  readonly problems: ReadonlyArray<string>
}

const isRecord = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Extracts the servers from Claude Code's settings file. */
const serversOnly = (text: string): string | undefined => {
  const file = Result.getOrElse(
    Result.try((): unknown => JSON.parse(text)),
    () => undefined
  )
  const listed = isRecord(file) ? file["mcpServers"] : undefined
  return isRecord(listed) && Object.keys(listed).length > 0 ? JSON.stringify({ mcpServers: listed }) : undefined
}

/** A project must not switch questions off. Only the flag `--yolo` does. */
const asking = (server: Server): Server => ({
  ...server,
  ...(server.approval === "never" ? { approval: "annotated" } : {}),
  ...(server.sampling === "allow" ? { sampling: "ask" } : {})
})

/** A file of servers. */
interface ServerFile {
  readonly file: string
  readonly origin: Origin
  readonly text: string
}

/** The files of the user. */
const userFiles = Effect.fnUntraced(function* (places: Places) {
  const files = [
    [join(homedir(), ".claude.json"), true],
    [join(homedir(), ".cursor", "mcp.json"), false],
    [userServers(places), false]
  ] as const
  const texts = yield* Effect.forEach(
    files,
    Effect.fnUntraced(function* ([file, isMixed]) {
      const whole = yield* Effect.result(textOf(file))
      if (Result.isFailure(whole)) return Result.fail(whole.failure.message)
      const text = whole.success !== undefined && isMixed ? serversOnly(whole.success) : whole.success
      return Result.succeed(text === undefined ? [] : [{ file, origin: "user", text } satisfies ServerFile])
    })
  )
  return Arr.separate(texts)
})

/**
 * Finds all servers, with those that an editor hands over. The later of two servers with one name counts. A wrong file is a problem that is reported, not a
 * failure.
 */
export const findServers = Effect.fnUntraced(function* (places: Places, project: Project, handed: Servers = {}) {
  const [ofUser, problems] = yield* userFiles(places)
  const files: ReadonlyArray<ServerFile> = [
    ...ofUser.flat(),
    ...itemsOf(project, "MCP server").map(({ file, text }): ServerFile => ({
      file: resolve(places.project, file),
      origin: "project",
      text
    }))
  ]
  const byName = new Map<string, FoundServer>()
  for (const { file, origin, text } of files) {
    const result = yield* Effect.result(McpConfigFile.parse(file, text, { workspace: places.project }))
    if (Result.isFailure(result)) {
      problems.push(result.failure.message)
      continue
    }
    problems.push(...result.success.warnings.map((warning) => `${file}: ${warning}`))
    for (const [name, server] of Object.entries(result.success.servers)) {
      byName.set(name, { name, origin, file, server: origin === "project" ? asking(server) : server })
    }
  }
  for (const [name, server] of Object.entries(handed)) {
    byName.set(name, { name, origin: "editor", file: "the editor", server })
  }
  return { servers: [...byName.values()], problems } satisfies FoundServers
})

/** The tokens stored by `deepagents mcp login`. */
const storedTokens = (places: Places): Authorization =>
  Layer.unwrap(
    Effect.map(
      Effect.promise(() => import("./signIn.ts")),
      ({ keptTokens }) => keptTokens(places)
    )
  )

/** Connects to the servers. They run in the folder of the project. */
export const serversLayer = <E = never>(
  places: Places,
  servers: ReadonlyArray<FoundServer>,
  authorization: Authorization<E> = servers.some(({ server }) => server.type !== "stdio")
    ? storedTokens(places)
    : Layer.empty,
  apps = false
): Layer.Layer<McpServers.McpServers, E, NodeServices> =>
  McpServers.layer(
    Object.fromEntries(
      servers.map(({ name, server }) => [
        name,
        server.type === "stdio" ? { ...server, cwd: server.cwd ?? places.project } : server
      ])
    ),
    { roots: [places.project], apps, client: { name: "deepagents", version: manifest.version } }
  ).pipe(Layer.provide([FetchHttpClient.layer, authorization]))

/** A tested server: its status, and the problems with its tools. */
export interface ServerTrial {
  readonly status: McpServers.Status
  readonly tools: ReadonlyArray<McpServers.ServerTool>
  readonly problem: string | undefined
}

const dialects = ["openai", "anthropic", "gemini"] as const

const refusedOf = (tools: ReadonlyArray<McpServers.ServerTool>): ReadonlyArray<string> =>
  tools.flatMap(({ name, parameters }) =>
    dialects.flatMap((dialect) =>
      ToolSchema.check(ToolSchema.fit(parameters, dialect), dialect).map(
        (problem) => `${name} (${dialect}): ${problem}`
      )
    )
  )

/** Connects once to each server, and checks its tools against the rules of providers. */
export const tried = Effect.gen(function* () {
  const service = yield* McpServers.McpServers
  const all = yield* service.tools
  const states = yield* service.status
  return states
    .filter(({ state }) => state !== "disabled")
    .map((status): ServerTrial => {
      const tools = all.filter(({ server }) => server === status.name)
      const problems = [...status.problems, ...refusedOf(tools)]
      const problem =
        status.state === "connected" ? problems.join("; ") : (status.error?.message ?? "it is not connected")
      return { status, tools, problem: problem === "" ? undefined : oneLine(problem) }
    })
})
