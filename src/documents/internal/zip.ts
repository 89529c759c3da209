/**
 * Archives at hand: any entry of one, by its path, without unpacking the others.
 *
 * The central directory says where entries are, as it does for the programs that write documents; the entry itself is
 * unpacked by Effect's `Zip`, which checks its size and its sum. All that is unpacked of an archive counts together.
 */
import * as Effect from "effect/Effect"
import * as Zip from "effect/encoding/Zip"
import * as Stream from "effect/Stream"
import type { DocumentError } from "../../core/Document.ts"
import type { Fail } from "./failure.ts"
import { sliceLength, unpacked } from "./limits.ts"

/** An archive: which entries it has, and the bytes of one. A path that it does not have has no bytes. */
export interface Archive {
  readonly size: number
  readonly has: (path: string) => boolean
  readonly bytes: (path: string) => Stream.Stream<Uint8Array, DocumentError>
}

const signature = { central: 0x02014b50, end: 0x06054b50, end64: 0x06064b50, locator64: 0x07064b50 }

const max32 = 0xffff_ffff

/** The end record of an archive without entries: what follows the one that is unpacked. */
const endOfArchive = Uint8Array.from({ length: 22 }, (_, index) => [0x50, 0x4b, 5, 6][index] ?? 0)

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** A number of 8 bytes; beyond what is exact it is out of any archive at hand. */
const wide = (view: DataView, at: number): number => Number(view.getBigUint64(at, true))

/** The end record: the last one, behind which there is at most a comment. */
const findEnd = (view: DataView): number | undefined => {
  const last = view.byteLength - 22
  for (let at = last; at >= Math.max(0, last - 0xffff); at--) {
    if (view.getUint32(at, true) === signature.end) return at
  }
  return undefined
}

/** The place where the central directory begins, by the end record. */
const directoryOf = (view: DataView, end: number): number => {
  const offset = view.getUint32(end + 16, true)
  if (offset !== max32) {
    // Bytes before the archive are counted by some programs, and not by others.
    const start = end - view.getUint32(end + 12, true)
    return start >= 0 && start + 4 <= view.byteLength && view.getUint32(start, true) === signature.central
      ? start
      : offset
  }
  const locator = end - 20
  if (locator < 0 || view.getUint32(locator, true) !== signature.locator64) return offset
  const end64 = wide(view, locator + 8)
  return end64 + 56 <= view.byteLength && view.getUint32(end64, true) === signature.end64
    ? wide(view, end64 + 48)
    : offset
}

/** The offset of an entry in its ZIP64 field, which has those of three numbers that are not in the header. */
const offset64 = (view: DataView, at: number, length: number, header: number): number => {
  let field = at
  while (field + 4 <= at + length) {
    const size = view.getUint16(field + 2, true)
    if (view.getUint16(field, true) === 1) {
      const before = [header + 20, header + 24].filter((number) => view.getUint32(number, true) === max32).length
      const place = field + 4 + 8 * before
      return place + 8 <= field + 4 + size && place + 8 <= view.byteLength ? wide(view, place) : max32
    }
    field += 4 + size
  }
  return max32
}

/** The offsets of the entries of a central directory, by path: of several of one path, the last. */
const entriesOf = (bytes: Uint8Array, view: DataView, directory: number): ReadonlyMap<string, number> => {
  const offsets = new Map<string, number>()
  const decoder = new TextDecoder()
  let at = directory
  while (at + 46 <= bytes.length && view.getUint32(at, true) === signature.central) {
    const name = view.getUint16(at + 28, true)
    const extra = view.getUint16(at + 30, true)
    const comment = view.getUint16(at + 32, true)
    const end = at + 46 + name + extra + comment
    if (end > bytes.length) break
    const offset = view.getUint32(at + 42, true)
    const start = offset === max32 ? offset64(view, at + 46 + name, extra, at) : offset
    offsets.set(decoder.decode(bytes.subarray(at + 46, at + 46 + name)), start)
    at = end
  }
  return offsets
}

/** Says whether bytes begin as an archive does. */
export const isArchive = (bytes: Uint8Array): boolean =>
  bytes[0] === 0x50 && bytes[1] === 0x4b && bytes[2] === 3 && bytes[3] === 4

/** The places of the entries of an archive, by path; `undefined` if it has no directory. */
export const entries = (bytes: Uint8Array): ReadonlyMap<string, number> | undefined => {
  const view = viewOf(bytes)
  const end = findEnd(view)
  return end === undefined ? undefined : entriesOf(bytes, view, directoryOf(view, end))
}

