/** Text, images and files as parts of an `effect/ai` prompt, both ways. */
import * as AiPrompt from "effect/ai/Prompt"
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import type * as Content from "../../../../core/Content.ts"
import { valueAt } from "../../../../support/json/valueAt.ts"
import { optionsOf, providerDataOf } from "./metadata.ts"

type Media = Content.ImageBlock | Content.FileBlock

const dataUrl = /^data:([^;,]*)(?:;[^;,]*)*;base64,(.*)$/s

const extension = /\.([a-z0-9]+)(?:[?#].*)?$/i

const mediaTypes: { readonly [extension: string]: string } = {
  csv: "text/csv",
  docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  html: "text/html",
  json: "application/json",
  md: "text/markdown",
  mp3: "audio/mpeg",
  ogg: "audio/ogg",
  pdf: "application/pdf",
  txt: "text/plain",
  wav: "audio/wav"
}

/** A file by reference says no media type. PDF is the one kind of document that every provider takes by reference. */
const guess = (name: string): string =>
  valueAt(mediaTypes, extension.exec(name)?.[1]?.toLowerCase()) ?? "application/pdf"

/** A data URL is data and not a place. */
const settle = (source: Content.Source): Content.Source => {
  if (source.kind !== "url") return source
  const [, mimeType, data] = dataUrl.exec(source.url) ?? []
  return data === undefined || mimeType === undefined ? source : { kind: "base64", data, mimeType }
}

const dataOf = (source: Content.Source): AiPrompt.FilePart["data"] | undefined => {
  switch (source.kind) {
    case "url":
      return URL.canParse(source.url) ? new URL(source.url) : undefined
    case "base64":
      // As bytes, because providers read a string as text, as a file id or as unencoded data.
      return Result.getOrUndefined(Base64.decode(source.data))
    case "fileId":
      return source.fileId
  }
}

const mediaTypeOf = (block: Media, source: Content.Source): string => {
  if (source.kind === "base64") return source.mimeType
  if (block.type === "image") return "image/*"
  return guess(block.name ?? (source.kind === "url" ? source.url : ""))
}

/** Converts an image or a file to a part of a prompt. `undefined` for an invalid URL or invalid base64. */
export const filePart = (block: Media): AiPrompt.FilePart | undefined => {
  const source = settle(block.source)
  const data = dataOf(source)
  if (data === undefined) return undefined
  return AiPrompt.filePart({
    mediaType: mediaTypeOf(block, source),
    data,
    fileName: block.type === "file" ? block.name : undefined,
    options: optionsOf(block.providerData)
  })
}

/** The longest id of a provider's file; longer strings are the file itself. */
const fileIdLimit = 128

const sourceOf = (part: Pick<AiPrompt.FilePart, "data" | "mediaType">): Content.Source => {
  const { data, mediaType } = part
  if (data instanceof URL) return settle({ kind: "url", url: data.href })
  if (typeof data !== "string") return { kind: "base64", data: Base64.encode(data), mimeType: mediaType }
  if (/^(https?|data):/i.test(data)) return settle({ kind: "url", url: data })
  return data.length > fileIdLimit ? { kind: "base64", data, mimeType: mediaType } : { kind: "fileId", fileId: data }
}

/** A part of a prompt, or of a response, as an image or a file. */
export const mediaBlock = (
  part: Pick<AiPrompt.FilePart, "data" | "fileName" | "mediaType" | "options">
): Content.ImageBlock | Content.FileBlock => {
  const source = sourceOf(part)
  const own = providerDataOf(part.options)
  return part.mediaType.startsWith("image/") && part.fileName === undefined
    ? { type: "image", source, ...own }
    : { type: "file", source, ...(part.fileName === undefined ? {} : { name: part.fileName }), ...own }
}

/** Converts blocks to parts, and drops blocks without a form. */
export const shownParts = (
  blocks: ReadonlyArray<Content.Block>
): ReadonlyArray<AiPrompt.TextPart | AiPrompt.FilePart> =>
  blocks.flatMap((block): ReadonlyArray<AiPrompt.TextPart | AiPrompt.FilePart> => {
    if (block.type === "text") return [AiPrompt.textPart({ text: block.text, options: optionsOf(block.providerData) })]
    const part = block.type === "reasoning" ? undefined : filePart(block)
    return part === undefined ? [] : [part]
  })

/** Parts as blocks. */
export const shownBlocks = (
  parts: ReadonlyArray<AiPrompt.TextPart | AiPrompt.FilePart>
): ReadonlyArray<Content.Block> =>
  parts.map((part) =>
    part.type === "text" ? { type: "text", text: part.text, ...providerDataOf(part.options) } : mediaBlock(part)
  )
