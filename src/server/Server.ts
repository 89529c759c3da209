/**
 * Runs of agents that belong to a server: they outlive connections and the process, and each tenant has its own threads.
 *
 * ```ts
 * import { Effect, Layer, Stream } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Server } from "effect-deepagents/server"
 * import { MemorySessions } from "effect-deepagents/sessions"
 * import { Storage } from "effect-deepagents/stores"
 * import { TestChatModel } from "effect-deepagents/testing"
 *
 * const helper = Agent.make({ name: "helper", prompt: "You help." })
 * const runs = Server.layer({ helper }).pipe(
 *   Layer.provide([Storage.layerMemory, TestChatModel.script(["Hello, Ada."])]),
 *   Layer.provideMerge(MemorySessions.layer)
 * )
 *
 * const program = Effect.gen(function* () {
 *   const acme = yield* Server.tenant({ tenant: "acme", id: "ada", roles: [] })
 *   const thread = yield* acme.thread("report-7")
 *   const all = yield* Server.Runs
 *   const { position } = yield* all.start(thread, { agent: "helper", input: "Write it", id: "mail-7" })
 *   return yield* Stream.runCollect(all.observe(thread, { after: position }))
 * }).pipe(Effect.provide(runs))
 * ```
 */
import type { Sharding } from "effect/cluster/Sharding"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { HttpRouter } from "effect/http/HttpRouter"
import type { HttpServer } from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type * as Agent from "../core/Agent.ts"
import type { Service as Backend } from "../core/Backend.ts"
import type { BackendError } from "../core/BackendError.ts"
import { ChatModel, type Service as ChatModelService } from "../core/ChatModel.ts"
import type { Journal } from "../core/Journal.ts"
import { SessionStore } from "../core/SessionStore.ts"
import type { Service as McpServers } from "../mcp/McpServers.ts"
import { Storage } from "../stores/Storage.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import { makeAppRoutes } from "./internal/apps/routes.ts"
import * as ClusterClient from "./internal/cluster/client.ts"
import * as ClusterOwner from "./internal/cluster/owner.ts"
import {
  Auth,
  type BearerOptions,
  type LoopbackOptions,
  makeBearer,
  makeLoopback,
  type NotLoopback
} from "./internal/http/auth.ts"
import { makeFileRoutes } from "./internal/http/fileRoutes.ts"
import * as Guard from "./internal/http/guard.ts"
import { makePageRoutes } from "./internal/http/page.ts"
import { makeRate, makeReaders } from "./internal/http/rate.ts"
import { addRoutes } from "./internal/http/route.ts"
import { makeBeats } from "./internal/http/sse.ts"
import { makeRoutes } from "./internal/http/tables.ts"
import * as Lease from "./internal/lease.ts"
import * as Mailbox from "./internal/mailbox.ts"
import { make } from "./internal/runs.ts"
import { Runs, type RunsError } from "./internal/service.ts"
import * as shapes from "./internal/shapes.ts"
import type { Caller, ThreadRef } from "./internal/tenant.ts"

export { Mode } from "./internal/choices.ts"
export {
  Auth,
  type BearerOptions,
  type LoopbackOptions,
  NotLoopback,
  type Session,
  Unauthorized
} from "./internal/http/auth.ts"
export { type Frame, Position } from "./internal/position.ts"
export { type AgentInfo, Runs, RunsError, type Status, type Acceptance } from "./internal/service.ts"
export { Caller, Principal, type Tenant, tenant, type ThreadRef } from "./internal/tenant.ts"

/** The options of runs. */
export interface Options<R = never> {
  /** Bytes of events that are kept of a thread at work, so that readers go on exactly. Default: 1 MiB. */
  readonly keep?: number | undefined
  /** Runs and waiting inputs at once. Default: 1,000. */
  readonly limit?: number | undefined
  /** Runs and waiting inputs of one tenant at once. Default: `limit`. */
  readonly tenantLimit?: number | undefined
  /** The time after which another process takes over the mailbox of one that ended without a word. Default: 15 seconds. */
  readonly lease?: Duration.Input | undefined
  /**
   * Takes the mailbox at once, for callers that know by a lock of their own that no other process has it. Default: `false`,
   * which waits for the end of the lease.
   */
  readonly takeOver?: boolean | undefined
  /**
   * Models that an input may choose for its thread, by name, for agents without a model of their own. Each is made when a
   * run has it first, and fails that run. Default: none, so that all threads have the `ChatModel` of the layer.
   */
  readonly models?: Readonly<Record<string, Layer.Layer<ChatModel, unknown, R>>> | undefined
  /**
   * Modes that an input may choose for its thread, by name. Agents and tools read the mode at work from `Server.Mode`, and
   * give it its meaning. The first is the default. Default: none.
   */
  readonly modes?: ReadonlyArray<string> | undefined
  /**
   * Levels of thinking that an input may choose for its thread, for agents without a model of their own. A model takes its
   * nearest one. Default: none.
   */
  readonly thinking?: ReadonlyArray<"off" | "low" | "medium" | "high" | "xhigh" | "max"> | undefined
}

