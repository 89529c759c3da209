/** Images and files that are inside of a message. */
import type { FileBlock, ImageBlock } from "../../../core/Content.ts"

const dataUrl = /^data:([^;,]+)(?:;[^;,]+)*;base64,([A-Za-z0-9+/=]+)$/

/** The content of an image or a file in Base64, if its source has it inside, as data or as a `data:` URL. */
export const inlineOf = ({
  source
}: ImageBlock | FileBlock): { readonly mimeType: string; readonly data: string } | undefined => {
  if (source.kind === "fileId") return undefined
  if (source.kind === "base64") return source.data === "" ? undefined : source
  const [, mimeType = "", data = ""] = dataUrl.exec(source.url) ?? []
  return data === "" ? undefined : { mimeType, data }
}
