/** Reads session files of other programs, a JSON object a line, into messages. */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Content from "../../core/Content.ts"
import { isObject, type Json, type JsonObject } from "../../core/Json.ts"
import * as Message from "../../core/Message.ts"
import type { ToolCall } from "../../core/ToolCall.ts"

/** The conversation of a file. `kept` has all other lines, unchanged. */
export interface ImportedThread {
  readonly messages: ReadonlyArray<Message.Message>
  readonly kept: ReadonlyArray<string>
}

/** A part of a conversation: the words of the model or of a person, a call, or its result. */
export type Part =
  | { readonly _tag: "Human"; readonly content: ReadonlyArray<Content.Block>; readonly id?: string | undefined }
  | { readonly _tag: "System"; readonly content: ReadonlyArray<Content.Block> }
  | {
      readonly _tag: "Ai"
      readonly content: ReadonlyArray<Content.Block>
      readonly calls: ReadonlyArray<ToolCall>
      readonly id?: string | undefined
      readonly model?: string | undefined
      /** Parts with the same turn are one message. Without a turn, calls belong to the message before them. */
      readonly turn?: string | undefined
    }
  | {
      readonly _tag: "Result"
      readonly callId: string
      readonly content: ReadonlyArray<Content.Block>
      readonly isError: boolean
    }

export const objectIn = (value: Json | undefined): JsonObject => (isObject(value) ? value : {})

export const textIn = (value: Json | undefined): string => (typeof value === "string" ? value : "")

export const listIn = (value: Json | undefined): ReadonlyArray<JsonObject> =>
  Array.isArray(value) ? value.filter(isObject) : []

/** Reads an optional text. */
export const optionalText = (value: Json | undefined): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined

/** A text without the byte order mark that some programs begin files with. */
export const withoutMark = (text: string): string => text.replace(/^\ufeff/, "")

const parse = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Json))

/** Reads arguments that are JSON in a text. Others stay as the text. */
export const argumentsIn = (value: Json | undefined): JsonObject => {
  if (isObject(value)) return value
  const parsed = parse(textIn(value))
  if (Result.isSuccess(parsed) && isObject(parsed.success)) return parsed.success
  return textIn(value) === "" ? {} : { input: textIn(value) }
}

type OpenMessage = Extract<Part, { readonly _tag: "Ai" }>

const joins = (open: OpenMessage, next: OpenMessage): boolean =>
  next.turn === undefined ? next.content.length === 0 : next.turn === open.turn

const messageOf = ({ calls, content, id, model }: OpenMessage): Message.Message =>
  Message.ai(content, { id, model, toolCalls: calls })

/** Turns parts into messages: the parts of a turn into one, and each result behind its call. */
export const toMessages = (parts: ReadonlyArray<Part>): ReadonlyArray<Message.Message> => {
  const messages: Array<Message.Message> = []
  const names = new Map<string, string>()
  let open: OpenMessage | undefined
  const close = () => {
    if (open !== undefined) messages.push(messageOf(open))
    open = undefined
  }
  for (const part of parts) {
    if (part._tag === "Ai") {
      for (const { id, name } of part.calls) names.set(id, name)
      if (open !== undefined && joins(open, part)) {
        open = { ...open, content: [...open.content, ...part.content], calls: [...open.calls, ...part.calls] }
      } else {
        close()
        open = part
      }
      continue
    }
    close()
    if (part._tag === "Human") messages.push(Message.human(part.content, { id: part.id }))
    else if (part._tag === "System") messages.push(Message.system(part.content))
    else {
      const { callId, content, isError } = part
      messages.push(Message.tool(content, { toolCallId: callId, toolName: names.get(callId) ?? "", isError }))
    }
  }
  close()
  return messages
}

/** Reads the parts of each line. A line without any is kept as it stands. */
export const readLines = (
  text: string,
  partsOf: (line: JsonObject) => ReadonlyArray<Part> | undefined
): { readonly parts: ReadonlyArray<Part>; readonly kept: ReadonlyArray<string> } => {
  const parts: Array<Part> = []
  const oddLines: Array<string> = []
  for (const line of withoutMark(text).split(/\r?\n/)) {
    if (line.trim() === "") continue
    const parsed = parse(line)
    const lineParts = Result.isSuccess(parsed) && isObject(parsed.success) ? partsOf(parsed.success) : undefined
    if (lineParts === undefined) oddLines.push(line)
    else parts.push(...lineParts)
  }
  return { parts, kept: oddLines }
}