type AnyAgent = Agent.Agent<unknown, unknown, unknown>

/** The services that the agents need of the server. */
type Needs<Agents extends Readonly<Record<string, AnyAgent>>> = Exclude<
  Agent.Services<Agents[keyof Agents]>,
  Journal | Caller | Scope.Scope
>

/**
 * Makes models when they are asked for, each once, also for runs that begin at once. A model lasts as long as the server.
 * A failed one closes its resources, and is tried again.
 */
const makeModels = Effect.fnUntraced(function* <R>() {
  const context = yield* Effect.context<R>()
  const scope = yield* Effect.scope
  return (model: Layer.Layer<ChatModel, unknown, R>): Effect.Effect<ChatModelService, unknown> => {
    let service: ChatModelService | undefined
    const build = Effect.gen(function* () {
      const own = yield* Scope.fork(scope)
      const services = yield* Effect.onError(Layer.buildWithScope(model, own), (cause) =>
        Scope.close(own, Exit.failCause(cause))
      )
      return (service = Context.get(services, ChatModel))
    }).pipe(Effect.provideContext(context))
    const alone = Semaphore.makeUnsafe(1).withPermits(1)
    return alone(Effect.suspend(() => (service === undefined ? build : Effect.succeed(service))))
  }
})

/** Reads the options that both layers have. */
const readSettings = Effect.fnUntraced(function* <R>(
  agents: Readonly<Record<string, AnyAgent>>,
  { keep = 1 << 20, limit = 1_000, models = {}, modes = [], tenantLimit = limit, thinking = [] }: Options<R>
) {
  const build = yield* makeModels<R>()
  return {
    agents,
    keep,
    limits: { all: limit, tenant: tenantLimit },
    models: Object.fromEntries(Object.entries(models).map(([name, one]) => [name, build(one)])),
    modes,
    thinking,
    base: yield* SessionStore,
    mailbox: Mailbox.make((yield* Storage).table("mailbox")),
    active: new Map<string, number>()
  }
})

const refuseLayer = makeLayerCheck("Server.layer", shapes.serverLayer)

/**
 * Runs these agents in this process. Inputs are stored in the table `mailbox` of the `Storage` before they are taken; those
 * that were taken and not settled go on when the layer is built. One process at a time has a mailbox: another one refuses
 * inputs with `Unavailable`, and takes over when the lease of the first one ends.
 */
export const layer = <const Agents extends Readonly<Record<string, AnyAgent>>, R = never>(
  agents: Agents,
  options?: Options<R>
): Layer.Layer<Runs, RunsError, SessionStore | Storage | Needs<Agents> | Exclude<R, Scope.Scope>> =>
  refuseLayer(options) ??
  Layer.effect(
    Runs,
    Effect.gen(function* () {
      const { lease = "15 seconds", takeOver = false } = options ?? {}
      const settings = yield* readSettings(agents, options ?? {})
      const mail = (yield* Storage).table("mailbox")
      const mailLease = yield* Lease.make(mail, { millis: Duration.toMillis(lease), takesOver: takeOver })
      return yield* make(settings, mailLease)
    })
  )

const refuseLayerCluster = makeLayerCheck("Server.layerCluster", shapes.serverLayerCluster)

/**
 * Runs these agents on a cluster: each thread has one process at a time, any process takes inputs for it and tells its
 * events, and another one goes on when the owner ends. All processes need the same agents, and one database for
 * `SessionStore`, `Storage` and the cluster. `limit` and `tenantLimit` hold for each process.
 */
export const layerCluster = <const Agents extends Readonly<Record<string, AnyAgent>>, R = never>(
  agents: Agents,
  options?: Pick<Options<R>, "keep" | "limit" | "models" | "modes" | "tenantLimit" | "thinking">
): Layer.Layer<Runs, never, Sharding | SessionStore | Storage | Needs<Agents> | Exclude<R, Scope.Scope>> =>
  refuseLayerCluster(options) ??
  Layer.unwrap(
    Effect.map(readSettings(agents, options ?? {}), (settings) =>
      Layer.provideMerge(Layer.effect(Runs, ClusterClient.make(settings)), ClusterOwner.layer(settings))
    )
  )

