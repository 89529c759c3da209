/** The tools `ls` and `read_file`. */
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as Schema from "effect/Schema"
import * as Backend from "../../../core/Backend.ts"
import * as Content from "../../../core/Content.ts"
import * as Document from "../../../core/Document.ts"
import * as Tool from "../../../core/Tool.ts"
import { ToolContext } from "../../../core/ToolContext.ts"
import * as ToolOutput from "../../../core/ToolOutput.ts"
import * as Path from "../files/path.ts"
import { defaultLimit } from "../text/lines.ts"
import { maxCharacters, maxRowLength, renderListing, renderWindow } from "../text/render.ts"
import { readDocument } from "./document.ts"
import type { Kit } from "./kit.ts"
import { hold } from "./seen.ts"
import { filePath, listingDetails, showPath } from "./text.ts"

/** The most bytes of an image. Providers refuse a request with a larger one. */
const maxImageBytes = 3_750_000

/** The most bytes of a PDF. */
const maxPdfBytes = 10_000_000

/** The most bytes of a recording. */
const maxAudioBytes = 10_000_000

const pdf = "application/pdf"

const images: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"])

const megabytes = (bytes: number): string => `${bytes / 1_000_000} MB`

export const ls = (kit: Kit): Tool.Tool<Backend.Backend> =>
  Tool.make("ls", {
    description: [
      'Lists what is in a directory, by name: files with their sizes in bytes, directories with a "/" at the end.',
      ...(kit.offers("glob") ? ["To find files in directories of directories, use glob."] : [])
    ].join(" "),
    parameters: {
      path: Schema.optionalKey(
        Schema.String.annotate({ description: "The path of the directory; the working directory if left out" })
      )
    },
    annotations: { readOnly: true, idempotent: true, addresses: [], aliases: ["Read"] },
    execute: Effect.fnUntraced(function* (args) {
      const backend = yield* Backend.Backend
      const path = args.path ?? Path.workingFolder(backend.paths)
      const listing = yield* backend.ls(path)
      return ToolOutput.make(renderListing(listing), { details: listingDetails(path, listing) })
    }, kit.tell)
  })

/** Makes a block of a file, or the reason why the model gets none. */
const attach = Effect.fnUntraced(function* (file: Backend.BinaryFile) {
  const { run } = yield* ToolContext
  const isPdf = file.mimeType === pdf
  const isAudio = file.mimeType.startsWith("audio/")
  const what = `${showPath(file.path)} is not text: ${file.mimeType}, ${file.size} bytes.`
  const makeNotice = (text: string) => [Content.text(`${what} ${text}`)]
  if (!isPdf && !isAudio && !images.has(file.mimeType)) return makeNotice("It can't be shown.")
  if (!isAudio && run.model?.supportsVision !== true)
    return makeNotice(`This model can't see ${isPdf ? "PDFs" : "images"}.`)
  const limit = isPdf ? maxPdfBytes : isAudio ? maxAudioBytes : maxImageBytes
  const tooLarge = makeNotice(`It is too large to be shown: the limit is ${megabytes(limit)}.`)
  if (file.size > limit) return tooLarge
  const backend = yield* Backend.Backend
  const [transfer] = yield* backend.download([file.path])
  if (transfer === undefined) return makeNotice("It could not be had.")
  if (!transfer.ok) return yield* Effect.fail(transfer.error)
  // It may have grown since.
  if (transfer.value.length > limit) return tooLarge
  const source = { base64: Base64.encode(transfer.value), mimeType: file.mimeType }
  return [
    Content.text(`${what} Here it is:`),
    isPdf || isAudio ? Content.file({ ...source, name: Path.basename(file.path) }) : Content.image(source)
  ]
})

/** The parameters that a tool has which understands documents; without any they are not offered. */
const forDocuments = {
  page: Schema.optionalKey(
    Schema.Finite.annotate({
      description:
        "Of a document: the page, sheet, slide or section to begin at, counted from 1; lines count from there"
    })
  ),
  raw: Schema.optionalKey(
    Schema.Boolean.annotate({
      description:
        "true: as it is, not as a document (the source of a page or a mail, a PDF as you see it); false: as a document; what is usual for the file if left out"
    })
  )
}

