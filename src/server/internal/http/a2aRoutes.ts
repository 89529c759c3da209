/** Routes of A2A 1.0: the agent card, and `/a2a` for JSON-RPC. A task is an input, and its context the thread. */
import * as Effect from "effect/Effect"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../../../core/AgentEvent.ts"
import { Json, type JsonObject } from "../../../core/Json.ts"
import { makeId, type Message, text } from "../../../core/Message.ts"
import type { Listing, Thread } from "../../../core/SessionStore.ts"
import { defined } from "../../../support/json/defined.ts"
import { sha256Sync } from "../../../support/store/sha256.ts"
import { cut, joinLines } from "../../../support/text/text.ts"
import { type ClientRequest, decode, encode } from "../../A2A.ts"
import { decoder, refuse } from "../packets/input.ts"
import { observeDecision, observeInput } from "../packets/response.ts"
import { artifactOf, requestMessageOf, stateOf, statusOf, type TaskState } from "../packets/task.ts"
import { nameThread } from "../posting.ts"
import { chooseAgent } from "./agents.ts"
import { decideOn } from "./deciding.ts"
import { type RunPlace, findRun, isAtWork } from "./finding.ts"
import { hostOf } from "./guard.ts"
import { readTranscript } from "./messages.ts"
import { type Failure, Problem, toProblem } from "./problem.ts"
import { json, openRoute, type Route, route, type TenantCall } from "./route.ts"
import { encodePackets, respondEvents } from "./sse.ts"

/** The names of a task: its input and its thread. */
interface TaskNames {
  readonly inputId: string
  readonly threadId: string
}

const encodeText = Schema.encodeSync(Schema.StringFromBase64Url)
const decodeText = Schema.decodeUnknownOption(Schema.StringFromBase64Url)

const idOf = ({ inputId, threadId }: TaskNames): string => `${encodeText(inputId)}.${encodeText(threadId)}`

/** A refusal with a code of the protocol. */
const rejected = (code: string, detail: string) => new Problem({ status: 200, code, detail })

const missing = rejected("-32001", "There is no such task.")

const readId = (id: string): Effect.Effect<TaskNames, Problem> => {
  const [input = "", thread = "", ...more] = id.split(".")
  const [inputId, threadId] = [decodeText(input), decodeText(thread)]
  const isNamed = Option.isSome(inputId) && Option.isSome(threadId) && more.length === 0
  if (!isNamed || inputId.value === "" || threadId.value === "") return Effect.fail(missing)
  return Effect.succeed({ inputId: inputId.value, threadId: threadId.value })
}

const findTask = Effect.fnUntraced(function* (
  call: TenantCall,
  id: string
): Effect.fn.Return<RunPlace & TaskNames, Failure> {
  const { inputId, threadId } = yield* readId(id)
  return { inputId, threadId, ...(yield* findRun(call, yield* call.tenant.thread(threadId), inputId)) }
})

/** The messages of a response: those behind its input, up to the next one. */
const responseIn = (messages: ReadonlyArray<Message>, inputId: string): ReadonlyArray<Message> => {
  const at = messages.findIndex(({ id }) => id === `input:${inputId}`)
  if (at < 0) return []
  const rest = messages.slice(at + 1)
  const end = rest.findIndex(({ id }) => id.startsWith("input:"))
  return end < 0 ? rest : rest.slice(0, end)
}

/** A task, as a client sees it. */
interface TaskView {
  readonly state: TaskState
  readonly task: JsonObject
}

