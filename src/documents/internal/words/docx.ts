/**
 * Word documents: paragraphs, headings, lists with their numbers, tables, formulas; pages where Word has said where they
 * end. Notes, comments, headers and footers come after the text.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../../core/Document.ts"
import { cut, joinLines } from "../../../support/text/text.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import { failing } from "../failure.ts"
import { mainPart, relationsOf } from "../relations.ts"
import { type Formula, makeFormula } from "../sheets/formula.ts"
import { makeWriter, type Writer } from "../writer.ts"
import { type Handler, pieces, whole, without } from "../xml.ts"
import * as Zip from "../zip.ts"
import { makeScripts, type Script } from "./scripts.ts"
import { type Paragraph, prefixesOf } from "./wordStyles.ts"

const fail = failing("Word document")

/** Elements of which nothing is text of the document: what was deleted, moved away, changed, or stands twice. */
const skipped = new Set(["Fallback", "del", "moveFrom", "pPrChange", "rPrChange", "sectPrChange"])

/** References to notes and comments, and the notes and comments themselves, by the word for them. */
const references: { readonly [element: string]: string } = {
  footnoteReference: "footnote",
  endnoteReference: "endnote",
  commentReference: "comment"
}

const notes = new Set(["footnote", "endnote", "comment"])

const makeParagraph = (): Paragraph => ({ style: undefined, list: undefined, level: undefined, outline: undefined })

const short = (text: string | undefined): string => cut(oneLine(text ?? ""), 100)

const levelIn = (text: string | undefined): number => Math.min(9, Math.max(0, Math.floor(Number(text ?? 0)) || 0))

const handlerOf = (writer: Writer, paged: boolean, prefixOf: (paragraph: Paragraph) => string): Handler => {
  const scripts = makeScripts(writer)
  let inText = 0
  let page = 1
  /** True if the page was begun by a break of the author's, which Word says again where it laid the page out. */
  let begun = false
  /** The open paragraphs: that of a text box is inside of another one. */
  const open: Array<Paragraph> = []
  let script: Script = ""
  let formula: Formula | undefined
  /** The beginning of a note or a comment, until its first paragraph. */
  let lead = ""
  const nextPage = () => {
    page++
    writer.part(`page ${page}`)
  }
  const endParagraph = (paragraph: Paragraph | undefined) => {
    scripts.close()
    writer.paragraph(paragraph === undefined ? "" : prefixOf(paragraph))
  }
  return without(skipped, {
    open: (name, attributes) => {
      if (formula !== undefined) return formula.open(name, attributes)
      const paragraph = open.at(-1)
      switch (name) {
        case "oMath":
          scripts.close()
          formula = makeFormula()
          return formula.open(name, attributes)
        case "t":
          inText++
          return
        case "r":
          script = ""
          return
        case "vertAlign": {
          const value = attributes("val")
          script = value === "superscript" ? "^" : value === "subscript" ? "_" : ""
          return
        }
        case "tab":
          return writer.text("\t")
        case "br":
        case "cr":
          if (attributes("type") !== "page") return writer.text("\n")
          if (!paged) return
          nextPage()
          begun = true
          return
        case "lastRenderedPageBreak":
          if (paged && !(begun && writer.isEmpty())) nextPage()
          begun = false
          return
        case "noBreakHyphen":
          return scripts.text("-", script)
        case "pStyle":
          if (paragraph !== undefined) paragraph.style = attributes("val")
          return
        case "numId":
          if (paragraph !== undefined) paragraph.list = attributes("val")
          return
        case "ilvl":
          if (paragraph !== undefined) paragraph.level = levelIn(attributes("val"))
          return
        case "outlineLvl":
          if (paragraph !== undefined) paragraph.outline = levelIn(attributes("val"))
          return
        case "tr":
          return writer.row.open()
        case "tc":
          return writer.cell.open()
        case "p":
          scripts.close()
          writer.paragraph()
          open.push(makeParagraph())
          writer.text(lead)
          lead = ""
          return
      }
      const reference = references[name]
      if (reference !== undefined) {
        scripts.close()
        return writer.text(`[${reference} ${short(attributes("id"))}]`)
      }
      // Lines between the text and its notes are notes too, of a type of their own.
      if (notes.has(name) && attributes("id") !== undefined && attributes("type") === undefined) {
        const author = short(attributes("author"))
        lead = `[${name} ${short(attributes("id"))}] ${author === "" ? "" : `${author}: `}`
      }
    },
    text: (text) => {
      if (formula !== undefined) formula.text(text)
      else if (inText > 0) scripts.text(text, script)
    },
    close: (name) => {
      if (formula !== undefined) {
        const text = formula.close()
        if (text === undefined) return
        formula = undefined
        return writer.text(text)
      }
      switch (name) {
        case "t":
          inText--
          return
        case "p":
          return endParagraph(open.pop())
        case "tc":
          return writer.cell.close()
        case "tr":
          return writer.row.close()
      }
    }
  })
}

