/**
 * Reads documents as text: PDF, Word, Excel, PowerPoint, OpenDocument, RTF, EPUB, HTML, CSV, notebooks, mail.
 *
 * Each format gives a stream of pieces that say which page, sheet or slide they are of, so that a reader can stop early
 * and say where a passage is. Documents come from anybody: none makes the program throw, hang or hold much more than it
 * weighs, and an archive that unpacks to more than can be meant is refused (`TooLarge`). On Node, each PDF is read in a
 * thread of its own; on other runtimes, a hostile PDF can block the program.
 *
 * PDF needs the package `unpdf`, mail `postal-mime`, HTML and EPUB `htmlparser2`; the others need none.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Backend } from "effect-deepagents"
 * import { DeepAgent } from "effect-deepagents/deep"
 * import { Documents } from "effect-deepagents/documents"
 *
 * // An agent whose read_file understands documents.
 * const clerk = DeepAgent.make({ name: "clerk", prompt: "You cite pages.", documents: Documents.formats })
 *
 * // The text of one, wherever it comes from.
 * const textOf = (bytes: Uint8Array) => Documents.text({ bytes, name: "report.docx" })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Document from "../core/Document.ts"
import { headOf } from "../support/text/text.ts"
import * as Eml from "./internal/eml.ts"
import * as Epub from "./internal/epub.ts"
import { failing } from "./internal/failure.ts"
import * as Html from "./internal/html.ts"
import * as Ipynb from "./internal/ipynb.ts"
import * as Pdf from "./internal/pdf/pdf.ts"
import * as Pptx from "./internal/pptx.ts"
import * as Csv from "./internal/sheets/csv.ts"
import * as Ods from "./internal/sheets/ods.ts"
import * as Xlsx from "./internal/sheets/xlsx.ts"
import * as Docx from "./internal/words/docx.ts"
import * as Odf from "./internal/words/odf.ts"
import * as Rtf from "./internal/words/rtf.ts"
import { entries, isArchive, isOldOffice, oldOffice } from "./internal/zip.ts"

const fail = failing("document")

/** Reports whether bytes are an archive that has one of these entries. */
const holds =
  (...paths: ReadonlyArray<string>) =>
  (bytes: Uint8Array): boolean => {
    const found = isArchive(bytes) ? entries(bytes) : undefined
    return found !== undefined && paths.some((path) => found.has(path))
  }

const startsWith =
  (...starts: ReadonlyArray<string>) =>
  (bytes: Uint8Array): boolean => {
    const head = new TextDecoder("latin1").decode(bytes.subarray(0, 1_024)).trimStart()
    return starts.some((start) => head.slice(0, start.length).toLowerCase() === start)
  }

/** The type that an archive says it is of, in its first entry, which is not packed. */
const isOfType =
  (type: string) =>
  (bytes: Uint8Array): boolean =>
    isArchive(bytes) && new TextDecoder("latin1").decode(bytes.subarray(30, 200)).startsWith(`mimetype${type}`)

const office = "application/vnd.openxmlformats-officedocument."

/** PDF, page by page, in a thread of its own on Node. A page without text says so: it may be a scan. */
export const pdf: Document.Format = Document.format("PDF", {
  mimeTypes: ["application/pdf", "application/x-pdf"],
  extensions: ["pdf"],
  recognises: startsWith("%pdf-"),
  read: Pdf.read
})

/**
 * Word documents, by page where Word has said where pages end. Notes, comments, headers and footers come after the text.
 */
export const docx: Document.Format = Document.format("Word document", {
  mimeTypes: [`${office}wordprocessingml.document`, "application/vnd.ms-word.document.macroenabled.12"],
  extensions: ["docx", "docm"],
  recognises: holds("word/document.xml"),
  read: Docx.read
})

/**
 * Workbooks, by sheet: a line for a row, with its number. Numbers are shown in the formats of their cells, with all
 * their digits. Hidden sheets, rows and columns are marked; comments come after their sheet.
 */
export const xlsx: Document.Format = Document.format("workbook", {
  mimeTypes: [`${office}spreadsheetml.sheet`, "application/vnd.ms-excel.sheet.macroenabled.12"],
  extensions: ["xlsx", "xlsm"],
  recognises: holds("xl/workbook.xml"),
  read: Xlsx.read
})

/** Presentations, by slide, with the speaker's notes. */
export const pptx: Document.Format = Document.format("presentation", {
  mimeTypes: [`${office}presentationml.presentation`, "application/vnd.ms-powerpoint.presentation.macroenabled.12"],
  extensions: ["pptx", "pptm"],
  recognises: holds("ppt/presentation.xml"),
  read: Pptx.read
})

/** OpenDocument texts; comments and notes stand in their place, headers and footers after the text. */
export const odt: Document.Format = Document.format("OpenDocument text", {
  mimeTypes: ["application/vnd.oasis.opendocument.text"],
  extensions: ["odt"],
  recognises: isOfType("application/vnd.oasis.opendocument.text"),
  read: Odf.readText
})

