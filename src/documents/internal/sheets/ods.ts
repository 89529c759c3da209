/** Reads OpenDocument spreadsheets: sheets in order, row by row, with comments. Hidden parts are marked. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../../core/Document.ts"
import { cut, joinLines } from "../../../support/text/text.ts"
import { renderComment } from "../comments.ts"
import { makeFail } from "../failure.ts"
import { parseWhole } from "../labels.ts"
import { paragraphLength } from "../limits.ts"
import { nameOf } from "../names.ts"
import { handleStyles, makeStyles } from "../words/odfStyles.ts"
import { appendRest, makeWriter, type Writer } from "../writer.ts"
import { type Attributes, handleElements, type Handler, skipElements, streamPart } from "../xml.ts"
import { openArchive } from "../zip.ts"
import { formatRange } from "./numbers.ts"
import { makeHidden, makeRows } from "./rows.ts"

const fail = makeFail("OpenDocument spreadsheet")

const skipped = new Set(["tracked-changes", "font-face-decls", "forms", "dde-links", "shapes"])

/** A repeated cell is written up to 16 times, if it has at most 100 characters. */
const maxCopies = 16
const copyLength = 100

const maxColumns = 16_384

/** Maximum comments of one row, and characters of one comment. */
const maxComments = 1_000
const commentLength = 2_000

/** Reads the value of a cell without text. */
const readValue = (attributes: Attributes): string =>
  attributes("string-value") ??
  attributes("date-value") ??
  attributes("time-value") ??
  attributes("boolean-value") ??
  attributes("value") ??
  ""

const readCount = (attributes: Attributes, name: string): number => Math.max(1, parseWhole(attributes(name), 1))

const isHidden = (attributes: Attributes): boolean => /^(?:collapse|filter)$/.test(attributes("visibility") ?? "")

/** Collects the comments of a row. */
const makeComments = () => {
  let comments: Array<string> = []
  let comment: { author: string; text: string } | undefined
  let inAuthor = false
  return {
    isOpen: () => comment !== undefined,
    open: () => (comment = { author: "", text: "" }),
    author: { open: () => (inAuthor = true), close: () => (inAuthor = false) },
    addText: (text: string, inParagraph: boolean) => {
      if (comment === undefined) return
      if (inAuthor) comment.author = cut(comment.author + text, 100)
      else if (inParagraph && comment.text.length < paragraphLength) comment.text += text
    },
    close: (place: string) => {
      const { author, text } = comment ?? { author: "", text: "" }
      const line = cut(joinLines(text), commentLength)
      comment = undefined
      if (line !== "" && comments.length < maxComments) comments.push(renderComment(line, nameOf(author), place))
    },
    write: (writer: Writer) => {
      for (const line of comments) writer.line(line)
      comments = []
    }
  }
}

const handlerOf = (writer: Writer): Handler => {
  const styles = makeStyles()
  const rows = makeRows(writer)
  const hidden = makeHidden(writer)
  const comments = makeComments()
  let row = 1
  let rowCount = 1
  let column = 0
  let cellCount = 1
  let columns = 0
  let inCell = false
  let value = ""
  let text = ""
  let depth = 0
  const addSpace = () => {
    if (depth > 0 && !comments.isOpen()) text += " "
  }
  const cell = {
    open: (attributes: Attributes) => {
      inCell = true
      text = ""
      value = cut(readValue(attributes), paragraphLength)
      cellCount = Math.min(maxColumns, readCount(attributes, "number-columns-repeated"))
    },
    close: () => {
      const content = text.trim() === "" ? value : text
      if (content !== "" && cellCount > 1 && (cellCount > maxCopies || content.length > copyLength)) {
        const copies = formatRange(column + 1, column + cellCount - 1)
        rows.cell(column, `${cut(joinLines(content), paragraphLength)} (also in ${copies})`)
      } else if (content !== "") {
        for (let copy = 0; copy < cellCount; copy++) rows.cell(column + copy, content)
      }
      column += cellCount
      inCell = false
    }
  }
  const handler = handleElements(
    {
      table: (attributes) => {
        if (inCell) return
        const mark = styles.hidden.has(attributes("style-name") ?? "") ? " (hidden)" : ""
        writer.nextPart(`sheet ${JSON.stringify(nameOf(attributes("name")))}${mark}`)
        row = 1
        columns = 0
      },
      "table-column": (attributes) => {
        const end = Math.min(maxColumns, columns + readCount(attributes, "number-columns-repeated"))
        if (isHidden(attributes) && columns < maxColumns) hidden.add(columns, end - 1)
        columns = end
      },
      "table-row": {
        open: (attributes) => {
          hidden.write()
          writer.paragraph()
          rowCount = readCount(attributes, "number-rows-repeated")
          const last = rowCount > 1 ? ` to ${row + rowCount - 1}` : ""
          column = 0
          rows.open(row, `${last}${isHidden(attributes) ? " (hidden)" : ""}`)
        },
        close: () => {
          rows.close()
          row += rowCount
          comments.write(writer)
        }
      },
      "table-cell": cell,
      "covered-table-cell": cell,
      annotation: { open: comments.open, close: () => comments.close(`${formatRange(column, column)}${row}`) },
      creator: comments.author,
      p: {
        open: () => {
          depth++
          if (comments.isOpen()) comments.addText(" ", true)
          else if (text !== "") text += " "
        },
        close: () => depth--
      },
      s: addSpace,
      tab: addSpace,
      "line-break": addSpace
    },
    (piece) => {
      if (!inCell) return
      if (comments.isOpen()) comments.addText(piece, depth > 0)
      else if (depth > 0 && text.length < paragraphLength) text += piece
    }
  )
  return skipElements((name) => skipped.has(name), handleStyles(styles, handler))
}

export const readOds = ({ bytes }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const archive = yield* openArchive(bytes, fail)
      if (!archive.has("content.xml")) return yield* fail("Damaged", "it has no content.xml")
      const writer = makeWriter()
      return streamPart(archive, "content.xml", fail, writer, handlerOf(writer)).pipe(appendRest(writer))
    })
  )
