/**
 * Puts the text of a document together: paragraphs and rows as lines, lines as pieces of parts.
 *
 * The text that is gathered is bounded, however long a paragraph, a cell or a row is: paragraphs and rows that are too long go on
 * in another line, a cell is cut.
 */
import type { Piece } from "../../core/Document.ts"
import { boundaryBefore, trimLines } from "../../support/text/text.ts"
import { paragraphLength, pieceLength, rowLength } from "./limits.ts"

/** A writer: `take` gives the pieces that are ready, `end` the rest too. */
export interface Writer {
  /** Begins a part; one with the number of the last goes on. */
  readonly part: (label: string) => void
  /** Names the part that is open, which has nothing yet. */
  readonly name: (label: string) => void
  /** Adds to the paragraph. */
  readonly text: (text: string) => void
  /** Ends the paragraph: a line, unless there is nothing in it. */
  readonly paragraph: (prefix?: string) => void
  readonly row: { readonly open: () => void; readonly close: () => void }
  readonly cell: { readonly open: () => void; readonly close: () => void }
  /** Tells whether the part has a line. */
  readonly isEmpty: () => boolean
  readonly take: () => ReadonlyArray<Piece>
  readonly end: () => ReadonlyArray<Piece>
}

interface Row {
  line: string
  count: number
  cell: string | undefined
}

/** The last place that a text can be cut at without parting a character. */
const cutAt = (text: string, index: number): number => Math.max(1, boundaryBefore(text, index))

export const makeWriter = (first = ""): Writer => {
  let number = 1
  let label = first
  let isEmpty = true
  let ready: Array<Piece> = []
  let lines = ""
  let current = ""
  const rows: Array<Row> = []

  const flush = () => {
    if (lines !== "") ready.push({ part: number, label, text: lines })
    lines = ""
  }
  const line = (text: string) => {
    if (text === "") return
    isEmpty = false
    lines += `${text}\n`
    if (lines.length >= pieceLength) flush()
  }
  /** A line goes into the cell that is open, if there is one. */
  const put = (text: string) => {
    const row = rows.at(-1)
    if (row?.cell === undefined) return line(text)
    if (text === "" || row.cell.length > paragraphLength) return
    const inOne = text.replaceAll("\n", " ")
    row.cell += row.cell === "" ? inOne : ` ${inOne}`
    if (row.cell.length > paragraphLength) row.cell = `${row.cell.slice(0, cutAt(row.cell, paragraphLength))}…`
  }
  const paragraph = (prefix = "") => {
    const text = trimLines(current).trim()
    current = ""
    if (text !== "") put(prefix + text)
  }
  const closeRow = () => {
    const row = rows.pop()
    if (row !== undefined && row.count > 0) put(row.line)
  }
  return {
    part: (next) => {
      paragraph()
      flush()
      // A part that had nothing keeps its number: parts are counted as the document counts them.
      number++
      label = next
      isEmpty = true
    },
    name: (own) => {
      label = own
    },
    text: (text) => {
      current += text
      while (current.length > paragraphLength) {
        const at = cutAt(current, paragraphLength)
        const rest = current.slice(at)
        current = current.slice(0, at)
        paragraph()
        current = rest
      }
    },
    paragraph,
    row: {
      open: () => {
        paragraph()
        rows.push({ line: "", count: 0, cell: undefined })
      },
      close: () => {
        paragraph()
        closeRow()
      }
    },
    cell: {
      open: () => {
        paragraph()
        const row = rows.at(-1)
        if (row !== undefined) row.cell = ""
      },
      close: () => {
        paragraph()
        const row = rows.at(-1)
        if (row?.cell === undefined) return
        const { cell } = row
        row.cell = undefined
        row.line += row.count === 0 ? cell : ` | ${cell}`
        row.count++
        if (row.line.length > rowLength) {
          const { line: full } = row
          row.line = ""
          row.count = 0
          put(full)
        }
      }
    },
    isEmpty: () => isEmpty && current === "" && lines === "",
    take: () => {
      const taken = ready
      ready = []
      return taken
    },
    end: () => {
      while (rows.length > 0) closeRow()
      paragraph()
      flush()
      const taken = ready
      ready = []
      return taken
    }
  }
}
