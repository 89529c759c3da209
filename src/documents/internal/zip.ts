/**
 * Reads entries of a ZIP archive by path, without unpacking the others.
 *
 * The central directory locates an entry; Effect's `Zip` unpacks it, and checks its size and checksum. One limit bounds
 * all bytes that are unpacked from an archive.
 */
import * as Effect from "effect/Effect"
import * as Zip from "effect/encoding/Zip"
import * as Stream from "effect/Stream"
import type { DocumentError } from "../../core/Document.ts"
import type { Fail } from "./failure.ts"
import { sliceLength, unpackLimit } from "./limits.ts"

/** An open archive. A missing path has no bytes. */
export interface Archive {
  readonly size: number
  readonly has: (path: string) => boolean
  readonly bytes: (path: string) => Stream.Stream<Uint8Array, DocumentError>
}

const signature = { central: 0x02014b50, end: 0x06054b50, end64: 0x06064b50, locator64: 0x07064b50 }

const max32 = 0xffff_ffff

/** The end record of an empty archive. It follows the entry that is unpacked. */
const endOfArchive = Uint8Array.from({ length: 22 }, (_, index) => [0x50, 0x4b, 5, 6][index] ?? 0)

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** Reads a number of 8 bytes. Rounding can occur only beyond the end of any archive. */
const readUint64 = (view: DataView, at: number): number => Number(view.getBigUint64(at, true))

/** Finds the end record: the last one, followed by at most a comment. */
const findEnd = (view: DataView): number | undefined => {
  const last = view.byteLength - 22
  for (let at = last; at >= Math.max(0, last - 0xffff); at--) {
    if (view.getUint32(at, true) === signature.end) return at
  }
  return undefined
}

/** Finds the start of the central directory from the end record. */
const findDirectory = (view: DataView, end: number): number => {
  const offset = view.getUint32(end + 16, true)
  if (offset !== max32) {
    // Some programs count the bytes before the archive, others do not.
    const start = end - view.getUint32(end + 12, true)
    return start >= 0 && start + 4 <= view.byteLength && view.getUint32(start, true) === signature.central
      ? start
      : offset
  }
  const locator = end - 20
  if (locator < 0 || view.getUint32(locator, true) !== signature.locator64) return offset
  const end64 = readUint64(view, locator + 8)
  return end64 + 56 <= view.byteLength && view.getUint32(end64, true) === signature.end64
    ? readUint64(view, end64 + 48)
    : offset
}

/** Reads the offset of an entry from its ZIP64 field. The field holds only numbers that overflow the header. */
const readOffset64 = (view: DataView, at: number, length: number, header: number): number => {
  let field = at
  while (field + 4 <= at + length) {
    const size = view.getUint16(field + 2, true)
    if (view.getUint16(field, true) === 1) {
      const before = [header + 20, header + 24].filter((number) => view.getUint32(number, true) === max32).length
      const place = field + 4 + 8 * before
      return place + 8 <= field + 4 + size && place + 8 <= view.byteLength ? readUint64(view, place) : max32
    }
    field += 4 + size
  }
  return max32
}

/** Reads the offsets of entries from the central directory. For a repeated path, the last one counts. */
const readDirectory = (bytes: Uint8Array, view: DataView, directory: number): ReadonlyMap<string, number> => {
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
    const start = offset === max32 ? readOffset64(view, at + 46 + name, extra, at) : offset
    offsets.set(decoder.decode(bytes.subarray(at + 46, at + 46 + name)), start)
    at = end
  }
  return offsets
}

/** Returns true if bytes begin like an archive. */
export const isArchive = (bytes: Uint8Array): boolean =>
  bytes[0] === 0x50 && bytes[1] === 0x4b && bytes[2] === 3 && bytes[3] === 4

/** Reads the offsets of the entries of an archive, by path. `undefined` if it has no directory. */
export const readEntries = (bytes: Uint8Array): ReadonlyMap<string, number> | undefined => {
  const view = viewOf(bytes)
  const end = findEnd(view)
  return end === undefined ? undefined : readDirectory(bytes, view, findDirectory(view, end))
}

