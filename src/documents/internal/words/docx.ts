/**
 * Reads Word documents: paragraphs, headings, numbered lists, tables, formulas, and pages where Word stored their ends.
 * Notes, comments, headers and footers follow the text.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../../core/Document.ts"
import { cut, joinLines } from "../../../support/text/text.ts"
import { makeFail } from "../failure.ts"
import { parseLevel } from "../labels.ts"
import { nameOf } from "../names.ts"
import { findMainPart, readRelations } from "../relations.ts"
import { handleFormulas } from "../sheets/formula.ts"
import { appendRest, makeWriter, type Writer } from "../writer.ts"
import { type Attributes, handleElements, type Handler, readPart, skipElements, streamPart } from "../xml.ts"
import { type Archive, openArchive } from "../zip.ts"
import { makeScripts, type Script } from "./scripts.ts"
import { type Paragraph, readPrefixes } from "./wordStyles.ts"

const fail = makeFail("Word document")

/** Elements that are not text of the document: deletions, moves, earlier formatting, repetitions. */
const skipped = new Set(["Fallback", "del", "moveFrom", "pPrChange", "rPrChange", "sectPrChange"])

const handlerOf = (writer: Writer, isPaged: boolean, prefixOf: (paragraph: Paragraph) => string): Handler => {
  const scripts = makeScripts(writer)
  let inText = 0
  let page = 1
  /** True after a break by the author. Word repeats it as a rendered break. */
  let isBroken = false
  /** The open paragraphs. The paragraph of a text box is inside of another one. */
  const open: Array<Paragraph> = []
  let script: Script = ""
  /** The start of a note or a comment, until its first paragraph. */
  let lead = ""
  const nextPage = () => {
    page++
    writer.part(`page ${page}`)
  }
  const setParagraph = (change: (value: string | undefined) => Partial<Paragraph>) => (attributes: Attributes) => {
    const paragraph = open.at(-1)
    if (paragraph !== undefined) Object.assign(paragraph, change(attributes("val")))
  }
  const breakLine = (attributes: Attributes) => {
    if (attributes("type") !== "page") return writer.text("\n")
    if (!isPaged) return
    nextPage()
    isBroken = true
  }
  const writeReference = (kind: string) => (attributes: Attributes) => {
    scripts.close()
    writer.text(`[${kind} ${nameOf(attributes("id"))}]`)
  }
  const beginNote = (kind: string) => (attributes: Attributes) => {
    // Notes with a type are the lines between the text and its notes.
    if (attributes("id") === undefined || attributes("type") !== undefined) return
    const author = nameOf(attributes("author"))
    lead = `[${kind} ${nameOf(attributes("id"))}] ${author === "" ? "" : `${author}: `}`
  }
  const handler = handleElements(
    {
      t: { open: () => inText++, close: () => inText-- },
      r: () => (script = ""),
      vertAlign: (attributes) => {
        const value = attributes("val")
        script = value === "superscript" ? "^" : value === "subscript" ? "_" : ""
      },
      tab: () => writer.text("\t"),
      br: breakLine,
      cr: breakLine,
      lastRenderedPageBreak: () => {
        if (isPaged && !(isBroken && writer.isEmpty())) nextPage()
        isBroken = false
      },
      noBreakHyphen: () => scripts.text("-", script),
      pStyle: setParagraph((style) => ({ style })),
      numId: setParagraph((list) => ({ list })),
      ilvl: setParagraph((level) => ({ level: parseLevel(level) })),
      outlineLvl: setParagraph((level) => ({ outline: parseLevel(level) })),
      tr: writer.row,
      tc: writer.cell,
      p: {
        open: () => {
          scripts.close()
          writer.paragraph()
          open.push({ style: undefined, list: undefined, level: undefined, outline: undefined })
          writer.text(lead)
          lead = ""
        },
        close: () => {
          const paragraph = open.pop()
          scripts.close()
          writer.paragraph(paragraph === undefined ? "" : prefixOf(paragraph))
        }
      },
      footnoteReference: writeReference("footnote"),
      endnoteReference: writeReference("endnote"),
      commentReference: writeReference("comment"),
      footnote: beginNote("footnote"),
      endnote: beginNote("endnote"),
      comment: beginNote("comment")
    },
    (text) => {
      if (inText > 0) scripts.text(text, script)
    }
  )
  return skipElements((name) => skipped.has(name), handleFormulas(writer, scripts, handler))
}

/** Reads how many pages Word counted when it saved the document. */
const countPages = (archive: Archive): Effect.Effect<number> => {
  let inPages = false
  let count = ""
  const pages = { open: () => (inPages = true), close: () => (inPages = false) }
  const handler = handleElements({ Pages: pages }, (text) => {
    if (inPages) count += text
  })
  return readPart(archive, "docProps/app.xml", fail, handler).pipe(
    Effect.map(() => Number(count)),
    Effect.orElseSucceed(() => 0)
  )
}

const extras = ["footnotes", "endnotes", "comments"]

/** Maximum number of headers and footers, and characters of one. */
const maxEdges = 100
const edgeLength = 2_000

export const readDocx = ({ bytes }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const archive = yield* openArchive(bytes, fail)
      const main = yield* findMainPart(archive, fail, "word/document.xml")
      const relations = [...(yield* readRelations(archive, main, fail)).values()]
      const pathOf = (type: string) => relations.find((one) => one.type === type)?.path ?? ""
      const prefixOf = yield* readPrefixes(archive, { styles: pathOf("styles"), numbering: pathOf("numbering") }, fail)
      const isPaged = (yield* countPages(archive)) > 1
      const writer = makeWriter(isPaged ? "page 1" : "")
      const streamText = (path: string) =>
        streamPart(archive, path, fail, writer, handlerOf(writer, isPaged && path === main, prefixOf))
      const notes = extras.flatMap((extra) => relations.filter(({ type }) => type === extra))
      /** Reads the start of a header or a footer, on one line. */
      const readEdge = (path: string) => {
        const own = makeWriter()
        const handler = handlerOf(own, false, () => "")
        return streamPart(archive, path, fail, own, handler).pipe(
          appendRest(own),
          Stream.take(1),
          Stream.runFold(
            () => "",
            (text, piece) => text + piece.text
          ),
          Effect.map((text) => cut(joinLines(text), edgeLength))
        )
      }
      const readEdges = Effect.gen(function* () {
        const edges = relations.filter(({ type }) => type === "header" || type === "footer").slice(0, maxEdges)
        const lines = new Set<string>()
        for (const { path, type } of edges) {
          const text = yield* readEdge(path)
          if (text !== "") lines.add(`${type}: ${text}`)
        }
        if (lines.size > 0) writer.part("headers and footers")
        for (const line of lines) writer.line(line)
        return writer.take()
      })
      const streamNotes = Stream.flatMap(Stream.fromIterable(notes), ({ path, type }) =>
        Stream.suspend(() => {
          writer.part(type)
          return streamText(path)
        })
      )
      return streamText(main).pipe(
        Stream.concat(streamNotes),
        Stream.concat(Stream.unwrap(Effect.map(readEdges, Stream.fromArray))),
        appendRest(writer)
      )
    })
  )
