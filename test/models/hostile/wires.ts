/** The protocols, each as the pieces that a hostile server puts together. */
import { Duration, type Layer, Redacted } from "effect"
import type { ChatModel } from "effect-deepagents"
import * as AnthropicChatModel from "effect-deepagents/models/AnthropicChatModel"
import * as BedrockChatModel from "effect-deepagents/models/BedrockChatModel"
import * as BedrockConverseChatModel from "effect-deepagents/models/BedrockConverseChatModel"
import * as GeminiChatModel from "effect-deepagents/models/GeminiChatModel"
import * as OllamaChatModel from "effect-deepagents/models/OllamaChatModel"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import * as OpenAiCompatibleChatModel from "effect-deepagents/models/OpenAiCompatibleChatModel"
import { eventFrame, frame } from "../servers/bedrock.ts"

/** Nothing of this may be in an error. */
export const key = "sk-canary-key-0123456789"
export const headerSecret = "header-canary-0123456789"

/** A way to reach a model in these tests. */
export interface Reached {
  readonly url: string
  readonly timeout: number
  /** Further options of the layer. */
  readonly options?: object
}

/** A call as a server writes it. `undefined` fields are left out. */
export interface Called {
  readonly id: unknown
  readonly args: string
  readonly index: unknown
  readonly name?: unknown
}

/** One protocol. Events are JSON texts, so that they can be broken. */
export interface Wire {
  readonly name: string
  readonly isText: boolean
  readonly contentType: string
  readonly model: (reached: Reached) => Layer.Layer<ChatModel.ChatModel, unknown>
  /** An event as bytes. */
  readonly frame: (event: string) => Buffer
  /** A sign that the server is still there, and nothing else. */
  readonly breath: Buffer
  readonly open: ReadonlyArray<string>
  readonly text: (text: string, index?: unknown) => ReadonlyArray<string>
  /** Events of calls: the begin of each, its arguments, its end. */
  readonly call: (called: Called) => readonly [begin: string, args: string, end: ReadonlyArray<string>]
  readonly close: (stop: "stop" | "calls", usage?: unknown) => ReadonlyArray<string>
  /** Events with `null`, or another value, in the place of an object. */
  readonly wrong: (value: unknown) => ReadonlyArray<string>
  /** An error in the middle of a stream. */
  readonly failure: (message: string) => Buffer
  /** The body of an error. */
  readonly error: (message: string) => string
  /** Scenarios, by name, that end in another way in this protocol. */
  readonly ends?: { readonly [scenario: string]: ReadonlyArray<string> }
}

const json = JSON.stringify

const sse = (event: string): Buffer => Buffer.from(`data: ${event}\n\n`)

const reached = ({ options, timeout, url }: Reached, path: string) => ({
  ...options,
  baseURL: `${url}${path}`,
  timeout: Duration.millis(timeout),
  headers: { "x-tenant": Redacted.make(headerSecret) }
})

const usageOf = (usage: unknown) => usage ?? { input_tokens: 3, output_tokens: 2 }

const responses: Wire = {
  name: "OpenAiChatModel",
  isText: true,
  contentType: "text/event-stream",
  model: (to) => OpenAiChatModel.layer({ model: "gpt-5", apiKey: Redacted.make(key), ...reached(to, "/v1") }),
  frame: sse,
  breath: Buffer.from(": still here\n\n"),
  open: [json({ type: "response.created", response: { id: "resp_1" } })],
  text: (delta, index = 0) => [
    json({
      type: "response.output_item.added",
      output_index: index,
      item: { id: `msg_${String(index)}`, type: "message", role: "assistant", content: [] }
    }),
    json({ type: "response.output_text.delta", output_index: index, content_index: 0, delta })
  ],
  call: ({ args, id, index, name = "charge" }) => {
    const item = { type: "function_call", id: `fc_${String(id)}_${String(index)}`, call_id: id, name }
    return [
      json({ type: "response.output_item.added", output_index: index, item: { ...item, arguments: "" } }),
      json({ type: "response.function_call_arguments.delta", output_index: index, item_id: item.id, delta: args }),
      [json({ type: "response.output_item.done", output_index: index, item: { ...item, arguments: args } })]
    ]
  },
  close: (_, usage) => [
    json({ type: "response.completed", response: { id: "resp_1", status: "completed", usage: usageOf(usage) } })
  ],
  wrong: (value) => [
    json({ type: "response.output_item.added", output_index: 5, item: value }),
    json({ type: "response.output_item.done", output_index: value, item: { type: "message", content: value } }),
    json({ type: "response.output_text.delta", output_index: 5, delta: value }),
    json({ type: "response.reasoning_summary_text.delta", delta: value }),
    json({ type: value }),
    json({ type: "response.in_progress", response: value })
  ],
  failure: (message) => sse(json({ type: "error", code: "server_error", message })),
  error: (message) => json({ error: { message, type: "server_error" } })
}

const choice = (delta: unknown, finish_reason: unknown = null): string =>
  json({ id: "chatcmpl-1", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] })

