/** Mail: who wrote to whom and when, the text, and which files are attached. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Address, Email } from "postal-mime"
import type { DocumentError, Input, Piece } from "../../core/Document.ts"
import { oneLine } from "../../support/text/untrusted.ts"
import { failing, load, messageOf } from "./failure.ts"
import * as Html from "./html.ts"
import { sliceLength } from "./limits.ts"
import { makeWriter, type Writer } from "./writer.ts"

const fail = failing("mail")

const mailbox = (address: Address): string =>
  address.group === undefined
    ? address.name === ""
      ? address.address
      : `${address.name} <${address.address}>`
    : `${address.name}: ${address.group.map(mailbox).join(", ")}`

const list = (addresses: ReadonlyArray<Address> | undefined): string => (addresses ?? []).map(mailbox).join(", ")

const heads = (mail: Email): ReadonlyArray<readonly [string, string]> => [
  ["From", mail.from === undefined ? "" : mailbox(mail.from)],
  ["To", list(mail.to)],
  ["Cc", list(mail.cc)],
  ["Date", mail.date ?? ""],
  ["Subject", mail.subject ?? ""]
]

const sizeOf = (content: Email["attachments"][number]["content"]): number =>
  typeof content === "string" ? content.length : content.byteLength

const attachment = ({ content, filename, mimeType }: Email["attachments"][number]): string =>
  `Attached: ${oneLine(filename ?? "a file without a name")} (${oneLine(mimeType)}, ${sizeOf(content)} bytes)`

/** The pieces of a text that a writer makes of its lines. */
const written = function* (text: string, line: (text: string) => void, writer: Writer): Generator<Piece> {
  let at = 0
  for (const { 0: end, index } of text.matchAll(/\r\n?|\n/g)) {
    if (index > at) line(text.slice(at, index))
    at = index + end.length
    yield* writer.take()
  }
  line(text.slice(at))
}

const slices = function* (text: string): Generator<string> {
  for (let at = 0; at < text.length; at += sliceLength) yield text.slice(at, at + sliceLength).replaceAll("\r", "\n")
}

const head = {
  message: /^content-type:\s*message\/rfc822/im,
  typed: /^content-type:/im,
  digest: /^content-type:\s*multipart\/digest/im,
  quoted: /^content-transfer-encoding:(?:[^\n]|\n[ \t])*quoted-printable/im,
  flowed: /format\s*=\s*"?flowed/i
}

/** The characters of a head that are looked at, and the lines that the parser is given of any mail. */
const maxHead = 65_536
const maxLines = 10_000

const lf = 10
const cr = 13
const dash = 45
const equals = 61

/**
 * A mail whose bodies are one line each, as far as that changes nothing of what is shown: each line costs the parser two
 * kilobytes. Line ends become CRs, soft ones go; heads, and lines that may be boundaries, stay lines. `undefined` for a
 * mail that still has too many.
 */
const compact = (bytes: Uint8Array): Uint8Array | undefined => {
  const out = new Uint8Array(bytes.length + 1)
  const latin1 = new TextDecoder("latin1")
  let length = 0
  let lines = 0
  let inHead = true
  let text = ""
  let hasDigest = false
  let mode: "keep" | "join" | "quoted" = "keep"
  for (let at = 0; at < bytes.length;) {
    const newline = bytes.indexOf(lf, at)
    const next = newline === -1 ? bytes.length : newline + 1
    let end = newline === -1 ? next : newline
    while (end > at && bytes[end - 1] === cr) end--
    const isBoundary = bytes[at] === dash && bytes[at + 1] === dash
    if (isBoundary) {
      if (out[length - 1] === cr) out[length - 1] = lf
      else if (length > 0 && out[length - 1] !== lf) out[length++] = lf
      inHead = true
      text = ""
    }
    const isSoft = !inHead && mode === "quoted" && end > at && bytes[end - 1] === equals
    out.set(bytes.subarray(at, isSoft ? end - 1 : end), length)
    length += end - at - (isSoft ? 1 : 0)
    const stays = inHead || (mode === "keep" && !isSoft)
    if (inHead && end > at) {
      text += `${latin1.decode(bytes.subarray(at, Math.min(end, at + Math.max(0, maxHead - text.length))))}\n`
    } else if (inHead) {
      hasDigest ||= head.digest.test(text)
      // A mail with a head of its own may follow a head.
      inHead = head.message.test(text) || (hasDigest && !head.typed.test(text))
      mode = text.length >= maxHead || head.flowed.test(text) ? "keep" : head.quoted.test(text) ? "quoted" : "join"
      text = ""
    }
    if (stays && ++lines > maxLines + bytes.length / 200) return undefined
    if (!isSoft) out[length++] = stays ? lf : cr
    at = next
  }
  return out.subarray(0, length)
}

export const read = ({ bytes }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { default: PostalMime } = yield* load(fail, "postal-mime", () => import("postal-mime"))
      const joined = compact(bytes)
      if (joined === undefined) return yield* fail("TooLarge", "it has more heads, parts or lines than can be meant")
      const mail = yield* Effect.tryPromise({
        try: () => PostalMime.parse(joined, { maxNestingDepth: 64 }),
        catch: (cause) => fail("Damaged", messageOf(cause), cause)
      })
      const writer = makeWriter()
      const line = (text: string) => {
        writer.text(text)
        writer.paragraph()
      }
      for (const [name, value] of heads(mail)) if (value !== "") line(`${name}: ${oneLine(value)}`)
      for (const one of mail.attachments) line(attachment(one))
      const { html, text } = mail
      const body =
        text !== undefined && text.trim() !== ""
          ? Stream.fromIterable(written(text, line, writer), { chunkSize: 1 })
          : html === undefined
            ? Stream.empty
            : Stream.unwrap(
                Effect.map(Html.parser, (module) =>
                  Html.pieces(module, Stream.fromIterable(slices(html), { chunkSize: 1 }), writer)
                )
              )
      return Stream.concat(
        body,
        Stream.suspend(() => Stream.fromArray(writer.end()))
      )
    })
  )
