/** Routes of LangGraph's API behind `/langgraph`: the part that `@langchain/langgraph-sdk` and `RemoteAgents` drive. */
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../../../core/AgentEvent.ts"
import type { Json, JsonObject } from "../../../core/Json.ts"
import { makeId, type Message, text } from "../../../core/Message.ts"
import { cut, joinLines } from "../../../support/text/text.ts"
import { type ClientRequest, decode, decodeModes, encode, type Mode, type Packet } from "../../LangGraph.ts"
import { refuse } from "../packets/input.ts"
import { observeDecision, observeInput } from "../packets/response.ts"
import type { Position } from "../position.ts"
import { nameThread } from "../posting.ts"
import { RunsError } from "../service.ts"
import type { ThreadRef } from "../tenant.ts"
import { chooseAgent } from "./agents.ts"
import { decideOn } from "./deciding.ts"
import { findRun, isAtWork } from "./finding.ts"
import { langGraphThreads } from "./langGraphThreads.ts"
import { readBefore } from "./messages.ts"
import type { Failure } from "./problem.ts"
import { json, nothing, type Route, route, type TenantCall } from "./route.ts"
import { encodePackets, respondEvents } from "./sse.ts"

/** A run: an input, and the events of its response. An answer to an interrupt goes on with the run that asked. */
interface Run {
  readonly thread: ThreadRef
  readonly id: string
  readonly agent: string
  readonly events: Stream.Stream<AgentEvent, Failure>
  readonly told?: ReadonlyArray<AgentEvent>
  readonly before: ReadonlyArray<Message>
}

/** Takes an input or answers. */
const start = Effect.fnUntraced(function* (
  call: TenantCall,
  request: ClientRequest,
  threadId: string
): Effect.fn.Return<Run, Failure> {
  const { runs } = call.door
  const { store } = call.tenant
  const thread = yield* call.tenant.thread(threadId)
  const agent = yield* chooseAgent(call, request.assistantId)
  if (request._tag === "Decisions") {
    const { pending } = yield* runs.status(thread)
    const decisions = request.decide(pending)
    const { id, position, told } = yield* decideOn(call, thread, (request) =>
      decisions.find((decision) => decision.id === request.id)
    )
    const before = yield* readBefore(store, threadId, id)
    return { thread, id, agent, events: observeDecision(runs, thread, position), told, before }
  }
  if (request.createsThread) yield* nameThread(call, threadId, cut(joinLines(text(request.message)), 60))
  else yield* store.info(threadId)
  const { busy, id = makeId(), message } = request
  if (busy === "replace") yield* runs.cancel(thread)
  const { position } = yield* runs.start(thread, {
    agent,
    input: message,
    id,
    busy: busy === "refuse" ? "refuse" : "queue"
  })
  const before = yield* readBefore(store, threadId, id, message)
  return { thread, id, agent, events: observeInput(runs, thread, id, position), before }
})

const statuses = { RunCompleted: "success", RunFailed: "error", RunInterrupted: "interrupted" } as const

const statusOf = Effect.fnUntraced(function* (call: TenantCall, thread: ThreadRef, id: string, place: Position) {
  if (yield* isAtWork(call, thread, id)) return "running"
  let status: "success" | "error" | "interrupted" = "interrupted"
  yield* Stream.runForEach(observeInput(call.door.runs, thread, id, place), (event) =>
    Effect.sync(() => {
      if (event.path.length > 1) return
      if (event._tag === "RunCompleted") status = event.stopReason === "suspended" ? "interrupted" : "success"
      else if (event._tag === "RunFailed" || event._tag === "RunInterrupted") status = statuses[event._tag]
    })
  )
  return status
})

const describe = (threadId: string, runId: string, agent: string, status: string): JsonObject => {
  // The times of runs are in their events only.
  const at = new Date().toISOString()
  return {
    run_id: runId,
    thread_id: threadId,
    assistant_id: agent,
    created_at: at,
    updated_at: at,
    status,
    metadata: {},
    multitask_strategy: null
  }
}

const pathOf = ({ id, thread }: Pick<Run, "id" | "thread">): string =>
  `/threads/${encodeURIComponent(thread.id)}/runs/${encodeURIComponent(id)}`

const packetsOf = (run: Run, modes: ReadonlyArray<Mode>, after?: number) =>
  encode({ threadId: run.thread.id, runId: run.id, modes, after, told: run.told, before: run.before })(run.events)

const respondStream = ({ door }: TenantCall, run: Run, modes: ReadonlyArray<Mode>, after?: number) => {
  const bytes = encodePackets(packetsOf(run, modes, after), {
    id: ({ id }) => id,
    name: ({ event }) => event,
    data: ({ data }) => data
  })
  const path = pathOf(run)
  const query = modes.map((mode) => `stream_mode=${mode}`).join("&")
  return respondEvents(door.beats, bytes, { location: `${path}/stream?${query}`, "content-location": path })
}

/** Waits for the end, and gives the last state. */
const awaitValues = (run: Run): Effect.Effect<Json, Failure> =>
  Effect.map(Stream.runCollect(packetsOf(run, ["values"])), (packets: ReadonlyArray<Packet>) => {
    const last = packets.findLast(({ event }) => event === "values")?.data ?? null
    const end = packets.slice(packets.findLastIndex(({ event }) => event === "values"))
    const failed = end.find(({ event }) => event === "error")
    return failed === undefined || last === null ? last : Object.assign({}, last, { __error__: failed.data })
  })

