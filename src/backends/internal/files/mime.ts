/** Detects whether a file is text or binary by its first bytes, and its MIME type by those and its name. */
import * as Result from "effect/Result"
import type * as BackendError from "../../../core/BackendError.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import { joinBytes } from "../../../support/store/joinBytes.ts"
import { basename } from "./path.ts"

/** The number of bytes at the beginning of a file that say whether it is binary. */
export const sniffLength = 8_192

/**
 * Tells whether a file is binary, by its beginning: there is a NUL in its first 8,192 bytes, or they are not UTF-8. A
 * character that is cut at their end is no reason, unless `complete` says that the file has no more.
 */
export const isBinary = (bytes: Uint8Array, options: { readonly complete: boolean }): boolean => {
  const head = bytes.subarray(0, sniffLength)
  const isAll = options.complete && head.length === bytes.length
  return head.includes(0) || Result.isFailure(decodeStrictly(head, !isAll))
}

/** Keeps the first bytes of a file, to say whether it is binary. */
export interface Sniffer {
  /** Adds a chunk, and tells whether the file may still be text. */
  readonly push: (chunk: Uint8Array) => boolean
  /** The first bytes of a file, to tell text from binary. */
  readonly isKnown: () => boolean
  /** Tells whether the file is text, and gives its first bytes. */
  readonly end: () => { readonly isText: boolean; readonly head: Uint8Array }
}

export const makeSniffer = (): Sniffer => {
  let head: Uint8Array = new Uint8Array(0)
  let isText: boolean | undefined
  return {
    push: (chunk) => {
      if (isText === undefined && chunk.length > 0) {
        const piece = chunk.subarray(0, sniffLength - head.length)
        // Most files come in one piece, which is not copied.
        head = head.length === 0 ? piece : joinBytes([head, piece])
        if (head.length === sniffLength) isText = !isBinary(head, { complete: false })
      }
      return isText !== false
    },
    isKnown: () => isText !== undefined,
    end: () => ({ isText: isText ?? !isBinary(head, { complete: true }), head })
  }
}

const decodeStrictly = (bytes: Uint8Array, isCut: boolean): Result.Result<string, undefined> =>
  Result.try({
    try: () => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: isCut }),
    catch: () => undefined
  })

/**
 * Decodes a whole file for lossless editing. Fails with `NotText` for a binary or invalid UTF-8 file. Keeps a byte
 * order mark.
 */
export const decodeText = (path: string, bytes: Uint8Array): Result.Result<string, BackendError.Reason> => {
  const text = bytes.subarray(0, sniffLength).includes(0) ? Result.fail(undefined) : decodeStrictly(bytes, false)
  return Result.mapError(text, () => ({ _tag: "NotText", mimeType: mimeTypeOf(path, bytes) }))
}

/** The type of a file of which nothing is known. */
const unknownType = "application/octet-stream"

const typesByExtension: { readonly [extension: string]: string } = {
  "3gp": "video/3gpp",
  "7z": "application/x-7z-compressed",
  aac: "audio/aac",
  aiff: "audio/aiff",
  avi: "video/x-msvideo",
  avif: "image/avif",
  bmp: "image/bmp",
  bz2: "application/x-bzip2",
  class: "application/java-vm",
  doc: "application/msword",
  docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  eot: "application/vnd.ms-fontobject",
  epub: "application/epub+zip",
  flac: "audio/flac",
  flv: "video/x-flv",
  gif: "image/gif",
  gz: "application/gzip",
  heic: "image/heic",
  heif: "image/heif",
  ico: "image/vnd.microsoft.icon",
  jar: "application/java-archive",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  m4a: "audio/mp4",
  mkv: "video/x-matroska",
  mov: "video/quicktime",
  mp3: "audio/mpeg",
  mp4: "video/mp4",
  mpeg: "video/mpeg",
  mpg: "video/mpeg",
  odp: "application/vnd.oasis.opendocument.presentation",
  ods: "application/vnd.oasis.opendocument.spreadsheet",
  odt: "application/vnd.oasis.opendocument.text",
  ogg: "audio/ogg",
  opus: "audio/opus",
  otf: "font/otf",
  parquet: "application/vnd.apache.parquet",
  pdf: "application/pdf",
  png: "image/png",
  ppt: "application/vnd.ms-powerpoint",
  pptx: "application/vnd.openxmlformats-officedocument.presentationml.presentation",
  rar: "application/vnd.rar",
  sqlite: "application/vnd.sqlite3",
  svg: "image/svg+xml",
  tar: "application/x-tar",
  tif: "image/tiff",
  tiff: "image/tiff",
  ttf: "font/ttf",
  wasm: "application/wasm",
  wav: "audio/wav",
  webm: "video/webm",
  webp: "image/webp",
  wmv: "video/x-ms-wmv",
  woff: "font/woff",
  woff2: "font/woff2",
  xls: "application/vnd.ms-excel",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  xz: "application/x-xz",
  zip: "application/zip",
  zst: "application/zstd"
}