/** Number of pages that Word counted when it saved the document. */
const pagesOf = (archive: Zip.Archive): Effect.Effect<number> => {
  let inPages = false
  let count = ""
  return whole(archive, "docProps/app.xml", fail, {
    open: (name) => {
      inPages = name === "Pages"
    },
    text: (text) => {
      if (inPages) count += text
    },
    close: () => {
      inPages = false
    }
  }).pipe(
    Effect.map(() => Number(count)),
    Effect.orElseSucceed(() => 0)
  )
}

const extras = ["footnotes", "endnotes", "comments"]

/** Headers and footers: how many parts are read, and how much is shown of one. */
const maxEdges = 100
const edgeLength = 2_000

export const read = ({ bytes }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const archive = yield* Zip.open(bytes, fail)
      const main = yield* mainPart(archive, fail, "word/document.xml")
      const relations = [...(yield* relationsOf(archive, main, fail)).values()]
      const pathOf = (type: string) => relations.find((one) => one.type === type)?.path ?? ""
      const prefixOf = yield* prefixesOf(archive, { styles: pathOf("styles"), numbering: pathOf("numbering") }, fail)
      const paged = (yield* pagesOf(archive)) > 1
      const writer = makeWriter(paged ? "page 1" : "")
      const part = (path: string) =>
        pieces(archive, path, fail, writer, handlerOf(writer, paged && path === main, prefixOf))
      const more = extras.flatMap((type) =>
        relations.flatMap((one) => (one.type === type ? [{ label: type, path: one.path }] : []))
      )
      /** The beginning of a header or a footer, on one line. */
      const edge = (path: string) => {
        const own = makeWriter()
        return pieces(
          archive,
          path,
          fail,
          own,
          handlerOf(own, false, () => "")
        ).pipe(
          Stream.take(1),
          Stream.runFold(
            () => "",
            (text, piece) => text + piece.text
          ),
          Effect.map((text) =>
            cut(
              joinLines(
                text +
                  own
                    .end()
                    .map((piece) => piece.text)
                    .join("")
              ),
              edgeLength
            )
          )
        )
      }
      const edges = Effect.gen(function* () {
        const found = relations.filter(({ type }) => type === "header" || type === "footer").slice(0, maxEdges)
        const shown = new Set<string>()
        for (const { path, type } of found) {
          const text = yield* edge(path)
          if (text !== "") shown.add(`${type}: ${text}`)
        }
        if (shown.size > 0) writer.part("headers and footers")
        for (const line of shown) {
          writer.text(line)
          writer.paragraph()
        }
        return writer.take()
      })
      return part(main).pipe(
        Stream.concat(
          Stream.fromIterable(more).pipe(
            Stream.flatMap(({ label, path }) =>
              Stream.suspend(() => {
                writer.part(label)
                return part(path)
              })
            )
          )
        ),
        Stream.concat(Stream.unwrap(Effect.map(edges, Stream.fromArray))),
        Stream.concat(Stream.suspend(() => Stream.fromArray(writer.end())))
      )
    })
  )
