/** Reads mail: sender, recipients, date, text, and the names of attachments. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Address, Email } from "postal-mime"
import type { DocumentError, Input, Piece } from "../../core/Document.ts"
import { oneLine } from "../../support/text/untrusted.ts"
import { loadPackage, makeFail, messageOf } from "./failure.ts"
import { loadParser, streamHtml } from "./html.ts"
import { sliceLength } from "./limits.ts"
import { appendRest, makeWriter, type Writer } from "./writer.ts"

const fail = makeFail("mail")

const renderAddress = ({ address = "", group, name }: Address): string =>
  group !== undefined ? `${name}: ${renderAddresses(group)}` : name === "" ? address : `${name} <${address}>`

const renderAddresses = (addresses: ReadonlyArray<Address> | undefined): string =>
  (addresses ?? []).map(renderAddress).join(", ")

const headersOf = (mail: Email): ReadonlyArray<readonly [string, string]> => [
  ["From", mail.from === undefined ? "" : renderAddress(mail.from)],
  ["To", renderAddresses(mail.to)],
  ["Cc", renderAddresses(mail.cc)],
  ["Date", mail.date ?? ""],
  ["Subject", mail.subject ?? ""]
]

const renderAttachment = ({ content, filename, mimeType }: Email["attachments"][number]): string => {
  const size = typeof content === "string" ? content.length : content.byteLength
  return `Attached: ${oneLine(filename ?? "a file without a name")} (${oneLine(mimeType)}, ${size} bytes)`
}

/** Writes each line of a text as a paragraph. */
const writeLines = function* (text: string, writer: Writer): Generator<Piece> {
  let at = 0
  for (const { 0: end, index } of text.matchAll(/\r\n?|\n/g)) {
    if (index > at) writer.line(text.slice(at, index))
    at = index + end.length
    yield* writer.take()
  }
  writer.line(text.slice(at))
}

const sliceText = function* (text: string): Generator<string> {
  for (let at = 0; at < text.length; at += sliceLength) yield text.slice(at, at + sliceLength).replaceAll("\r", "\n")
}

const header = {
  message: /^content-type:\s*message\/rfc822/im,
  typed: /^content-type:/im,
  digest: /^content-type:\s*multipart\/digest/im,
  quoted: /^content-transfer-encoding:(?:[^\n]|\n[ \t])*quoted-printable/im,
  flowed: /format\s*=\s*"?flowed/i
}

/** Maximum characters of a header that are examined, and lines that the parser accepts of a small mail. */
const maxHeader = 65_536
const maxLines = 10_000

const lf = 10
const cr = 13
const dash = 45
const equals = 61

/** Follows the headers of a mail and of its parts. A header decides how the lines of its body are joined. */
const makeHeaders = () => {
  const latin1 = new TextDecoder("latin1")
  let text = ""
  let hasDigest = false
  let isOpen = true
  let mode: "keep" | "join" | "quoted" = "keep"
  return {
    isOpen: () => isOpen,
    modeOf: () => mode,
    begin: () => {
      isOpen = true
      text = ""
    },
    addLine: (line: Uint8Array) => {
      text += `${latin1.decode(line.subarray(0, Math.max(0, maxHeader - text.length)))}\n`
    },
    end: () => {
      hasDigest ||= header.digest.test(text)
      // A header may be followed by the header of an enclosed mail.
      isOpen = header.message.test(text) || (hasDigest && !header.typed.test(text))
      const isKept = text.length >= maxHeader || header.flowed.test(text)
      mode = isKept ? "keep" : header.quoted.test(text) ? "quoted" : "join"
      text = ""
    }
  }
}

/** Finds the end of a line without its line break, and the start of the next line. */
const findLineEnd = (bytes: Uint8Array, start: number): { readonly end: number; readonly next: number } => {
  const newline = bytes.indexOf(lf, start)
  let end = newline === -1 ? bytes.length : newline
  while (end > start && bytes[end - 1] === cr) end--
  return { end, next: newline === -1 ? bytes.length : newline + 1 }
}

/**
 * Joins the lines of each body into one line, since each line costs the parser two kilobytes. Line ends become CRs and
 * soft ones vanish; headers, and lines that may be boundaries, stay lines. `undefined` for a mail with too many lines.
 */
const joinBodies = (bytes: Uint8Array): Uint8Array | undefined => {
  const out = new Uint8Array(bytes.length + 1)
  const headers = makeHeaders()
  let length = 0
  let lines = 0
  const beginPart = () => {
    if (out[length - 1] === cr) out[length - 1] = lf
    else if (length > 0 && out[length - 1] !== lf) out[length++] = lf
    headers.begin()
  }
  for (let at = 0; at < bytes.length;) {
    const { end, next } = findLineEnd(bytes, at)
    if (bytes[at] === dash && bytes[at + 1] === dash) beginPart()
    const inHeader = headers.isOpen()
    const isSoft = !inHeader && headers.modeOf() === "quoted" && end > at && bytes[end - 1] === equals
    const line = bytes.subarray(at, isSoft ? end - 1 : end)
    out.set(line, length)
    length += line.length
    const isLine = inHeader || headers.modeOf() === "keep"
    if (inHeader && end > at) headers.addLine(line)
    else if (inHeader) headers.end()
    if (isLine && ++lines > maxLines + bytes.length / 200) return undefined
    if (!isSoft) out[length++] = isLine ? lf : cr
    at = next
  }
  return out.subarray(0, length)
}

export const readEml = ({ bytes }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { default: PostalMime } = yield* loadPackage(fail, "postal-mime", () => import("postal-mime"))
      const joined = joinBodies(bytes)
      if (joined === undefined) return yield* fail("TooLarge", "it has more heads, parts or lines than can be meant")
      const mail = yield* Effect.tryPromise({
        try: () => PostalMime.parse(joined, { maxNestingDepth: 64 }),
        catch: (cause) => fail("Damaged", messageOf(cause), cause)
      })
      const writer = makeWriter()
      for (const [name, value] of headersOf(mail)) if (value !== "") writer.line(`${name}: ${oneLine(value)}`)
      for (const one of mail.attachments) writer.line(renderAttachment(one))
      const { html, text } = mail
      const body =
        text !== undefined && text.trim() !== ""
          ? Stream.fromIterable(writeLines(text, writer), { chunkSize: 1 })
          : html === undefined
            ? Stream.empty
            : Stream.unwrap(
                Effect.map(loadParser, (module) =>
                  streamHtml(module, Stream.fromIterable(sliceText(html), { chunkSize: 1 }), writer)
                )
              )
      return appendRest(writer)(body)
    })
  )