const chat: Wire = {
  name: "OpenAiCompatibleChatModel",
  isText: true,
  contentType: "text/event-stream",
  model: (to) =>
    OpenAiCompatibleChatModel.layer({ model: "served", apiKey: Redacted.make(key), ...reached(to, "/v1") }),
  frame: sse,
  breath: Buffer.from(": still here\n\n"),
  open: [choice({ role: "assistant", content: "" })],
  text: (content) => [choice({ content })],
  call: ({ args, id, index, name = "charge" }) => [
    choice({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }),
    choice({ tool_calls: [{ index, function: { arguments: args } }] }),
    []
  ],
  close: (stop, usage) => [
    choice({}, stop === "stop" ? "stop" : "tool_calls"),
    json({ choices: [], usage: usage ?? { prompt_tokens: 3, completion_tokens: 2 } })
  ],
  wrong: (value) => [
    json({ choices: value }),
    json({ choices: [value] }),
    choice(value),
    choice({ content: value }),
    choice({ tool_calls: value }),
    choice({ tool_calls: [value] }),
    choice({ reasoning_details: [value], reasoning_content: value, refusal: value }),
    json({ choices: [], usage: value })
  ],
  failure: (message) => sse(json({ error: { message, code: 500 } })),
  error: (message) => json({ error: { message, type: "server_error" } })
}

const start = (index: unknown, content_block: unknown): string =>
  json({ type: "content_block_start", index, content_block })
const delta = (index: unknown, value: unknown): string => json({ type: "content_block_delta", index, delta: value })
const stop = (index: unknown): string => json({ type: "content_block_stop", index })

const messages = {
  open: [json({ type: "message_start", message: { id: "msg_1", model: "claude", usage: { input_tokens: 3 } } })],
  text: (text: string, index: unknown = 0) => [
    start(index, { type: "text", text: "" }),
    delta(index, { type: "text_delta", text }),
    stop(index)
  ],
  call: ({ args, id, index, name = "charge" }: Called) =>
    [
      start(index, { type: "tool_use", id, name, input: {} }),
      delta(index, { type: "input_json_delta", partial_json: args }),
      [stop(index)]
    ] as const,
  close: (reason: "stop" | "calls", usage?: unknown) => [
    json({
      type: "message_delta",
      delta: { stop_reason: reason === "stop" ? "end_turn" : "tool_use" },
      usage: usage ?? { output_tokens: 2 }
    }),
    json({ type: "message_stop" })
  ],
  wrong: (value: unknown) => [
    json({ type: "message_delta", delta: value, usage: value }),
    start(90, value),
    delta(90, value),
    start(91, { type: "text", text: value, citation: value }),
    delta(91, { type: "text_delta", text: value }),
    json({ type: "something_new", value })
  ],
  error: (message: string) => json({ type: "error", error: { type: "api_error", message } })
}