const sliceBytes = function* (bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += sliceLength) yield bytes.subarray(at, at + sliceLength)
  yield endOfArchive
}

/** The first bytes of Office files before 2007, of Outlook mails, and of files with a password. */
const oldSignature = [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1]

const utf16 = (text: string): string => [...text].map((letter) => `${letter}\0`).join("")

const adviseConversion = (program: string, old: string, format: string) =>
  `it is of the old form of ${program} (.${old}); save it as .${format}, or convert it: soffice --headless --convert-to ${format} FILE.${old}`

/** Advice on files of old Office, by the name of a stream in the file. */
const oldForms = [
  ["EncryptedPackage", "Encrypted", "it is locked by a password; save it without one"],
  [
    "__substg1.0_",
    "Unsupported",
    "it is a mail of Outlook (.msg); save it as .eml, in Outlook or by the command: msgconvert FILE.msg"
  ],
  ["WordDocument", "Unsupported", adviseConversion("Word", "doc", "docx")],
  ["PowerPoint Document", "Unsupported", adviseConversion("PowerPoint", "ppt", "pptx")],
  ["Workbook", "Unsupported", adviseConversion("Excel", "xls", "xlsx")],
  ["Book", "Unsupported", adviseConversion("Excel", "xls", "xlsx")]
] as const

/** Returns true if bytes begin like a file of old Office. */
export const isOldOffice = (bytes: Uint8Array): boolean => oldSignature.every((byte, index) => bytes[index] === byte)

/** Explains what to do with a file of old Office. `undefined` for another file. */
export const explainOldOffice = (bytes: Uint8Array, fail: Fail): DocumentError | undefined => {
  if (!isOldOffice(bytes)) return undefined
  // The directory with the names of the streams may be anywhere in the file.
  const text = new TextDecoder("latin1").decode(bytes)
  const [, reason, message] = oldForms.find(([stream]) => text.includes(utf16(stream))) ?? []
  return fail(
    reason ?? "Unsupported",
    message ?? "it is of an old form of Office; save it as .docx, .xlsx, .pptx or PDF"
  )
}

/** Opens an archive. All bytes that are read count towards its limit. */
export const openArchive = (bytes: Uint8Array, fail: Fail): Effect.Effect<Archive, DocumentError> =>
  Effect.suspend(() => {
    const offsets = isArchive(bytes) ? readEntries(bytes) : undefined
    if (offsets === undefined || offsets.size === 0) {
      return Effect.fail(
        explainOldOffice(bytes, fail) ?? fail("Damaged", "it is no whole archive: it was cut off, or is something else")
      )
    }
    const starts = [...new Set(offsets.values())].toSorted((left, right) => left - right)
    /** An entry ends before the next one begins. */
    const ends = new Map(starts.map((start, index) => [start, starts[index + 1] ?? bytes.length]))
    const limit = unpackLimit(bytes.length)
    let remaining = limit
    const entry = (start: number): Uint8Array => bytes.subarray(start, ends.get(start))
    const readEntry = (path: string, start: number) => {
      let isFirst = true
      return Stream.fromIterable(sliceBytes(entry(start))).pipe(
        Stream.rechunk(1),
        Stream.pipeThroughChannel(Zip.decode()),
        Stream.flatMap(({ body, header }): Stream.Stream<Uint8Array, DocumentError | Zip.ZipError> => {
          // Bytes behind the entry may look like another entry, but are not in the directory.
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
          remaining -= chunk.length
          return remaining >= 0
            ? Effect.succeed(chunk)
            : Effect.fail(fail("TooLarge", `it unpacks to more than ${limit} bytes`))
        })
      )
    }
    return Effect.succeed({
      size: bytes.length,
      has: (path) => offsets.has(path),
      bytes: (path) => {
        const start = offsets.get(path)
        return start === undefined ? Stream.empty : readEntry(path, start)
      }
    })
  })
