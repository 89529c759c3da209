/** Routes of AI SDK: `useChat` posts to `/api/chat`, and comes again to `/api/chat/:id/stream`. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import type { AgentEvent } from "../../../core/AgentEvent.ts"
import { text } from "../../../core/Message.ts"
import { cut, joinLines } from "../../../support/text/text.ts"
import { type ClientRequest, decode, encode } from "../../AiSdk.ts"
import { findInput, observeDecision, observeInput } from "../packets/response.ts"
import { nameThread } from "../posting.ts"
import type { ThreadRef } from "../tenant.ts"
import { chooseAgent } from "./agents.ts"
import { decideOn } from "./deciding.ts"
import { type Failure, toProblem } from "./problem.ts"
import { nothing, type Route, route, type TenantCall } from "./route.ts"
import { encodePackets, respondEvents } from "./sse.ts"

const headers = { "x-vercel-ai-ui-message-stream": "v1" }

const respond = (
  { door }: TenantCall,
  events: Stream.Stream<AgentEvent, Failure>,
  messageId: string,
  told?: ReadonlyArray<AgentEvent>
) => respondEvents(door.beats, encodePackets(encode({ messageId, told })(events), { last: "[DONE]" }), headers)

/** Takes an input. An answer that failed, and is wanted again, is resumed. */
const answer = Effect.fnUntraced(function* (
  call: TenantCall,
  thread: ThreadRef,
  asked: Extract<ClientRequest, { _tag: "Input" }>
) {
  const { runs } = call.door
  const { id, isRepeated, message, messageId } = asked
  const agent = yield* chooseAgent(call)
  yield* nameThread(call, thread.id, cut(joinLines(text(message)), 60))
  const { isNew, position } = yield* runs.start(thread, { agent, input: message, id, busy: "refuse" })
  if (isRepeated && !isNew) {
    const { pending, state } = yield* runs.status(thread)
    if (state === "idle" && pending.length === 0) yield* runs.decide(thread, [])
  }
  return respond(call, observeInput(runs, thread, id, position), messageId)
})

/** Decides, and goes on with the message that asked. */
const goOn = Effect.fnUntraced(function* (
  call: TenantCall,
  thread: ThreadRef,
  { decide, messageId }: Extract<ClientRequest, { _tag: "Decisions" }>
) {
  const { position, told } = yield* decideOn(call, thread, decide)
  return respond(call, observeDecision(call.door.runs, thread, position), messageId, told)
})

const chat = route({
  method: "POST",
  path: "/api/chat",
  summary: "Answers the last message of useChat, or goes on with its decisions. Only that message counts.",
  query: { agent: "The name of the agent. Default: the first one" },
  body: Schema.Unknown,
  returns: "text/event-stream",
  handle: Effect.fnUntraced(function* (call) {
    const request = yield* decode(call.body)
    const thread = yield* call.tenant.thread(request.threadId)
    yield* call.enter
    return yield* request._tag === "Input" ? answer(call, thread, request) : goOn(call, thread, request)
  })
})

const resume = route({
  method: "GET",
  path: "/api/chat/:id/stream",
  summary: "Streams the whole response at work, from its start. 204: nothing is at work.",
  returns: "text/event-stream",
  handle: Effect.fnUntraced(function* (call: TenantCall) {
    const { runs } = call.door
    const thread = yield* call.thread
    const status = yield* Effect.result(runs.status(thread))
    // A thread that is not there has nothing at work.
    if (status._tag === "Failure" && toProblem(status.failure).status !== 404) return yield* Effect.fail(status.failure)
    const state = status._tag === "Failure" ? "idle" : status.success.state
    if (state !== "working") return nothing
    const input = yield* findInput(call.tenant, runs, thread)
    if (input === undefined) return nothing
    yield* call.enter
    return respond(call, observeInput(runs, thread, input.id, input.position), `${input.id}-answer`)
  })
})

/** The routes of AI SDK. */
export const aiSdkRoutes: ReadonlyArray<Route> = [chat, resume]
