import * as Effect from "effect/Effect"
/** Reads stored messages of the AI SDK as messages of a thread. */
import * as Schema from "effect/Schema"
import * as Content from "../../../core/Content.ts"
import { isObject, type Json, stringify } from "../../../core/Json.ts"
import * as Message from "../../../core/Message.ts"
import type { RunsError } from "../service.ts"
import { decoder, readFile, refuse } from "./input.ts"

// A message in memory may have a field that is `undefined`.
const optionalText = Schema.optional(Schema.String)

/** The fields of parts that a question is read from. Parts of other types have none of them. */
export const UiPart = Schema.Struct({
  type: Schema.String,
  text: optionalText,
  url: optionalText,
  mediaType: optionalText,
  filename: optionalText,
  state: optionalText,
  approval: Schema.optional(
    Schema.Struct({
      id: Schema.String,
      approved: Schema.optional(Schema.Boolean),
      reason: optionalText
    })
  )
})

/** The fields of parts of a whole conversation. */
const StoredPart = Schema.Struct({
  ...UiPart.fields,
  toolCallId: optionalText,
  toolName: optionalText,
  input: Schema.optional(Schema.Json),
  output: Schema.optional(Schema.Json),
  errorText: optionalText
})
type StoredPart = typeof StoredPart.Type

const UiMessage = Schema.Struct({ role: Schema.String, parts: Schema.Array(StoredPart) })

/** Reads the text and the files of a message of the user. */
export const readContent = Effect.fnUntraced(function* (
  parts: ReadonlyArray<typeof UiPart.Type>
): Effect.fn.Return<ReadonlyArray<Content.Block>, RunsError> {
  const content: Array<Content.Block> = []
  for (const { filename, mediaType, text, type, url } of parts) {
    if (type === "text" && text !== undefined && text !== "") content.push(Content.text(text))
    if (type === "file" && url !== undefined) content.push(yield* readFile(url, mediaType, filename))
  }
  return content
})

const textOf = (output: Json | undefined): string =>
  output === undefined ? "" : typeof output === "string" ? output : stringify(output)

/** The result of a call. A call that did not end has none: the next run tells its model that the outcome is unknown. */
const resultOf = ({
  approval,
  errorText,
  output,
  state
}: StoredPart): { text: string; isError: boolean } | undefined => {
  if (state === "output-available") return { text: textOf(output), isError: false }
  if (state === "output-error") return { text: errorText ?? "The call failed", isError: true }
  if (state === "output-denied") return { text: approval?.reason ?? "A person refused the call", isError: true }
  return undefined
}

/** The messages of one step of an assistant: a turn, and the results of its calls. */
const stepOf = (parts: ReadonlyArray<StoredPart>): ReadonlyArray<Message.Message> => {
  const content: Array<Content.Block> = []
  const calls: Array<Message.AiMessage["toolCalls"][number]> = []
  const results: Array<Message.ToolMessage> = []
  for (const part of parts) {
    const { input, text = "", toolCallId, toolName, type } = part
    if (type === "text" && text !== "") content.push(Content.text(text))
    if (type === "reasoning" && text !== "") content.push(Content.reasoning(text))
    const name = type === "dynamic-tool" ? toolName : /^tool-(.+)$/.exec(type)?.[1]
    if (name === undefined || toolCallId === undefined || part.state === "input-streaming") continue
    calls.push({ id: toolCallId, name, arguments: isObject(input) ? input : {} })
    const result = resultOf(part)
    if (result === undefined) continue
    results.push(Message.tool(result.text, { toolCallId, toolName: name, isError: result.isError }))
  }
  return content.length === 0 && calls.length === 0 ? [] : [Message.ai(content, { toolCalls: calls }), ...results]
}

const stepsOf = (parts: ReadonlyArray<StoredPart>): ReadonlyArray<ReadonlyArray<StoredPart>> => {
  const steps: Array<Array<StoredPart>> = [[]]
  for (const part of parts) {
    if (part.type === "step-start") steps.push([])
    else steps.at(-1)?.push(part)
  }
  return steps
}

const readMessages = decoder(Schema.Array(UiMessage))

/** Reads stored messages of the AI SDK. */
export const decodeMessages = Effect.fnUntraced(function* (
  input: unknown
): Effect.fn.Return<ReadonlyArray<Message.Message>, RunsError> {
  const messages: Array<Message.Message> = []
  for (const { parts, role } of yield* readMessages(input)) {
    if (role === "assistant") messages.push(...stepsOf(parts).flatMap(stepOf))
    else if (role === "user" || role === "system") {
      const content = yield* readContent(parts)
      if (content.length > 0) messages.push(role === "user" ? Message.human(content) : Message.system(content))
    } else return yield* refuse(`messages: there is no role ${stringify(role.slice(0, 50))}`)
  }
  return messages
})
