/** Routes of runs: inputs, their events, decisions, steering. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Decision, Request } from "../../../core/Approval.ts"
import { Block, fromInput, toText } from "../../../core/Content.ts"
import { human, makeId } from "../../../core/Message.ts"
import { joinLines, cut } from "../../../support/text/text.ts"
import { checkInput } from "../packets/input.ts"
import { parse, Position } from "../position.ts"
import { isMissing, nameThread } from "../posting.ts"
import { RunsError } from "../service.ts"
import type { Failure } from "./problem.ts"
import { json, nothing, type Route, route, type TenantCall } from "./route.ts"
import { encodeFrames, respondEvents } from "./sse.ts"

/** An input: a text, or a message with parts. */
export const Input = Schema.Union([
  Schema.String,
  Schema.Struct({
    role: Schema.optionalKey(Schema.Literal("human")),
    content: Schema.Union([Schema.String, Schema.Array(Block)])
  })
])

/** The message of an input. Nothing but its content is the client's. */
export const toMessage = (input: typeof Input.Type) => human(typeof input === "string" ? input : input.content)

const titleOf = (input: typeof Input.Type): string =>
  cut(joinLines(typeof input === "string" ? input : toText(fromInput(input.content))), 60)

/** The input for a run. */
export const Start = Schema.Struct({
  agent: Schema.String,
  input: Input,
  id: Schema.optionalKey(Schema.String),
  busy: Schema.optionalKey(Schema.Literals(["queue", "refuse"])),
  model: Schema.optionalKey(Schema.NullOr(Schema.String)),
  mode: Schema.optionalKey(Schema.NullOr(Schema.String)),
  thinking: Schema.optionalKey(Schema.NullOr(Schema.String))
})

/** Takes an input. */
export const startRun = Effect.fnUntraced(function* (
  call: TenantCall,
  { agent, busy, id = makeId(), input, mode, model, thinking }: typeof Start.Type
): Effect.fn.Return<{ runId: string; position: string; isNew: boolean }, Failure> {
  const { runs } = call.door
  const thread = yield* call.thread
  const message = toMessage(input)
  yield* checkInput(message.content)
  if (runs.agents.some(({ name }) => name === agent)) yield* nameThread(call, thread.id, titleOf(input))
  const run = yield* runs.start(thread, { agent, input: message, id, busy, mode, model, thinking })
  return { runId: run.id, position: run.position, isNew: run.isNew }
})

const start = route({
  method: "POST",
  path: "/threads/:id/runs",
  summary: "Takes an input. It is stored when this answers, and counts once by its id.",
  body: Start,
  status: 202,
  handle: (call) => Effect.map(startRun(call, call.body), (run) => json(run, 202))
})

/** Fails unless readers may wait for events of the thread: it exists, or its first input waits. */
const checkThread = Effect.fnUntraced(function* (call: TenantCall): Effect.fn.Return<void, Failure> {
  const { id } = yield* call.thread
  const thread = yield* call.thread
  yield* Effect.catchIf(Effect.asVoid(call.tenant.store.leaf(id)), isMissing, () =>
    Effect.asVoid(call.door.runs.status(thread))
  )
})

/** Reads a position, if a client has one. */
export const positionOf = (
  value: string | undefined,
  threadId: string
): Effect.Effect<Position | undefined, RunsError> => {
  if (value === undefined || value === "") return Effect.undefined
  const after = Position.make(value)
  return parse(after) === undefined
    ? Effect.fail(new RunsError({ reason: "InvalidInput", threadId, problem: "this is no position of an event" }))
    : Effect.succeed(after)
}

const events = route({
  method: "GET",
  path: "/threads/:id/events",
  summary: "Streams the events behind a position: the header Last-Event-ID, or the parameter `after`.",
  query: {
    after: "The position of the last event that the reader has",
    follow: "`true`: goes on when the thread is idle"
  },
  returns: "text/event-stream",
  handle: Effect.fnUntraced(function* (call: TenantCall) {
    const thread = yield* call.thread
    yield* checkThread(call)
    const after = yield* positionOf(call.request.headers["last-event-id"] || call.query("after"), thread.id)
    yield* call.enter
    const frames = call.door.runs.observe(thread, { after, follow: call.query("follow") === "true" })
    return respondEvents(call.door.beats, encodeFrames(frames))
  })
})

const decisions = route({
  method: "POST",
  path: "/threads/:id/decisions",
  summary: "Decides pending requests, and resumes. No decision at all resumes a failed or interrupted thread.",
  body: Schema.Struct({ decisions: Schema.Array(Decision) }),
  status: 202,
  handle: Effect.fnUntraced(function* (call) {
    const run = yield* call.door.runs.decide(yield* call.thread, call.body.decisions)
    return json({ runId: run.id, position: run.position, isNew: run.isNew }, 202)
  })
})

const steer = route({
  method: "POST",
  path: "/threads/:id/steer",
  summary: "Sends a message into the run at work.",
  body: Schema.Struct({ input: Input }),
  status: 204,
  handle: Effect.fnUntraced(function* (call) {
    yield* call.door.runs.steer(yield* call.thread, toMessage(call.body.input))
    return nothing
  })
})

const cancel = route({
  method: "POST",
  path: "/threads/:id/cancel",
  summary: "Ends the run at work; inputs behind it stay.",
  handle: Effect.fnUntraced(function* (call: TenantCall) {
    return json({ isCancelled: yield* call.door.runs.cancel(yield* call.thread) })
  })
})

const encodeRequests = Schema.encodeSync(Schema.Array(Request))

const state = route({
  method: "GET",
  path: "/threads/:id/state",
  summary: "Tells whether the thread is idle, working or waiting, its pending requests and its last position.",
  handle: Effect.fnUntraced(function* (call: TenantCall) {
    const { pending, position, state } = yield* call.door.runs.status(yield* call.thread)
    return json({ state, pending: encodeRequests(pending), position })
  })
})

/** The routes of runs. */
export const runRoutes: ReadonlyArray<Route> = [start, events, decisions, steer, cancel, state]
