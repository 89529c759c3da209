/** The content that a provider's wire format can carry, and placeholders for the rest. */
import {
  type Block,
  type FileBlock,
  type ImageBlock,
  type ReasoningBlock,
  text,
  type TextBlock
} from "../../../core/Content.ts"
import { isObject, type JsonObject } from "../../../core/Json.ts"
import { isSound, unwrapped } from "./media.ts"
import { wellFormed, wellFormedObject } from "./wellFormed.ts"

/**
 * The form of history that a provider accepts.
 *
 * - `provider`: the key of this provider's own data in `providerData`. Other keys are foreign
 * - `systemMessages`: system messages inside the history stay, become human turns, or (`fold`) are separate at the very
 *   start and become human turns elsewhere
 * - `reasoning`: the reasoning to send back: this provider's own, all of it, or none
 * - `media`: the images and files that a message of a role may carry. A note replaces the others
 * - `asText`: the files that may be sent as their text
 * - `toolMedia`: images and files of tool results stay there, or follow in a human turn
 * - `humanFirst`: a conversation must begin with a human turn
 */
export interface Dialect {
  readonly provider: string
  readonly systemMessages: "keep" | "human" | "fold"
  readonly reasoning: "own" | "all" | "none"
  readonly media: (block: ImageBlock | FileBlock, role: "human" | "tool") => boolean
  /** The images and files of the model that go back as such. `data` are this provider's own data on the turn. */
  readonly madeMedia?: ((block: ImageBlock | FileBlock, data: JsonObject | undefined) => boolean) | undefined
  readonly asText?: ((block: FileBlock) => TextBlock | undefined) | undefined
  readonly toolMedia: "inline" | "after"
  readonly humanFirst: boolean
  readonly humanLast: boolean
  /** Reports data of a message that goes back, though the message itself says nothing. */
  readonly saysMore?: ((data: JsonObject) => boolean) | undefined
  readonly callIdLength: number
  readonly callIdsExactly?: boolean | undefined
}

/** Content of the model. `media` is an image or a file that goes back as it came. */
export type ModelContent = ReasoningBlock | (TextBlock & { readonly media?: ImageBlock | FileBlock | undefined })

/** Content of a person or a tool. */
export type GivenContent = TextBlock | ImageBlock | FileBlock

/** Gives the data of this provider in a block's, call's or message's `providerData`. */
export const dataOf = (
  providerData: JsonObject | undefined,
  dialect: Pick<Dialect, "provider">
): JsonObject | undefined => {
  const own = providerData?.[dialect.provider]
  return isObject(own) ? wellFormedObject(own) : undefined
}

/** Texts in the place of content that isn't there. */
export const placeholders = {
  emptyMessage: text("(This message was empty.)"),
  emptyResult: text("(The tool gave no output.)"),
  noResult: text("No result of this call is known: the run ended before it was recorded."),
  mediaBelow: text("(What the tool gave is in the next message.)"),
  resultsRead: text("(The results were read.)"),
  cutHistory: text("(What was said before is not shown.)"),
  goOn: text("Continue."),
  movedMedia: (toolName: string) => text(`From the result of ${wellFormed(toolName)}:`),
  systemAsHuman: (systemText: string) => text(`<system>\n${systemText}\n</system>`)
}

const place = (block: ImageBlock | FileBlock): string => {
  const { source } = block
  if (source.kind === "fileId") return ` (file id ${source.fileId})`
  if (source.kind === "base64") return ` (${source.mimeType})`
  return source.url.startsWith("data:") ? "" : ` (${source.url})`
}

const standIn = (block: ImageBlock | FileBlock): TextBlock => {
  const name = block.type === "image" || block.name === undefined ? "" : `, ${block.name}`
  const what = block.type === "image" ? "An image" : "A file"
  const why = isSound(block) ? "It could not be passed on to this model." : "Its data is damaged."
  return text(wellFormed(`[${what} was here${name}${place(block)}. ${why}]`))
}

const addName = <B extends ImageBlock | FileBlock>(block: B): B => {
  const name = block.type === "file" ? block.name : undefined
  return name === undefined || name.isWellFormed() ? block : { ...block, name: wellFormed(name) }
}

const textOf = <B extends TextBlock | ReasoningBlock>(block: B): B =>
  block.text.isWellFormed() ? block : { ...block, text: wellFormed(block.text) }

const isBlank = (block: Block): boolean => block.type === "text" && block.text.trim() === ""

const mediaOf = (block: ImageBlock | FileBlock, dialect: Dialect, role: "human" | "tool"): GivenContent =>
  (block.type === "file" ? dialect.asText?.(unwrapped(block)) : undefined) ??
  (dialect.media(block, role) ? addName(unwrapped(block)) : standIn(block))

/** Gives the content of a person, a system message or a tool as this provider can read it; never an empty block. */
export const contentOf = (
  blocks: ReadonlyArray<Block>,
  dialect: Dialect,
  role: "system" | "human" | "tool"
): ReadonlyArray<GivenContent> => {
  const content: Array<GivenContent> = []
  for (const block of blocks) {
    if (block.type === "reasoning" || isBlank(block)) continue
    if (block.type === "text") content.push(textOf(block))
    else content.push(role === "system" || !isSound(block) ? standIn(block) : mediaOf(block, dialect, role))
  }
  return content
}

/** Signed content goes back as it came or not at all. */
const isMended = (block: ReasoningBlock, dialect: Dialect): boolean =>
  !block.text.isWellFormed() && dataOf(block.providerData, dialect)?.["signature"] !== undefined

const isSentBack = (block: ReasoningBlock, dialect: Dialect): boolean => {
  if (isMended(block, dialect)) return false
  if (dialect.reasoning === "all") return block.text !== ""
  return dialect.reasoning === "own" && dataOf(block.providerData, dialect) !== undefined
}

/**
 * Gives the content of the model as this provider can read it. Images and files are texts that say so; of those that
 * the provider takes back, `media` is the block itself.
 */
export const saidOf = (
  blocks: ReadonlyArray<Block>,
  dialect: Dialect,
  data: JsonObject | undefined
): ReadonlyArray<ModelContent> => {
  const content: Array<ModelContent> = []
  for (const block of blocks) {
    if (block.type === "reasoning") {
      if (isSentBack(block, dialect)) content.push(textOf(block))
    } else if (block.type !== "text") {
      const isReturned = isSound(block) && dialect.madeMedia?.(block, data) === true
      const { providerData } = block
      const own = providerData === undefined ? {} : { providerData }
      content.push(isReturned ? { ...standIn(block), ...own, media: unwrapped(block) } : standIn(block))
    } else if (!isBlank(block)) content.push(textOf(block))
  }
  return content
}
