/** Word documents: paragraphs, headings, lists, tables, notes and comments; pages where Word has said where they end. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../../core/Document.ts"
import { failing } from "./failure.ts"
import { mainPart, relationsOf } from "./relations.ts"
import { makeWriter, type Writer } from "./writer.ts"
import { type Handler, pieces, whole, without } from "./xml.ts"
import * as Zip from "./zip.ts"

const fail = failing("Word document")

const heading = /^heading ?([1-6])$/i

/** Elements of which nothing is text of the document: what was deleted, moved away, or stands twice. */
const skipped = new Set(["Fallback", "del", "moveFrom"])

const handlerOf = (writer: Writer, paged: boolean): Handler => {
  let inText = 0
  let page = 1
  /** True if the page was begun by a break of the author's, which Word says again where it laid the page out. */
  let begun = false
  /** Beginning of the paragraph, by its style and its list. */
  let prefix = ""
  const nextPage = () => {
    page++
    writer.part(`page ${page}`)
  }
  return without(skipped, {
    open: (name, attributes) => {
      switch (name) {
        case "t":
          inText++
          return
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
          return writer.text("-")
        case "pStyle": {
          const style = attributes("val") ?? ""
          const level = heading.exec(style)?.[1]
          if (level !== undefined) prefix = `${"#".repeat(Number(level))} `
          else if (/^title$/i.test(style)) prefix = "# "
          else if (/^list/i.test(style)) prefix = "- "
          return
        }
        case "numPr":
          if (prefix === "") prefix = "- "
          return
        case "tr":
          return writer.row.open()
        case "tc":
          return writer.cell.open()
        case "p":
          writer.paragraph()
          prefix = ""
          return
      }
    },
    text: (text) => {
      if (inText > 0) writer.text(text)
    },
    close: (name) => {
      switch (name) {
        case "t":
          inText--
          return
        case "p":
          writer.paragraph(prefix)
          prefix = ""
          return
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

export const read = ({ bytes }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const archive = yield* Zip.open(bytes, fail)
      const main = yield* mainPart(archive, fail, "word/document.xml")
      const relations = [...(yield* relationsOf(archive, main, fail)).values()]
      const paged = (yield* pagesOf(archive)) > 1
      const writer = makeWriter(paged ? "page 1" : "")
      const part = (path: string) => pieces(archive, path, fail, writer, handlerOf(writer, paged && path === main))
      const more = extras.flatMap((type) =>
        relations.flatMap((one) => (one.type === type ? [{ label: type, path: one.path }] : []))
      )
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
        Stream.concat(Stream.suspend(() => Stream.fromArray(writer.end())))
      )
    })
  )
