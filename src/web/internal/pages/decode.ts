/** Decodes responses, and detects their kind. */
import { valueAt } from "../../../support/json/valueAt.ts"
import { decoderFor } from "../../../support/text/charset.ts"

export type Kind = "html" | "feed" | "sitemap" | "json" | "csv" | "text" | "document" | "image" | "binary"

/** Decodes bytes as text. Invalid bytes become the replacement character. */
export const decode = (bytes: Uint8Array, contentType: string): string => decoderFor(bytes, contentType).decode(bytes)

const startsWith = (bytes: Uint8Array, text: string): boolean =>
  [...text].every((character, index) => bytes[index] === character.charCodeAt(0))

const images = ["\x89PNG", "GIF8", "\xff\xd8\xff", "BM"]

const officeTypes =
  /officedocument|opendocument|epub|msword|ms-excel|ms-powerpoint|message\/rfc822|application\/pdf|ipynb/

/** A text has no zero bytes. */
const isText = (bytes: Uint8Array): boolean => !bytes.subarray(0, 4096).includes(0)

/** Finds the name of the root element, after comments and declarations. */
const findRoot = (head: string): string | undefined => {
  let at = 0
  for (;;) {
    while (at < head.length && head.charAt(at).trim() === "") at++
    const end = head.startsWith("<!--", at)
      ? head.indexOf("-->", at + 4) + 3
      : head.startsWith("<?", at)
        ? head.indexOf(">", at) + 1
        : undefined
    if (end === undefined) return /^<([a-z:]{1,20})[\s>]/.exec(head.slice(at, at + 30))?.[1]
    if (end <= at) return undefined
    at = end
  }
}

const roots: { readonly [name: string]: Kind } = {
  rss: "feed",
  feed: "feed",
  "rdf:rdf": "feed",
  urlset: "sitemap",
  sitemapindex: "sitemap"
}

const magicKind = (bytes: Uint8Array, type: string): Kind | undefined => {
  if (["%PDF-", "PK\x03\x04"].some((magic) => startsWith(bytes, magic)) || officeTypes.test(type)) return "document"
  const isImage = images.some((magic) => startsWith(bytes, magic))
  return isImage || (startsWith(bytes, "RIFF") && type.startsWith("image/")) ? "image" : undefined
}

const rootKind = (head: string): Kind | undefined => {
  const root = findRoot(head)
  return valueAt(roots, root)
}

const textKind = (head: string, type: string, path: string): Kind => {
  if (/[/+]json$/.test(type) || (type === "" && /^[[{]/.test(head))) return "json"
  if (/^text\/(?:csv|tab-separated-values)$/.test(type) || (/\.[ct]sv$/.test(path) && type !== "text/html"))
    return "csv"
  if (type === "text/html" || type === "application/xhtml+xml") return "html"
  return /^<(?:!doctype html|html|head|body)/.test(head) || (type === "" && head.startsWith("<")) ? "html" : "text"
}

/** Detects the kind of a response: by its bytes first, since servers declare wrong types. */
export const kindOf = (bytes: Uint8Array, contentType: string, url: string): Kind => {
  const type = contentType.split(";")[0]?.trim().toLowerCase() ?? ""
  const kind = magicKind(bytes, type)
  if (kind !== undefined) return kind
  const decoder = decoderFor(bytes, contentType)
  if (!decoder.encoding.startsWith("utf-16") && !isText(bytes)) return "binary"
  const head = decoder.decode(bytes.subarray(0, 4096)).trimStart().toLowerCase()
  const path = URL.canParse(url) ? new URL(url).pathname.toLowerCase() : ""
  return rootKind(head) ?? textKind(head, type, path)
}
