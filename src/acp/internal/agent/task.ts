/** A task of an agent of others: its process, its session, its prompt, and all that comes of it. */
import { mkdir, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join, relative, resolve } from "node:path"
import type * as Acp from "@agentclientprotocol/sdk"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Agent from "../../../core/Agent.ts"
import { Backend, type Service as Files } from "../../../core/Backend.ts"
import { ToolContext } from "../../../core/ToolContext.ts"
import * as Budget from "../../../middleware/Budget.ts"
import { AcpError } from "../../AcpError.ts"
import { decodeAnswer, messageOf } from "../decode.ts"
import { loadSdk, type Sdk } from "../sdk.ts"
import { type Child, startChild } from "./child.ts"
import * as Incoming from "./incoming.ts"
import type { Options } from "./options.ts"
import { makeRelay } from "./relay.ts"
import { type ClientHandlers, makeAnswering } from "./requests.ts"
import { increase, nothing } from "./usage.ts"

/** News of the process, in the order of their arrival. */
type News =
  | { readonly _tag: "Update"; readonly update: Incoming.Update }
  | { readonly _tag: "Work"; readonly work: Effect.Effect<void, never, Scope.Scope> }
  | { readonly _tag: "Done"; readonly exit: Exit.Exit<unknown, AcpError> }

/** The time that a cancelled prompt has to end. */
const patience = "5 seconds"

/** Makes the folder of the process, and the way from its paths to paths of the backend. */
const makePlace = Effect.fnUntraced(function* (options: Pick<Options, "cwd">, backend: Files) {
  const { paths } = backend
  const inner = (cwd: string) => (path: string) => {
    const from = relative(cwd, path)
    return paths === undefined ? `/${from}` : resolve(paths.cwd, from)
  }
  if (options.cwd !== undefined) {
    const cwd = resolve(options.cwd)
    return { cwd, inner: inner(cwd) }
  }
  if (paths !== undefined && backend.onHost === true) return { cwd: paths.cwd, inner: (path: string) => path }
  // A run that resumes has the same folder: sessions and permissions name its paths.
  const cwd = yield* Agent.step(
    "folder",
    Effect.promise(() => mkdtemp(join(tmpdir(), "deepagents-acp-"))),
    Schema.String
  )
  yield* Effect.acquireRelease(
    Effect.promise(() => mkdir(cwd, { recursive: true, mode: 0o700 })),
    () => Effect.ignore(Effect.tryPromise(() => rm(cwd, { recursive: true, force: true })))
  )
  return { cwd, inner: inner(cwd) }
})

/** Takes updates out, in their order: the package handles answers before the notifications ahead of them. */
const withUpdates = (stream: Acp.Stream, onUpdate: (update: Incoming.Update) => void): Acp.Stream => ({
  writable: stream.writable,
  readable: stream.readable.pipeThrough(
    new TransformStream<Acp.AnyMessage, Acp.AnyMessage>({
      transform: (message, controller) => {
        if ("method" in message && message.method === "session/update") {
          const update = Incoming.updateOf(message)
          if (update !== undefined) onUpdate(update)
          return
        }
        // The package prints the id of an answer to no request: a text could hold control characters of the terminal.
        if ("method" in message || typeof message.id === "number") controller.enqueue(message)
      }
    })
  )
})