/** Describes a task, as the store and the run at work have it. */
const describe = Effect.fnUntraced(function* (
  call: TenantCall,
  task: RunPlace & TaskNames
): Effect.fn.Return<TaskView, Failure> {
  const { runs } = call.door
  const { id, place, thread, threadId } = task
  const taskId = idOf(task)
  const messages = responseIn(yield* readTranscript(call.tenant.store, threadId), id)
  const isOver = place !== "queued" && !(yield* isAtWork(call, thread, id))
  const first = (): TaskState =>
    place === "queued" ? "TASK_STATE_SUBMITTED" : isOver ? "TASK_STATE_CANCELED" : "TASK_STATE_WORKING"
  const outcome: { state: TaskState; at: number } = { state: first(), at: Date.now() }
  let question: JsonObject | undefined
  if (place !== "queued" && isOver) {
    yield* Stream.runForEach(observeInput(runs, thread, id, place), (event) =>
      Effect.sync(() => {
        if (event.path.length > 1) return
        if (event._tag !== "RunCompleted" && event._tag !== "RunFailed" && event._tag !== "RunInterrupted") return
        Object.assign(outcome, { state: stateOf(event), at: event.at })
      })
    )
    const { pending } = yield* runs.status(thread)
    if (outcome.state === "TASK_STATE_INPUT_REQUIRED") question = requestMessageOf(threadId, taskId, pending)
  }
  const artifacts = messages.flatMap((message) =>
    message.role === "ai" && text(message) !== "" ? [artifactOf(message.id, text(message))] : []
  )
  const { at, state } = outcome
  const status = statusOf(state, at, question)
  return { state, task: { id: taskId, contextId: threadId, status, artifacts, history: [] } }
})

/** A message that was taken: its task, and the events behind it. */
interface AcceptedMessage extends TaskNames {
  readonly events: Stream.Stream<AgentEvent, Failure>
  readonly told?: ReadonlyArray<AgentEvent>
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/iu

const take = Effect.fnUntraced(function* (
  call: TenantCall,
  request: ClientRequest
): Effect.fn.Return<AcceptedMessage, Failure> {
  const { runs } = call.door
  if (request.taskId !== undefined) {
    const { id, inputId, thread, threadId } = yield* findTask(call, request.taskId)
    if (request.contextId !== undefined && request.contextId !== threadId) return yield* missing
    const { pending } = yield* runs.status(thread)
    if (pending.length === 0 || (yield* isAtWork(call, thread, id))) {
      return yield* rejected("-32004", "This task waits for nothing; send the message without a task, in its context.")
    }
    const answer = yield* decideOn(call, thread, request.decide)
    if (answer.id !== id) return yield* missing
    return { inputId, threadId, told: answer.told, events: observeDecision(runs, thread, answer.position) }
  }
  // A message that is sent again, by a client whose ids are its own, is not run again.
  const { contextId, messageId } = request
  const inputId = uuid.test(messageId) ? sha256Sync(`${contextId ?? ""}\n${messageId}`).slice(0, 32) : makeId()
  const threadId = contextId ?? inputId
  const thread = yield* call.tenant.thread(threadId)
  const agent = yield* chooseAgent(call)
  yield* nameThread(call, threadId, cut(joinLines(text(request.message)), 60))
  const { position } = yield* runs.start(thread, { agent, input: request.message, id: inputId })
  return { inputId, threadId, events: observeInput(runs, thread, inputId, position) }
})

const Id = decoder(Schema.Struct({ id: Schema.String }))
const List = Schema.Struct({
  contextId: Schema.optionalKey(Schema.String),
  status: Schema.optionalKey(Schema.String),
  pageSize: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 }))),
  pageToken: Schema.optionalKey(Schema.String),
  includeArtifacts: Schema.optionalKey(Schema.Boolean)
})
const readList = decoder(List)

/** The inputs of a thread, the newest first. */
const inputsIn = (messages: ReadonlyArray<Message>): ReadonlyArray<string> =>
  messages.flatMap(({ id }) => (id.startsWith("input:") ? [id.slice("input:".length)] : [])).toReversed()

const isAny = (status: string): boolean => status === "" || status === "TASK_STATE_UNSPECIFIED"

/** Describes the tasks with a state. */
const describeAll = Effect.fnUntraced(function* (
  call: TenantCall,
  names: ReadonlyArray<TaskNames>,
  { includeArtifacts = false, status = "" }: typeof List.Type
) {
  const tasks: Array<JsonObject> = []
  for (const name of names) {
    const { state, task } = yield* describe(call, yield* findTask(call, idOf(name)))
    const { artifacts, ...rest } = task
    if (isAny(status) || state === status) tasks.push(includeArtifacts ? { ...rest, artifacts: artifacts ?? [] } : rest)
  }
  return tasks
})

