/** The session files of Claude Code, Codex and pi. */
import * as Content from "../../core/Content.ts"
import type { Json, JsonObject } from "../../core/Json.ts"
import {
  argumentsIn,
  type ImportedThread,
  listIn,
  objectIn,
  optionalText,
  type Part,
  readLines,
  textIn,
  toMessages
} from "./lines.ts"

const imageOf = (base64: Json | undefined, mimeType: Json | undefined): ReadonlyArray<Content.Block> =>
  textIn(base64) === "" || textIn(mimeType) === ""
    ? []
    : [Content.image({ base64: textIn(base64), mimeType: textIn(mimeType) })]

/** The texts and pictures of content: a text, or a list of blocks. */
const contentIn = (content: Json | undefined): ReadonlyArray<Content.Block> => {
  if (typeof content === "string") return content === "" ? [] : [Content.text(content)]
  return listIn(content).flatMap((block): ReadonlyArray<Content.Block> => {
    const source = objectIn(block["source"])
    switch (textIn(block["type"])) {
      case "thinking":
        return textIn(block["thinking"]) === "" ? [] : [Content.reasoning(textIn(block["thinking"]))]
      case "image":
        return imageOf(block["data"] ?? source["data"], block["mimeType"] ?? source["media_type"])
      default:
        return typeof block["text"] === "string" && block["text"] !== "" ? [Content.text(block["text"])] : []
    }
  })
}

const claudeParts = (line: JsonObject): ReadonlyArray<Part> | undefined => {
  const { isMeta, isSidechain, type } = line
  if ((type !== "user" && type !== "assistant") || isSidechain === true || isMeta === true) return undefined
  const { content, id, model } = objectIn(line["message"])
  const blocks = listIn(content)
  if (type === "assistant") {
    const calls = blocks
      .filter((block) => block["type"] === "tool_use")
      .map((block) => ({
        id: textIn(block["id"]),
        name: textIn(block["name"]),
        arguments: argumentsIn(block["input"])
      }))
    return [
      {
        _tag: "Ai",
        content: contentIn(content),
        calls,
        id: optionalText(line["uuid"]),
        model: optionalText(model),
        turn: optionalText(id)
      }
    ]
  }
  const results = blocks
    .filter((block) => block["type"] === "tool_result")
    .map((block): Part => ({
      _tag: "Result",
      callId: textIn(block["tool_use_id"]),
      content: contentIn(block["content"]),
      isError: block["is_error"] === true
    }))
  const ownContent = contentIn(
    typeof content === "string" ? content : blocks.filter((block) => block["type"] !== "tool_result")
  )
  return ownContent.length === 0
    ? results
    : [...results, { _tag: "Human", content: ownContent, id: optionalText(line["uuid"]) }]
}

/** Reads a session of Claude Code. */
export const readClaudeCode = (text: string): ImportedThread => {
  const { kept, parts } = readLines(text, claudeParts)
  return { messages: toMessages(parts), kept }
}

const codexCall = (id: Json | undefined, name: Json | undefined, args: Json | undefined): Part => ({
  _tag: "Ai",
  content: [],
  calls: [{ id: textIn(id), name: textIn(name), arguments: argumentsIn(args) }]
})

const codexMessage = ({ content, role }: JsonObject): Part => {
  const blocks = contentIn(content)
  if (role === "assistant") return { _tag: "Ai", content: blocks, calls: [], turn: undefined }
  return role === "user" ? { _tag: "Human", content: blocks } : { _tag: "System", content: blocks }
}

const codexParts = (line: JsonObject): ReadonlyArray<Part> | undefined => {
  if (line["type"] !== "response_item") return undefined
  const payload = objectIn(line["payload"])
  const { call_id: id, name, output } = payload
  switch (textIn(payload["type"])) {
    case "message":
      return [codexMessage(payload)]
    case "function_call":
      return [codexCall(id, name, payload["arguments"])]
    case "custom_tool_call":
      return [codexCall(id, name, payload["input"])]
    case "function_call_output":
    case "custom_tool_call_output":
      return [{ _tag: "Result", callId: textIn(id), content: contentIn(output), isError: false }]
    default:
      return undefined
  }
}

/** Reads a rollout of Codex, which has no mark of failed calls. */
export const readCodex = (text: string): ImportedThread => {
  const { kept, parts } = readLines(text, codexParts)
  return { messages: toMessages(parts), kept }
}

const piPart = (message: JsonObject, id: string | undefined): Part | undefined => {
  const content = contentIn(message["content"])
  switch (textIn(message["role"])) {
    case "user":
      return { _tag: "Human", content, id }
    case "assistant": {
      const calls = listIn(message["content"])
        .filter((block) => block["type"] === "toolCall")
        .map((block) => ({
          id: textIn(block["id"]),
          name: textIn(block["name"]),
          arguments: argumentsIn(block["arguments"])
        }))
      return { _tag: "Ai", content, calls, id, model: optionalText(message["model"]), turn: id }
    }
    case "toolResult":
      return { _tag: "Result", callId: textIn(message["toolCallId"]), content, isError: message["isError"] === true }
    default:
      return undefined
  }
}

/** Reads a session of pi: the branch of its last entry. Entries of other branches are kept. */
export const readPi = (text: string): ImportedThread => {
  const entries = new Map<string, string | undefined>()
  let last: string | undefined
  readLines(text, (line) => {
    const id = optionalText(line["id"])
    if (line["type"] !== "session" && id !== undefined) {
      entries.set(id, optionalText(line["parentId"]))
      last = id
    }
    return undefined
  })
  const branch = new Set<string>()
  for (let id = last; id !== undefined && !branch.has(id); id = entries.get(id)) branch.add(id)
  const { kept, parts } = readLines(text, (line) => {
    const id = optionalText(line["id"])
    // The first version has no ids: its lines follow each other.
    if (line["type"] !== "message" || (id !== undefined && !branch.has(id))) return undefined
    const part = piPart(objectIn(line["message"]), id)
    return part === undefined ? undefined : [part]
  })
  return { messages: toMessages(parts), kept }
}
