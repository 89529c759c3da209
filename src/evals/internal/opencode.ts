/** Sessions of opencode, as `opencode export` writes them: one JSON document. */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Content from "../../core/Content.ts"
import { isObject, type Json, type JsonObject, stringify } from "../../core/Json.ts"
import type { ToolCall } from "../../core/ToolCall.ts"
import {
  argumentsIn,
  type ImportedThread,
  listIn,
  objectIn,
  optionalText,
  type Part,
  textIn,
  toMessages,
  withoutMark
} from "./lines.ts"

const parse = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Json))

/** A picture whose URL is its data. Others stay in `kept`. */
const pictureIn = ({ mime, url }: JsonObject): ReadonlyArray<Content.Block> | undefined => {
  const base64 = /^data:[^,]*;base64,(.+)$/.exec(textIn(url))?.[1]
  return base64 === undefined || !textIn(mime).startsWith("image/")
    ? undefined
    : [Content.image({ base64, mimeType: textIn(mime) })]
}

const blocksIn = (part: JsonObject): ReadonlyArray<Content.Block> | undefined => {
  const text = textIn(part["text"])
  switch (textIn(part["type"])) {
    case "text":
      return text === "" ? [] : [Content.text(text)]
    case "reasoning":
      return text === "" ? [] : [Content.reasoning(text)]
    case "file":
      return pictureIn(part)
    default:
      return undefined
  }
}

/** A call, and its result if it has ended. */
const callIn = (part: JsonObject): { readonly call: ToolCall; readonly result: Part | undefined } => {
  const { attachments, error, input, output, status } = objectIn(part["state"])
  const id = textIn(part["callID"])
  const pictures = listIn(attachments).flatMap((one) => pictureIn(one) ?? [])
  const texts = (text: Json | undefined) => (textIn(text) === "" ? [] : [Content.text(textIn(text))])
  const result: Part | undefined =
    status === "completed"
      ? { _tag: "Result", callId: id, content: [...texts(output), ...pictures], isError: false }
      : status === "error"
        ? { _tag: "Result", callId: id, content: texts(error), isError: true }
        : undefined
  return { call: { id, name: textIn(part["tool"]), arguments: argumentsIn(input) }, result }
}

/** The parts of an answer, step by step: the results of a step follow all of its calls. */
const answerParts = (info: JsonObject, parts: ReadonlyArray<JsonObject>, kept: Array<string>): ReadonlyArray<Part> => {
  const answer: Array<Part> = []
  let content: Array<Content.Block> = []
  let calls: Array<ToolCall> = []
  let results: Array<Part> = []
  const id = optionalText(info["id"])
  const close = () => {
    if (content.length > 0 || calls.length > 0) {
      const isFirst = !answer.some(({ _tag }) => _tag === "Ai")
      const turn = `${id ?? ""}/${answer.length}`
      answer.push({
        _tag: "Ai",
        content,
        calls,
        turn,
        model: optionalText(info["modelID"]),
        id: isFirst ? id : undefined
      })
    }
    answer.push(...results)
    content = []
    calls = []
    results = []
  }
  for (const part of parts) {
    const type = textIn(part["type"])
    if (type === "step-start" || type === "step-finish") close()
    else if (type === "tool") {
      const { call, result } = callIn(part)
      calls.push(call)
      if (result !== undefined) results.push(result)
    } else {
      const blocks = blocksIn(part)
      if (blocks === undefined) kept.push(stringify(part))
      else {
        // Words behind a call belong to the next message.
        if (calls.length > 0) close()
        content.push(...blocks)
      }
    }
  }
  close()
  return answer
}

/** Reads a session of opencode. Parts of other kinds, and messages without a known role, are kept as JSON. */
export const readOpenCode = (text: string): ImportedThread => {
  const parsed = parse(withoutMark(text))
  if (Result.isFailure(parsed) || !isObject(parsed.success)) return { messages: [], kept: text === "" ? [] : [text] }
  const { messages: list, ...rest } = parsed.success
  const unknownParts = Object.keys(rest).length === 0 ? [] : [stringify(rest)]
  const all = listIn(list).flatMap((message): ReadonlyArray<Part> => {
    const info = objectIn(message["info"])
    const parts = listIn(message["parts"])
    if (info["role"] === "assistant") return answerParts(info, parts, unknownParts)
    if (info["role"] !== "user") {
      unknownParts.push(stringify(message))
      return []
    }
    const content = parts.flatMap((part) => {
      const blocks = blocksIn(part)
      if (blocks === undefined) unknownParts.push(stringify(part))
      return blocks ?? []
    })
    return content.length === 0 ? [] : [{ _tag: "Human", content, id: optionalText(info["id"]) }]
  })
  return { messages: toMessages(all), kept: unknownParts }
}
