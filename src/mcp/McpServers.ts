/**
 * Connections to many servers of the Model Context Protocol: made at once, looked after, and made again when they are
 * lost.
 *
 * ```ts
 * import { NodeHttpClient, NodeServices } from "@effect/platform-node"
 * import { Effect, Layer } from "effect"
 * import { McpServers } from "effect-deepagents/mcp"
 *
 * const servers = McpServers.layer({
 *   everything: { type: "stdio", command: "npx", args: ["-y", "@modelcontextprotocol/server-everything"] }
 * }).pipe(Layer.provide([NodeServices.layer, NodeHttpClient.layerUndici]))
 *
 * const names = McpServers.McpServers.use(({ tools }) => tools).pipe(
 *   Effect.map((tools) => tools.map(({ name }) => name)),
 *   Effect.provide(servers)
 * )
 * ```
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Redacted from "effect/Redacted"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import type { JsonObject } from "../core/Json.ts"
import { fetchLike } from "../support/http/fetchLike.ts"
import { defined } from "../support/json/defined.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import { reveal } from "../support/store/redacted.ts"
import { suggestion } from "../support/text/near.ts"
import { makeCatalog } from "./internal/catalog/catalog.ts"
import * as Lists from "./internal/catalog/lists.ts"
import { resultOf } from "./internal/catalog/results.ts"
import type {
  App,
  CallOptions,
  Completable,
  Prompt,
  Resource,
  ResourceContent,
  Result,
  ServerTool,
  Status
} from "./internal/model.ts"
import * as Secrets from "./internal/secrets.ts"
import { serving } from "./internal/serve.ts"
import * as shapes from "./internal/shapes.ts"
import * as Supervisor from "./internal/wire/supervisor.ts"
import { McpAuthorization } from "./McpAuthorization.ts"
import type { Secret, Server, Servers } from "./McpConfig.ts"
import { McpError } from "./McpError.ts"

export type { App, CallOptions, Prompt, Resource, Result, ServerTool, Status } from "./internal/model.ts"

/**
 * The operations. Operations on all servers skip unavailable ones: {@link Status} says why.
 *
 * - `status`, `changes`: the state of all servers, once and after each change
 * - `tools`: the tools of all servers; waits until each was tried once. Returns the same array while nothing changes
 * - `call`: calls a tool outside of an agent (inside, use `Mcp.make`)
 * - `prompts`, `resources`: of all servers, or of a single one
 * - `read`: the content under a URI of a server
 * - `app`: the interface of a tool (MCP Apps), by its address
 * - `updates`: a value after each change of a watched resource, also across reconnections
 * - `complete`: values for the beginning of an argument, at most 100
 * - `reconnect`: connects to a server immediately, or again
 */
export interface Service {
  readonly status: Effect.Effect<ReadonlyArray<Status>>
  readonly changes: Stream.Stream<ReadonlyArray<Status>>
  readonly tools: Effect.Effect<ReadonlyArray<ServerTool>>
  readonly config: (server: string) => Server | undefined
  readonly call: <E = never, R = never>(
    tool: { readonly server: string; readonly tool: string },
    args: JsonObject,
    options?: CallOptions<E, R>
  ) => Effect.Effect<Result, McpError | E, R>
  readonly prompts: Effect.Effect<ReadonlyArray<Prompt>>
  readonly resources: (server?: string) => Effect.Effect<ReadonlyArray<Resource>, McpError>
  readonly read: (server: string, uri: string) => Effect.Effect<ReadonlyArray<ResourceContent>, McpError>
  readonly app: (server: string, uri: string) => Effect.Effect<App, McpError>
  readonly updates: (server: string, uri: string) => Stream.Stream<void, McpError>
  readonly complete: (
    server: string,
    of: Completable,
    argument: { readonly name: string; readonly value: string },
    others?: { readonly [name: string]: string }
  ) => Effect.Effect<ReadonlyArray<string>, McpError>
  readonly reconnect: (server: string) => Effect.Effect<void, McpError>
}

/** The servers that agents can use. */
export class McpServers extends Context.Service<McpServers, Service>()("effect-deepagents/mcp/McpServers") {}

/**
 * The text of a resource after each change that its server notifies of: a source of `Monitor`, by its `fromStream`.
 * Contents that are no text are left out.
 */
