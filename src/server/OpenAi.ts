/**
 * The packets of OpenAI's APIs: chat completions and Responses, from the events of one input.
 *
 * ```ts
 * import { Stream } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { OpenAi } from "effect-deepagents/server"
 *
 * const helper = Agent.make({ name: "helper", prompt: "You help." })
 * const chunks = Agent.stream(helper, "Write it").pipe(OpenAi.encodeChat({ id: "chatcmpl-1", model: "helper" }))
 * const lines = Stream.map(chunks, (chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
 * ```
 *
 * Tools run on the server: their calls are not sent, since a client would try to answer them. Texts of several turns are
 * joined by a blank line.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { AgentEvent, Of } from "../core/AgentEvent.ts"
import * as Content from "../core/Content.ts"
import type { Json, JsonObject } from "../core/Json.ts"
import { human, type HumanMessage } from "../core/Message.ts"
import type { Usage } from "../core/Usage.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import { secondsOf, takeChat } from "./internal/packets/chat.ts"
import { decoder, isBlank, refuse } from "./internal/packets/input.ts"
import { byTag, type Handlers, problemOf } from "./internal/packets/part.ts"
import { mapNumbered, mapParts, type Tail, type Take } from "./internal/packets/parts.ts"
import { readContent, Said } from "./internal/packets/said.ts"
import type { RunsError } from "./internal/service.ts"
import * as shapes from "./internal/shapes.ts"

/** The options of the chunks of a chat completion. */
export interface ChatOptions {
  /** The id of the completion. */
  readonly id: string
  /** The name of the agent, as the client asked for it. */
  readonly model: string
  /** Ends with a chunk that has the usage. Default: `false`. */
  readonly includeUsage?: boolean | undefined
}

/** The options of the events of a response. */
export interface ResponseOptions {
  /** The id of the response. */
  readonly id: string
  /** The name of the agent, as the client asked for it. Default: the agent's own name. */
  readonly model?: string | undefined
  /** The number of the last event that the client has: only later ones are told. Default: none. */
  readonly after?: number | undefined
}

/** A packet: a chunk of a chat completion, or an event of a response. */
export type Packet = JsonObject

type Out = (packet: Packet) => void
type End = Of<"RunCompleted" | "RunFailed" | "RunInterrupted">

const refuseChat = makeEffectCheck("OpenAi.encodeChat", shapes.openAiEncodeChat)

type Encode = <E, R>(events: Stream.Stream<AgentEvent, E, R>) => Stream.Stream<Packet, E, R>

/** Maps the events of one input to chunks of a chat completion. A failed run ends with a packet `error`. */
export const encodeChat = (options: ChatOptions): Encode => {
  const refused = refuseChat(options)
  return refused === undefined ? mapParts(takeChat(options)) : () => Stream.fromEffect(refused)
}

/** The items of a response. The items of a void turn keep their numbers, and the final response leaves them out. */
interface Items {
  /**
   * The number of the next event. An event counts one, and a delta one for each of its characters: so a response from the
   * store has the numbers of the live one, however its text was cut.
   */
  sequence: number
  told: number
  done: Array<JsonObject>
  /** The items of complete turns. */
  complete: number
  open: { readonly part: string; readonly id: string; text: string } | undefined
}

const statusOf = (event: End): string =>
  event._tag === "RunFailed"
    ? "failed"
    : event._tag === "RunInterrupted"
      ? "cancelled"
      : event.stopReason === "suspended" || event.stopReason === "length"
        ? "incomplete"
        : "completed"

const responseUsage = ({ cacheReadTokens, inputTokens, outputTokens, reasoningTokens }: Usage): JsonObject => ({
  input_tokens: inputTokens,
  output_tokens: outputTokens,
  total_tokens: inputTokens + outputTokens,
  input_tokens_details: { cached_tokens: cacheReadTokens },
  output_tokens_details: { reasoning_tokens: reasoningTokens }
})

