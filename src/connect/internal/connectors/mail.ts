/** Mail of Gmail: the parts of a message, and the writing of one in MIME. */
import * as Base64 from "effect/encoding/Base64"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { cut } from "../../../support/text/text.ts"
import { plainOf } from "./client.ts"

const Header = Schema.Struct({ name: Schema.String, value: Schema.String })
export const Body = Schema.Struct({
  attachmentId: Schema.optionalKey(Schema.String),
  size: Schema.optionalKey(Schema.Finite),
  data: Schema.optionalKey(Schema.String)
})

interface Part {
  readonly mimeType?: string
  readonly filename?: string
  readonly headers?: ReadonlyArray<typeof Header.Type>
  readonly body?: typeof Body.Type
  readonly parts?: ReadonlyArray<Part>
}

const Part: Schema.Codec<Part> = Schema.Struct({
  mimeType: Schema.optionalKey(Schema.String),
  filename: Schema.optionalKey(Schema.String),
  headers: Schema.optionalKey(Schema.Array(Header)),
  body: Schema.optionalKey(Body),
  parts: Schema.optionalKey(Schema.Array(Schema.suspend((): Schema.Codec<Part> => Part)))
})

export const Wire = Schema.Struct({
  id: Schema.String,
  threadId: Schema.String,
  labelIds: Schema.optionalKey(Schema.Array(Schema.String)),
  snippet: Schema.optionalKey(Schema.String),
  payload: Schema.optionalKey(Part)
})

/** All parts of a message, from the outside in. */
const partsOf = (part: Part | undefined): ReadonlyArray<Part> =>
  part === undefined ? [] : [part, ...(part.parts ?? []).flatMap(partsOf)]

const textOf = (data: string | undefined): string =>
  Result.match(Base64Url.decode((data ?? "").replaceAll("=", "")), {
    onSuccess: (bytes) => new TextDecoder().decode(bytes),
    onFailure: () => ""
  })

export const messageOf = ({ id, labelIds = [], payload, snippet = "", threadId }: typeof Wire.Type) => {
  const header = (name: string) =>
    payload?.headers?.find((one) => one.name.toLowerCase() === name)?.value.slice(0, 2_000) ?? ""
  const parts = partsOf(payload)
  const own = (type: string) =>
    parts.find(
      ({ body, filename, mimeType }) => mimeType === type && (filename ?? "") === "" && body?.data !== undefined
    )
  const plain = textOf(own("text/plain")?.body?.data)
  return {
    id,
    threadId,
    from: header("from"),
    to: header("to"),
    subject: header("subject"),
    date: header("date"),
    labels: labelIds,
    snippet: plainOf(snippet),
    text: plain === "" ? plainOf(textOf(own("text/html")?.body?.data)) : cut(plain, 20_000),
    attachments: parts.flatMap(({ body, filename = "", mimeType = "" }) =>
      body?.attachmentId === undefined
        ? []
        : [{ id: body.attachmentId, name: filename, mimeType, size: body.size ?? 0 }]
    )
  }
}

const encode = (value: string): string => Base64.encode(new TextEncoder().encode(value))

/** The bytes in one encoded word of a header (RFC 2047 allows 75 characters with its marks). */
const wordLength = 45

/** Encodes a text as ASCII words of a header, without splitting a character. */
const wordsOf = (text: string): string => {
  const words: Array<string> = []
  let word = ""
  let length = 0
  for (const character of text) {
    const size = new TextEncoder().encode(character).length
    if (length + size > wordLength) {
      words.push(word)
      word = ""
      length = 0
    }
    word += character
    length += size
  }
  return [...words, word].map((one) => `=?UTF-8?B?${encode(one)}?=`).join("\r\n ")
}

/** The longest header text that needs no encoding. A line has at most 998 characters. */
const plainLength = 900

const isPlain = (text: string): boolean => text.length <= plainLength && /^[\x20-\x7e]*$/.test(text)

/** Joins the lines of a text: a line break would begin another header. */
const lineOf = (value: string): string => value.replaceAll(/[\r\n\0]+/g, " ").trim()

const headerOf = (name: string, value: string): string => {
  const line = lineOf(value)
  return `${name}: ${isPlain(line) ? line : wordsOf(line)}`
}

/** Encodes the name of an address in ASCII. */
const addressOf = (value: string): string => {
  const line = lineOf(value)
  const at = line.lastIndexOf("<")
  const name = line.slice(0, Math.max(0, at)).trim()
  return isPlain(name) ? line : `${wordsOf(name.replaceAll(/^"|"$/g, ""))} ${line.slice(at)}`
}

/** Writes a message in MIME, as base64url. */
export const rawOf = (draft: {
  readonly to: ReadonlyArray<string>
  readonly subject: string
  readonly text: string
  readonly cc?: ReadonlyArray<string> | undefined
  readonly bcc?: ReadonlyArray<string> | undefined
  readonly inReplyTo?: string | undefined
}): string => {
  const { bcc = [], cc = [], inReplyTo, subject, text: body, to } = draft
  const addresses = (name: string, all: ReadonlyArray<string>) =>
    all.length === 0 ? [] : [`${name}: ${all.map(addressOf).join(",\r\n ")}`]
  const lines = [
    ...addresses("To", to),
    ...addresses("Cc", cc),
    ...addresses("Bcc", bcc),
    headerOf("Subject", subject),
    ...(inReplyTo === undefined ? [] : [headerOf("In-Reply-To", inReplyTo), headerOf("References", inReplyTo)]),
    "MIME-Version: 1.0",
    'Content-Type: text/plain; charset="UTF-8"',
    "Content-Transfer-Encoding: base64",
    "",
    encode(body).replaceAll(/.{76}/g, "$&\r\n")
  ]
  return Base64Url.encode(new TextEncoder().encode(lines.join("\r\n")))
}