export const changes = (server: string, uri: string): Stream.Stream<string, McpError, McpServers> =>
  Stream.unwrap(
    Effect.map(McpServers, ({ read, updates }) =>
      Stream.mapEffect(updates(server, uri), () => read(server, uri)).pipe(
        Stream.map((contents) => contents.flatMap((one) => ("text" in one ? [one.text] : [])).join("\n"))
      )
    )
  )

/**
 * `roots` are the directories (paths or `file:` URIs) for the servers to work in; some touch nothing else. `client` is
 * our name for the servers. `maxMessage` is the largest message in bytes (default 16 MiB): a call with a larger answer
 * fails, and the connection stays.
 */
export interface Options {
  /**
   * The directories (paths or `file:` URIs) that servers may work in. Some servers then touch nothing else. Default:
   * none.
   */
  readonly roots?: ReadonlyArray<string> | undefined
  /** The name and version that servers see. Default: this library. */
  readonly client?:
    | {
        /** The name of the client. */
        readonly name: string
        /** The version of the client. */
        readonly version: string
      }
    | undefined
  /** Tells servers that somebody sees the interfaces of their tools (MCP Apps). Default: `false`. */
  readonly apps?: boolean | undefined
  /** The largest message in bytes. A call with a larger answer fails, and the connection stays. Default: 16 MiB. */
  readonly maxMessage?: number | undefined
}

/** The path of an absolute folder in an address; also as Windows writes it, with a drive or the name of a host. */
const addressed = (root: string): string => {
  if (!/^(?:[a-z]:[\\/]|\\\\)/i.test(root)) return `//${root}`
  const path = root.replaceAll("\\", "/")
  return path.startsWith("//") ? path : `///${path}`
}

const rootOf = (root: string): { readonly uri: string } => ({
  uri: root.startsWith("file:")
    ? root
    : new URL(`file:${encodeURI(addressed(root)).replaceAll("?", "%3F").replaceAll("#", "%23")}`).href
})

const logLimit = 16_384

/** Keeps the end of a log. */
const makeLog = (mask: (text: string) => string) => {
  let text = ""
  return {
    add: (more: string): void => {
      text = `${text}${more}`.slice(-logLimit)
    },
    read: () => mask(text)
  }
}

const statusOf = (
  server: Supervisor.SupervisedServer,
  state: Supervisor.State,
  tools: number,
  problems: ReadonlyArray<string>
): Status => {
  const { config, log, name } = server.target
  const base = { name, type: config.type, tools, problems, log: log.read(), hasResources: false }
  switch (state._tag) {
    case "Connecting":
      return { ...base, state: tools > 0 ? "reconnecting" : "connecting", ...defined({ error: state.error }) }
    case "Broken": {
      const { error, retryAt } = state
      return { ...base, state: tools > 0 ? "reconnecting" : "failed", error, ...defined({ retryAt }) }
    }
    case "Connected": {
      const { client, pid } = state.session
      const { title, version } = client.getServerVersion() ?? {}
      const { protocolVersion } = state
      return {
        ...base,
        state: "connected",
        hasResources: client.getServerCapabilities()?.resources !== undefined,
        ...defined({ pid, protocolVersion, title, version, instructions: client.getInstructions() })
      }
    }
  }
}

/** Reports whether an address has a secret in it, or may have one. */
const isConfidential = (url: Secret): boolean => Redacted.isRedacted(url) || url.includes("?")

/** Makes no spans of requests to servers whose addresses are secrets: spans, and the errors in them, name addresses. */
const untold = <A, E, R>(servers: Servers, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  const hidden = new Set(
    Object.values(servers).flatMap((server) =>
      server.type !== "stdio" && isConfidential(server.url) ? (URL.parse(reveal(server.url))?.origin ?? []) : []
    )
  )
  return Effect.flatMap(HttpClient.TracerDisabledWhen, (others) =>
    Effect.provideService(
      effect,
      HttpClient.TracerDisabledWhen,
      (request) => others(request) || hidden.has(URL.parse(request.url)?.origin ?? "")
    )
  )
}

