/** Bytes of the web as text, and what kind of thing they are. */
import { decoderFor } from "../../../support/text/charset.ts"

export type Kind = "html" | "feed" | "sitemap" | "json" | "csv" | "text" | "document" | "image" | "binary"

/** Bytes as text. What can't be decoded is shown as the replacement character. */
export const decode = (bytes: Uint8Array, contentType: string): string => decoderFor(bytes, contentType).decode(bytes)

const startsWith = (bytes: Uint8Array, text: string): boolean =>
  [...text].every((character, index) => bytes[index] === character.charCodeAt(0))

const images = ["\x89PNG", "GIF8", "\xff\xd8\xff", "BM"]

const officeTypes =
  /officedocument|opendocument|epub|msword|ms-excel|ms-powerpoint|message\/rfc822|application\/pdf|ipynb/

/** A text has no zero bytes. */
const isText = (bytes: Uint8Array): boolean => !bytes.subarray(0, 4096).includes(0)

/** The name of the first element of a document, behind what may stand before it. */
const rootOf = (head: string): string | undefined => {
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

/** The kind of an answer: by its bytes first, since servers say what they like. */
export const kindOf = (bytes: Uint8Array, contentType: string, url: string): Kind => {
  const type = contentType.split(";")[0]?.trim().toLowerCase() ?? ""
  const path = URL.canParse(url) ? new URL(url).pathname.toLowerCase() : ""
  if (startsWith(bytes, "%PDF-") || officeTypes.test(type)) return "document"
  if (startsWith(bytes, "PK\x03\x04")) return "document"
  if (images.some((magic) => startsWith(bytes, magic)) || (startsWith(bytes, "RIFF") && type.startsWith("image/"))) {
    return "image"
  }
  const decoder = decoderFor(bytes, contentType)
  if (!decoder.encoding.startsWith("utf-16") && !isText(bytes)) return "binary"
  const head = decoder.decode(bytes.subarray(0, 4096)).trimStart().toLowerCase()
  const root = rootOf(head)
  const rooted = root !== undefined && Object.hasOwn(roots, root) ? roots[root] : undefined
  if (rooted !== undefined) return rooted
  if (/[/+]json$/.test(type) || (type === "" && /^[[{]/.test(head))) return "json"
  if (type === "text/csv" || type === "text/tab-separated-values" || (/\.[ct]sv$/.test(path) && type !== "text/html")) {
    return "csv"
  }
  if (type === "text/html" || type === "application/xhtml+xml" || /^<(?:!doctype html|html|head|body)/.test(head)) {
    return "html"
  }
  return type === "" && head.startsWith("<") ? "html" : "text"
}