/** Lists the tasks of one context, the newest first. The token of a page is the number of tasks before it. */
const listContext = Effect.fnUntraced(function* (call: TenantCall, query: typeof List.Type, threadId: string) {
  const { pageSize = 50, pageToken = "", status = "" } = query
  const { store } = call.tenant
  yield* store.info(threadId)
  if (!/^\d{0,9}$/u.test(pageToken)) return yield* refuse("pageToken: expected the token of a page")
  const start = Number(pageToken)
  const names = inputsIn(yield* readTranscript(store, threadId)).map((inputId) => ({ inputId, threadId }))
  const next = (total: number) => (start + pageSize < total ? String(start + pageSize) : "")
  if (isAny(status)) {
    const tasks = yield* describeAll(call, names.slice(start, start + pageSize), query)
    return { tasks, nextPageToken: next(names.length), pageSize, totalSize: names.length }
  }
  const all = yield* describeAll(call, names, query)
  const tasks = all.slice(start, start + pageSize)
  return { tasks, nextPageToken: next(all.length), pageSize, totalSize: all.length }
})

const countThreads = Effect.fnUntraced(function* ({ tenant: { store } }: TenantCall) {
  let count = 0
  for (let cursor: string | undefined; ;) {
    const page: Listing<Thread> = yield* store.list({ limit: 1_000, ...defined({ cursor }) })
    count += page.items.length
    if (page.next === null) return count
    cursor = page.next
  }
})

/** Lists the last task of each thread, or the tasks of one context. */
const listTasks = Effect.fnUntraced(function* (
  call: TenantCall,
  params: unknown
): Effect.fn.Return<JsonObject, Failure> {
  const query = yield* readList(params)
  const { contextId = "", pageSize = 50, pageToken = "", status = "" } = query
  if (contextId !== "") return yield* listContext(call, query, contextId)
  const { store } = call.tenant
  const page = yield* store.list({ limit: pageSize, ...defined({ cursor: pageToken === "" ? undefined : pageToken }) })
  const names: Array<TaskNames> = []
  for (const { threadId } of page.items) {
    const [inputId] = inputsIn(yield* readTranscript(store, threadId))
    if (inputId !== undefined) names.push({ inputId, threadId })
  }
  const tasks = yield* describeAll(call, names, query)
  // The states of all tasks are known by reading all threads only.
  const totalSize = isAny(status) ? yield* countThreads(call) : tasks.length
  return { tasks, nextPageToken: page.next ?? "", pageSize, totalSize }
})

const cancel = Effect.fnUntraced(function* (call: TenantCall, params: unknown): Effect.fn.Return<JsonObject, Failure> {
  const task = yield* findTask(call, (yield* Id(params)).id)
  const { id, place, thread } = task
  const { runs } = call.door
  if (place === "queued" || !(yield* isAtWork(call, thread, id)) || !(yield* runs.cancel(thread))) {
    return yield* rejected("-32002", "This task is not at work.")
  }
  yield* Stream.runDrain(observeInput(runs, thread, id, place))
  return (yield* describe(call, task)).task
})

type Answer = { readonly value: JsonObject } | { readonly packets: Stream.Stream<JsonObject, Failure> }

const packetsOf = (work: AcceptedMessage) =>
  encode({ taskId: idOf(work), contextId: work.threadId, told: work.told })(work.events)

