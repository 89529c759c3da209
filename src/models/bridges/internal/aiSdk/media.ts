/** Converts images and files to parts of the AI SDK and back. */
import type { LanguageModelV4FilePart } from "@ai-sdk/provider"
import * as Base64 from "effect/encoding/Base64"
import * as Content from "../../../../core/Content.ts"
import type { FileBlock, ImageBlock } from "../../../../core/Content.ts"
import { inlineOf } from "../../../internal/turn/inline.ts"

/** Patterns of the URLs that a model reads itself, by media type. */
export type Urls = Readonly<Record<string, ReadonlyArray<RegExp>>>

/** Kinds of media that a model can be sent. `references` is the name under which its provider knows files by their ids, if it does. */
export interface Reach {
  readonly urls: Urls
  readonly references: string | undefined
}

/** Providers with a file store whose packages take references. */
const stores = new Set(["openai", "azure", "anthropic", "google", "xai"])

/** The name of a provider's options and references: `anthropic` of `anthropic.messages`. */
export const vendorOf = (provider: string): string => provider.split(".")[0] ?? provider

/** The reach of a model. V3 has no references. */
export const reachOf = (version: "v3" | "v4", provider: string, urls: Urls): Reach => ({
  urls,
  references: version === "v4" && stores.has(vendorOf(provider)) ? vendorOf(provider) : undefined
})

/** Types that are read by any model that sees or hears, if not by each; an unknown one would end the thread. */
const readable = /^(?:image\/(?:png|jpe?g|gif|webp)|application\/pdf|audio\/(?:wav|x-wav|mpeg|mp3))$/

const pdf = /\.pdf(?:[?#]|$)/i

/** Guesses the media type of a URL, because packages choose the form of a block by it. */
const remoteType = (block: ImageBlock | FileBlock, url: string): string =>
  block.type === "image" ? "image/*" : pdf.test(url) ? "application/pdf" : "application/octet-stream"

/** The AI SDK's own rule. A pattern of a caller may keep state, which is not ours to change. */
const isRead = (urls: Urls, mimeType: string, url: string): boolean =>
  URL.canParse(url) &&
  Object.entries(urls).some(([type, patterns]) => {
    const prefix = type === "*" || type === "*/*" ? "" : type.toLowerCase().replace("*", "")
    const fits = prefix === "" || prefix.endsWith("/") ? mimeType.startsWith(prefix) : mimeType === prefix
    return fits && patterns.some(({ flags, source }) => new RegExp(source, flags.replaceAll(/[gy]/g, "")).test(url))
  })

/** Reports whether a model can be sent a block. */
export const canSend =
  ({ references, urls }: Reach) =>
  (block: ImageBlock | FileBlock): boolean => {
    const inline = inlineOf(block)
    if (inline !== undefined) return readable.test(inline.mimeType)
    const { source } = block
    if (source.kind === "fileId") return references !== undefined && source.fileId !== ""
    return source.kind === "url" && isRead(urls, remoteType(block, source.url), source.url)
  }

/** A block that can be sent, as a part. */
export const filePart = (block: ImageBlock | FileBlock, { references = "" }: Reach): LanguageModelV4FilePart => {
  const named = block.type === "file" && block.name !== undefined ? { filename: block.name } : {}
  const inline = inlineOf(block)
  if (inline !== undefined) {
    return { type: "file", ...named, mediaType: inline.mimeType, data: { type: "data", data: inline.data } }
  }
  const { source } = block
  if (source.kind === "fileId") {
    const mediaType = block.type === "image" ? "image/*" : "application/pdf"
    return {
      type: "file",
      ...named,
      mediaType,
      data: { type: "reference", reference: { [references]: source.fileId } }
    }
  }
  const url = source.kind === "url" ? source.url : ""
  return { type: "file", ...named, mediaType: remoteType(block, url), data: { type: "url", url: new URL(url) } }
}

/** Converts a file from the model to a block. V3 has plain bytes, V4 has them in an object. */
export const fileBlock = (mimeType: string, file: unknown): ImageBlock | FileBlock | undefined => {
  const data = typeof file === "object" && file !== null && "data" in file ? file.data : file
  const url = typeof file === "object" && file !== null && "url" in file ? file.url : file
  const make = mimeType.startsWith("image/") ? Content.image : Content.file
  if (url instanceof URL) return make({ url: url.href })
  if (typeof data === "string" && data !== "") return make({ base64: data, mimeType })
  if (data instanceof Uint8Array && data.length > 0) return make({ base64: Base64.encode(data), mimeType })
  return undefined
}
