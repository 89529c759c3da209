/** Turns a stored conversation into parts. */
import type { Json } from "../../core/Json.ts"
import * as Message from "../../core/Message.ts"
import { clean, cleanLine } from "../../support/text/clean.ts"
import * as Blocks from "./blocks.ts"
import { gist, summarise } from "./gist.ts"
import type { Part } from "./model.ts"

export const partOf = (block: Blocks.Block): Part => {
  if (block.kind === "text") return { kind: "text", markdown: clean(block.text) }
  const { isFirst, language, more, text } = block
  return { kind: "code", language: cleanLine(language), text: clean(text), isFirst, more }
}

/** Tells whether a block is a file behind the words of a person, as the program attaches it. */
const isAttached = (block: Message.HumanMessage["content"][number], index: number): boolean =>
  block.type === "text" ? index > 0 && block.text.startsWith("<file name=") : true

export const userPart = (message: Message.HumanMessage): Part => ({
  kind: "user",
  text: clean(
    Message.text({ ...message, content: message.content.filter((block, index) => !isAttached(block, index)) })
  ),
  attachments: message.content.filter(isAttached).length
})

const ofText = (text: string): ReadonlyArray<Part> => {
  const [rest, blocks] = Blocks.feed(Blocks.empty, text)
  return [...blocks, ...Blocks.end(rest)].map(partOf)
}

/** The end of a stored command. Its details are not in the conversation, its last line is. */
const endOfCommand = /\n\[Command (?:succeeded|failed) with exit code (-?\d{1,9})[^\n]*\]$/

/** Gives the details of a stored result: how a command ended. */
const detailsOf = (toolName: string, text: string): Json | undefined => {
  const code = toolName === "execute" ? endOfCommand.exec(text)?.[1] : undefined
  return code === undefined ? undefined : { kind: "command", exitCode: Number(code) }
}

export const partsOf = (messages: Iterable<Message.Message>): ReadonlyArray<Part> => {
  const parts: Array<Part> = []
  const calls = new Map<string, { readonly name: string; readonly gist: string }>()
  for (const message of messages) {
    if (message.role === "human" && message.source === undefined) parts.push(userPart(message))
    if (message.role === "ai") {
      for (const part of ofText(Message.text(message))) parts.push(part)
      for (const call of message.toolCalls) {
        calls.set(call.id, { name: cleanLine(call.name), gist: gist(call.arguments) })
      }
      if (Message.isPartial(message)) {
        parts.push({ kind: "note", level: "warning", text: "the answer was cut off here" })
      }
    }
    if (message.role === "tool") {
      const text = Message.text(message)
      parts.push({
        kind: "tool",
        name: cleanLine(message.toolName),
        gist: calls.get(message.toolCallId)?.gist ?? "",
        isError: message.isError,
        ...summarise(text, detailsOf(message.toolName, text)),
        millis: 0
      })
      calls.delete(message.toolCallId)
    }
  }
  // A call without a result was cut off, or waits for a decision.
  for (const { gist, name } of calls.values()) parts.push({ kind: "note", level: "info", text: `→ ${name} ${gist}` })
  return parts
}
