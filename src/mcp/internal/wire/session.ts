/** One connection to a server, from its handshake to its end. */
import type {
  Client,
  CreateMessageResult,
  CreateMessageResultWithTools,
  ElicitResult,
  Transport
} from "@modelcontextprotocol/client"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { PlatformError } from "effect/PlatformError"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import type * as Semaphore from "effect/Semaphore"
import { observed } from "../../../support/effect/observed.ts"
import type { FetchLike } from "../../../support/http/fetchLike.ts"
import { reveal } from "../../../support/store/redacted.ts"
import { cut } from "../../../support/text/text.ts"
import type { Authorize } from "../../McpAuthorization.ts"
import type { HttpServer, Server, StdioServer } from "../../McpConfig.ts"
import type { McpError } from "../../McpError.ts"
import * as Errors from "../errors.ts"
import type * as Secrets from "../secrets.ts"
import type { ReadMessage } from "./answers.ts"
import * as Call from "./call.ts"
import * as Http from "./http.ts"
import * as Listening from "./listening.ts"
import * as Process from "./process.ts"
import type { Sdk } from "./sdk.ts"
import * as Send from "./send.ts"
import { type SiftedTools, siftTools } from "./sift.ts"
import * as Subscriptions from "./subscriptions.ts"

/** The surroundings of connections. */
export interface Surroundings {
  readonly fetch: FetchLike
  readonly authorize: Authorize | undefined
  readonly client: { readonly name: string; readonly version: string }
  readonly roots: ReadonlyArray<{ readonly uri: string; readonly name?: string }>
  /** Reports whether somebody sees the interfaces of tools. */
  readonly apps: boolean
  readonly maxMessage: number
  /**
   * The system starts one process after the other in any case. Taken in turns, the first server is spoken to while the
   * next one is started.
   */
  readonly starting: Semaphore.Semaphore
}

/** The server of a connection. */
export interface Target {
  readonly name: string
  readonly config: Server
  readonly log: { readonly add: (text: string) => void; readonly read: () => string }
  readonly secrets: Secrets.Secrets
  /** Set for a server that ended, or refused, when it was asked for the newer protocol, or the newer transport. */
  readonly traits: { isLegacy: boolean; isOldTransport: boolean }
}

/** The lists of a server that changed. */
export type ChangedList = "tools" | "prompts" | "resources"

const all: ReadonlyArray<ChangedList> = ["tools", "prompts", "resources"]

/** A connection that stands. */
export interface Session {
  readonly client: Client
  /** The id of the server's process, if it has one. */
  readonly pid: number | undefined
  /** Done when the connection is lost, with the reason. */
  readonly loss: Deferred.Deferred<McpError>
  /** The next list that changed. However often it does meanwhile, it is said once. */
  readonly changed: Effect.Effect<ChangedList>
  readonly listTools: Effect.Effect<SiftedTools, McpError>
  /** Asks the server for something. A connection that turns out to be lost is given up. */
  readonly request: <A>(ask: (client: Client, signal: AbortSignal) => Promise<A>) => Effect.Effect<A, McpError>
  readonly call: Call.Call
  readonly subscribe: Subscriptions.Subscribe
}

/** The milliseconds that a server has for its start and its handshake, and for the list of its tools. */
export const connectTimeoutOf = ({ connectTimeout }: Server): number => connectTimeout ?? 30_000

/** Characters of a server's output that are kept during an attempt to connect. */
const mostSaid = 4_000
const unattributed = "this client can't tell which of its calls this belongs to"

const answered = <A>(answer: Deferred.Deferred<A, string>): Promise<A> =>
  observed(Effect.runPromise(Effect.mapError(Deferred.await(answer), (problem) => new Error(problem))))

/** The extension by which a client tells servers that it shows interfaces (MCP Apps). */
const interfaces = { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } }

