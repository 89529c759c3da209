/** Text, images and documents, from the library's blocks to those of the Messages API. */
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import type { FileBlock, ImageBlock, TextBlock } from "../../../core/Content.ts"
import { isObject, type JsonObject } from "../../../core/Json.ts"
import { dataOf, type Dialect, type GivenContent } from "../turn/dialect.ts"
import { makeFold } from "../turn/fold.ts"
import { inlineOf } from "../turn/inline.ts"
import type { Turn } from "../turn/normalize.ts"
import { isVerbatim, toLayout } from "./layout.ts"
import type { DocumentPart, ImagePart, ImageType, TextPart } from "./wire.ts"

/** The key of the data that Claude needs back verbatim: the same on every platform that serves it. */
export const dataKey = "anthropic"

const imageTypes: ReadonlySet<string> = new Set<ImageType>(["image/jpeg", "image/png", "image/gif", "image/webp"])

/** Reports whether Claude sees images of a type. */
export const isImageType = (mimeType: string): mimeType is ImageType => imageTypes.has(mimeType)

const isPlainText = (mimeType: string): boolean => mimeType === "text/plain" || mimeType.startsWith("text/plain;")

const canRead =
  (remote: boolean) =>
  (block: ImageBlock | FileBlock): boolean => {
    const inline = inlineOf(block)
    if (inline !== undefined) {
      if (block.type === "image") return isImageType(inline.mimeType)
      return inline.mimeType === "application/pdf" || (isPlainText(inline.mimeType) && textOf(inline.data) !== "")
    }
    if (!remote) return false
    const { source } = block
    if (source.kind === "fileId") return source.fileId !== ""
    return source.kind === "url" && /^https?:\/\//.test(source.url)
  }

/** Makes the dialect of the Messages API. `remote`: the platform fetches URLs and has a Files API. */
export const dialect = (remote: boolean): Dialect => ({
  provider: dataKey,
  systemMessages: "fold",
  reasoning: "own",
  media: canRead(remote),
  toolMedia: "inline",
  humanFirst: true,
  humanLast: true,
  saysMore: ({ layout }) => toLayout(layout).some(isVerbatim),
  callIdLength: 64
})

/** The text of a plain text file, which is not sent in base64. */
const textOf = (data: string): string => Result.getOrElse(Base64.decodeString(data), () => "").trim()

const imageSource = (block: ImageBlock): ImagePart["source"] => {
  const inline = inlineOf(block)
  if (inline !== undefined && isImageType(inline.mimeType)) {
    return { type: "base64", media_type: inline.mimeType, data: inline.data }
  }
  const { source } = block
  if (source.kind === "fileId") return { type: "file", file_id: source.fileId }
  return { type: "url", url: source.kind === "url" ? source.url : "" }
}

const documentSource = (block: FileBlock): DocumentPart["source"] => {
  const inline = inlineOf(block)
  if (inline !== undefined && isPlainText(inline.mimeType)) {
    return { type: "text", media_type: "text/plain", data: textOf(inline.data) }
  }
  if (inline !== undefined) return { type: "base64", media_type: "application/pdf", data: inline.data }
  const { source } = block
  if (source.kind === "fileId") return { type: "file", file_id: source.fileId }
  return { type: "url", url: source.kind === "url" ? source.url : "" }
}

/** Writes content of a person or a tool. Content that the API can't carry was replaced before, by the dialect. */
export const shownPart = (block: GivenContent): TextPart | ImagePart | DocumentPart => {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text }
    case "image":
      return { type: "image", source: imageSource(block) }
    case "file":
      return {
        type: "document",
        source: documentSource(block),
        ...(block.name === undefined || block.name.trim() === "" ? {} : { title: block.name })
      }
  }
}

/** The options of a message for Claude. They were checked. */
const ownOptions = (options: JsonObject | undefined): JsonObject | undefined => {
  const own = options?.[dataKey]
  return isObject(own) ? own : undefined
}

/** Makes a finder of the lifetimes of the cache marks that messages ask for, by the indices of the messages. */
export const makeMarksFinder = () => {
  const find = makeFold<Turn, readonly [number, "5m" | "1h"]>((marks, turn) => {
    const take = (index: number | undefined, options: JsonObject | undefined): void => {
      const control = options === undefined ? undefined : ownOptions(options)?.["cacheControl"]
      if (index !== undefined && isObject(control)) marks.push([index, control["ttl"] === "1h" ? "1h" : "5m"])
    }
    if (turn.role !== "system") take(turn.index, turn.options)
    if (turn.role === "ai") for (const { answer } of turn.calls) take(answer.index, answer.options)
  })
  return (turns: ReadonlyArray<Turn>): ReadonlyMap<number, "5m" | "1h"> => new Map(find(turns).output)
}

/** Writes content of a message, whose documents may be cited if its options say so. */
export const shownParts = (
  content: ReadonlyArray<GivenContent>,
  options: JsonObject | undefined
): ReadonlyArray<TextPart | ImagePart | DocumentPart> => {
  const parts = content.map(shownPart)
  if (ownOptions(options)?.["citations"] !== true) return parts
  return parts.map((part) => (part.type === "document" ? { ...part, citations: { enabled: true } } : part))
}

/** A text of the model's, with the citations that it came with. */
export const saidPart = (block: TextBlock): TextPart => {
  const citations = dataOf(block.providerData, { provider: dataKey })?.["citations"]
  const own = Array.isArray(citations) ? citations.filter(isObject) : []
  return { type: "text", text: block.text, ...(own.length === 0 ? {} : { citations: own }) }
}

/** Gives the data that Claude attached to a block or call. */
export const ownData = (providerData: JsonObject | undefined): JsonObject | undefined =>
  dataOf(providerData, { provider: dataKey })
