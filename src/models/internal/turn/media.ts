/**
 * Images and files whose data can be read at all. A provider refuses a request with one that can't, and with it the
 * thread for good.
 */
import type { FileBlock, ImageBlock } from "../../../core/Content.ts"
import { makeWarner } from "../wire/warned.ts"

const base64 = /^[A-Za-z0-9+/]+={0,2}$/

const isBase64 = (data: string): boolean => data.length % 4 === 0 && base64.test(data)

/** MIME breaks base64 into lines; providers want it in one. */
const inOneLine = (data: string): string => (/\s/.test(data) ? data.replaceAll(/\s+/g, "") : data)

const dataUrl = /^data:[^,]*;base64,/i

/** Reports whether a block can be sent: well-formed text, and valid base64. */
export const isSound = ({ source }: ImageBlock | FileBlock): boolean => {
  if (source.kind === "fileId") return source.fileId.isWellFormed()
  if (source.kind === "base64") return source.mimeType.isWellFormed() && isBase64(inOneLine(source.data))
  const before = dataUrl.exec(source.url)?.[0]
  return source.url.isWellFormed() && (before === undefined || isBase64(source.url.slice(before.length)))
}

/** A block with its base64 in one line. */
export const unwrapped = <B extends ImageBlock | FileBlock>(block: B): B => {
  const { source } = block
  if (source.kind !== "base64") return block
  const data = inOneLine(source.data)
  return data === source.data ? block : { ...block, source: { ...source, data } }
}

/** Names a damaged image or file in a warning. */
export const nameOf = (block: ImageBlock | FileBlock): string => {
  const { source } = block
  const type = source.kind === "base64" && source.mimeType !== "" ? ` (${source.mimeType})` : ""
  return block.type === "file" && block.name !== undefined ? `${block.name}${type}` : `${block.type}${type}`
}

/** Warns of images and files that were left out since their data is damaged. */
export const makeMediaWarner = () =>
  makeWarner("media", (names) => `what can't be read was left out of the request, and the model told so: ${names}`)