/** OpenDocument spreadsheets, by sheet: a line for a row, with its number. */
export const ods: Document.Format = Document.format("OpenDocument spreadsheet", {
  mimeTypes: ["application/vnd.oasis.opendocument.spreadsheet"],
  extensions: ["ods"],
  recognises: isOfType("application/vnd.oasis.opendocument.spreadsheet"),
  read: Ods.read
})

/** OpenDocument presentations, by slide, with the speaker's notes. */
export const odp: Document.Format = Document.format("OpenDocument presentation", {
  mimeTypes: ["application/vnd.oasis.opendocument.presentation"],
  extensions: ["odp"],
  recognises: isOfType("application/vnd.oasis.opendocument.presentation"),
  read: Odf.readSlides
})

/** Rich text, with headings, lists, tables, notes and comments. */
export const rtf: Document.Format = Document.format("rich text", {
  mimeTypes: ["application/rtf", "text/rtf"],
  extensions: ["rtf"],
  recognises: startsWith("{\\rtf"),
  read: Rtf.read
})

/** Books, by section, in the order in which they are read. */
export const epub: Document.Format = Document.format("book", {
  mimeTypes: ["application/epub+zip"],
  extensions: ["epub"],
  recognises: isOfType("application/epub+zip"),
  read: Epub.read
})

/**
 * Pages as text, with headings, lists, tables and links. `read_file` shows their source unless it is asked for the
 * document.
 */
export const html: Document.Format = Document.format("page", {
  mimeTypes: ["text/html", "application/xhtml+xml"],
  extensions: ["html", "htm", "xhtml"],
  asWritten: true,
  recognises: startsWith("<!doctype html", "<html"),
  read: Html.read
})

/** Tables as text with commas, semicolons, tabs or bars between cells: a line for a row, with its number. */
export const csv: Document.Format = Document.format("table", {
  mimeTypes: ["text/csv", "text/tab-separated-values"],
  extensions: ["csv", "tsv"],
  asWritten: true,
  read: Csv.read
})

/** Jupyter notebooks, by cell, with what the cells put out. */
export const ipynb: Document.Format = Document.format("notebook", {
  mimeTypes: ["application/x-ipynb+json"],
  extensions: ["ipynb"],
  read: Ipynb.read
})

/** Mail: who wrote to whom and when, the text, and the names of what is attached. */
export const eml: Document.Format = Document.format("mail", {
  mimeTypes: ["message/rfc822"],
  extensions: ["eml"],
  read: Eml.read
})

/** Files of Office before 2007 and of Outlook: not read, but the failure says what to do with each. */
const old: Document.Format = Document.format("file of an old form of Office", {
  // Known by the bytes alone: texts and pages are called `.doc` too.
  mimeTypes: [],
  extensions: [],
  recognises: isOldOffice,
  read: ({ bytes }) => Stream.fail(oldOffice(bytes, fail) ?? fail("Unsupported", "it is of no form that is known"))
})

/** All of them, to be given to file tools, to retrieval, to `fetch_url`. */
export const formats: ReadonlyArray<Document.Format> = [
  pdf,
  docx,
  xlsx,
  pptx,
  odt,
  ods,
  odp,
  rtf,
  epub,
  html,
  csv,
  ipynb,
  eml,
  old
]

/** The format of some bytes: by what they are, else by their type, else by their name. */
export const detect = (input: Document.Input): Document.Format | undefined => Document.find(formats, input)

/** The pieces of a document in whichever of the formats it is. Fails with `Unsupported` if it is in none. */
export const read = (input: Document.Input): Stream.Stream<Document.Piece, Document.DocumentError> =>
  Stream.suspend(() => {
    const format = detect(input)
    return format === undefined
      ? Stream.fail(
          fail(
            "Unsupported",
            `it is none of these: ${formats.flatMap((one) => (one === old ? [] : [one.name])).join(", ")}`
          )
        )
      : Document.readPieces(format, input)
  })

/**
 * A document as one text, with a line `--- page 3 ---` before each part that has a name: at most `limit` characters
 * (default 1,000,000), `truncated` if there is more.
 */
export const text = (
  input: Document.Input,
  options: { readonly limit?: number | undefined } = {}
): Effect.Effect<{ readonly text: string; readonly truncated: boolean }, Document.DocumentError> =>
  Effect.suspend(() => {
    const limit = options.limit ?? 1_000_000
    let whole = ""
    return Document.lines(read(input)).pipe(
      Stream.takeWhile(() => whole.length <= limit),
      Stream.runForEach((line) =>
        Effect.sync(() => {
          whole += whole === "" ? line : `\n${line}`
        })
      ),
      Effect.map(() => ({ text: headOf(whole, limit), truncated: whole.length > limit }))
    )
  })
