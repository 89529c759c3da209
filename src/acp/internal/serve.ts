/** The methods of the protocol that a client calls, over the sessions of one connection. */
import type * as Acp from "@agentclientprotocol/sdk"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as AgentState from "../../core/AgentState.ts"
import type * as McpConfig from "../../mcp/McpConfig.ts"
import * as Todos from "../../middleware/Todos.ts"
import { loadThread } from "../../sessions/journal.ts"
import { AcpError } from "../AcpError.ts"
import { type Client, makeClient } from "./client.ts"
import { type Connection, ofStore, unparsed } from "./connection.ts"
import { decodeAnswer, optional } from "./decode.ts"
import { handleLists } from "./lists.ts"
import type { Opening } from "./model.ts"
import { fail, makeRegistry, type Parts } from "./registry.ts"
import type { Sdk } from "./sdk.ts"
import { cancel, commandsOf, type Live, review, runPrompt, send } from "./session.ts"
import * as Settings from "./settings.ts"
import * as Updates from "./updates.ts"
import type { Wire } from "./wire.ts"

type ToRequestError = (sdk: Sdk, error: AcpError) => Acp.RequestError

const dataOf = ({ detail, reason }: AcpError) => ({ reason, detail })

/** Failures that have a code of their own. */
const codes: { readonly [Reason in AcpError["reason"]]?: ToRequestError } = {
  Busy: (sdk, error) => sdk.RequestError.invalidRequest(dataOf(error), error.detail),
  Invalid: (sdk, error) => sdk.RequestError.invalidParams(dataOf(error), error.detail),
  SignedOut: (sdk, error) => sdk.RequestError.authRequired(dataOf(error), error.detail),
  NotFound: (sdk, error) => new sdk.RequestError(-32_002, error.detail, dataOf(error))
}

/** The error of the protocol for a failure. */
const toRequestError = (sdk: Sdk, error: unknown): Acp.RequestError =>
  error instanceof AcpError
    ? (codes[error.reason]?.(sdk, error) ?? sdk.RequestError.internalError(dataOf(error), error.detail))
    : sdk.RequestError.internalError()

const recordOf = (pairs: ReadonlyArray<{ readonly name: string; readonly value: string }>) =>
  Object.fromEntries(pairs.map(({ name, value }) => [name, Redacted.make(value)]))

const Pairs = Schema.Array(Schema.Struct({ name: Schema.String, value: Schema.String }))

const McpServer = Schema.Union([
  Schema.Struct({ type: Schema.Literals(["http", "sse"]), name: Schema.String, url: Schema.String, headers: Pairs }),
  Schema.Struct({ name: Schema.String, command: Schema.String, args: Schema.Array(Schema.String), env: Pairs })
])

/** The MCP servers that a client hands over. Nobody's approval comes with them. */
const serversOf = (servers: ReadonlyArray<typeof McpServer.Type>): McpConfig.Servers =>
  Object.fromEntries(
    servers.map((server): readonly [string, McpConfig.Server] => [
      server.name,
      "command" in server
        ? { type: "stdio", command: server.command, args: server.args, env: recordOf(server.env) }
        : { type: server.type, url: server.url, headers: recordOf(server.headers) }
    ])
  )

/** The todos of a stored thread, as a plan. */
const planOf = (state: AgentState.Snapshot | undefined) => Updates.planOf(state?.[Todos.todos.name])

/** The place of a session that a client opens. */
interface Place {
  readonly cwd: string
  readonly additionalDirectories?: ReadonlyArray<string>
  readonly mcpServers?: ReadonlyArray<typeof McpServer.Type>
}

const openingOf = (sessionId: string, isNew: boolean, place: Place): Opening => ({
  threadId: sessionId,
  isNew,
  cwd: place.cwd,
  folders: place.additionalDirectories ?? [],
  servers: serversOf(place.mcpServers ?? [])
})

/** Opens a stored session. The client knows its messages, or is told them by these updates. */
const reopen = Effect.fnUntraced(function* (
  { registry }: Connection,
  method: string,
  client: Client,
  params: Place & { readonly sessionId: string }
) {
  yield* registry.check(method, params.sessionId)
  const live = yield* registry.open(method, client, openingOf(params.sessionId, false, params))
  const thread = yield* Effect.mapError(loadThread(live.store, params.sessionId), ofStore(method))
  const messages = thread.checkpoint?.messages ?? []
  const [state, updates] = Updates.ofMessages(live.state, messages, live.place)
  live.state = state
  live.seen = { leaf: thread.leaf.id, messages: messages.length }
  return { live, updates: [...updates, ...planOf(thread.checkpoint?.state)] }
})