const frameEvent = (event: string): Buffer => {
  const type = /^\{"type":"(\w+)"/.exec(event)?.[1] ?? "message"
  return Buffer.from(`event: ${type}\ndata: ${event}\n\n`)
}

const anthropic: Wire = {
  ...messages,
  name: "AnthropicChatModel",
  isText: true,
  contentType: "text/event-stream",
  model: (to) => AnthropicChatModel.layer({ model: "claude-opus-5-5", apiKey: Redacted.make(key), ...reached(to, "") }),
  frame: frameEvent,
  breath: frameEvent('{"type":"ping"}'),
  failure: (message) => frameEvent(messages.error(message))
}

const bedrock: Wire = {
  ...messages,
  name: "BedrockChatModel",
  isText: false,
  contentType: "application/vnd.amazon.eventstream",
  model: (to) =>
    BedrockChatModel.layer({
      model: "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
      bearerToken: Redacted.make(key),
      ...reached(to, "")
    }),
  frame: eventFrame,
  breath: eventFrame('{"type":"ping"}'),
  failure: (message) =>
    frame({ ":exception-type": "internalServerException", ":message-type": "exception" }, json({ message })),
  error: (message) => json({ message })
}

const of = (index: unknown, more: object): object => ({ contentBlockIndex: index, ...more })

const converse: Wire = {
  name: "BedrockConverseChatModel",
  isText: false,
  contentType: "application/vnd.amazon.eventstream",
  model: (to) =>
    BedrockConverseChatModel.layer({
      model: "us.amazon.nova-pro-v1:0",
      region: "us-east-1",
      bearerToken: Redacted.make(key),
      ...reached(to, "")
    }),
  frame: (event) => {
    const type = /^\{"((?:message|content|metadata|novelty)\w*)":/.exec(event)?.[1]
    const payload = type === undefined ? event : event.slice(type.length + 4, -1)
    return frame(
      { ":event-type": type ?? "messageStop", ":content-type": "application/json", ":message-type": "event" },
      payload
    )
  },
  breath: frame({ ":event-type": "ping", ":message-type": "event" }, "{}"),
  open: [json({ messageStart: { role: "assistant" } })],
  text: (text, index = 0) => [json({ contentBlockDelta: of(index, { delta: { text } }) })],
  call: ({ args, id, index, name = "charge" }) => [
    json({ contentBlockStart: of(index, { start: { toolUse: { toolUseId: id, name } } }) }),
    json({ contentBlockDelta: of(index, { delta: { toolUse: { input: args } } }) }),
    [json({ contentBlockStop: of(index, {}) })]
  ],
  close: (reason, usage) => [
    json({ messageStop: { stopReason: reason === "stop" ? "end_turn" : "tool_use" } }),
    json({
      metadata: { usage: usage ?? { inputTokens: 3, outputTokens: 2, totalTokens: 5 }, metrics: { latencyMs: 1 } }
    })
  ],
  wrong: (value) => [
    json({ contentBlockStart: of(90, { start: value }) }),
    json({ contentBlockStart: of(value, { start: { toolUse: value } }) }),
    json({ contentBlockDelta: of(90, { delta: value }) }),
    json({ contentBlockDelta: of(91, { delta: { text: value } }) }),
    json({ contentBlockDelta: of(92, { delta: { reasoningContent: value } }) }),
    json({ contentBlockDelta: of(93, { delta: { citation: value } }) }),
    json({ metadata: { usage: value } }),
    json({ novelty: { value } })
  ],
  failure: (message) =>
    frame({ ":exception-type": "internalServerException", ":message-type": "exception" }, json({ message })),
  error: (message) => json({ message })
}

const candidate = (part: unknown, more: object = {}): string =>
  json({ candidates: [{ content: { role: "model", parts: [part] }, ...more }] })

const gemini: Wire = {
  name: "GeminiChatModel",
  isText: true,
  contentType: "text/event-stream",
  model: (to) => GeminiChatModel.layer({ model: "gemini-3.5-flash", apiKey: Redacted.make(key), ...reached(to, "") }),
  frame: sse,
  breath: Buffer.from(": still here\n\n"),
  open: [json({ responseId: "r", candidates: [] })],
  text: (text) => [candidate({ text })],
  // Calls come whole, their arguments as JSON.
  ends: { "arguments nested 3000 deep": ["BadResponse"], "arguments nested 100000 deep": ["BadResponse"] },
  call: ({ args, id, name = "charge" }) => [
    `{"candidates":[{"content":{"parts":[{"functionCall":{"id":${json(id) ?? "null"},"name":${json(name)},"args":${args}}}]}}]}`,
    candidate({ text: "" }),
    []
  ],
  close: (_, usage) => [
    json({
      candidates: [{ finishReason: "STOP" }],
      usageMetadata: usage ?? { promptTokenCount: 3, candidatesTokenCount: 2 }
    })
  ],
  wrong: (value) => [
    json({ candidates: value }),
    json({ candidates: [value] }),
    candidate(value),
    candidate({ text: value }),
    candidate({ functionCall: value }),
    candidate({ inlineData: value }),
    json({ candidates: [], usageMetadata: value }),
    json({ promptFeedback: value })
  ],
  failure: (message) => sse(json({ error: { message, code: 500, status: "INTERNAL" } })),
  error: (message) => json({ error: { message, code: 500, status: "INTERNAL" } })
}

const line = (event: string): Buffer => Buffer.from(`${event}\n`)

const sayLine = (message: unknown, more: object = {}): string =>
  json({ model: "served", message, done: false, ...more })

/** The server's description of a model is no part of these tests. */
const chatOnly: typeof globalThis.fetch = (input, init) =>
  typeof input === "string" && input.endsWith("/api/show")
    ? Promise.resolve(new Response("", { status: 404 }))
    : fetch(input, init)

const ollama: Wire = {
  name: "OllamaChatModel",
  isText: false,
  contentType: "application/x-ndjson",
  model: (to) =>
    OllamaChatModel.layer({ model: "served", apiKey: Redacted.make(key), fetch: chatOnly, ...reached(to, "") }),
  frame: line,
  breath: Buffer.from("\n"),
  open: [sayLine({ role: "assistant", content: "" })],
  text: (content) => [sayLine({ role: "assistant", content })],
  call: ({ args, id, index, name = "charge" }) => [
    sayLine({ role: "assistant", content: "", tool_calls: [{ id, function: { index, name, arguments: args } }] }),
    sayLine({ role: "assistant", content: "" }),
    []
  ],
  close: (_, usage) => [
    json({
      model: "served",
      message: { role: "assistant", content: "" },
      done: true,
      done_reason: "stop",
      ...Object(usage ?? { prompt_eval_count: 3, eval_count: 2 })
    })
  ],
  wrong: (value) => [
    sayLine(value),
    sayLine({ content: value, thinking: value }),
    sayLine({ tool_calls: value }),
    sayLine({ tool_calls: [value] }),
    json({ message: {}, done: value === true ? 1 : value })
  ],
  failure: (message) => line(json({ error: message })),
  error: (message) => json({ error: message })
}

export const wires: ReadonlyArray<Wire> = [responses, chat, anthropic, bedrock, converse, gemini, ollama]
