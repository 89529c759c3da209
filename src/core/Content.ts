/** The content of a message: blocks of text, reasoning, images and files, in the order in which they were said. */
import * as Schema from "effect/Schema"
import { JsonObject } from "./Json.ts"
import { CitedSource } from "./Sources.ts"

const providerData = Schema.optionalKey(JsonObject)

/**
 * A passage of a text and its source. `start` and `end` delimit the passage (UTF-16 units), if the provider gives it;
 * `quote` is the source's own text, `locator` a place in it ("page 3").
 */
export const Citation = Schema.Struct({
  source: CitedSource,
  start: Schema.optionalKey(Schema.Finite),
  end: Schema.optionalKey(Schema.Finite),
  quote: Schema.optionalKey(Schema.String),
  locator: Schema.optionalKey(Schema.String)
})
export interface Citation extends Schema.Schema.Type<typeof Citation> {}

/**
 * Plain text. `citations` are for people; `providerData` goes back to the provider verbatim (item ids, its own form of
 * the citations).
 */
export const TextBlock = Schema.Struct({
  type: Schema.Literal("text"),
  text: Schema.String,
  citations: Schema.optionalKey(Schema.Array(Citation)),
  providerData
})
export interface TextBlock extends Schema.Schema.Type<typeof TextBlock> {}

/** The model's thoughts before it answered. Signatures and encrypted content live in `providerData`. */
export const ReasoningBlock = Schema.Struct({ type: Schema.Literal("reasoning"), text: Schema.String, providerData })
export interface ReasoningBlock extends Schema.Schema.Type<typeof ReasoningBlock> {}

/** The place of binary content: a URL, base64 data with its media type, or a file that the provider already holds. */
export const Source = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("url"), url: Schema.String }),
  Schema.Struct({ kind: Schema.Literal("base64"), data: Schema.String, mimeType: Schema.String }),
  Schema.Struct({ kind: Schema.Literal("fileId"), fileId: Schema.String })
])
export type Source = typeof Source.Type

/** A picture. */
export const ImageBlock = Schema.Struct({ type: Schema.Literal("image"), source: Source, providerData })
export interface ImageBlock extends Schema.Schema.Type<typeof ImageBlock> {}

/** A document or a recording. */
export const FileBlock = Schema.Struct({
  type: Schema.Literal("file"),
  source: Source,
  name: Schema.optionalKey(Schema.String),
  providerData
})
export interface FileBlock extends Schema.Schema.Type<typeof FileBlock> {}

/** One block of a message. */
export const Block: Schema.Codec<Block, JsonObject> = Schema.Union([TextBlock, ReasoningBlock, ImageBlock, FileBlock])
export type Block = TextBlock | ReasoningBlock | ImageBlock | FileBlock

/** Content as constructors accept it: a string is one text block. */
export type Input = string | ReadonlyArray<Block>

/** Makes a text block. */
export const text = (value: string): TextBlock => ({ type: "text", text: value })

/** Makes a reasoning block. */
export const reasoning = (value: string, providerData?: JsonObject): ReasoningBlock =>
  providerData === undefined ? { type: "reasoning", text: value } : { type: "reasoning", text: value, providerData }

type SourceInput =
  | {
      /** The URL of the image. */
      readonly url: string
    }
  | {
      /** The bytes of the image, as base 64. */
      readonly base64: string
      /** The media type, such as `image/png`. */
      readonly mimeType: string
    }
  | {
      /** The id of a file at the provider. */
      readonly fileId: string
    }

/** Makes an image block from a URL, base64 data or a provider's file id. */
export const image = (source: SourceInput): ImageBlock => ({ type: "image", source: toSource(source) })

/** Makes a file block from a URL, base64 data or a provider's file id. */
export const file = (source: SourceInput & { readonly name?: string | undefined }): FileBlock => ({
  type: "file",
  source: toSource(source),
  ...(source.name === undefined ? {} : { name: source.name })
})

const toSource = (source: SourceInput): Source =>
  "url" in source
    ? { kind: "url", url: source.url }
    : "base64" in source
      ? { kind: "base64", data: source.base64, mimeType: source.mimeType }
      : { kind: "fileId", fileId: source.fileId }

/** Converts the input of a constructor to blocks; an empty string gives no block. */
export const fromInput = (input: Input): ReadonlyArray<Block> =>
  typeof input === "string" ? (input === "" ? [] : [text(input)]) : input

/** All text of some blocks, joined as it was streamed. */
export const toText = (blocks: ReadonlyArray<Block>): string => {
  let out = ""
  for (const block of blocks) if (block.type === "text") out += block.text
  return out
}