/** A request of the protocol's draft. */
const ForkRequest = Schema.Struct({
  sessionId: Schema.String,
  cwd: Schema.String,
  additionalDirectories: optional(Schema.Array(Schema.String)),
  mcpServers: optional(Schema.Array(McpServer))
})

/** Forks a stored session at its end, and opens the fork. The client has the messages of the first one. */
const fork = Effect.fnUntraced(function* (
  connection: Connection,
  client: Client,
  { additionalDirectories, cwd, mcpServers, sessionId: source }: typeof ForkRequest.Type
) {
  const method = "session/fork"
  const { makeId, registry } = connection
  yield* registry.check(method, source)
  if (registry.get(source)?.turn !== undefined) {
    return yield* fail("Busy", method, "a prompt is at work in this session; cancel it, or wait until it is done")
  }
  const threads = yield* registry.store
  const sessionId = yield* makeId
  yield* Effect.mapError(
    Effect.flatMap(threads.info(source), ({ metadata }) =>
      threads.fork(source, { threadId: sessionId, metadata: { ...metadata, folder: cwd } })
    ),
    ofStore(method)
  )
  const params = { sessionId, cwd, additionalDirectories: additionalDirectories ?? [], mcpServers: mcpServers ?? [] }
  const { live } = yield* Effect.onError(reopen(connection, method, client, params), () =>
    Effect.ignore(threads.delete(sessionId))
  )
  return live
})

/** The methods that open sessions. */
const handleOpenings = (app: Acp.AgentApp, connection: Connection) => {
  const { announce, answer, clientOf, makeId, registry } = connection
  return app
    .onRequest("session/new", ({ client, params, requestId, signal }) =>
      answer(
        Effect.gen(function* () {
          const live = yield* registry.open("session/new", clientOf(client), openingOf(yield* makeId, true, params))
          announce(requestId, live)
          return { sessionId: live.opening.threadId, ...Settings.stateOf(live.session) }
        }),
        signal
      )
    )
    .onRequest("session/load", ({ client, params, requestId, signal }) =>
      answer(
        Effect.gen(function* () {
          const { live, updates } = yield* reopen(connection, "session/load", clientOf(client), params)
          yield* send(live, updates)
          announce(requestId, live)
          return Settings.stateOf(live.session)
        }),
        signal
      )
    )
    .onRequest("session/resume", ({ client, params, requestId, signal }) =>
      answer(
        Effect.gen(function* () {
          const { live } = yield* reopen(connection, "session/resume", clientOf(client), params)
          announce(requestId, live)
          return Settings.stateOf(live.session)
        }),
        signal
      )
    )
    .onRequest("session/fork", unparsed, ({ client, params, requestId, signal }) =>
      answer(
        Effect.gen(function* () {
          const request = yield* decodeAnswer("session/fork", ForkRequest)(params)
          const live = yield* fork(connection, clientOf(client), request)
          announce(requestId, live)
          return { sessionId: live.opening.threadId, ...Settings.stateOf(live.session) }
        }),
        signal
      )
    )
}

const setMode = (live: Live, method: string, id: string) =>
  Effect.gen(function* () {
    const { gate } = live.session
    if (!gate.modes.some((mode) => mode.id === id)) {
      const names = gate.modes.map((mode) => mode.id).join(", ")
      return yield* fail(
        "Invalid",
        method,
        `there is no mode ${JSON.stringify(id.slice(0, 100))} here; choose one of ${names}`
      )
    }
    gate.setMode(id)
    yield* send(live, [{ sessionUpdate: "current_mode_update", currentModeId: id }])
    yield* review(live)
  })

const setOption = (live: Live, method: string, id: string, value: string | boolean) =>
  Effect.gen(function* () {
    if (id === Settings.modeId && typeof value === "string") return yield* setMode(live, method, value)
    const setting = live.session.settings?.().find((one) => one.id === id)
    if (setting === undefined || typeof value !== "string" || !setting.choices.some((one) => one.value === value)) {
      return yield* fail("Invalid", method, `the option ${JSON.stringify(id.slice(0, 100))} has no such value`)
    }
    yield* live.session.change?.(id, value) ?? Effect.void
  })

