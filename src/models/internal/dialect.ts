/**
 * What one provider's wire format can carry, and what stands in the place of what it can't.
 */
import {
  type Block,
  type FileBlock,
  type ImageBlock,
  type ReasoningBlock,
  text,
  type TextBlock
} from "../../core/Content.ts"
import { isObject, type JsonObject } from "../../core/Json.ts"
import { wellFormed } from "./wellFormed.ts"

/**
 * - `provider`: the key of `providerData` under which this provider's own data is; what another one attached is foreign
 * - `systemMessages`: those inside the history are kept, become human turns, or (`fold`) are given apart where they are
 *   at the very start and become human turns elsewhere
 * - `reasoning`: which reasoning is sent back: what this provider attached data to, all of it, or none
 * - `media`: which images and files can be sent in a message of this role; for the others stands a note
 * - `toolMedia`: images and files of tool results stay there, or come in a human turn behind the results
 * - `humanFirst`, `humanLast`: the provider wants a human turn at the beginning, at the end
 * - `callIdLength`: the longest call id that is accepted, in characters
 */
export interface Dialect {
  readonly provider: string
  readonly systemMessages: "keep" | "human" | "fold"
  readonly reasoning: "own" | "all" | "none"
  readonly media: (block: ImageBlock | FileBlock, role: "human" | "tool") => boolean
  readonly toolMedia: "inline" | "after"
  readonly humanFirst: boolean
  readonly humanLast: boolean
  readonly callIdLength: number
}

/** What belongs to this provider in a block's, call's or message's `providerData`. */
export const dataOf = (
  providerData: JsonObject | undefined,
  dialect: Pick<Dialect, "provider">
): JsonObject | undefined => {
  const own = providerData?.[dialect.provider]
  return isObject(own) ? own : undefined
}

/** What is said in the place of something that isn't there. */
export const placeholders = {
  emptyMessage: text("(This message was empty.)"),
  emptyResult: text("(The tool gave no output.)"),
  noResult: text("No result of this call is known: the run ended before it was recorded."),
  mediaBelow: text("(What the tool gave is in the next message.)"),
  cutHistory: text("(What was said before is not shown.)"),
  goOn: text("Continue."),
  movedMedia: (toolName: string) => text(`From the result of ${toolName}:`),
  systemAsHuman: (said: string) => text(`<system>\n${said}\n</system>`)
}

const place = (block: ImageBlock | FileBlock): string => {
  const { source } = block
  if (source.kind === "fileId") return ` (file id ${source.fileId})`
  if (source.kind === "base64") return ` (${source.mimeType})`
  return source.url.startsWith("data:") ? "" : ` (${source.url})`
}

const standIn = (block: ImageBlock | FileBlock): TextBlock =>
  text(
    block.type === "image"
      ? `[An image was here${place(block)}. It could not be passed on to this model.]`
      : `[A file was here${block.name === undefined ? "" : `, ${block.name}`}${place(block)}. It could not be passed on to this model.]`
  )

const textOf = (block: TextBlock): TextBlock => {
  const said = wellFormed(block.text)
  return said === block.text ? block : { ...block, text: said }
}

const isBlank = (block: Block): boolean => block.type === "text" && block.text.trim() === ""

/** What a person, a system message or a tool said, as this provider can read it; never an empty block. */
export const contentOf = (
  blocks: ReadonlyArray<Block>,
  dialect: Dialect,
  role: "system" | "human" | "tool"
): ReadonlyArray<TextBlock | ImageBlock | FileBlock> => {
  const content: Array<TextBlock | ImageBlock | FileBlock> = []
  for (const block of blocks) {
    if (block.type === "reasoning" || isBlank(block)) continue
    if (block.type === "text") content.push(textOf(block))
    else content.push(role !== "system" && dialect.media(block, role) ? block : standIn(block))
  }
  return content
}

const isSentBack = (block: ReasoningBlock, dialect: Dialect): boolean => {
  if (dialect.reasoning === "all") return block.text !== ""
  return dialect.reasoning === "own" && dataOf(block.providerData, dialect) !== undefined
}

/** What the model said, as this provider can read it. No provider takes back images or files that a model made. */
export const saidOf = (blocks: ReadonlyArray<Block>, dialect: Dialect): ReadonlyArray<TextBlock | ReasoningBlock> => {
  const said: Array<TextBlock | ReasoningBlock> = []
  for (const block of blocks) {
    if (block.type === "reasoning") {
      if (isSentBack(block, dialect)) said.push(block)
    } else if (block.type !== "text") said.push(standIn(block))
    else if (!isBlank(block)) said.push(textOf(block))
  }
  return said
}
