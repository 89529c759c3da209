/** The runs of a folder that outlive their readers, and its schedules. */
import { join } from "node:path"
import * as RunnerAddress from "effect/cluster/RunnerAddress"
import * as ContextOf from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Agent from "../../../core/Agent.ts"
import * as Approval from "../../../core/Approval.ts"
import { Backend } from "../../../core/Backend.ts"
import { ChatModel } from "../../../core/ChatModel.ts"
import type { SessionStore } from "../../../core/SessionStore.ts"
import * as ShardCount from "../../../durable/ShardCount.ts"
import * as NodeNetwork from "../../../net/NodeNetwork.ts"
import * as Schedules from "../../../server/Schedules.ts"
import * as Server from "../../../server/Server.ts"
import * as Webhooks from "../../../server/Webhooks.ts"
import * as Storage from "../../../stores/Storage.ts"
import { sha256 } from "../../../support/store/hash.ts"
import { visible } from "../../../support/text/untrusted.ts"
import { automatic } from "../approvals/desk.ts"
import { serveFolder } from "../config/known.ts"
import { listModels } from "../config/modelList.ts"
import { makeFolder, type Places } from "../config/places.ts"
import type { Approvals } from "../config/settings.ts"
import { type Database, readDatabase } from "../config/storeAddress.ts"
import { type Failure, fail } from "../failure.ts"
import { tell } from "../output.ts"
import { type App, connected, type Context, openApp } from "./app.ts"
import { hold } from "./hold.ts"

/** A tenant has a short name: long paths, and paths with odd characters, have their hash. */
const tenantOf = (project: string) => (/^[^\p{C}]{1,128}$/u.test(project) ? Effect.succeed(project) : sha256(project))

/** The tenant of a folder, and the place of its mail and its schedules. */
export const openFolder = Effect.fnUntraced(function* (places: Places) {
  const { folder: path, name } = yield* serveFolder(places)
  const folder = yield* makeFolder(path)
  const database = yield* readDatabase
  const storage =
    database === undefined
      ? Storage.layerFile({ folder: join(folder, "mail"), fsync: true })
      : database.named(Layer.provide(Storage.layerSql, database.client))
  return { name, folder, database, storage, tenant: yield* tenantOf(places.project) }
})

/** Joins the cluster of the database, by the address at which other servers reach this one. */
const openCluster = Effect.fnUntraced(function* (database: Database | undefined) {
  const text = process.env["DEEPAGENTS_CLUSTER_ADDRESS"] ?? ""
  if (text === "") return undefined
  const [, host = "", port = ""] = /^(.+):(\d{1,5})$/u.exec(text) ?? []
  if (host === "" || Number(port) > 65_535) {
    return yield* fail("usage", "DEEPAGENTS_CLUSTER_ADDRESS: expected a host and a port, such as 10.0.0.7:34431.")
  }
  if (database === undefined) {
    return yield* fail(
      "usage",
      "DEEPAGENTS_CLUSTER_ADDRESS needs the database of the cluster in DEEPAGENTS_DATABASE_URL."
    )
  }
  const { layer } = yield* Effect.promise(() => import("@effect/platform-node/NodeClusterSocket"))
  const address = Option.some(RunnerAddress.make(host, Number(port)))
  const socket = layer({ storage: "sql", shardingConfig: { runnerAddress: address, runnerListenAddress: address } })
  return database.named(ShardCount.layer.pipe(Layer.provideMerge(socket), Layer.provide(database.client)))
})

/** The form of a secret: at least 24 bytes. */
const form = /^whsec_(?:[\dA-Za-z+/]{4}){8,}(?:[\dA-Za-z+/]{2}==|[\dA-Za-z+/]{3}=)?$/u

/** Makes the webhooks of the environment; without an address none. */
const openWebhooks = Effect.fnUntraced(function* (tenant: string) {
  const url = process.env["DEEPAGENTS_WEBHOOK_URL"] ?? ""
  const secret = process.env["DEEPAGENTS_WEBHOOK_SECRET"] ?? ""
  if (url === "") return Layer.empty
  if (!URL.canParse(url)) {
    return yield* fail("usage", "DEEPAGENTS_WEBHOOK_URL: expected an address, such as https://desk.example.com/hook.")
  }
  if (!form.test(secret)) {
    return yield* fail("usage", "DEEPAGENTS_WEBHOOK_SECRET: expected whsec_ and the base64 of at least 24 bytes.")
  }
  // Whoever starts the program names the address, so it may be private.
  const rules = { allowPrivate: [new URL(url).host] }
  const endpoint = { name: "environment", tenant, url: Redacted.make(url), secret: Redacted.make(secret) }
  return Webhooks.layer({ endpoints: [endpoint], ...rules }).pipe(Layer.orDie, Layer.provide(NodeNetwork.layer(rules)))
})

