/** Messages as text: for a summary, and for a file. */
import type * as Content from "../../../core/Content.ts"
import type { Json } from "../../../core/Json.ts"
import type * as Message from "../../../core/Message.ts"
import { describeArguments } from "../../../core/ToolCall.ts"
import { sizeOf } from "./tokens.ts"
import { shorten } from "./trim.ts"

/** The deepest nesting of rendered arguments: deeper ones could overflow the stack. */
const deepest = 64

const depthOf = (value: Json, depth = 0): number =>
  typeof value !== "object" || value === null || depth > deepest
    ? depth
    : Object.values(value).reduce<number>((most, item) => Math.max(most, depthOf(item, depth + 1)), depth)

const mediaOf = (block: Content.ImageBlock | Content.FileBlock): string => {
  const { source, type } = block
  if (source.kind === "url" && !source.url.startsWith("data:")) return `[${type}: ${source.url.slice(0, 500)}]`
  if (source.kind === "fileId") return `[${type}: ${source.fileId.slice(0, 500)}]`
  return `[${type}]`
}

const saidIn = (message: Message.Message): string =>
  message.content
    .flatMap((block) => (block.type === "text" ? [block.text] : block.type === "reasoning" ? [] : [mediaOf(block)]))
    .join("\n")

/** Characters of a message in a summary's input: people's and the model's words matter more. */
const lengths = { said: 8_000, result: 2_000, call: 600 }

const closing = /<\/(?=\s*(?:user|assistant|result|instruction|summary|conversation)\b)/gi

/** Wraps a text in tags that it can't close, so that a tool result can't pass for a user's message. */
export const tagged = (tag: string, text: string, about = ""): string => {
  const name = about.slice(0, 80).replaceAll(/[^\w.:/ -]/g, "_")
  return `<${tag}${name === "" ? "" : ` ${name}`}>\n${text.replaceAll(closing, "<\\/")}\n</${tag}>`
}

const callsOf = (message: Message.AiMessage, limit: number): ReadonlyArray<string> => [
  ...message.toolCalls.map(({ arguments: args, name }) => {
    const text = depthOf(args) > deepest ? `[${sizeOf(args)} characters]` : describeArguments(args)
    return `Called ${name} with ${shorten(text, limit)}`
  }),
  ...message.malformedToolCalls.map(({ name = "a tool", raw }) => `Called ${name} with ${shorten(raw, limit)}`)
]

/** Formats one message for a summary; `scale` shortens it further. */
export const pieceOf = (message: Message.Message, scale: number): string => {
  const lengthOf = (length: number) => Math.max(80, Math.floor(length * scale))
  const text = saidIn(message)
  switch (message.role) {
    case "system":
      return tagged("instruction", shorten(text, lengthOf(lengths.said)))
    case "human":
      return tagged("user", shorten(text, lengthOf(lengths.said)), message.source)
    case "tool":
      return tagged(
        "result",
        shorten(text, lengthOf(lengths.result)),
        `of ${message.toolName}${message.isError ? " (an error)" : ""}`
      )
    case "ai": {
      const calls = callsOf(message, lengthOf(lengths.call))
      return tagged("assistant", [...(text === "" ? [] : [shorten(text, lengthOf(lengths.said))]), ...calls].join("\n"))
    }
  }
}

const headings = { system: "Instruction", human: "User", ai: "Assistant", tool: "Result" } as const

/** A code block that no text in it can end. */
const fenced = (text: string, language: string): string => {
  const longest = (text.match(/`{3,}/g) ?? []).reduce((most, run) => Math.max(most, run.length), 2)
  const fence = "`".repeat(longest + 1)
  return `${fence}${language}\n${text}\n${fence}`
}

const oneLine = (text: string): string => text.slice(0, 200).replaceAll(/\s+/g, " ")

/** Formats one message in full, as Markdown; images and files are only named. */
export const sectionOf = (message: Message.Message, index: number): string => {
  const origin = message.source === undefined ? "" : ` (${oneLine(message.source)})`
  const title =
    message.role === "tool"
      ? `${headings.tool} of ${oneLine(message.toolName)}, call ${oneLine(message.toolCallId)}${message.isError ? ", an error" : ""}`
      : headings[message.role]
  const text = saidIn(message)
  const calls =
    message.role === "ai"
      ? [
          ...message.toolCalls.map(
            ({ arguments: args, id, name }) =>
              `Called ${oneLine(name)}, call ${oneLine(id)}:\n\n${depthOf(args) > deepest ? "(arguments nested too deeply to show)" : fenced(JSON.stringify(args, null, 2), "json")}`
          ),
          ...message.malformedToolCalls.map(
            ({ id, name = "a tool", raw }) => `Called ${oneLine(name)}, call ${oneLine(id)}:\n\n${fenced(raw, "text")}`
          )
        ]
      : []
  const body = text === "" ? [] : [message.role === "tool" ? fenced(text, "text") : text]
  return [`## ${index + 1}. ${title}${origin}`, ...body, ...calls].join("\n\n")
}