/** Connects to the process. Its requests are answered in the fiber that takes the news. */
const connect = Effect.fnUntraced(function* (
  sdk: Sdk,
  name: string,
  child: Child,
  news: Queue.Queue<News>,
  answering: ClientHandlers
) {
  const run = yield* FiberSet.makeRuntimePromise<never, unknown, unknown>()
  const toError = (error: unknown): Acp.RequestError =>
    error instanceof AcpError
      ? error.reason === "NotFound"
        ? new sdk.RequestError(-32_002, error.detail)
        : sdk.RequestError.invalidRequest(undefined, error.detail)
      : sdk.RequestError.internalError()
  /** Has the fiber of the run do the work, and waits for it. */
  const inRun = <A>(work: Effect.Effect<A, AcpError, Scope.Scope>): Promise<A> =>
    run(
      Effect.gen(function* () {
        const reply = yield* Deferred.make<A, AcpError>()
        // A suspension ends the run, and is no answer.
        const answered = Effect.matchEffect(work, {
          onFailure: (error) => Deferred.fail(reply, error),
          onSuccess: (value) => Deferred.succeed(reply, value)
        })
        yield* Queue.offer(news, { _tag: "Work", work: Effect.asVoid(answered) })
        return yield* Effect.mapError(Deferred.await(reply), toError)
      })
    )
  /** Work that asks nobody goes on beside the run. */
  const runBeside = <A>(work: Effect.Effect<A, AcpError>): Promise<A> => run(Effect.mapError(work, toError))
  const app = sdk
    .client({ name })
    .onRequest("session/request_permission", ({ params }) => inRun(answering.permit(params)))
    .onRequest("fs/read_text_file", ({ params }) => runBeside(answering.read(params)))
    .onRequest("fs/write_text_file", ({ params }) => inRun(answering.write(params)))
    .onRequest("terminal/create", ({ params }) => inRun(answering.create(params)))
    .onRequest("terminal/output", ({ params }) => runBeside(answering.output(params)))
    .onRequest("terminal/wait_for_exit", ({ params }) => runBeside(answering.wait(params)))
    .onRequest("terminal/kill", ({ params }) => runBeside(answering.end(params)))
    .onRequest("terminal/release", ({ params }) => runBeside(answering.release(params)))
  const connection = app.connect(
    withUpdates(child.stream, (update) => {
      Queue.offerUnsafe(news, { _tag: "Update", update })
    })
  )
  yield* Effect.addFinalizer(() => Effect.sync(() => connection.close()))
  const { agent } = connection
  const request = <M extends keyof Incoming.Answers>(
    method: M,
    params: Acp.AgentRequestParamsByMethod[M]
  ): Effect.Effect<Incoming.Answers[M]["Type"], AcpError> =>
    Effect.tryPromise({
      try: () => agent.request<unknown, unknown>(method, params),
      catch: (cause) => {
        const words = child.words()
        const detail = `${messageOf(cause)}${words === "" ? "" : `\n${words}`}`
        return new AcpError({ reason: connection.signal.aborted ? "Closed" : "Refused", method, detail })
      }
    }).pipe(Effect.flatMap(decodeAnswer<Incoming.Answers[M]["Type"]>(method, Incoming.answers[method])))
  const cancel = (sessionId: string) =>
    Effect.ignore(Effect.tryPromise(() => agent.notify("session/cancel", { sessionId })))
  return { request, cancel }
})

type Connection = Effect.Success<ReturnType<typeof connect>>

const isSilent = (name: string, method: string, silence: Duration.Duration) =>
  new AcpError({
    reason: "TimedOut",
    method,
    detail: `${name} said nothing for ${Duration.toSeconds(silence)} seconds`
  })

const goOn = "You were cut off. Go on with the task where you were, and do nothing twice."

