/** The methods of a connection beside `initialize`. They load after it was answered: it must not wait for the code of agents. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as AgentState from "../../core/AgentState.ts"
import type * as McpConfig from "../../mcp/McpConfig.ts"
import * as Todos from "../../middleware/Todos.ts"
import { loadThread } from "../../sessions/journal.ts"
import type { Client } from "./client.ts"
import type { Connection, Draft, Methods, Request } from "./connection.ts"
import { decodeAnswer, optional } from "./decode.ts"
import { fail, ofStore } from "./failures.ts"
import { makeLists } from "./lists.ts"
import type { SessionOpening } from "./model.ts"
import { makeRegistry, type Parts } from "./registry.ts"
import { cancel, commandsOf, type Live, review, runPrompt, send } from "./session.ts"
import * as Settings from "./settings.ts"
import * as Updates from "./updates.ts"

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

const openingOf = (sessionId: string, isNew: boolean, place: Place): SessionOpening => ({
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
const makeOpenings = (connection: Connection) => {
  const { announce, clientOf, makeId, registry } = connection
  return {
    "session/new": Effect.fnUntraced(function* ({ client, params, requestId }: Request<"session/new">) {
      const live = yield* registry.open("session/new", clientOf(client), openingOf(yield* makeId, true, params))
      announce(requestId, live)
      return { sessionId: live.opening.threadId, ...Settings.stateOf(live.session) }
    }),
    "session/load": Effect.fnUntraced(function* ({ client, params, requestId }: Request<"session/load">) {
      const { live, updates } = yield* reopen(connection, "session/load", clientOf(client), params)
      yield* send(live, updates)
      announce(requestId, live)
      return Settings.stateOf(live.session)
    }),
    "session/resume": Effect.fnUntraced(function* ({ client, params, requestId }: Request<"session/resume">) {
      const { live } = yield* reopen(connection, "session/resume", clientOf(client), params)
      announce(requestId, live)
      return Settings.stateOf(live.session)
    }),
    "session/fork": Effect.fnUntraced(function* ({ client, params, requestId }: Draft) {
      const request = yield* decodeAnswer("session/fork", ForkRequest)(params)
      const live = yield* fork(connection, clientOf(client), request)
      announce(requestId, live)
      return { sessionId: live.opening.threadId, ...Settings.stateOf(live.session) }
    })
  }
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
const makeTurns = ({ registry }: Connection) => ({
  "session/set_mode": Effect.fnUntraced(function* ({ params }: Request<"session/set_mode">) {
    const live = yield* registry.find("session/set_mode", params.sessionId)
    yield* setMode(live, "session/set_mode", params.modeId)
    yield* send(live, [{ sessionUpdate: "config_option_update", configOptions: Settings.optionsOf(live.session) }])
    return {}
  }),
  "session/set_config_option": Effect.fnUntraced(function* ({ params }: Request<"session/set_config_option">) {
    const method = "session/set_config_option"
    const live = yield* registry.find(method, params.sessionId)
    yield* setOption(live, method, params.configId, params.value)
    return { configOptions: Settings.optionsOf(live.session) }
  }),
  "session/prompt": Effect.fnUntraced(function* ({ params }: Request<"session/prompt">) {
    const live = yield* registry.find("session/prompt", params.sessionId)
    return { stopReason: yield* runPrompt(live, params.prompt) }
  })
})

/** Makes the methods. The scope of the connection closes its sessions. */
export const makeMethods = Effect.fnUntraced(function* <R>(
  parts: Parts<R>,
  {
    afterAnswer,
    clientOf
  }: Pick<Connection, "clientOf"> & {
    readonly afterAnswer: (requestId: string | number | null, work: Effect.Effect<void>) => void
  }
): Effect.fn.Return<Methods, never, R | Scope.Scope> {
  const registry = yield* makeRegistry(parts)
  const connection: Connection = {
    registry,
    clientOf,
    makeId: parts.makeId,
    announce: (requestId, live) => afterAnswer(requestId, send(live, [commandsOf(live)]))
  }
  return {
    ...makeOpenings(connection),
    ...makeLists(connection),
    ...makeTurns(connection),
    cancel: (sessionId: string) => {
      const live = registry.get(sessionId)
      return live === undefined ? Effect.void : cancel(live)
    }
  }
})
