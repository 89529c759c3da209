/** Writes rows of sheets and tables: the number of the row, then its cells, separated by ` | `. */
import { cut, joinLines } from "../../../support/text/text.ts"
import { paragraphLength } from "../limits.ts"
import type { Writer } from "../writer.ts"
import { formatColumn, formatRange } from "./numbers.ts"

/** After more empty cells than this, the next cell names its column instead. */
const maxGap = 16

/** Writes the cells of a row. */
export interface Rows {
  /** Begins a row. The mark follows its number. */
  readonly open: (number: number, mark?: string) => void
  readonly cell: (column: number, value: string) => void
  readonly close: () => void
}

export const makeRows = (writer: Writer): Rows => {
  let number = 0
  let mark = ""
  let next = 0
  let hasCell = false
  return {
    open: (row, after = "") => {
      number = row
      mark = after
      next = 0
      hasCell = false
    },
    cell: (column, value) => {
      const text = joinLines(cut(value, paragraphLength))
      if (text === "") return
      const gap = column - next
      const isFar = gap > maxGap || gap < 0
      const between = isFar ? (hasCell ? 1 : 0) : hasCell ? gap + 1 : gap
      writer.text(hasCell ? "" : `${number}${mark}: `)
      writer.text(" | ".repeat(between) + (isFar ? `[${formatColumn(column)}] ${text}` : text))
      next = column + 1
      hasCell = true
    },
    close: () => {
      if (hasCell) writer.paragraph()
    }
  }
}

/** Maximum number of hidden ranges of a sheet. */
const maxRanges = 50

/** Collects the hidden columns of a sheet, and writes a note on them. */
export const makeHidden = (writer: Writer) => {
  let ranges: Array<string> = []
  return {
    add: (first: number, last: number) => {
      if (ranges.length < maxRanges) ranges.push(formatRange(first, last))
    },
    write: () => {
      if (ranges.length > 0) writer.text(`[hidden columns: ${ranges.join(", ")}]`)
      ranges = []
    }
  }
}