/** Makes the thread of a run that has none. */
const withThread = (call: TenantCall, request: ClientRequest): ClientRequest =>
  request._tag === "Input" && call.param("id") === "" ? { ...request, createsThread: true } : request

const streamRun = (path: Route["path"], threadOf: (call: TenantCall) => string) =>
  route({
    method: "POST",
    path,
    summary: "Runs an agent on an input, or goes on with answers to interrupts, and streams the events.",
    body: Schema.Unknown,
    returns: "text/event-stream",
    handle: Effect.fnUntraced(function* (call) {
      const request = yield* decode(call.body)
      yield* call.enter
      return respondStream(call, yield* start(call, withThread(call, request), threadOf(call)), request.modes)
    })
  })

const waitRun = (path: Route["path"], threadOf: (call: TenantCall) => string) =>
  route({
    method: "POST",
    path,
    summary: "Runs an agent as `stream` does, and gives the last state.",
    body: Schema.Unknown,
    handle: Effect.fnUntraced(function* (call) {
      const request = yield* decode(call.body)
      yield* call.enter
      const run = yield* start(call, withThread(call, request), threadOf(call))
      const response = json(yield* awaitValues(run))
      return HttpServerResponse.setHeader(response, "content-location", pathOf(run))
    })
  })

const createRun = route({
  method: "POST",
  path: "/langgraph/threads/:id/runs",
  summary: "Takes an input, or answers to interrupts. Its run belongs to the server.",
  body: Schema.Unknown,
  handle: Effect.fnUntraced(function* (call) {
    const run = yield* start(call, yield* decode(call.body), call.param("id"))
    const response = json(describe(run.thread.id, run.id, run.agent, "pending"))
    return HttpServerResponse.setHeader(response, "content-location", pathOf(run))
  })
})

const getRun = route({
  method: "GET",
  path: "/langgraph/threads/:id/runs/:run",
  summary: "Tells whether a run is pending, running, interrupted (it waits for a person, or was cancelled) or over.",
  handle: Effect.fnUntraced(function* (call: TenantCall) {
    const { id, place, thread } = yield* findRun(call, yield* call.thread, call.param("run"))
    const status = place === "queued" ? "pending" : yield* statusOf(call, thread, id, place)
    // Only the events say which of several agents answers.
    return json(describe(thread.id, id, call.door.runs.agents[0]?.name ?? "", status))
  })
})

/** The run of the path. One that waits for its turn begins behind the present end. */
const openRun = Effect.fnUntraced(function* (call: TenantCall): Effect.fn.Return<Run, Failure> {
  const { runs } = call.door
  const { id, place, thread } = yield* findRun(call, yield* call.thread, call.param("run"))
  const position = place === "queued" ? (yield* runs.status(thread)).position : place
  const before = yield* readBefore(call.tenant.store, thread.id, id)
  return { thread, id, agent: "", events: observeInput(runs, thread, id, position), before }
})

const joinRun = route({
  method: "GET",
  path: "/langgraph/threads/:id/runs/:run/join",
  summary: "Waits for the end of a run, and gives the last state.",
  handle: Effect.fnUntraced(function* (call: TenantCall) {
    const run = yield* openRun(call)
    yield* call.enter
    return json(yield* awaitValues(run))
  })
})

const joinStream = route({
  method: "GET",
  path: "/langgraph/threads/:id/runs/:run/stream",
  summary: "Streams the events of a run, from its first one or behind `Last-Event-ID`.",
  query: { stream_mode: "The packets that the client wants" },
  returns: "text/event-stream",
  handle: Effect.fnUntraced(function* (call: TenantCall) {
    const modes = yield* decodeModes(call.queryAll("stream_mode"))
    const lastEventId = call.request.headers["last-event-id"] ?? ""
    if (lastEventId !== "" && !/^\d{1,12}$/u.test(lastEventId))
      return yield* refuse("Last-Event-ID: expected the id of an event")
    const run = yield* openRun(call)
    yield* call.enter
    return respondStream(call, run, modes, lastEventId === "" ? undefined : Number(lastEventId))
  })
})

const cancelRun = route({
  method: "POST",
  path: "/langgraph/threads/:id/runs/:run/cancel",
  summary: "Ends a run at work.",
  query: { wait: "`1`: answers when it has ended", action: "`interrupt`" },
  status: 204,
  isBare: true,
  handle: Effect.fnUntraced(function* (call: TenantCall) {
    if ((call.query("action") ?? "interrupt") !== "interrupt") return yield* refuse("action: expected interrupt")
    const { runs } = call.door
    const { id, place, thread } = yield* findRun(call, yield* call.thread, call.param("run"))
    if (place === "queued" || !(yield* isAtWork(call, thread, id)) || !(yield* runs.cancel(thread))) {
      return yield* new RunsError({ reason: "NotRunning", threadId: thread.id, problem: "the run is not at work" })
    }
    if (call.query("wait") === "1") yield* Stream.runDrain(observeInput(runs, thread, id, place))
    return nothing
  })
})

/** The routes of LangGraph's API. */
export const langGraphRoutes: ReadonlyArray<Route> = [
  ...langGraphThreads,
  createRun,
  streamRun("/langgraph/threads/:id/runs/stream", (call) => call.param("id")),
  waitRun("/langgraph/threads/:id/runs/wait", (call) => call.param("id")),
  streamRun("/langgraph/runs/stream", makeId),
  waitRun("/langgraph/runs/wait", makeId),
  getRun,
  joinRun,
  joinStream,
  cancelRun
]
