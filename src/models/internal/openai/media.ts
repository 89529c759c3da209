/** Images and files that OpenAI's APIs read, and their form on the wire. */
import type { FileBlock, ImageBlock, Source } from "../../../core/Content.ts"
import { valueAt } from "../../../support/json/valueAt.ts"

const pictures = /^image\/(?:png|jpe?g|gif|webp)$/

const isRemote = (url: string): boolean => /^https?:\/\//.test(url)

/** Ids of OpenAI's and Azure's file stores; another provider's mean nothing here. */
const isFileId = (id: string): boolean => /^(?:file|assistant)-/.test(id)

/** `data:` URLs of pictures are read by both APIs as they are. */
const isDataPicture = (url: string): boolean => {
  const type = /^data:([^;,]+);base64,./.exec(url)?.[1]
  return type !== undefined && pictures.test(type)
}

export const readsImage = ({ source }: ImageBlock): boolean => {
  if (source.kind === "fileId") return isFileId(source.fileId)
  if (source.kind === "base64") return pictures.test(source.mimeType) && source.data !== ""
  return isRemote(source.url) || isDataPicture(source.url)
}

/** The address that an image with a URL or with its data has. */
export const imageUrl = (source: Exclude<Source, { readonly kind: "fileId" }>): string =>
  source.kind === "url" ? source.url : `data:${source.mimeType};base64,${source.data}`

export const readsFileId = (block: ImageBlock | FileBlock): boolean =>
  block.source.kind === "fileId" && isFileId(block.source.fileId)

export const hasRemoteUrl = ({ source }: FileBlock): boolean => source.kind === "url" && isRemote(source.url)

const sound: { readonly [mimeType: string]: "wav" | "mp3" } = {
  "audio/wav": "wav",
  "audio/x-wav": "wav",
  "audio/wave": "wav",
  "audio/mpeg": "mp3",
  "audio/mp3": "mp3"
}

/** The format of a recording that a model with audio input hears. */
export const audioFormat = ({ source }: FileBlock): "wav" | "mp3" | undefined =>
  source.kind === "base64" && source.data !== "" ? valueAt(sound, source.mimeType) : undefined

/** Documents that are sent with the request. */
export const isDocument = ({ source }: FileBlock): boolean =>
  source.kind === "base64" && source.data !== "" && /^(?:application|text)\//.test(source.mimeType)

/** The one kind of document that every server which takes any takes. */
export const isPdf = ({ source }: FileBlock): boolean =>
  source.kind === "base64" && source.data !== "" && source.mimeType === "application/pdf"

const extensions: { readonly [mimeType: string]: string } = {
  "application/pdf": "pdf",
  "application/json": "json",
  "text/plain": "txt",
  "text/markdown": "md",
  "text/csv": "csv",
  "text/html": "html"
}

/** A document must have a name; where it has none, its type gives one. */
export const fileName = (block: FileBlock): string => {
  if (block.name !== undefined && block.name !== "") return block.name
  const type = block.source.kind === "base64" ? block.source.mimeType : ""
  return `document.${valueAt(extensions, type) ?? "bin"}`
}