const takeResponse = (options: ResponseOptions) => (tail: Tail<Packet>) => (): Take<Packet> => {
  const items: Items = { sequence: 0, told: 0, done: [], complete: 0, open: undefined }
  let created = 0
  let { model } = options
  const { after = -1 } = options
  const requests = new Map<string, JsonObject>()
  const tell = (type: string, fields: JsonObject, out: Out): void => {
    const sequence = items.sequence++
    if (sequence <= after) return
    tail.due = []
    out({ type, sequence_number: sequence, ...fields })
  }
  const tellDelta = (text: string, fields: JsonObject, out: Out): void => {
    const first = items.sequence
    items.sequence += text.length
    const delta = text.slice(Math.max(0, after + 1 - first))
    const head = { type: "response.output_text.delta", sequence_number: items.sequence - 1 }
    if (delta !== "") out({ ...head, ...fields, delta, logprobs: [] })
  }
  const response = (status: string, more: JsonObject = {}): JsonObject => ({
    id: options.id,
    object: "response",
    created_at: created,
    status,
    model: model ?? "",
    output: [...items.done],
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: {},
    parallel_tool_calls: true,
    temperature: null,
    top_p: null,
    tool_choice: "auto",
    tools: [],
    usage: null,
    ...more
  })
  const place = (id: string) => ({ item_id: id, output_index: items.told, content_index: 0 })
  const openItem = (part: string, out: Out): NonNullable<Items["open"]> => {
    if (items.open !== undefined) return items.open
    const id = `msg_${options.id}_${items.told}`
    const item = { id, type: "message", role: "assistant", status: "in_progress", content: [] }
    tell("response.output_item.added", { output_index: items.told, item }, out)
    const empty = { type: "output_text", text: "", annotations: [], logprobs: [] }
    tell("response.content_part.added", { ...place(id), part: empty }, out)
    items.open = { part, id, text: "" }
    return items.open
  }
  const closeItem = (out: Out): void => {
    const { open } = items
    if (open === undefined) return
    const part = { type: "output_text", text: open.text, annotations: [], logprobs: [] }
    const item = { id: open.id, type: "message", role: "assistant", status: "completed", content: [part] }
    tell("response.output_text.done", { ...place(open.id), text: open.text, logprobs: [] }, out)
    tell("response.content_part.done", { ...place(open.id), part }, out)
    tell("response.output_item.done", { output_index: items.told++, item }, out)
    items.done.push(item)
    items.open = undefined
  }
  const addItem = (item: JsonObject, out: Out): void => {
    tell("response.output_item.added", { output_index: items.told, item }, out)
    tell("response.output_item.done", { output_index: items.told++, item }, out)
    items.done.push(item)
  }
  const handlers: Handlers<Packet> = {
    Begin: (_, out, event) => {
      created = secondsOf(event)
      model ??= event.path[0]
      tell("response.created", { response: response("in_progress") }, out)
      tell("response.in_progress", { response: response("in_progress") }, out)
    },
    TextDelta: ({ id, text: delta }, out) => {
      const open = openItem(id, out)
      open.text += delta
      tellDelta(delta, place(open.id), out)
    },
    TextEnd: (_, out) => closeItem(out),
    Turn: () => void (items.complete = items.done.length),
    Void: () => void items.done.splice(items.complete),
    Asked: ({ replaces, request: { allow, arguments: args, description, id, toolName } }) => {
      if (replaces !== undefined) requests.delete(replaces)
      const item = { id, type: "deepagents:approval", name: toolName, arguments: args, description, allow: [...allow] }
      requests.set(id, item)
    },
    Decided: ({ event }) => void requests.delete(event.id),
    End: ({ event }, out) => {
      closeItem(out)
      const isWaiting = event._tag === "RunCompleted" && event.stopReason === "suspended"
      if (isWaiting) for (const item of requests.values()) addItem(item, out)
      const status = statusOf(event)
      const details: Json =
        status === "incomplete" ? { reason: isWaiting ? "deepagents:approval" : "max_output_tokens" } : null
      const error: Json = event._tag === "RunFailed" ? { code: "server_error", message: problemOf(event) } : null
      const type = status === "cancelled" ? "response.incomplete" : `response.${status}`
      const usage = responseUsage(event.usage)
      const fields = { response: response(status, { incomplete_details: details, error, usage }) }
      tail.due = items.sequence > after ? [] : [{ type, sequence_number: after + 1, ...fields }]
      tell(type, fields, out)
    }
  }
  return byTag(handlers)
}

