/**
 * Documents, read as text: the one way in which file tools, retrieval and the web read them, in any format and on any
 * backend.
 *
 * A format reads a document as a stream of pieces. Each belongs to a named part (a page, a sheet, a slide), so readers
 * can stop early, hold little, and locate passages. `effect-deepagents/documents/Documents` has formats.
 *
 * ```ts
 * import { Stream } from "effect"
 * import { Document } from "effect-deepagents"
 *
 * const subtitles = Document.format("subtitles", {
 *   mimeTypes: ["application/x-subrip"],
 *   extensions: ["srt"],
 *   read: ({ bytes }) => Stream.make({ part: 1, label: "", text: new TextDecoder().decode(bytes) })
 * })
 * ```
 */
import * as Cause from "effect/Cause"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { TaggedError } from "../support/effect/taggedError.ts"
import { boundaryBefore } from "../support/text/text.ts"
import { oneLine } from "../support/text/untrusted.ts"

/**
 * Some text of one part of a document. Parts are counted from 1; `label` names one (`page 3`, `sheet "Prices"`), and is
 * empty if a document has no parts. The texts of a part, one after the other, are its text; a piece ends with the end
 * of a line, unless the line is very long.
 */
export interface Piece {
  readonly part: number
  readonly label: string
  readonly text: string
}

/**
 * A document to be read. `from` is the first part that is wanted: a format that can begins there, and others need not
 * heed it ({@link readPieces} does). `mimeType` is its stated type, with a `charset` perhaps.
 */
export interface Input {
  readonly bytes: Uint8Array
  readonly name?: string | undefined
  readonly mimeType?: string | undefined
  readonly password?: Redacted.Redacted | undefined
  readonly from?: number | undefined
}

/**
 * A document could not be read.
 *
 * - `Damaged`: the bytes do not fit the format, or are cut off
 * - `Encrypted`: it needs a password, or another one
 * - `TooLarge`: it unpacks to too much, or is longer than the limit
 * - `TimedOut`: a part of it took too long
 * - `Unsupported`: it uses an unsupported feature
 * - `Unavailable`: an optional package is not installed
 */
export class DocumentError extends TaggedError<DocumentError>()("DocumentError", {
  reason: Schema.Literals(["Damaged", "Encrypted", "TooLarge", "TimedOut", "Unsupported", "Unavailable"]),
  format: Schema.String,
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/**
 * A format of documents. `asWritten`: its files are text that people read and change as they are (HTML, CSV), so that
 * `read_file` shows them so unless it is asked for the document. `recognises` looks at the bytes, cheaply.
 */
export interface Format {
  readonly name: string
  readonly mimeTypes: ReadonlyArray<string>
  readonly extensions: ReadonlyArray<string>
  readonly asWritten: boolean
  readonly recognises?: ((bytes: Uint8Array) => boolean) | undefined
  readonly read: (input: Input) => Stream.Stream<Piece, DocumentError>
}

/** Makes a format. `name` is how people call it; extensions are in lower case, without the dot. */
export const format = (
  name: string,
  options: {
    /** The media types of the format. */
    readonly mimeTypes: ReadonlyArray<string>
    /** File name extensions, in lower case and without the dot. */
    readonly extensions: ReadonlyArray<string>
    /** True for formats whose text is the file itself. Default: `false`. */
    readonly asWritten?: boolean | undefined
    /** Recognises the format by the first bytes of a file. */
    readonly recognises?: ((bytes: Uint8Array) => boolean) | undefined
    /** Reads the text of a document, in pieces. */
    readonly read: (input: Input) => Stream.Stream<Piece, DocumentError>
  }
): Format => ({ ...options, name, asWritten: options.asWritten ?? false })

/** Types that say nothing, or only what something is packed in. */
const vague = new Set(["", "application/octet-stream", "application/zip", "application/x-zip-compressed", "text/plain"])

const extensionOf = (name: string): string => {
  const dot = name.lastIndexOf(".")
  return dot === -1 ? "" : name.slice(dot + 1).toLowerCase()
}

/** Finds the first format that recognises the bytes, else the type, else the extension of the name. */
export const find = (
  formats: ReadonlyArray<Format>,
  about: {
    readonly bytes?: Uint8Array | undefined
    readonly mimeType?: string | undefined
    readonly name?: string | undefined
  }
): Format | undefined => {
  const { bytes } = about
  const recognised = bytes === undefined ? undefined : formats.find((one) => one.recognises?.(bytes) === true)
  if (recognised !== undefined) return recognised
  const type = (about.mimeType ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? ""
  const byType = vague.has(type) ? undefined : formats.find((one) => one.mimeTypes.includes(type))
  if (byType !== undefined) return byType
  const extension = extensionOf(about.name ?? "")
  // A type that says something else is believed, but for text: mail and notebooks are said to be that.
  return extension !== "" && (vague.has(type) || type.startsWith("text/") || type === "application/json")
    ? formats.find((one) => one.extensions.includes(extension))
    : undefined
}

/**
 * Reads a document from its first wanted part. A defect of a format is `Damaged`, since anybody may write documents.
 */
export const readPieces = (format: Format, input: Input): Stream.Stream<Piece, DocumentError> => {
  const from = input.from ?? 1
  const pieces = Stream.suspend(() => format.read(input)).pipe(
    Stream.catchCauseIf(
      (cause) => Cause.hasDies(cause) && !Cause.hasInterrupts(cause),
      (cause) =>
        Stream.fail(
          new DocumentError({
            reason: "Damaged",
            format: format.name,
            message: `this ${format.name} can't be read`,
            cause: Cause.squash(cause)
          })
        )
    )
  )
  return from <= 1 ? pieces : Stream.filter(pieces, ({ part }) => part >= from)
}

/** The most characters of a line: longer ones go on in the next. */
const lineLength = 2_000

/** The place that a long line is parted at: behind a space, if there is one in its second half. */
const partAt = (line: string): number => {
  const space = line.lastIndexOf(" ", lineLength - 1)
  return space > lineLength / 2 ? space + 1 : boundaryBefore(line, lineLength)
}

const parted = (line: string): ReadonlyArray<string> => {
  const rows: Array<string> = []
  let rest = line
  while (rest.length > lineLength) {
    const at = partAt(rest)
    rows.push(rest.slice(0, at))
    rest = rest.slice(at)
  }
  return [...rows, rest]
}

/**
 * The lines of a document, with a line `--- page 3 ---` before each part that has a name. Lines of more than 2,000
 * characters go on in the next one.
 */
export const lines = <E, R>(pieces: Stream.Stream<Piece, E, R>): Stream.Stream<string, E, R> =>
  Stream.mapAccumArray(
    pieces,
    () => ({ part: 0, open: "" }),
    (state: { readonly part: number; readonly open: string }, batch) => {
      const out: Array<string> = []
      let { open, part } = state
      const close = () => {
        if (open !== "") out.push(...parted(open))
        open = ""
      }
      for (const piece of batch) {
        if (piece.part !== part) {
          close()
          part = piece.part
          if (piece.label !== "") out.push(`--- ${oneLine(piece.label)} ---`)
        }
        const rows = (open + piece.text).split("\n")
        open = rows.pop() ?? ""
        for (const row of rows) out.push(...parted(row))
      }
      return [{ part, open }, out] as const
    },
    { onHalt: ({ open }) => (open === "" ? [] : parted(open)) }
  )
