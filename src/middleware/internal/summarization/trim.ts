/** Shortens messages for the model's view; the transcript keeps the originals. */
import * as Content from "../../../core/Content.ts"
import type { Json, JsonObject } from "../../../core/Json.ts"
import * as Message from "../../../core/Message.ts"
import { cutMiddle, headOf } from "../../../support/text/text.ts"
import type { Clip, Trim } from "./record.ts"
import { sizeOf } from "./tokens.ts"

/** Limits of an old call's arguments, in characters: all together, and each one when over it. */
const argumentsLimit = 2_000
const argumentHead = 200
const mostArguments = 20

/** The shortest result that is cleared: a note is not worth it for shorter ones. */
const resultLimit = 400
const resultHead = 120

/** The head and the tail of a text over `limit` characters, with a note between them. */
export const shorten = (text: string, limit: number): string =>
  cutMiddle(text, limit, (left) => `\n[… ${left} characters left out …]\n`)

/** The beginning of a text, on one line. */
const lineOf = (text: string, limit: number): string => headOf(text, limit).replaceAll(/\s+/g, " ")

const shortArgument = (value: Json, limit: number): Json => {
  const size = sizeOf(value)
  if (size <= limit) return value
  const note = `[… ${size} characters, cut …]`
  return typeof value === "string" ? `${headOf(value, limit)} ${note}` : note
}

/** Cuts each argument if all together are over `limit` characters. */
const shortArguments = (args: JsonObject, limit: number): JsonObject => {
  if (sizeOf(args) <= limit) return args
  const each = Math.min(argumentHead, limit)
  const entries = Object.entries(args)
  const firstEntries = entries
    .slice(0, mostArguments)
    .map(([key, value]) => [lineOf(key, each), shortArgument(value, each)])
  const more = entries.length - firstEntries.length
  return Object.fromEntries(more === 0 ? firstEntries : [...firstEntries, ["…", `[… ${more} more arguments, cut …]`]])
}

const shortCalls = (message: Message.AiMessage, limit: number): Message.AiMessage => {
  const long =
    message.toolCalls.some((call) => sizeOf(call.arguments) > limit) ||
    message.malformedToolCalls.some((call) => call.raw.length > limit)
  if (!long) return message
  return {
    ...message,
    toolCalls: message.toolCalls.map((call) => ({ ...call, arguments: shortArguments(call.arguments, limit) })),
    malformedToolCalls: message.malformedToolCalls.map((call) => ({ ...call, raw: shorten(call.raw, limit) }))
  }
}

const clearedResult = (message: Message.ToolMessage, folder: string | undefined): Message.ToolMessage => {
  const text = Message.text(message)
  const media = message.content.filter((block) => block.type === "image" || block.type === "file").length
  if (text.length <= resultLimit && media === 0) return message
  const had = [
    ...(text === "" ? [] : [`${text.length} characters`]),
    ...(media === 0 ? [] : [`${media} image${media === 1 ? "" : "s"} or files`])
  ]
  const began = text === "" ? "" : ` It began: ${lineOf(text, resultHead)}`
  const pointer =
    folder === undefined
      ? "Call the tool again if you need it."
      : `It is kept in ${folder}, under call ${lineOf(message.toolCallId, resultHead)}.`
  const note = `[This result was cleared to save room: ${had.join(", ")}. ${pointer}]${began}`
  return note.length >= text.length && media === 0 ? message : { ...message, content: [Content.text(note)] }
}

/** Cuts an old message's long arguments, and clears its result if asked. */
export const trimmed = (message: Message.Message, trim: Pick<Trim, "results" | "folder">): Message.Message => {
  if (message.role === "ai") return shortCalls(message, argumentsLimit)
  return message.role === "tool" && trim.results ? clearedResult(message, trim.folder) : message
}

const isMedia = (block: Content.Block): boolean => block.type === "image" || block.type === "file"

const mediaNote = Content.text("[An image or a file was here. It was left out to save room.]")

const shortContent = (
  content: ReadonlyArray<Content.Block>,
  limit: number,
  media: boolean
): ReadonlyArray<Content.Block> => {
  const changes = content.some((block) =>
    block.type === "text" ? block.text.length > limit : !media && isMedia(block)
  )
  if (!changes) return content
  return content.map((block) => {
    if (block.type === "text") return { ...block, text: shorten(block.text, limit) }
    return !media && isMedia(block) ? mediaNote : block
  })
}

const withContent = <M extends Message.Message>(message: M, content: ReadonlyArray<Content.Block>): M =>
  content === message.content ? message : { ...message, content }

/**
 * Limits every text of a message: a tool's arguments and results, or all texts. Instructions stay, since half of one
 * may mean something else.
 */
export const clipped = (message: Message.Message, clip: Pick<Clip, "limit" | "all">): Message.Message => {
  if (message.role === "system") return message
  if (message.role === "ai") {
    const short = shortCalls(message, clip.limit)
    return clip.all ? withContent(short, shortContent(short.content, clip.limit, true)) : short
  }
  if (message.role !== "tool" && !clip.all) return message
  return withContent(message, shortContent(message.content, clip.limit, !clip.all))
}

/** Shortens a user's long message to its head and tail, with a note for each image. */
export const digest = (message: Message.Message, limit: number): Message.Message => {
  const text = shorten(Message.text(message), limit)
  const media = message.content.filter(isMedia).map(() => mediaNote)
  return { ...message, content: [...(text === "" ? [] : [Content.text(text)]), ...media] }
}