/** Makes the client, with the answers to a server's questions. */
const makeClient = (sdk: Sdk, target: Target, around: Surroundings, open: ReadonlySet<Call.OpenCall>) => {
  const { config, traits } = target
  const news = Effect.runSync(Queue.unbounded<ChangedList>())
  const untold = new Set<ChangedList>()
  const hasChanged = (what: ChangedList): void => {
    if (untold.has(what)) return
    untold.add(what)
    Queue.offerUnsafe(news, what)
  }
  const changed = Effect.tap(Queue.take(news), (what) => Effect.sync(() => untold.delete(what)))
  const onChanged = (what: ChangedList) => ({
    autoRefresh: false,
    debounceMs: 50,
    onChanged: () => hasChanged(what)
  })
  const samples = config.sampling !== undefined
  const time = connectTimeoutOf(config)
  const client = new sdk.Client(around.client, {
    capabilities: {
      elicitation: { form: { applyDefaults: true }, url: {} },
      ...(around.roots.length > 0 ? { roots: { listChanged: false } } : {}),
      ...(samples ? { sampling: {} } : {}),
      ...(around.apps ? { extensions: interfaces } : {})
    },
    versionNegotiation: {
      mode: traits.isLegacy || config.type === "sse" ? "legacy" : "auto",
      // A person may have to sign in before the first answer; a process that is silent knows the older protocol only.
      probe: { timeoutMs: config.type === "stdio" ? Math.min(5_000, time / 3) : time }
    },
    listChanged: {
      tools: onChanged("tools"),
      prompts: onChanged("prompts"),
      resources: onChanged("resources")
    },
    listMaxPages: 1_000
  })
  /** Finds the call that a server's message belongs to: the only open call, or a call of the only run. */
  const ownerOf = (): Call.OpenCall | undefined => {
    const calls = [...open]
    const [first] = calls
    return first !== undefined && calls.every(({ owner }) => owner === first.owner) ? first : undefined
  }
  client.setRequestHandler("elicitation/create", ({ params }) => {
    const call = ownerOf()
    if (call === undefined) return { action: "cancel" as const }
    const answer = Deferred.makeUnsafe<ElicitResult, string>()
    call.tell({ _tag: "Elicit", params, answer })
    return answered(answer)
  })
  if (around.roots.length > 0) {
    client.setRequestHandler("roots/list", () => ({ roots: around.roots.map((root) => ({ ...root })) }))
  }
  if (samples) {
    client.setRequestHandler("sampling/createMessage", ({ params }) => {
      const call = ownerOf()
      if (call === undefined) return Promise.reject(new Error(unattributed))
      const answer = Deferred.makeUnsafe<CreateMessageResult | CreateMessageResultWithTools, string>()
      call.tell({ _tag: "Sample", params, answer })
      return answered(answer)
    })
  }
  client.setNotificationHandler("notifications/message", ({ params }) => {
    const call = ownerOf()
    const { data, level, logger } = params
    if (call !== undefined) call.tell({ _tag: "Log", level, logger, data })
    else target.log.add(`[${level}] ${typeof data === "string" ? data : JSON.stringify(data)}\n`)
  })
  return { client, changed, hasChanged }
}

interface OpenTransport {
  readonly transport: Transport
  readonly leave?: () => Promise<void>
  readonly pid?: number
}

const openProcess = (
  target: Target,
  config: StdioServer,
  around: Surroundings,
  notes: Process.Notes,
  read: ReadMessage
) =>
  around.starting
    .withPermits(1)(Process.open(config, around.maxMessage, notes, read))
    .pipe(
      Effect.map((transport): OpenTransport => ({ transport, pid: transport.pid })),
      Effect.mapError((error) => Errors.notStarted(target.name, config, error))
    )