const slices = function* (bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += sliceLength) yield bytes.subarray(at, at + sliceLength)
  yield endOfArchive
}

/** The beginning of files of Office before 2007, of mails of Outlook, and of files that are locked by a password. */
const old = [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1]

const utf16 = (text: string): string => [...text].map((letter) => `${letter}\0`).join("")

/** Streams in files of the old form, and what to do with the file. LibreOffice is not run here. */
const oldForms = [
  ["EncryptedPackage", "Encrypted", "it is locked by a password; save it without one"],
  [
    "__substg1.0_",
    "Unsupported",
    "it is a mail of Outlook (.msg); save it as .eml, in Outlook or by the command: msgconvert FILE.msg"
  ],
  [
    "WordDocument",
    "Unsupported",
    "it is of the old form of Word (.doc); save it as .docx, or convert it: soffice --headless --convert-to docx FILE.doc"
  ],
  [
    "PowerPoint Document",
    "Unsupported",
    "it is of the old form of PowerPoint (.ppt); save it as .pptx, or convert it: soffice --headless --convert-to pptx FILE.ppt"
  ],
  [
    "Workbook",
    "Unsupported",
    "it is of the old form of Excel (.xls); save it as .xlsx, or convert it: soffice --headless --convert-to xlsx FILE.xls"
  ],
  [
    "Book",
    "Unsupported",
    "it is of the old form of Excel (.xls); save it as .xlsx, or convert it: soffice --headless --convert-to xlsx FILE.xls"
  ]
] as const

/** Reports whether bytes begin as a file of the old form does. */
export const isOldOffice = (bytes: Uint8Array): boolean => old.every((byte, index) => bytes[index] === byte)

/** Tells what to do with a file of the old form. `undefined` for another file. */
export const oldOffice = (bytes: Uint8Array, fail: Fail): DocumentError | undefined => {
  if (!isOldOffice(bytes)) return undefined
  // The names of its streams are in its directory, wherever that is.
  const text = new TextDecoder("latin1").decode(bytes)
  const [, reason, message] = oldForms.find(([stream]) => text.includes(utf16(stream))) ?? []
  return fail(
    reason ?? "Unsupported",
    message ?? "it is of an old form of Office; save it as .docx, .xlsx, .pptx or PDF"
  )
}

/** Opens an archive. Whatever is read of it by `bytes` counts to what it may unpack to. */
export const open = (bytes: Uint8Array, fail: Fail): Effect.Effect<Archive, DocumentError> =>
  Effect.suspend(() => {
    const found = isArchive(bytes) ? entries(bytes) : undefined
    if (found === undefined || found.size === 0) {
      return Effect.fail(
        oldOffice(bytes, fail) ?? fail("Damaged", "it is no whole archive: it was cut off, or is something else")
      )
    }
    const starts = [...new Set(found.values())].toSorted((left, right) => left - right)
    /** An entry ends where the next begins at the latest. */
    const ends = new Map(starts.map((start, index) => [start, starts[index + 1] ?? bytes.length]))
    const limit = unpacked(bytes.length)
    let left = limit
    const entry = (start: number): Uint8Array => bytes.subarray(start, ends.get(start))
    const read = (path: string, start: number) => {
      let isFirst = true
      return Stream.fromIterable(slices(entry(start))).pipe(
        Stream.rechunk(1),
        Stream.pipeThroughChannel(Zip.decode()),
        Stream.flatMap(({ body, header }): Stream.Stream<Uint8Array, DocumentError | Zip.ZipError> => {
          // Behind the entry there is none: bytes that look like one are not in the directory.
          if (!isFirst) return Stream.empty
          isFirst = false
          return header.path === path ? body : Stream.fail(fail("Damaged", "its directory and its entries differ"))
        }),
        Stream.mapError((error) =>
          Zip.isZipError(error)
            ? fail(error.kind === "Unsupported" ? "Unsupported" : "Damaged", error.message, error)
            : error
        ),
        Stream.mapEffect((chunk) => {
          left -= chunk.length
          return left >= 0
            ? Effect.succeed(chunk)
            : Effect.fail(fail("TooLarge", `it unpacks to more than ${limit} bytes`))
        })
      )
    }
    return Effect.succeed({
      size: bytes.length,
      has: (path) => found.has(path),
      bytes: (path) => {
        const start = found.get(path)
        return start === undefined ? Stream.empty : read(path, start)
      }
    })
  })
