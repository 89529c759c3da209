/** The table of formats. */
import * as Stream from "effect/Stream"
import * as Document from "../../core/Document.ts"
import { readEml } from "./eml.ts"
import { readEpub } from "./epub.ts"
import { makeFail } from "./failure.ts"
import { readHtml } from "./html.ts"
import { readIpynb } from "./ipynb.ts"
import { readPdf } from "./pdf/pdf.ts"
import { readPptx } from "./pptx.ts"
import { readCsv } from "./sheets/csv.ts"
import { readOds } from "./sheets/ods.ts"
import { readXlsx } from "./sheets/xlsx.ts"
import { readDocx } from "./words/docx.ts"
import { readOdp, readOdt } from "./words/odf.ts"
import { readRtf } from "./words/rtf.ts"
import { explainOldOffice, isArchive, isOldOffice, readEntries } from "./zip.ts"

const fail = makeFail("document")

/** Recognises archives that have an entry at a path. */
const hasEntry =
  (path: string) =>
  (bytes: Uint8Array): boolean =>
    isArchive(bytes) && readEntries(bytes)?.has(path) === true

const startsWith =
  (...starts: ReadonlyArray<string>) =>
  (bytes: Uint8Array): boolean => {
    const head = new TextDecoder("latin1").decode(bytes.subarray(0, 1_024)).trimStart()
    return starts.some((start) => head.slice(0, start.length).toLowerCase() === start)
  }

type ReadDocument = Document.Format["read"]

/** Makes a format of Office. `types` are those of files without and with macros. */
const office = (name: string, extension: string, types: readonly [string, string], main: string, read: ReadDocument) =>
  Document.format(name, {
    mimeTypes: [
      `application/vnd.openxmlformats-officedocument.${types[0]}`,
      `application/vnd.ms-${types[1]}.macroenabled.12`
    ],
    extensions: [extension, `${extension.slice(0, -1)}m`],
    recognises: hasEntry(main),
    read
  })

/** Makes a format of archives whose first entry is the MIME type. */
const typed = (name: string, extension: string, type: string, read: ReadDocument) =>
  Document.format(name, {
    mimeTypes: [type],
    extensions: [extension],
    recognises: (bytes) =>
      isArchive(bytes) && new TextDecoder("latin1").decode(bytes.subarray(30, 200)).startsWith(`mimetype${type}`),
    read
  })

const openDocument = "application/vnd.oasis.opendocument"

const knownFormats: ReadonlyArray<Document.Format> = [
  Document.format("PDF", {
    mimeTypes: ["application/pdf", "application/x-pdf"],
    extensions: ["pdf"],
    recognises: startsWith("%pdf-"),
    read: readPdf
  }),
  office("Word document", "docx", ["wordprocessingml.document", "word.document"], "word/document.xml", readDocx),
  office("workbook", "xlsx", ["spreadsheetml.sheet", "excel.sheet"], "xl/workbook.xml", readXlsx),
  office(
    "presentation",
    "pptx",
    ["presentationml.presentation", "powerpoint.presentation"],
    "ppt/presentation.xml",
    readPptx
  ),
  typed("OpenDocument text", "odt", `${openDocument}.text`, readOdt),
  typed("OpenDocument spreadsheet", "ods", `${openDocument}.spreadsheet`, readOds),
  typed("OpenDocument presentation", "odp", `${openDocument}.presentation`, readOdp),
  Document.format("rich text", {
    mimeTypes: ["application/rtf", "text/rtf"],
    extensions: ["rtf"],
    recognises: startsWith("{\\rtf"),
    read: readRtf
  }),
  typed("book", "epub", "application/epub+zip", readEpub),
  Document.format("page", {
    mimeTypes: ["text/html", "application/xhtml+xml"],
    extensions: ["html", "htm", "xhtml"],
    asWritten: true,
    recognises: startsWith("<!doctype html", "<html"),
    read: readHtml
  }),
  Document.format("table", {
    mimeTypes: ["text/csv", "text/tab-separated-values"],
    extensions: ["csv", "tsv"],
    asWritten: true,
    read: readCsv
  }),
  Document.format("notebook", { mimeTypes: ["application/x-ipynb+json"], extensions: ["ipynb"], read: readIpynb }),
  Document.format("mail", { mimeTypes: ["message/rfc822"], extensions: ["eml"], read: readEml })
]

/** Files of old Office. Only their bytes identify them, since texts and pages are called `.doc` too. */
const oldOffice = Document.format("file of an old form of Office", {
  mimeTypes: [],
  extensions: [],
  recognises: isOldOffice,
  read: ({ bytes }) =>
    Stream.fail(explainOldOffice(bytes, fail) ?? fail("Unsupported", "it is of no form that is known"))
})

export const formats: ReadonlyArray<Document.Format> = [...knownFormats, oldOffice]

/** Makes the error for a document of an unknown format. */
export const failUnknown = (): Document.DocumentError =>
  fail("Unsupported", `it is none of these: ${knownFormats.map(({ name }) => name).join(", ")}`)