/** The modes of the program, the loosest first. */
const allModes = ["yolo", "auto-edit", "ask", "plan"] as const

/** The modes of threads: the mode of the server's start, and the stricter ones. A demo has none. */
const modesOf = ({ isDemo, settings }: Context): ReadonlyArray<Approvals> =>
  isDemo ? [] : allModes.slice(allModes.indexOf(settings.approvals?.value ?? "ask"))

/** The levels of thinking of threads. A model takes its nearest one. */
const levels = ["off", "low", "medium", "high", "xhigh", "max"] as const

/** The model of the run at work. */
const modelNow = Effect.map(
  Effect.serviceOption(ChatModel),
  Option.match({ onNone: () => "unknown", onSome: ({ modelId, provider }) => `${provider}:${modelId}` })
)

const forDemo = "The demo changes nothing here without a person who approves it."

/** Decides in a demo. */
const refusing = Layer.succeed(Approval.Approvals, {
  decide: (request) => Effect.succeed(Approval.reject(request, forDemo))
})

const unasked = "Only a person may decide on this call, and nobody is there to ask."

/** Decides by the rules and the mode of the thread, as in a chat. The rest waits for a person. */
const deciding = ({ permits }: App, mode: Effect.Effect<Approvals>): Layer.Layer<Approval.Approvals> => {
  const decide = (request: Approval.Request) =>
    Effect.map(mode, (now) => automatic(request, now, permits, permits.kept))
  return Layer.succeed(Approval.Approvals, {
    defers: (request) => Effect.map(decide(request), (decision) => decision === undefined),
    decide: (request) => Effect.map(decide(request), (decision) => decision ?? Approval.reject(request, unasked))
  })
}

/** How long the start waits for the lists of models. */
const patience = "3 seconds"

/** The models of inputs: the favourites, and the lists of providers that have keys. */
const modelsOf = Effect.fnUntraced(function* ({ isDemo, places, settings }: Context, { model, modelLayer }: App) {
  if (isDemo) return {}
  const listed = yield* Effect.timeoutOrElse(
    Effect.orElseSucceed(listModels(places), () => []),
    { duration: patience, orElse: () => Effect.succeed([]) }
  )
  const names = new Set([model, ...(settings.favourites?.value ?? []), ...listed.map(({ name }) => name)])
  return Object.fromEntries(Array.from(names, (name) => [name, modelLayer(name)]))
})

/** Opens the agent of a folder for runs without a reader. The schedules of the folder fire with the runs. */
export const openRuns = Effect.fnUntraced(function* (given: Context) {
  const { places } = given
  const { database, folder, name, storage, tenant } = yield* openFolder(places)
  const webhooks = yield* openWebhooks(tenant)
  const cluster = yield* openCluster(database)
  // One process has the mailbox of a folder. That of a database has a lease, or the cluster.
  if (database === undefined) {
    yield* Effect.mapError(hold(places, `serve-${name}`), (failure) =>
      failure.message.startsWith("Another process")
        ? {
            ...failure,
            message: `Another process serves ${places.project} already; its address is in ${join(folder, "server.json")}`
          }
        : failure
    )
  }
  const modes = modesOf(given)
  const mode = Effect.map(Server.Mode, (now) => modes.find((one) => one === now) ?? modes[0] ?? "ask")
  const app = yield* openApp({ ...(yield* connected(given, true)), mode, model: modelNow })
  for (const problem of app.problems) yield* tell(`! ${visible(problem)}`)
  const machine = yield* Layer.build(app.files(`serve-${name}`))
  const model = yield* Layer.build(app.chatModel)
  const agent = (yield* app.agent({ mode: "ask" })).pipe(
    Agent.provide(Layer.succeedContext(machine)),
    Agent.provide(given.isDemo ? refusing : deciding(app, mode))
  )
  const models = yield* modelsOf(given, app)
  const thinking = given.isDemo ? [] : levels
  const agents = { [app.name]: agent }
  const own: Layer.Layer<Server.Runs, Failure | Server.RunsError, ChatModel | SessionStore | Storage.Storage> =
    cluster === undefined
      ? Server.layer(agents, { takeOver: database === undefined, models, modes, thinking })
      : Layer.provide(Server.layerCluster(agents, { models, modes, thinking }), cluster)
  const runs = own.pipe(Layer.provide([webhooks, Layer.succeedContext(model)]), Layer.provideMerge(storage))
  const files = ContextOf.get(machine, Backend)
  return {
    app,
    apps: app.context.servers,
    database,
    files,
    folder,
    tenant,
    runs: Schedules.layer.pipe(Layer.provideMerge(runs))
  }
})