/** Opens the session: a new one, or the stored one of a run that resumes. Gives its id, and the words to say. */
const openSession = Effect.fnUntraced(function* (
  connection: Connection,
  options: Pick<Options, "mode" | "name">,
  silence: Duration.Duration,
  cwd: string,
  task: string
) {
  const request: Connection["request"] = (method, params) =>
    Effect.timeoutOrElse(connection.request(method, params), {
      duration: silence,
      orElse: () => Effect.fail(isSilent(options.name, method, silence))
    })
  const { agentCapabilities, protocolVersion } = yield* request("initialize", {
    protocolVersion: 1,
    clientInfo: { name: "effect-deepagents", version: "0.0.0" },
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true }
  })
  if (protocolVersion !== 1) {
    const detail = `it speaks version ${protocolVersion} of the protocol, and version 1 is known here`
    return yield* new AcpError({ reason: "NotStarted", method: "initialize", detail })
  }
  let isNew = false
  const begin = Effect.tap(
    Effect.map(request("session/new", { cwd, mcpServers: [] }), ({ sessionId }) => sessionId),
    () => Effect.sync(() => (isNew = true))
  )
  const storedId = yield* Agent.step("session", begin, Schema.String)
  let sessionId = storedId
  if (!isNew) {
    const canResume = agentCapabilities?.sessionCapabilities?.resume
    const at = { sessionId: storedId, cwd, mcpServers: [] }
    if (Predicate.isObject(canResume)) yield* request("session/resume", at)
    else if (agentCapabilities?.loadSession === true) yield* request("session/load", at)
    else sessionId = yield* begin
  }
  if (options.mode !== undefined) yield* request("session/set_mode", { sessionId, modeId: options.mode })
  let isFirst = false
  yield* Agent.step(
    "prompted",
    Effect.sync(() => {
      isFirst = true
      return true
    }),
    Schema.Boolean
  )
  const words = isFirst ? task : sessionId === storedId ? goOn : `${goOn}\n\n${task}`
  return { sessionId, words }
})

/** Runs a task in a process of its own, which ends with it. */
export const runTask = Effect.fnUntraced(function* <R>(options: Options<R>, task: string) {
  const sdk = yield* loadSdk
  const context = yield* ToolContext
  const backend = yield* Backend
  const { cwd, inner } = yield* makePlace(options, backend)
  const child = yield* startChild(sdk, { ...options, cwd }, context.run)
  const news = yield* Queue.unbounded<News>()
  const answering = makeAnswering({ name: options.name, cwd, backend, context, inner })
  const connection = yield* connect(sdk, options.name, child, news, answering)
  const silence = Duration.fromInputUnsafe(options.silence ?? "10 minutes")
  const { sessionId, words } = yield* openSession(connection, options, silence, cwd, task)
  // A session that was loaded first tells its past. Its requests still need an answer.
  const early = yield* Queue.clear(news)
  yield* Queue.offerAll(
    news,
    early.filter(({ _tag }) => _tag !== "Update")
  )
  yield* Effect.addFinalizer(() => connection.cancel(sessionId))
  yield* Effect.forkScoped(
    Effect.flatMap(
      Effect.exit(connection.request("session/prompt", { sessionId, prompt: [{ type: "text", text: words }] })),
      (exit) => Queue.offer(news, { _tag: "Done", exit })
    )
  )
  const relay = makeRelay(context.callId)
  const { run } = context
  let text = ""
  let reported = nothing
  let stopped: string | undefined
  const next = Effect.suspend(() =>
    stopped === undefined
      ? Effect.timeoutOrElse(Queue.take(news), {
          duration: silence,
          orElse: () => Effect.fail(isSilent(options.name, "session/prompt", silence))
        })
      : Effect.timeoutOrElse(Queue.take(news), { duration: patience, orElse: () => Effect.undefined })
  )
  for (;;) {
    const one = yield* next
    // A process over its budget that does not end is ended here.
    if (one === undefined) break
    if (one._tag === "Work") {
      yield* one.work
    } else if (one._tag === "Done") {
      if (Exit.isFailure(one.exit) && stopped === undefined) return yield* Effect.failCause(one.exit.cause)
      break
    } else {
      const { update } = one
      if (update.sessionUpdate === "agent_message_chunk" && "text" in update.content) text += update.content.text
      if (update.sessionUpdate === "usage_update") {
        const [now, usage] = increase(reported, update, options.prices)
        reported = now
        yield* run.count(usage)
      }
      yield* Effect.forEach(relay(update, yield* Clock.currentTimeMillis), run.relay, { discard: true })
    }
    if (stopped === undefined) {
      stopped = yield* Budget.usedUp(run)
      if (stopped !== undefined) yield* connection.cancel(sessionId)
    }
  }
  return stopped === undefined ? text : `${text}\n[${options.name} was stopped: ${stopped}]`.trimStart()
}, Effect.scoped)
