/** Replaces texts that look like keys before a cassette is written. */
import type { ModelRequest, TurnPart } from "../../../core/ChatModel.ts"
import type * as Content from "../../../core/Content.ts"
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import type { AiMessage, Message } from "../../../core/Message.ts"
import { maskKeys } from "../../../support/text/keys.ts"

/** Redaction must be idempotent, since the next request repeats a replayed turn. */
export type Redact = (text: string) => string

const mark = "[redacted]"

/** Removes texts that look like keys, after the user's function. */
export const withBuiltIn =
  (own: Redact | undefined): Redact =>
  (text) =>
    maskKeys(own === undefined ? text : own(text), mark)

const secretKeys: ReadonlySet<string> = new Set([
  "apikey",
  "xapikey",
  "authorization",
  "password",
  "passwd",
  "secret",
  "clientsecret",
  "secretkey",
  "secretaccesskey",
  "privatekey",
  "accesstoken",
  "refreshtoken",
  "authtoken"
])

const json = (value: Json, redact: Redact): Json => {
  if (typeof value === "string") return redact(value)
  if (Array.isArray(value)) return value.map((item) => json(item, redact))
  return isObject(value) ? jsonObject(value, redact) : value
}

/** Redacts all strings and keys of an object, and all texts under the key of a secret. */
const jsonObject = (value: JsonObject, redact: Redact): JsonObject =>
  Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      redact(key),
      typeof item === "string" && item !== "" && secretKeys.has(key.toLowerCase().replaceAll(/[-_]/g, ""))
        ? mark
        : json(item, redact)
    ])
  )

const providerData = (value: { readonly providerData?: JsonObject }, redact: Redact) =>
  value.providerData === undefined ? {} : { providerData: jsonObject(value.providerData, redact) }

const source = (value: Content.Source, redact: Redact): Content.Source =>
  value.kind === "url" ? { ...value, url: redact(value.url) } : value

const block = (value: Content.Block, redact: Redact): Content.Block => {
  switch (value.type) {
    case "text":
    case "reasoning":
      return { ...value, text: redact(value.text), ...providerData(value, redact) }
    case "image":
      return { ...value, source: source(value.source, redact), ...providerData(value, redact) }
    case "file":
      return {
        ...value,
        source: source(value.source, redact),
        ...(value.name === undefined ? {} : { name: redact(value.name) }),
        ...providerData(value, redact)
      }
  }
}

const common = <M extends Message>(value: M, redact: Redact): M => ({
  ...value,
  content: value.content.map((one) => block(one, redact)),
  ...providerData(value, redact)
})

const aiMessage = (value: AiMessage, redact: Redact): AiMessage => ({
  ...common(value, redact),
  toolCalls: value.toolCalls.map((call) => ({
    ...call,
    arguments: jsonObject(call.arguments, redact),
    ...providerData(call, redact)
  })),
  malformedToolCalls: value.malformedToolCalls.map((call) => ({
    ...call,
    raw: redact(call.raw),
    problem: redact(call.problem)
  }))
})

/** Redacts a message. */
const message = (value: Message, redact: Redact): Message =>
  value.role === "ai" ? aiMessage(value, redact) : common(value, redact)

/** Redacts a request. */
export const request = (value: ModelRequest, redact: Redact): ModelRequest => ({
  ...value,
  systemPrompt: redact(value.systemPrompt),
  messages: value.messages.map((one) => message(one, redact)),
  tools: value.tools.map((tool) => ({
    ...tool,
    description: redact(tool.description),
    parameters: jsonObject(tool.parameters, redact)
  })),
  parameters: jsonObject(value.parameters, redact),
  ...(value.outputSchema === undefined ? {} : { outputSchema: jsonObject(value.outputSchema, redact) })
})

const channelOf = (part: TurnPart): string | undefined =>
  part._tag === "TextDelta" || part._tag === "ReasoningDelta"
    ? part._tag
    : part._tag === "ToolCallDelta"
      ? `ToolCallDelta ${part.id}`
      : undefined

const piece = (part: TurnPart): string =>
  part._tag === "TextDelta" || part._tag === "ReasoningDelta"
    ? part.text
    : part._tag === "ToolCallDelta"
      ? part.delta
      : ""

const withPiece = (part: TurnPart, text: string): TurnPart =>
  part._tag === "TextDelta" || part._tag === "ReasoningDelta"
    ? { ...part, text }
    : part._tag === "ToolCallDelta"
      ? { ...part, delta: text }
      : part

/** Redacts a turn. A secret may span deltas, so the first delta gets a changed text as a whole. */
export const turn = (parts: ReadonlyArray<TurnPart>, redact: Redact): ReadonlyArray<TurnPart> => {
  const whole = new Map<string, string>()
  for (const part of parts) {
    const channel = channelOf(part)
    if (channel !== undefined) whole.set(channel, (whole.get(channel) ?? "") + piece(part))
  }
  const changed = new Map<string, string>()
  for (const [channel, text] of whole) {
    const clean = redact(text)
    if (clean !== text) changed.set(channel, clean)
  }
  const replaced = new Set<string>()
  return parts.flatMap((part): ReadonlyArray<TurnPart> => {
    if (part._tag === "TurnDone") return [{ ...part, message: aiMessage(part.message, redact) }]
    if (part._tag === "TurnRestarted") return [{ ...part, reason: redact(part.reason) }]
    if (part._tag === "Warning") return [{ ...part, message: redact(part.message) }]
    const channel = channelOf(part)
    const clean = channel === undefined ? undefined : changed.get(channel)
    if (channel === undefined || clean === undefined) return [part]
    if (replaced.has(channel)) return []
    replaced.add(channel)
    return [withPiece(part, clean)]
  })
}
