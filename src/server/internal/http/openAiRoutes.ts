/** Routes of OpenAI's APIs: `/v1/chat/completions`, `/v1/responses` and `/v1/models`. An agent is a model. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { Json, JsonObject } from "../../../core/Json.ts"
import { makeId, text } from "../../../core/Message.ts"
import { cut, joinLines } from "../../../support/text/text.ts"
import {
  type ClientRequest,
  decodeChat,
  decodeResponse,
  encodeChat,
  encodeResponse,
  type Packet
} from "../../OpenAi.ts"
import { takeWholeChat } from "../packets/chat.ts"
import { refuse } from "../packets/input.ts"
import { mapParts } from "../packets/parts.ts"
import { findPlace, observeInput } from "../packets/response.ts"
import { nameThread } from "../posting.ts"
import type { RunsError } from "../service.ts"
import { chooseAgent } from "./agents.ts"
import { Problem } from "./problem.ts"
import { json, type Route, route, type TenantCall } from "./route.ts"
import { encodePackets, respondEvents } from "./sse.ts"

const missing = new Problem({ status: 404, code: "NotFound", detail: "There is no such response." })

const encodeThread = Schema.encodeSync(Schema.StringFromBase64Url)
const decodeThread = Schema.decodeUnknownOption(Schema.StringFromBase64Url)

/** The id of a response says its input, and its thread if that is not the input's own. Only the thread's tenant finds it. */
const idOf = (threadId: string, inputId: string): string =>
  threadId === inputId ? `resp_${inputId}` : `resp_${inputId}.${encodeThread(threadId)}`

const form = /^resp_([0-9a-f]{32})(?:\.([\w-]{1,512}))?$/u

const readId = (id: string): Effect.Effect<{ readonly threadId: string; readonly inputId: string }, Problem> => {
  const [, inputId, thread] = form.exec(id) ?? []
  const threadId = thread === undefined ? Option.fromUndefinedOr(inputId) : decodeThread(thread)
  return inputId === undefined || Option.isNone(threadId)
    ? Effect.fail(missing)
    : Effect.succeed({ threadId: threadId.value, inputId })
}

const newId = (): string => makeId().replaceAll("-", "")

/** Describes a problem as the clients of OpenAI read it. The problem begins with the name of a field, if it is of one. */
const refusal = ({ code, detail, status }: Problem): JsonObject => ({
  error: {
    message: detail,
    type: status < 500 ? "invalid_request_error" : "server_error",
    param: /^([\w.]{1,100}): /u.exec(detail)?.[1] ?? null,
    code
  }
})

const start = Effect.fnUntraced(function* (call: TenantCall, request: ClientRequest, threadId: string, id: string) {
  const { runs } = call.door
  const thread = yield* call.tenant.thread(threadId)
  const agent = yield* chooseAgent(call, request.model)
  yield* nameThread(call, threadId, cut(joinLines(text(request.message)), 60))
  const { position } = yield* runs.start(thread, { agent, input: request.message, id, busy: "refuse" })
  return observeInput(runs, thread, id, position)
})

const chat = route({
  method: "POST",
  path: "/v1/chat/completions",
  summary:
    "Answers the last message of a chat. The header X-Thread names a thread; else the request has one of its own.",
  body: Schema.Unknown,
  refusal,
  handle: Effect.fnUntraced(function* (call) {
    const threadHeader = call.request.headers["x-thread"]
    const request = yield* decodeChat(call.body, threadHeader !== undefined)
    const inputId = newId()
    yield* call.enter
    const events = yield* start(call, request, threadHeader ?? inputId, inputId)
    const { includeUsage, isStreamed, model } = request
    const id = `chatcmpl-${inputId}`
    if (isStreamed) {
      const chunks = encodeChat({ id, model, includeUsage })(events)
      return respondEvents(call.door.beats, encodePackets(chunks, { last: "[DONE]" }))
    }
    const [whole = {}] = yield* Stream.runCollect(mapParts(takeWholeChat({ id, model }))(events))
    return "error" in whole ? json(whole, 500) : json(whole)
  })
})

const nameOf = (packet: Packet): string => (typeof packet["type"] === "string" ? packet["type"] : "message")

/** The response of the last packet. */
const wholeOf = (packets: ReadonlyArray<Packet>): Json => packets.at(-1)?.["response"] ?? null

const create = route({
  method: "POST",
  path: "/v1/responses",
  summary: "Answers an input: in the thread of `conversation` or of the response before it, or in a new one.",
  body: Schema.Unknown,
  refusal,
  handle: Effect.fnUntraced(function* (call) {
    const request = yield* decodeResponse(call.body)
    const before = request.previousId === undefined ? undefined : yield* readId(request.previousId)
    const inputId = newId()
    const threadId = request.threadId ?? before?.threadId ?? inputId
    yield* call.enter
    const events = yield* start(call, request, threadId, inputId)
    const packets = encodeResponse({ id: idOf(threadId, inputId), model: request.model })(events)
    return request.isStreamed
      ? respondEvents(call.door.beats, encodePackets(packets, { name: nameOf }))
      : json(wholeOf(yield* Stream.runCollect(packets)))
  })
})

/** Reads the parameter `starting_after`. */
const readAfter = (call: TenantCall): Effect.Effect<number | undefined, RunsError> => {
  const value = call.query("starting_after")
  if (value === undefined) return Effect.undefined
  return /^\d{1,12}$/u.test(value)
    ? Effect.succeed(Number(value))
    : Effect.fail(refuse("starting_after: expected the number of an event"))
}

const get = route({
  method: "GET",
  path: "/v1/responses/:id",
  summary: "Gives a response, when its work is done. With `stream`, its events from the first one on.",
  query: { stream: "`true`: streams the events", starting_after: "The number of the last event that the client has" },
  refusal,
  handle: Effect.fnUntraced(function* (call: TenantCall) {
    const after = yield* readAfter(call)
    const { runs } = call.door
    const { inputId, threadId } = yield* readId(call.param("id"))
    const thread = yield* call.tenant.thread(threadId)
    const { input } = yield* runs.status(thread)
    const waiting = input?.id === inputId ? input.position : undefined
    const position = (yield* findPlace(thread, inputId)) ?? waiting
    if (position === undefined) return yield* missing
    yield* call.enter
    const id = call.param("id")
    // Only the events say which of several agents answered.
    const model = runs.agents.length === 1 ? runs.agents[0]?.name : undefined
    const packetsBehind = (after: number | undefined) =>
      encodeResponse({ id, model, after })(observeInput(runs, thread, inputId, position))
    return call.query("stream") === "true"
      ? respondEvents(call.door.beats, encodePackets(packetsBehind(after), { name: nameOf }))
      : json(wholeOf(yield* Stream.runCollect(packetsBehind(undefined))))
  })
})

const models = route({
  method: "GET",
  path: "/v1/models",
  summary: "Lists the agents as models.",
  refusal,
  handle: ({ door }: TenantCall) =>
    Effect.succeed(
      json({
        object: "list",
        data: door.runs.agents.map(({ name }) => ({ id: name, object: "model", created: 0, owned_by: "server" }))
      })
    )
})

/** The routes of OpenAI's APIs. */
export const openAiRoutes: ReadonlyArray<Route> = [chat, create, get, models]
