/** Images and documents for the Converse API: bytes, or their place in S3. */
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import type { FileBlock, ImageBlock } from "../../../core/Content.ts"
import { inlineOf } from "../turn/inline.ts"
import type { Part } from "./wire.ts"

const images: { readonly [mimeType: string]: string } = {
  "image/png": "png",
  "image/jpeg": "jpeg",
  "image/jpg": "jpeg",
  "image/gif": "gif",
  "image/webp": "webp"
}

const documents: { readonly [mimeType: string]: string } = {
  "application/pdf": "pdf",
  "application/msword": "doc",
  "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
  "application/vnd.ms-excel": "xls",
  "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx"
}

const ofName: ReadonlyMap<string, string> = new Map([
  ...["png", "jpeg", "gif", "webp", "pdf", "doc", "docx", "xls", "xlsx"].map((one) => [one, one] as const),
  ["jpg", "jpeg"]
])

/** The format and the source of a block that the API can carry. */
const sourceOf = (block: ImageBlock | FileBlock): { format: string; source: Part } | undefined => {
  const { source, type } = block
  const formats = type === "image" ? images : documents
  if (source.kind === "url" && source.url.startsWith("s3://")) {
    const format = ofName.get(source.url.slice(source.url.lastIndexOf(".") + 1).toLowerCase())
    const isOfType = format !== undefined && Object.values(formats).includes(format)
    return isOfType ? { format, source: { s3Location: { uri: source.url } } } : undefined
  }
  const { data, mimeType } = inlineOf(block) ?? { data: "", mimeType: "" }
  const format = Object.hasOwn(formats, mimeType) ? formats[mimeType] : undefined
  const bytes = Result.getOrUndefined(Base64.decode(data))
  return format === undefined || bytes === undefined || bytes.length === 0 ? undefined : { format, source: { bytes } }
}

/** Names are letters, digits, single blanks and few signs; and no two documents of a conversation have the same. */
const nameOf = (block: FileBlock, number: number): string => {
  const name = (block.name ?? "").replaceAll(/[^a-zA-Z0-9 ()[\]-]+/g, " ").replaceAll(/ {2,}/g, " ")
  return `${name.trim().slice(0, 150) || "document"} (${number})`
}

export const isReadable = (block: ImageBlock | FileBlock): boolean => sourceOf(block) !== undefined

/** Writes an image or a document; `number` is that of no other document. */
export const mediaPart = (block: ImageBlock | FileBlock, number: number): Part | undefined => {
  const mediaSource = sourceOf(block)
  if (mediaSource === undefined) return undefined
  return block.type === "image"
    ? { image: { ...mediaSource } }
    : { document: { ...mediaSource, name: nameOf(block, number) } }
}