/** The options of the HTTP server. */
export interface HttpOptions {
  /**
   * The names of the server, as requests have them in `Host`. A name without a port has all ports. Default: `localhost`,
   * `127.0.0.1` and `[::1]`.
   */
  readonly hosts?: ReadonlyArray<string> | undefined
  /** Origins of other pages that may call the server, as `https://app.example.com`. Default: none. */
  readonly origins?: ReadonlyArray<string> | undefined
  /** The most bytes of a body. Default: 8 MiB. */
  readonly maxBody?: number | undefined
  /**
   * Serves the page for browsers at `/`: the files of the package, or of another folder by its absolute path. It needs
   * Node, Bun or Deno. Default: `false`.
   */
  readonly page?: boolean | string | undefined
  /**
   * Protocols of other clients that get routes: `aiSdk` (`/api/chat`), `agUi` (`/ag-ui`), `openAi` (`/v1`), `langGraph`
   * (`/langgraph`), `a2a` (`/a2a`, and a card that everybody may read). Default: none.
   */
  readonly protocols?: ReadonlyArray<"a2a" | "agUi" | "aiSdk" | "langGraph" | "openAi"> | undefined
  /** Requests and packets of one tenant in a minute. Further ones get a 429. Default: no limit. */
  readonly rate?: number | undefined
  /**
   * Open streams of events, WebSockets and requests that wait for the end of a run, of one tenant at once. Further ones get
   * a 429. Default: no limit.
   */
  readonly readers?: number | undefined
  /**
   * Opens the files of a thread, which its tenant may list and read. Give each tenant files of its own. Default: none are
   * served.
   */
  readonly files?: ((thread: ThreadRef) => Effect.Effect<Backend, BackendError>) | undefined
  /**
   * Gives the MCP servers of a thread, whose interfaces (MCP Apps) the page shows in a sandbox. Connect them with `apps:
   * true`. Default: none are shown.
   */
  readonly apps?: ((thread: ThreadRef) => Effect.Effect<Pick<McpServers, "app" | "tools">>) | undefined
}

const refuseHttp = makeLayerCheck("Server.http", shapes.serverHttp)

/**
 * Adds the routes of the server to a router: threads, runs and their events, decisions, requests to people. A
 * request reaches the threads of its principal's tenant, and no run ends with a connection.
 */
export const http = (options?: HttpOptions): Layer.Layer<never, never, HttpRouter | Runs | SessionStore | Auth> =>
  refuseHttp(options) ??
  Layer.effectDiscard(
    Effect.gen(function* () {
      const door = {
        guard: Guard.make(options ?? {}),
        auth: yield* Auth,
        runs: yield* Runs,
        store: yield* SessionStore,
        beats: yield* makeBeats,
        hasFiles: options?.files !== undefined,
        hasApps: options?.apps !== undefined,
        count: yield* makeRate(options?.rate),
        enter: makeReaders(options?.readers)
      }
      const { apps, files, page = false } = options ?? {}
      const fileRoutes = files === undefined ? [] : makeFileRoutes(files)
      const appRoutes = apps === undefined ? [] : makeAppRoutes(apps)
      const pages = page === false ? [] : makePageRoutes(page === true ? undefined : page)
      yield* addRoutes(door, [...makeRoutes(options?.protocols ?? [], [...fileRoutes, ...appRoutes]), ...pages])
    })
  )

const refuseBearer = makeLayerCheck("Server.bearer", shapes.serverBearer)

/** Recognises principals by the tokens of `Authorization: Bearer …`. */
export const bearer = (options: BearerOptions): Layer.Layer<Auth> =>
  refuseBearer(options) ?? Layer.succeed(Auth, makeBearer(options))

const refuseLoopback = makeLayerCheck("Server.loopback", shapes.serverLoopback)

/**
 * Recognises the one person of this machine: programs by a token, pages by a cookie. Fails with
 * `NotLoopback` when other machines can reach the server.
 */
export const loopback = (options?: LoopbackOptions): Layer.Layer<Auth, NotLoopback, HttpServer> =>
  refuseLoopback(options) ?? Layer.effect(Auth, makeLoopback(options ?? {}))
