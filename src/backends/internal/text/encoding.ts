/**
 * Encodings of text files beside UTF-8: UTF-16 with a byte order mark, and Windows-1252, which contains Latin-1. What is
 * decoded here is encoded to the same bytes.
 */
import * as Result from "effect/Result"
import type * as BackendError from "../../../core/BackendError.ts"
import { decodeText, mimeTypeOf, sniffLength } from "../files/mime.ts"

/** An encoding that is no UTF-8. */
export type Encoding = "utf-16le" | "utf-16be" | "windows-1252"

/** A text with its encoding, UTF-8 unless told otherwise. A byte order mark is its first character. */
export interface DecodedText {
  readonly text: string
  readonly encoding?: Encoding
}

/** The characters of the bytes 0x80 to 0x9f. Five bytes have none, and stay control characters. */
const special = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ"

const bytesOfSpecial = new Map([...special].map((character, index) => [character.charCodeAt(0), 0x80 + index]))

/** The largest part of a text that may be no ASCII: other alphabets are no Windows-1252. */
const mostForeign = 0.3

const isLoneControl = (byte: number): boolean =>
  (byte < 0x20 && (byte < 9 || byte > 13) && byte !== 0x1b) || byte === 0x7f

const partLength = 8_192

/** The text of UTF-16 units. A function takes only so many arguments. */
const textOf = (length: number, unitAt: (index: number) => number): string => {
  const parts: Array<string> = []
  for (let from = 0; from < length; from += partLength) {
    const units = Array.from({ length: Math.min(partLength, length - from) }, (_, index) => unitAt(from + index))
    parts.push(String.fromCharCode(...units))
  }
  return parts.join("")
}

const decodeUtf16 = (bytes: Uint8Array): DecodedText | undefined => {
  const isLittle = bytes[0] === 0xff && bytes[1] === 0xfe
  const isBig = bytes[0] === 0xfe && bytes[1] === 0xff
  if ((!isLittle && !isBig) || bytes.length % 2 === 1) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const text = textOf(bytes.length / 2, (index) => view.getUint16(2 * index, isLittle))
  // UTF-32 and binary files begin so, too.
  return text.includes("\0") ? undefined : { text, encoding: isLittle ? "utf-16le" : "utf-16be" }
}

const decodeWindows = (path: string, bytes: Uint8Array): DecodedText | undefined => {
  if (!mimeTypeOf(path, bytes.subarray(0, sniffLength)).endsWith("octet-stream")) return undefined
  let foreign = 0
  for (const byte of bytes) {
    if (isLoneControl(byte)) return undefined
    if (byte >= 0x80) foreign++
  }
  if (foreign > mostForeign * bytes.length) return undefined
  const text = textOf(bytes.length, (index) => {
    const byte = bytes[index] ?? 0
    return byte >= 0x80 && byte <= 0x9f ? special.charCodeAt(byte - 0x80) : byte
  })
  return { text, encoding: "windows-1252" }
}

/** Decodes a file that is no UTF-8; `undefined` if it is no text. */
export const decodeOther = (path: string, bytes: Uint8Array): DecodedText | undefined =>
  decodeUtf16(bytes) ?? decodeWindows(path, bytes)

const encodeUtf16 = (text: string, isLittle: boolean): Uint8Array => {
  const bytes = new Uint8Array(2 * text.length)
  const view = new DataView(bytes.buffer)
  for (let index = 0; index < text.length; index++) view.setUint16(2 * index, text.charCodeAt(index), isLittle)
  return bytes
}

/** Decodes the whole content of a file for an edit. */
export const decodeFile = (path: string, bytes: Uint8Array): Result.Result<DecodedText, BackendError.Reason> => {
  const text = decodeText(path, bytes)
  if (Result.isSuccess(text)) return Result.succeed({ text: text.success })
  const other = decodeOther(path, bytes)
  return other === undefined ? Result.fail(text.failure) : Result.succeed(other)
}

/** Encodes a text as its file was; fails with the first character that the encoding lacks. */
const encodeOther = (text: string, encoding: Encoding): Result.Result<Uint8Array, string> => {
  if (encoding !== "windows-1252") return Result.succeed(encodeUtf16(text, encoding === "utf-16le"))
  const bytes = new Uint8Array(text.length)
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    const byte = bytesOfSpecial.get(unit) ?? (unit < 0x80 || (unit >= 0xa0 && unit <= 0xff) ? unit : undefined)
    if (byte === undefined) return Result.fail(String.fromCodePoint(text.codePointAt(index) ?? unit))
    bytes[index] = byte
  }
  return Result.succeed(bytes)
}

const encoder = new TextEncoder()

/** The new content of a file in the encoding that it had. Fails with the sentence for the model. */
export const encodeFile = (text: string, encoding: Encoding | undefined): Result.Result<Uint8Array, string> =>
  encoding === undefined
    ? Result.succeed(encoder.encode(text))
    : Result.mapError(
        encodeOther(text, encoding),
        (missing) =>
          `the file is in the encoding ${encoding}, which has no ${JSON.stringify(missing)}; leave that out, or write the whole file, which makes it UTF-8`
      )
