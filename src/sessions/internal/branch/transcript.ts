/** Writes messages as text for a model that summarises them. */
import type * as Message from "../../../core/Message.ts"
import { describeArguments } from "../../../core/ToolCall.ts"
import { cutMiddle } from "../../../support/text/text.ts"

/** The beginning and the end of a text that is longer than `limit` characters. */
export const shorten = (text: string, limit: number): string =>
  cutMiddle(text, limit, (left) => `\n[… ${left} characters left out …]\n`).toWellFormed()

/** The number of characters that are written of a message, at most; of one call of a tool. */
const lengths = { said: 8_000, result: 2_000, call: 600 }
const mostCalls = 20

const callsOf = (message: Message.AiMessage, limit: number): ReadonlyArray<string> => {
  // A store decoded these with a schema, which takes more of the stack than to describe them does.
  const calls = message.toolCalls.map(({ arguments: args, name }) => `${name}: ${describeArguments(args)}`)
  const malformed = message.malformedToolCalls.map(({ name = "a tool", raw }) => `${name}: ${raw}`)
  const all = [...calls, ...malformed]
  const lines = all.slice(0, mostCalls).map((call) => shorten(call, limit))
  return all.length > mostCalls ? [...lines, `… and ${all.length - mostCalls} more`] : lines
}

const saidIn = (message: Message.Message): string =>
  message.content
    .flatMap((block) =>
      block.type === "text" ? [block.text] : block.type === "reasoning" ? [] : [`[${block.type} left out]`]
    )
    .join("\n")

/** Writes a message as one line of JSON, so that its text can't imitate another line. */
const lineOf = (message: Message.Message, room: number): string => {
  const text = saidIn(message)
  const lengthOf = (length: number) => Math.min(length, room)
  switch (message.role) {
    case "human": {
      const by = message.source === undefined ? { from: "user" } : { from: "user", source: message.source.slice(0, 80) }
      return JSON.stringify({ ...by, said: shorten(text, lengthOf(lengths.said)) })
    }
    case "ai": {
      const called = callsOf(message, Math.min(lengths.call, Math.floor(room / 8)))
      const words = shorten(text, lengthOf(lengths.said))
      return JSON.stringify({ from: "assistant", said: words, ...(called.length === 0 ? {} : { called }) })
    }
    case "tool": {
      const about = { from: "tool", tool: message.toolName.slice(0, 80), ...(message.isError ? { isError: true } : {}) }
      return JSON.stringify({ ...about, said: shorten(text, lengthOf(lengths.result)) })
    }
    case "system":
      return JSON.stringify({ from: "system", said: shorten(text, lengthOf(lengths.said)) })
  }
}

const encoder = new TextEncoder()

/** Counts the sizes that have room, from the first one on. */
const fitting = (sizes: ReadonlyArray<number>, room: number): number => {
  let used = 0
  const over = sizes.findIndex((size) => {
    used += size
    return used > room
  })
  return over === -1 ? sizes.length : over
}

/**
 * Writes messages for a model, each as a line of JSON, in about so many bytes. It leaves out messages in the middle.
 */
export const transcript = (messages: ReadonlyArray<Message.Message>, bytes: number): string => {
  const lines = messages.map((message) => lineOf(message, Math.floor(bytes / 16)))
  const sizes = lines.map((line) => encoder.encode(line).length + 1)
  if (fitting(sizes, bytes) === lines.length) return lines.join("\n")
  const head = fitting(sizes, bytes / 4)
  const tail = lines.length - fitting(sizes.toReversed(), (bytes * 3) / 4)
  return [...lines.slice(0, head), JSON.stringify({ leftOut: `${tail - head} messages` }), ...lines.slice(tail)].join(
    "\n"
  )
}