/** Makes the service; the connections last as long as the scope. */
const make = (servers: Servers, options: Options) =>
  Effect.gen(function* () {
    const around = {
      fetch: yield* untold(servers, fetchLike),
      authorize: yield* McpAuthorization,
      client: options.client ?? { name: "effect-deepagents", version: "0.1.0" },
      roots: (options.roots ?? []).map(rootOf),
      apps: options.apps === true,
      maxMessage: options.maxMessage ?? 16 * 1024 * 1024,
      starting: yield* Semaphore.make(1)
    }
    const all: Array<Supervisor.SupervisedServer> = []
    for (const [name, config] of Object.entries(servers)) {
      if (config.enabled === false) continue
      const secrets = Secrets.make(config)
      const server = yield* Supervisor.make({
        name,
        config,
        log: makeLog(secrets.mask),
        secrets,
        traits: { isLegacy: false, isOldTransport: false }
      })
      all.push(server)
      yield* Effect.forkScoped(Supervisor.run(server, around))
    }
    const byName = new Map(all.map((server) => [server.target.name, server]))
    const tools = yield* makeCatalog(all)
    const find = (name: string): Effect.Effect<Supervisor.SupervisedServer, McpError> => {
      const server = byName.get(name)
      if (server !== undefined) return Effect.succeed(server)
      const isDisabled = Object.hasOwn(servers, name)
      const message = isDisabled
        ? `the MCP server "${name}" is switched off in the configuration`
        : `there is no MCP server "${name}"; there are: ${[...byName.keys()].join(", ")}`
      return Effect.fail(new McpError({ server: name, reason: isDisabled ? "Disabled" : "UnknownServer", message }))
    }
    const sessionOf = (name: string) => Effect.flatMap(find(name), ({ session }) => session)
    const disabled = Object.entries(servers).flatMap(([name, { enabled, type }]): ReadonlyArray<Status> =>
      enabled === false ? [{ name, type, state: "disabled", tools: 0, problems: [], log: "", hasResources: false }] : []
    )
    const status = Effect.map(
      Effect.forEach(all, (server) =>
        Effect.gen(function* () {
          const state = yield* SubscriptionRef.get(server.state)
          const listed = yield* SubscriptionRef.get(server.tools)
          return statusOf(server, state, listed.tools.length, yield* tools.problemsOf(server))
        })
      ),
      (statuses): ReadonlyArray<Status> => [...statuses, ...disabled]
    )
    const changes = Stream.mergeAll(
      all.flatMap(({ state, tools: list }) => [
        Stream.map(SubscriptionRef.changes(state), () => undefined),
        Stream.map(SubscriptionRef.changes(list), () => undefined)
      ]),
      { concurrency: "unbounded" }
    ).pipe(Stream.mapEffect(() => status))
    const lists = Lists.make(all, Supervisor.settled, find)
    return McpServers.of({
      status,
      changes,
      tools: Effect.andThen(Effect.forEach(all, Supervisor.settled, { discard: true }), tools.read),
      config: (name) => (Object.hasOwn(servers, name) ? servers[name] : undefined),
      call: (tool, args, handlers) =>
        Effect.flatMap(sessionOf(tool.server), (session) =>
          Effect.map(session.call(tool.tool, args, handlers?.owner ?? "", serving(handlers ?? {})), resultOf)
        ),
      ...lists,
      reconnect: (name) => Effect.flatMap(find(name), Supervisor.reconnect)
    })
  })

const refuseLayer = makeLayerCheck("McpServers.layer", shapes.mcpServersLayer)

const types = ["stdio", "http", "sse"]

/** Finds a server whose type is missing or unknown. Files of editors leave it out. */
const findServerProblem = (servers: { readonly [name: string]: unknown }): string | undefined => {
  for (const [name, server] of Object.entries(servers)) {
    const where = `McpServers.layer: the server ${JSON.stringify(name)}`
    if (!Predicate.isObject(server)) return `${where} is no object with a type`
    const type = Predicate.hasProperty(server, "type") ? server.type : undefined
    if (typeof type === "string" && types.includes(type)) continue
    if (type !== undefined)
      return `${where} has no such type. ${suggestion(typeof type === "string" ? type : "", types)}`
    if ("command" in server) return `${where} has no type; a server with a command has type: "stdio"`
    return "url" in server
      ? `${where} has no type; a server with a url has type: "http"`
      : `${where} has no type; give the servers by their names, or read a file of them by McpConfigFile`
  }
  return undefined
}

/**
 * Connects to all servers at once. Building the layer does not wait and never fails: {@link Status} reports each
 * server. Releasing it closes connections and ends processes with all their children.
 */
export const layer = (
  servers: Servers,
  options?: Options
): Layer.Layer<McpServers, never, HttpClient.HttpClient | ChildProcessSpawner> =>
  refuseLayer(options) ??
  Layer.effect(
    McpServers,
    Effect.suspend(() => {
      const problem = findServerProblem(servers)
      return problem === undefined ? make(servers, options ?? {}) : Effect.die(new Error(problem))
    })
  )