/** The methods of an open session. */
const handleTurns = (app: Acp.AgentApp, { answer, registry }: Connection) =>
  app
    .onRequest("session/set_mode", ({ params, signal }) =>
      answer(
        Effect.gen(function* () {
          const live = yield* registry.find("session/set_mode", params.sessionId)
          yield* setMode(live, "session/set_mode", params.modeId)
          yield* send(live, [
            { sessionUpdate: "config_option_update", configOptions: Settings.optionsOf(live.session) }
          ])
          return {}
        }),
        signal
      )
    )
    .onRequest("session/set_config_option", ({ params, signal }) =>
      answer(
        Effect.gen(function* () {
          const method = "session/set_config_option"
          const live = yield* registry.find(method, params.sessionId)
          yield* setOption(live, method, params.configId, params.value)
          return { configOptions: Settings.optionsOf(live.session) }
        }),
        signal
      )
    )
    .onRequest("session/prompt", ({ params, signal }) =>
      answer(
        Effect.gen(function* () {
          const live = yield* registry.find("session/prompt", params.sessionId)
          return { stopReason: yield* runPrompt(live, params.prompt) }
        }),
        signal
      )
    )

/** Abilities of the protocol's draft. Clients that don't know them ignore them. */
const drafts = { fork: {}, archive: {}, title: {} }

const initialized = <R>(parts: Parts<R>, { auth }: Acp.ClientCapabilities): Acp.InitializeResponse => ({
  protocolVersion: parts.sdk.PROTOCOL_VERSION,
  agentInfo: { name: parts.name, version: parts.version },
  authMethods:
    auth?.terminal === true
      ? parts.login.map(({ args, id, name }) => ({ type: "terminal", id, name, args: [...args] }) as const)
      : [],
  agentCapabilities: {
    loadSession: true,
    promptCapabilities: { image: true, audio: false, embeddedContext: true },
    mcpCapabilities: { http: true, sse: true },
    sessionCapabilities: { list: {}, close: {}, resume: {}, delete: {}, additionalDirectories: {}, ...drafts }
  }
})

/** Serves a connection until its scope ends. */
export const connect = Effect.fnUntraced(function* <R>(
  parts: Parts<R>,
  wire: Wire
): Effect.fn.Return<void, never, R | Scope.Scope> {
  const { sdk } = parts
  const runWith = yield* FiberSet.makeRuntimePromise<never, unknown, unknown>()
  const registry = yield* makeRegistry(parts)
  let abilities: Acp.ClientCapabilities = {}
  let known: Client | undefined
  const connection: Connection = {
    registry,
    makeId: parts.makeId,
    clientOf: (agent) => {
      known ??= makeClient(agent, () => abilities)
      return known
    },
    answer: (work, signal) =>
      runWith(
        Effect.catchCause(work, (cause) =>
          Effect.gen(function* () {
            if (Cause.hasInterruptsOnly(cause)) return yield* Effect.fail(sdk.RequestError.requestCancelled())
            const error = Cause.squash(cause)
            if (!(error instanceof AcpError)) yield* Effect.logError("A request of an editor failed", cause)
            return yield* Effect.fail(toRequestError(sdk, error))
          })
        ),
        { signal }
      ),
    announce: (requestId, live) => wire.afterAnswer(requestId, () => void runWith(send(live, [commandsOf(live)])))
  }
  const app = sdk
    .agent({ name: parts.name })
    .onRequest("initialize", ({ params }) => {
      abilities = params.clientCapabilities ?? {}
      return initialized(parts, abilities)
    })
    .onRequest("authenticate", () => ({}))
    .onNotification("session/cancel", ({ params }) => {
      const live = registry.get(params.sessionId)
      if (live !== undefined) void runWith(cancel(live))
    })
  handleOpenings(app, connection)
  handleLists(app, connection)
  handleTurns(app, connection)
  const served = app.connect(wire.stream)
  yield* Effect.addFinalizer(() => Effect.sync(() => served.close()))
  yield* Effect.promise(() => served.closed)
})
