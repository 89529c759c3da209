/**
 * OpenDocument spreadsheets: the sheets in their order, row by row, as people see them, with their comments. Hidden
 * sheets, rows and columns are marked.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../../core/Document.ts"
import { cut, joinLines } from "../../../support/text/text.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import { failing } from "../failure.ts"
import { wholeOf } from "../labels.ts"
import { paragraphLength } from "../limits.ts"
import { makeReader, makeStyles } from "../words/odfStyles.ts"
import { makeWriter, type Writer } from "../writer.ts"
import { type Attributes, type Handler, pieces, without } from "../xml.ts"
import * as Zip from "../zip.ts"
import { lettersOf } from "./numbers.ts"
import { makeRows } from "./rows.ts"

const fail = failing("OpenDocument spreadsheet")

const skipped = new Set(["tracked-changes", "font-face-decls", "forms", "dde-links", "shapes"])

/** Cells that are shown for a cell that stands several times, and the length up to which it is shown so. */
const maxCopies = 16
const copyLength = 100

const maxColumns = 16_384
const maxRanges = 50
/** Comments of one row, and how much is shown of one. */
const maxComments = 1_000
const commentLength = 2_000

/** The value of a cell that has no text. */
const valueIn = (attributes: Attributes): string =>
  attributes("string-value") ??
  attributes("date-value") ??
  attributes("time-value") ??
  attributes("boolean-value") ??
  attributes("value") ??
  ""

const repeatedIn = (attributes: Attributes, name: string): number => Math.max(1, wholeOf(attributes(name), 1))

const isHiddenBy = (attributes: Attributes): boolean => /^(?:collapse|filter)$/.test(attributes("visibility") ?? "")

const rangeOf = (first: number, last: number): string =>
  first === last ? lettersOf(first) : `${lettersOf(first)} to ${lettersOf(last)}`

const handlerOf = (writer: Writer): Handler => {
  const styles = makeStyles()
  const readStyle = makeReader(styles)
  const rows = makeRows(writer)
  let inStyles = false
  let sheets = 0
  let row = 1
  let rowCount = 1
  let column = 0
  let cellCount = 1
  let columns = 0
  let hidden: Array<string> = []
  let inCell = false
  let value = ""
  let text = ""
  let depth = 0
  let comment: { author: string; text: string } | undefined
  let inAuthor = false
  let comments: Array<string> = []
  const close = () => {
    const shown = text.trim() === "" ? value : text
    if (shown !== "" && cellCount > 1 && (cellCount > maxCopies || shown.length > copyLength)) {
      rows.cell(
        column,
        `${cut(joinLines(shown), paragraphLength)} (also in ${rangeOf(column + 1, column + cellCount - 1)})`
      )
    } else if (shown !== "") {
      for (let copy = 0; copy < cellCount; copy++) rows.cell(column + copy, shown)
    }
    column += cellCount
    inCell = false
  }
  return without(skipped, {
    open: (name, attributes) => {
      if (name === "automatic-styles") inStyles = true
      if (inStyles) return readStyle(name, attributes)
      switch (name) {
        case "table": {
          if (inCell) return
          const isHidden = styles.hidden.has(attributes("style-name") ?? "")
          const label = `sheet ${JSON.stringify(cut(oneLine(attributes("name") ?? ""), 100))}${isHidden ? " (hidden)" : ""}`
          if (sheets > 0) writer.part(label)
          else writer.name(label)
          sheets++
          row = 1
          columns = 0
          return
        }
        case "table-column": {
          const repeated = repeatedIn(attributes, "number-columns-repeated")
          if (isHiddenBy(attributes) && columns < maxColumns && hidden.length < maxRanges) {
            hidden.push(rangeOf(columns, Math.min(maxColumns, columns + repeated) - 1))
          }
          columns = Math.min(maxColumns, columns + repeated)
          return
        }
        case "table-row": {
          if (hidden.length > 0) writer.text(`[hidden columns: ${hidden.join(", ")}]`)
          hidden = []
          writer.paragraph()
          rowCount = repeatedIn(attributes, "number-rows-repeated")
          const last = rowCount > 1 ? ` to ${row + rowCount - 1}` : ""
          column = 0
          return rows.open(row, `${last}${isHiddenBy(attributes) ? " (hidden)" : ""}`)
        }
        case "table-cell":
        case "covered-table-cell":
          inCell = true
          text = ""
          value = cut(valueIn(attributes), paragraphLength)
          cellCount = Math.min(maxColumns, repeatedIn(attributes, "number-columns-repeated"))
          return
        case "annotation":
          comment = { author: "", text: "" }
          return
        case "creator":
          inAuthor = true
          return
        case "p":
          depth++
          if (comment !== undefined) comment.text += " "
          else if (text !== "") text += " "
          return
        case "s":
          if (depth > 0 && comment === undefined) text += " "
          return
        case "line-break":
        case "tab":
          if (depth > 0 && comment === undefined) text += " "
          return
      }
    },
    text: (piece) => {
      if (!inCell) return
      if (comment === undefined) {
        if (depth > 0 && text.length < paragraphLength) text += piece
      } else if (inAuthor) comment.author = cut(comment.author + piece, 100)
      else if (depth > 0 && comment.text.length < paragraphLength) comment.text += piece
    },
    close: (name) => {
      if (inStyles) {
        if (name === "automatic-styles") inStyles = false
        return
      }
      switch (name) {
        case "p":
          depth--
          return
        case "creator":
          inAuthor = false
          return
        case "annotation": {
          const author = cut(oneLine(comment?.author ?? ""), 100)
          const said = cut(joinLines(comment?.text ?? ""), commentLength)
          comment = undefined
          if (said === "" || comments.length >= maxComments) return
          comments.push(`[comment on ${lettersOf(column)}${row}${author === "" ? "" : ` by ${author}`}] ${said}`)
          return
        }
        case "table-cell":
        case "covered-table-cell":
          return close()
        case "table-row":
          rows.close()
          row += rowCount
          for (const line of comments) {
            writer.text(line)
            writer.paragraph()
          }
          comments = []
          return
      }
    }
  })
}

export const read = ({ bytes }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const archive = yield* Zip.open(bytes, fail)
      if (!archive.has("content.xml")) return yield* fail("Damaged", "it has no content.xml")
      const writer = makeWriter()
      return pieces(archive, "content.xml", fail, writer, handlerOf(writer)).pipe(
        Stream.concat(Stream.suspend(() => Stream.fromArray(writer.end())))
      )
    })
  )
