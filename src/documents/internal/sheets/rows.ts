/** Rows of sheets and tables as lines: the number of the row, then its cells with ` | ` between them. */
import { cut, joinLines } from "../../../support/text/text.ts"
import { paragraphLength } from "../limits.ts"
import type { Writer } from "../writer.ts"
import { lettersOf } from "./numbers.ts"

/** A gap of more empty cells than these is not shown: the next cell says its column. */
const maxGap = 16

/** Gathers the cells of a row. */
export interface Rows {
  /** Begins a row. The mark stands behind its number. */
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
    open: (row, behind = "") => {
      number = row
      mark = behind
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
      writer.text(" | ".repeat(between) + (isFar ? `[${lettersOf(column)}] ${text}` : text))
      next = column + 1
      hasCell = true
    },
    close: () => {
      if (hasCell) writer.paragraph()
    }
  }
}