/** Bytes at a place, as Latin-1 text. */
interface Magic {
  readonly at?: number | undefined
  readonly bytes: string
  readonly type: string
  /** Containers: the extension may be more exact. */
  readonly container?: true | undefined
}

const magics: ReadonlyArray<Magic> = [
  { bytes: "\x89PNG\r\n\x1a\n", type: "image/png" },
  { bytes: "\xff\xd8\xff", type: "image/jpeg" },
  { bytes: "GIF87a", type: "image/gif" },
  { bytes: "GIF89a", type: "image/gif" },
  { at: 8, bytes: "WEBP", type: "image/webp" },
  { at: 8, bytes: "WAVE", type: "audio/wav" },
  { at: 8, bytes: "AVI ", type: "video/x-msvideo" },
  { at: 4, bytes: "ftypheic", type: "image/heic" },
  { at: 4, bytes: "ftypheix", type: "image/heic" },
  { at: 4, bytes: "ftypmif1", type: "image/heif" },
  { at: 4, bytes: "ftypavif", type: "image/avif" },
  { at: 4, bytes: "ftypqt  ", type: "video/quicktime" },
  { at: 4, bytes: "ftyp", type: "video/mp4", container: true },
  { bytes: "BM", type: "image/bmp", container: true },
  { bytes: "II*\0", type: "image/tiff" },
  { bytes: "MM\0*", type: "image/tiff" },
  { bytes: "%PDF-", type: "application/pdf" },
  { bytes: "PK\x03\x04", type: "application/zip", container: true },
  { bytes: "\x1f\x8b", type: "application/gzip", container: true },
  { bytes: "BZh", type: "application/x-bzip2", container: true },
  { bytes: "\xfd7zXZ\0", type: "application/x-xz" },
  { bytes: "\x28\xb5\x2f\xfd", type: "application/zstd" },
  { bytes: "7z\xbc\xaf\x27\x1c", type: "application/x-7z-compressed" },
  { bytes: "Rar!\x1a\x07", type: "application/vnd.rar" },
  { bytes: "\0asm", type: "application/wasm" },
  { bytes: "SQLite format 3\0", type: "application/vnd.sqlite3" },
  { bytes: "OggS", type: "audio/ogg", container: true },
  { bytes: "fLaC", type: "audio/flac" },
  { bytes: "ID3", type: "audio/mpeg", container: true },
  { bytes: "\x1aE\xdf\xa3", type: "video/webm", container: true },
  { bytes: "wOFF", type: "font/woff" },
  { bytes: "wOF2", type: "font/woff2" },
  { bytes: "\x7fELF", type: "application/x-executable" },
  { bytes: "\xca\xfe\xba\xbe", type: "application/java-vm" }
]

const hasMagic = (head: Uint8Array, { at = 0, bytes }: Magic): boolean => {
  for (let i = 0; i < bytes.length; i++) if (head[at + i] !== bytes.charCodeAt(i)) return false
  return true
}

/** Gives the extension of a path in lower case, without the dot; empty for none. */
const extensionOf = (path: string): string => {
  const name = basename(path)
  const dot = name.lastIndexOf(".")
  return dot === -1 ? "" : name.slice(dot + 1).toLowerCase()
}

/**
 * The mime type of a binary file. Its first bytes decide, since a name may be wrong; the extension decides for
 * unknown bytes and containers.
 */
export const mimeTypeOf = (path: string, head: Uint8Array): string => {
  const extension = extensionOf(path)
  const byExtension = valueAt(typesByExtension, extension)
  const magic = magics.find((candidate) => hasMagic(head, candidate))
  return magic === undefined || magic.container === true ? (byExtension ?? magic?.type ?? unknownType) : magic.type
}