const answer = Effect.fnUntraced(function* (
  call: TenantCall,
  method: string,
  params: unknown
): Effect.fn.Return<Answer, Failure> {
  switch (method) {
    case "SendMessage": {
      const request = yield* decode(params)
      if (!request.isImmediate) yield* call.enter
      const work = yield* take(call, request)
      if (!request.isImmediate) yield* Stream.runDrain(work.events)
      const { task } = yield* describe(call, yield* findTask(call, idOf(work)))
      return { value: { task } }
    }
    case "SendStreamingMessage": {
      const request = yield* decode(params)
      yield* call.enter
      return { packets: packetsOf(yield* take(call, request)) }
    }
    case "SubscribeToTask": {
      const task = yield* findTask(call, (yield* Id(params)).id)
      if (task.place === "queued" || !(yield* isAtWork(call, task.thread, task.id))) {
        return yield* rejected("-32004", "This task is not at work; get it.")
      }
      yield* call.enter
      return { packets: packetsOf({ ...task, events: observeInput(call.door.runs, task.thread, task.id, task.place) }) }
    }
    case "GetTask":
      return { value: (yield* describe(call, yield* findTask(call, (yield* Id(params)).id))).task }
    case "ListTasks":
      return { value: yield* listTasks(call, params) }
    case "CancelTask":
      return { value: yield* cancel(call, params) }
    case "GetExtendedAgentCard":
      return yield* rejected("-32007", "There is one card, for everybody.")
    default:
      return yield* method.includes("PushNotification")
        ? rejected("-32003", "There are no push notifications.")
        : rejected("-32601", "There is no such method.")
  }
})

const codes: Readonly<Record<number, number>> = { 400: -32602, 404: -32001, 409: -32004 }

const failed = (id: Json, failure: Failure): HttpServerResponse.HttpServerResponse => {
  const { code, detail, status } = toProblem(failure)
  const rpcCode = status === 200 ? Number(code) : (codes[status] ?? -32603)
  const message = rpcCode === -32001 ? missing.detail : detail
  return json({ jsonrpc: "2.0", id, error: { code: rpcCode, message } })
}

const Rpc = Schema.Struct({
  jsonrpc: Schema.Literal("2.0"),
  id: Schema.Union([Schema.String, Schema.Finite]),
  method: Schema.String,
  params: Schema.optionalKey(Json)
})

const rpc = route({
  method: "POST",
  path: "/a2a",
  summary: "Takes requests of A2A 1.0 as JSON-RPC.",
  query: { agent: "The name of the agent. Default: the first one" },
  body: Rpc,
  handle: Effect.fnUntraced(function* (call) {
    const { id, method, params = {} } = call.body
    const version = call.request.headers["a2a-version"] ?? "1.0"
    const answered = version.startsWith("1.")
      ? answer(call, method, params)
      : Effect.fail(rejected("-32009", "This server speaks version 1.0."))
    const result = yield* Effect.result(answered)
    // Limits are told in the head, as those of requests are.
    if (result._tag === "Failure" && toProblem(result.failure).status === 429) return yield* result.failure
    if (result._tag === "Failure") return failed(id, result.failure)
    if ("value" in result.success) return json({ jsonrpc: "2.0", id, result: result.success.value })
    const data = (packet: JsonObject) => ({ jsonrpc: "2.0", id, result: packet })
    return respondEvents(call.door.beats, encodePackets(result.success.packets, { data }))
  })
})

const loopback = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/iu

const card = openRoute({
  method: "GET",
  path: "/.well-known/agent-card.json",
  summary: "Describes the agents for A2A.",
  handle: ({ door, request }) => {
    const host = hostOf(request)
    const { agents } = door.runs
    const [first] = agents
    return Effect.succeed(
      json({
        name: first?.name ?? "agents",
        description: first?.description ?? "",
        version: "1.0.0",
        supportedInterfaces: [
          {
            url: `${loopback.test(host) ? "http" : "https"}://${host}/a2a`,
            protocolBinding: "JSONRPC",
            protocolVersion: "1.0",
            tenant: ""
          }
        ],
        capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
        securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: "Bearer" } } },
        securityRequirements: [{ schemes: { bearer: { list: [] } } }],
        defaultInputModes: ["text/plain", "application/json", "image/*"],
        defaultOutputModes: ["text/plain"],
        skills: agents.map(({ description = "", name }) => ({ id: name, name, description, tags: ["agent"] })),
        signatures: []
      })
    )
  }
})

/** The routes of A2A. */
export const a2aRoutes: ReadonlyArray<Route> = [card, rpc]
