/**
 * Messages: the parts of a conversation, as plain readonly values with a role each.
 *
 * Constructing a message validates nothing and costs nothing; messages from outside are decoded.
 *
 * ```ts
 * import { Message } from "effect-deepagents"
 *
 * const question = Message.human("What is in this picture?", { images: [{ url: "https://example.com/cat.png" }] })
 * const text = Message.text(question)
 * ```
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { version } from "../support/store/version.ts"
import * as Content from "./Content.ts"
import { fromUnknown, isObject, type Json, JsonObject } from "./Json.ts"
import type { MessageOptions } from "./ProviderOptions.ts"
import { decodeVersioned } from "./schema/encoding.ts"
import type { InvalidEncoding } from "./schema/encoding.ts"
import { MalformedToolCall, ToolCall } from "./ToolCall.ts"
import { Usage } from "./Usage.ts"

const common = {
  id: Schema.String,
  content: Schema.Array(Content.Block),
  source: Schema.optionalKey(Schema.String),
  providerOptions: Schema.optionalKey(JsonObject),
  providerData: Schema.optionalKey(JsonObject)
}

/** The reason that a model's turn ended. `interrupted` marks a partial answer that was kept. */
export const TurnStop = Schema.Literals([
  "stop",
  "toolCalls",
  "length",
  "contentFilter",
  "refusal",
  "pause",
  "interrupted"
])
export type TurnStop = typeof TurnStop.Type

/** An instruction inside the history. The agent's own prompt is not one: it travels in the request. */
export const SystemMessage = Schema.Struct({ role: Schema.Literal("system"), ...common })
export interface SystemMessage extends Schema.Schema.Type<typeof SystemMessage> {
  readonly content: ReadonlyArray<Content.Block>
}

/** A message of the user. `source` is set when something else said it in the user's place (a summary, a notice). */
export const HumanMessage = Schema.Struct({ role: Schema.Literal("human"), ...common })
export interface HumanMessage extends Schema.Schema.Type<typeof HumanMessage> {
  readonly content: ReadonlyArray<Content.Block>
}

/** One turn of the model. */
export const AiMessage = Schema.Struct({
  role: Schema.Literal("ai"),
  ...common,
  toolCalls: Schema.Array(ToolCall),
  malformedToolCalls: Schema.Array(MalformedToolCall),
  stopReason: TurnStop,
  usage: Schema.optionalKey(Usage),
  model: Schema.optionalKey(Schema.String)
})
export interface AiMessage extends Schema.Schema.Type<typeof AiMessage> {
  readonly content: ReadonlyArray<Content.Block>
  readonly toolCalls: ReadonlyArray<ToolCall>
  readonly malformedToolCalls: ReadonlyArray<MalformedToolCall>
  readonly usage?: Usage
}

/** The answer to one tool call. */
export const ToolMessage = Schema.Struct({
  role: Schema.Literal("tool"),
  ...common,
  toolCallId: Schema.String,
  toolName: Schema.String,
  isError: Schema.Boolean
})
export interface ToolMessage extends Schema.Schema.Type<typeof ToolMessage> {
  readonly content: ReadonlyArray<Content.Block>
}

/** A message of any role. */
export const Message: Schema.Codec<Message, JsonObject> = Schema.Union([
  SystemMessage,
  HumanMessage,
  AiMessage,
  ToolMessage
])
export type Message = SystemMessage | HumanMessage | AiMessage | ToolMessage

/** Makes an id that no other message has. */
export const makeId = (): string => globalThis.crypto.randomUUID()

/** The options of any message beside its content. */
export interface Common {
  /** The id of the message. Default: a new one. */
  readonly id?: string | undefined
  /** The part of a program that made the message, such as a summary. Default: the user or the model. */
  readonly source?: string | undefined
  /** Options of single providers, by the provider's name: `{ anthropic: { cacheControl: {} } }`. Default: none. */
  readonly providerOptions?: MessageOptions | undefined
  /** Data that the provider needs back unchanged. */
  readonly providerData?: JsonObject | undefined
}

const optionsOf = (options: MessageOptions | undefined) => {
  const json = options === undefined ? undefined : fromUnknown(options)
  return json !== undefined && isObject(json) ? { providerOptions: json } : {}
}

const rest = (options: Common | undefined) => ({
  ...(options?.source === undefined ? {} : { source: options.source }),
  ...optionsOf(options?.providerOptions),
  ...(options?.providerData === undefined ? {} : { providerData: options.providerData })
})