const parameters = {
  file_path: filePath,
  offset: Schema.optionalKey(
    Schema.Finite.annotate({
      description: "The first line to read, counted from 1; a negative one counts from the end; 1 if left out"
    })
  ),
  limit: Schema.optionalKey(
    Schema.Finite.annotate({ description: `How many lines to read; ${defaultLimit} if left out` })
  ),
  column: Schema.optionalKey(
    Schema.Finite.annotate({ description: "How many characters of the first line to leave out; 0 if left out" })
  )
}

const Given = Schema.Struct({ ...parameters, ...forDocuments })

/** Resolves a negative offset, which counts from the end. */
const fromEnd = (backend: Backend.Service, path: string, offset: number | undefined) =>
  offset === undefined || offset >= 0
    ? Effect.succeed(offset)
    : Effect.map(backend.read(path, { limit: 0 }), (file) =>
        file.kind === "binary" ? 1 : Math.max(1, file.totalLines + 1 + Math.trunc(offset))
      )

export const readFile = (kit: Kit): Tool.Tool<Backend.Backend | ToolContext> => {
  const { documents } = kit
  /** The document format of a file; `undefined` to show the file as plain text. */
  const formatOf = (file: Backend.TextFile | Backend.BinaryFile, raw: boolean | undefined) => {
    if (raw === true || documents.length === 0) return undefined
    const mimeType = file.kind === "binary" ? file.mimeType : "text/plain"
    const format = Document.find(documents, { name: file.path, mimeType })
    return format?.asWritten === true && file.kind === "text" && raw !== false ? undefined : format
  }
  return Tool.make("read_file", {
    description: [
      `Reads a file: a text with the number of each line before it and a tab, at most ${defaultLimit} lines and ${maxCharacters} characters at once.`,
      "What was left out is told, and with which offset (and column) to go on.",
      `Lines of more than ${maxRowLength} characters go on in rows N.1, N.2 and so on.`,
      ...(documents.length === 0
        ? []
        : [
            `Documents (${documents.map(({ name }) => name).join(", ")}) are read as text, with marks of their pages or sheets.`
          ]),
      `Images (up to ${megabytes(maxImageBytes)}) and PDFs (up to ${megabytes(maxPdfBytes)}) are shown, if you can see them; of other files that are not text you are told what they are.`,
      ...(kit.offers("edit_file") || kit.offers("write_file") ? ["A file must be read before it is changed."] : [])
    ].join(" "),
    parameters: documents.length === 0 ? parameters : { ...parameters, ...forDocuments },
    annotations: { readOnly: true, idempotent: true, paged: true, addresses: [], aliases: ["Read"] },
    execute: Effect.fnUntraced(function* (args: typeof Given.Type) {
      const { column, file_path, limit, offset, page = 1, raw } = args
      const backend = yield* Backend.Backend
      const path = yield* Effect.fromResult(Path.resolve("read", file_path, backend.paths))
      return yield* hold(
        [path],
        Effect.fnUntraced(function* (seen) {
          const window = {
            limit: Math.min(limit ?? defaultLimit, defaultLimit),
            offset: yield* fromEnd(backend, path, offset),
            column
          }
          const file = yield* backend.read(path, window)
          const format = formatOf(file, raw)
          if (format !== undefined) {
            const output = yield* readDocument(documents, format, file, {
              offset: offset === undefined || offset === 0 ? 1 : Math.trunc(offset),
              limit: Math.max(1, Math.trunc(window.limit)),
              page: Math.max(1, Math.trunc(page))
            })
            // An edit can't find the text of a document in its file.
            if (file.kind === "binary") yield* seen.set(path, file.version)
            return output
          }
          if (file.kind === "binary") {
            const content = yield* attach(file)
            yield* seen.set(path, file.version)
            const { mimeType, size } = file
            return ToolOutput.make(content, { details: { kind: "read", path, mimeType, size } })
          }
          // A window without lines shows nothing, unless the file is empty.
          if (file.endLine >= file.startLine || file.totalLines === 0) yield* seen.set(path, file.version)
          const { endLine, startLine, totalLines } = file
          return ToolOutput.make(renderWindow(file, window), {
            details: { kind: "read", path, startLine, endLine, totalLines }
          })
        })
      )
    }, kit.tell)
  })
}