const refuseResponse = makeEffectCheck("OpenAi.encodeResponse", shapes.openAiEncodeResponse)

/** Maps the events of one input to the events of a response. Its last one has the whole response. */
export const encodeResponse = (options: ResponseOptions): Encode => {
  const refused = refuseResponse(options)
  return refused === undefined ? mapNumbered(takeResponse(options)) : () => Stream.fromEffect(refused)
}

/** A request of a client. `threadId` is absent if the client has no thread yet. */
export interface ClientRequest {
  readonly model: string
  readonly isStreamed: boolean
  readonly includeUsage: boolean
  readonly message: HumanMessage
  /** The thread that the client goes on with, or the response before. */
  readonly threadId?: string
  readonly previousId?: string
}

const lastOf = Effect.fnUntraced(function* (field: "input" | "messages", messages: ReadonlyArray<typeof Said.Type>) {
  const last = messages.at(-1)
  if (last?.role !== "user") return yield* refuse(`${field}: expected a message of the user at the end`)
  const content = yield* readContent(last.content)
  return isBlank(content) ? yield* refuse(`${field}: the last message has no text and no file`) : content
})

const ChatBody = Schema.Struct({
  model: Schema.String,
  messages: Schema.Array(Said),
  stream: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  stream_options: Schema.optionalKey(
    Schema.NullOr(Schema.Struct({ include_usage: Schema.optionalKey(Schema.Boolean) }))
  )
})

const readChat = decoder(ChatBody)

/**
 * Reads the body of a chat completion. With `hasThread`, only its last message counts. Else, the earlier messages are a
 * text in front of it: no thread has them.
 */
export const decodeChat = (body: unknown, hasThread = false): Effect.Effect<ClientRequest, RunsError> =>
  Effect.gen(function* () {
    const { messages, model, stream, stream_options: options } = yield* readChat(body)
    const content = yield* lastOf("messages", messages)
    const before: Array<string> = []
    for (const { content: messageContent, role = "user" } of hasThread ? [] : messages.slice(0, -1)) {
      const text = Content.toText(yield* readContent(messageContent))
      if (text !== "") before.push(`${role}: ${text}`)
    }
    const history =
      before.length === 0 ? [] : [Content.text(`The conversation so far:\n\n${before.join("\n\n")}\n\nuser: `)]
    return {
      model,
      isStreamed: stream === true,
      includeUsage: options?.include_usage === true,
      message: human([...history, ...content])
    }
  })

const ResponseBody = Schema.Struct({
  model: Schema.String,
  input: Schema.Union([Schema.String, Schema.Array(Said)]),
  stream: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  conversation: Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Struct({ id: Schema.String })]))),
  previous_response_id: Schema.optionalKey(Schema.NullOr(Schema.String))
})

const readResponse = decoder(ResponseBody)

/** Reads the body of a response. Only its last message counts: the thread has the earlier ones. */
export const decodeResponse = (body: unknown): Effect.Effect<ClientRequest, RunsError> =>
  Effect.gen(function* () {
    const { conversation, input, model, previous_response_id: previousId, stream } = yield* readResponse(body)
    const content = yield* lastOf("input", typeof input === "string" ? [{ role: "user", content: input }] : input)
    const threadId = typeof conversation === "string" ? conversation : conversation?.id
    return {
      model,
      isStreamed: stream === true,
      includeUsage: true,
      message: human(content),
      ...(threadId === undefined ? {} : { threadId }),
      ...(typeof previousId === "string" ? { previousId } : {})
    }
  })
