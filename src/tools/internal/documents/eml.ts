/** Mail: who wrote to whom and when, the text, and which files are attached. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Address, Email } from "postal-mime"
import type { DocumentError, Input, Piece } from "../../../core/Document.ts"
import { oneLine } from "../../../support/untrusted.ts"
import { failing, load, messageOf } from "./failure.ts"
import * as Html from "./html.ts"
import { makeWriter } from "./writer.ts"

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

const plain = (text: string) => text.split(/\r\n?|\n/)

export const read = ({ bytes }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { default: PostalMime } = yield* load(fail, "postal-mime", () => import("postal-mime"))
      const mail = yield* Effect.tryPromise({
        try: () => PostalMime.parse(bytes, { maxNestingDepth: 64 }),
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
          ? Stream.suspend(() => {
              for (const one of plain(text)) line(one)
              return Stream.fromArray(writer.take())
            })
          : html === undefined
            ? Stream.empty
            : Stream.unwrap(Effect.map(Html.parser, (module) => Html.pieces(module, Stream.make(html), writer)))
      return Stream.concat(
        body,
        Stream.suspend(() => Stream.fromArray(writer.end()))
      )
    })
  )