/** Makes a system message. */
export const system = (content: Content.Input, options?: Common): SystemMessage => ({
  role: "system",
  id: options?.id ?? makeId(),
  content: Content.fromInput(content),
  ...rest(options)
})

/** Makes a human message; `images` are put after the text. */
export const human = (
  content: Content.Input,
  options?: Common & {
    /** Images after the text. Default: none. */
    readonly images?: ReadonlyArray<Parameters<typeof Content.image>[0]> | undefined
  }
): HumanMessage => ({
  role: "human",
  id: options?.id ?? makeId(),
  content:
    options?.images === undefined
      ? Content.fromInput(content)
      : [...Content.fromInput(content), ...options.images.map(Content.image)],
  ...rest(options)
})

/** Makes an ai message. The stop reason defaults to `toolCalls` when there are calls, else `stop`. */
export const ai = (
  content: Content.Input,
  options?: Common & {
    /** The tool calls of the turn. Default: none. */
    readonly toolCalls?: ReadonlyArray<ToolCall> | undefined
    /** Calls whose arguments could not be read. Default: none. */
    readonly malformedToolCalls?: ReadonlyArray<MalformedToolCall> | undefined
    /** The reason that the turn ended. Default: `toolCalls` with calls, else `stop`. */
    readonly stopReason?: TurnStop | undefined
    /** The tokens and the cost of the turn. */
    readonly usage?: Usage | undefined
    /** The id of the model that answered. */
    readonly model?: string | undefined
  }
): AiMessage => {
  const toolCalls = options?.toolCalls ?? []
  const malformedToolCalls = options?.malformedToolCalls ?? []
  return {
    role: "ai",
    id: options?.id ?? makeId(),
    content: Content.fromInput(content),
    toolCalls,
    malformedToolCalls,
    stopReason: options?.stopReason ?? (toolCalls.length + malformedToolCalls.length > 0 ? "toolCalls" : "stop"),
    ...(options?.usage === undefined ? {} : { usage: options.usage }),
    ...(options?.model === undefined ? {} : { model: options.model }),
    ...rest(options)
  }
}

/** Makes a tool message, paired with its call by `toolCallId`. */
export const tool = (
  content: Content.Input,
  options: Common & {
    /** The id of the call that the message answers. */
    readonly toolCallId: string
    /** The name of the tool. */
    readonly toolName: string
    /** True for a failed call. Default: `false`. */
    readonly isError?: boolean | undefined
  }
): ToolMessage => ({
  role: "tool",
  id: options.id ?? makeId(),
  content: Content.fromInput(content),
  toolCallId: options.toolCallId,
  toolName: options.toolName,
  isError: options.isError ?? false,
  ...rest(options)
})

/** All text of a message. */
export const text = (message: Message): string => Content.toText(message.content)

/** All reasoning of a message, blocks joined by a blank line; `undefined` for a message without reasoning. */
export const reasoning = (message: Message): string | undefined => {
  const parts = message.content.filter((block) => block.type === "reasoning").map((block) => block.text)
  return parts.length === 0 ? undefined : parts.join("\n\n")
}

/** The images of a message, in order. */
export const images = (message: Message): ReadonlyArray<Content.ImageBlock> =>
  message.content.filter((block) => block.type === "image")

/**
 * True for an unfinished turn, which an interruption or a crash cut off. It holds the text until then and calls no
 * tools: unfinished calls are malformed calls.
 */
export const isPartial = (message: Message | undefined): message is AiMessage =>
  message?.role === "ai" && message.stopReason === "interrupted" && message.toolCalls.length === 0

/** The ids of everything in a message that must be answered by a tool message, in call order. */
export const callIds = (message: AiMessage): ReadonlyArray<string> => [
  ...message.toolCalls.map((call) => call.id),
  ...message.malformedToolCalls.map((call) => call.id)
]

const encodeMessage = Schema.encodeSync(Message)
const decodeMessage = decodeVersioned("message", Message)

/** Encodes a message as versioned JSON: `{ "v": 1, "role": …, … }`. It is what sessions, logs and wires carry. */
export const encode = (message: Message): Json => ({ v: version, ...encodeMessage(message) })

/** Decodes a message that came from outside. An unknown version, role or block type is named in the error. */
export const decode = (input: unknown): Effect.Effect<Message, InvalidEncoding> =>
  Effect.fromResult(decodeMessage(input))