const openHttp = (
  sdk: Sdk,
  target: Target,
  config: HttpServer,
  around: Surroundings,
  last: Http.Outcome,
  read: ReadMessage
) =>
  Effect.gen(function* () {
    const address = reveal(config.url)
    const url = URL.parse(address)
    if (url === null || !/^https?:$/u.test(url.protocol)) {
      // An address may hold a password or a token in its query.
      const place = (address.split(/[?#]/u)[0] ?? "").replace(/^.*@/su, "…@")
      const placeText = JSON.stringify(cut(place, 200))
      return yield* Errors.unavailable(target.name, `${placeText} is not an address of http or https`, undefined)
    }
    if (url.username !== "" || url.password !== "") {
      return yield* Errors.unavailable(target.name, "a password stands in its address; give it by `headers`", undefined)
    }
    // Answers of an authorisation server are bounded, too.
    const limited = Http.limited(Http.noting(around.fetch, target.secrets.add), around.maxMessage)
    const authorized =
      around.authorize === undefined ? limited : yield* around.authorize({ name: target.name, config }, limited)
    const fetch = Http.watched(authorized, last)
    return Http.open(sdk, config, url, config.type === "sse" || target.traits.isOldTransport, fetch, read)
  })

/** Tells whether a server is one of the older transport: it knows no `POST` at this address. */
const isOldTransport = (last: Http.Outcome): boolean =>
  last.status !== undefined && last.status >= 400 && last.status < 500 && last.status !== 401 && last.status !== 403

const attempt = (
  sdk: Sdk,
  target: Target,
  around: Surroundings,
  last: Http.Outcome
): Effect.Effect<Session, McpError, ChildProcessSpawner | Scope.Scope> =>
  Effect.gen(function* () {
    const { config, log, name } = target
    const time = connectTimeoutOf(config)
    const calls = new Set<Call.OpenCall>()
    const { changed, client, hasChanged } = makeClient(sdk, target, around, calls)
    const loss = Deferred.makeUnsafe<McpError>()
    const giveUp = (error: McpError): void => void Deferred.doneUnsafe(loss, Effect.succeed(error))
    let stderr = ""
    const leftOut: Array<string> = []
    const readMessage: ReadMessage = (message) =>
      siftTools(sdk, target.secrets.maskMessage(message), (problem) => leftOut.push(problem))
    const note = (text: string): void => {
      log.add(text)
      stderr = `${stderr}${text}`.slice(-mostSaid)
    }
    const opened: OpenTransport = yield* config.type === "stdio"
      ? openProcess(target, config, around, { add: note }, readMessage)
      : openHttp(sdk, target, config, around, last, readMessage)
    const { leave, pid, transport } = opened
    client.onclose = () => giveUp(Errors.lostConnection(name, "the connection ended"))
    client.onerror = (error) => log.add(`${Errors.wordsOf(error)}\n`)
    yield* Effect.addFinalizer(() => {
      const ending = Effect.promise(async () => {
        await leave?.().catch(() => undefined)
        await client.close().catch(() => undefined)
      })
      return Effect.timeoutOption(ending, "1 second")
    })
    yield* Effect.tryPromise({
      try: (signal) => client.connect(transport, { timeout: time, signal }),
      catch: (error) => Errors.ofConnect(name, error, last, stderr)
    })
    const failure = (cause: unknown): McpError => {
      const error = target.secrets.seal(Errors.ofRequest(name, cause, last))
      if (error.reason === "Lost") giveUp(error)
      return error
    }
    const request: Session["request"] = (ask) =>
      Effect.tryPromise({ try: (signal) => ask(client, signal), catch: failure })
    const sender = Send.make(sdk, client, config.type !== "stdio")
    const listTools = request(async (sdkClient, signal) => {
      leftOut.length = 0
      if (sdkClient.getServerCapabilities()?.tools === undefined) return { tools: [], problems: [] }
      const { tools } = await sdkClient.listTools({}, { cacheMode: "refresh", signal, timeout: time })
      sender.listed(tools)
      return { tools, problems: [...leftOut] }
    })
    const subscribe = yield* Subscriptions.make(client, request)
    const lists = Listening.listsOf(client)
    if (client.getProtocolEra() === "modern" && Object.keys(lists).length > 0) {
      const missed = () => all.forEach(hasChanged)
      yield* Effect.forkScoped(Listening.keepOpen(client, lists, client.autoOpenedSubscription, missed))
    }
    const call = yield* Call.make({
      server: name,
      callTimeout: config.callTimeout,
      maxCallTime: config.maxCallTime,
      send: sender.send,
      open: calls,
      failure
    })
    return { client, pid, loss, changed, listTools, request, call, subscribe }
  })

/** Releases the resources of a failed attempt. */
const contained = <A, E, R>(effect: Effect.Effect<A, E, R | Scope.Scope>): Effect.Effect<A, E, R | Scope.Scope> =>
  Effect.gen(function* () {
    const inner = yield* Scope.fork(yield* Effect.scope)
    return yield* Effect.onError(Effect.provideService(effect, Scope.Scope, inner), (cause) =>
      Scope.close(inner, Exit.failCause(cause))
    )
  })

/**
 * Connects to a server: by the newer protocol and transport, if it has them. The connection lasts as long as the scope.
 */
export const open = (
  sdk: Sdk,
  target: Target,
  around: Surroundings
): Effect.Effect<Session, McpError, ChildProcessSpawner | Scope.Scope> => {
  const last: Http.Outcome = {}
  const { config, name, traits } = target
  const time = connectTimeoutOf(config)
  const connect = Effect.suspend(() => contained(attempt(sdk, target, around, last)))
  const connectWithFallback = Effect.catch(connect, (error) => {
    const hasBegun = !(error.cause instanceof PlatformError)
    if (config.type === "stdio" && !traits.isLegacy && hasBegun && error.reason === "Unavailable") {
      traits.isLegacy = true
      return connect
    }
    if (config.type === "http" && !traits.isOldTransport && isOldTransport(last)) {
      traits.isOldTransport = true
      return Effect.tapError(connect, () => Effect.sync(() => (traits.isOldTransport = false)))
    }
    return Effect.fail(error)
  })
  return Effect.timeoutOrElse(Effect.mapError(connectWithFallback, target.secrets.seal), {
    duration: time,
    orElse: () => Effect.fail(Errors.tooSlowToConnect(name, time, "start and handshake"))
  })
}
