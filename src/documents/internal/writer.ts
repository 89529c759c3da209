/**
 * Builds the pieces of a document from paragraphs and table rows.
 *
 * Memory is bounded: a long paragraph or row continues on another line, and a long cell is truncated.
 */
import * as Stream from "effect/Stream"
import type { Piece } from "../../core/Document.ts"
import { boundaryBefore, trimLines } from "../../support/text/text.ts"
import { paragraphLength, pieceLength, rowLength } from "./limits.ts"

/** Collects text and cuts it into pieces. */
export interface Writer {
  /** Begins a part. */
  readonly part: (label: string) => void
  /** Names the first part, and begins each later one. */
  readonly nextPart: (label: string) => void
  /** Appends to the open paragraph. */
  readonly text: (text: string) => void
  /** Ends the paragraph. An empty paragraph writes no line. */
  readonly paragraph: (prefix?: string) => void
  /** Writes a paragraph. */
  readonly line: (text: string) => void
  readonly row: { readonly open: () => void; readonly close: () => void }
  readonly cell: { readonly open: () => void; readonly close: () => void }
  /** Returns true if the part has no text. */
  readonly isEmpty: () => boolean
  /** Returns the finished pieces. */
  readonly take: () => ReadonlyArray<Piece>
  /** Closes the document, and returns the remaining pieces. */
  readonly end: () => ReadonlyArray<Piece>
}

interface Row {
  line: string
  count: number
  cell: string | undefined
}

/** Finds the last index at which a cut does not split a character. */
const cutAt = (text: string, index: number): number => Math.max(1, boundaryBefore(text, index))

/** Makes a writer. `first` is the label of the first part. */
export const makeWriter = (first = ""): Writer => {
  let number = 1
  let isNamed = false
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
  const addLine = (text: string) => {
    if (text === "") return
    isEmpty = false
    lines += `${text}\n`
    if (lines.length >= pieceLength) flush()
  }
  /** Writes a line into the open cell, if any, else into the document. */
  const writeLine = (text: string) => {
    const row = rows.at(-1)
    if (row?.cell === undefined) return addLine(text)
    if (text === "" || row.cell.length > paragraphLength) return
    const inOne = text.replaceAll("\n", " ")
    row.cell += row.cell === "" ? inOne : ` ${inOne}`
    if (row.cell.length > paragraphLength) row.cell = `${row.cell.slice(0, cutAt(row.cell, paragraphLength))}…`
  }
  const paragraph = (prefix = "") => {
    const text = trimLines(current).trim()
    current = ""
    if (text !== "") writeLine(prefix + text)
  }
  const closeRow = () => {
    const row = rows.pop()
    if (row !== undefined && row.count > 0) writeLine(row.line)
  }
  const part = (next: string) => {
    paragraph()
    flush()
    // An empty part keeps its number, as in the document.
    number++
    label = next
    isEmpty = true
  }
  const addText = (text: string) => {
    current += text
    while (current.length > paragraphLength) {
      const at = cutAt(current, paragraphLength)
      const rest = current.slice(at)
      current = current.slice(0, at)
      paragraph()
      current = rest
    }
  }
  const take = () => {
    const pieces = ready
    ready = []
    return pieces
  }
  return {
    part,
    nextPart: (next) => {
      if (isNamed) part(next)
      else label = next
      isNamed = true
    },
    text: addText,
    paragraph,
    line: (text) => {
      addText(text)
      paragraph()
    },
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
          writeLine(full)
        }
      }
    },
    isEmpty: () => isEmpty && current === "" && lines === "",
    take,
    end: () => {
      while (rows.length > 0) closeRow()
      paragraph()
      flush()
      return take()
    }
  }
}

/** Appends the remaining pieces of a writer to a stream. */
export const appendRest =
  (writer: Writer) =>
  <E>(pieces: Stream.Stream<Piece, E>): Stream.Stream<Piece, E> =>
    Stream.concat(
      pieces,
      Stream.suspend(() => Stream.fromArray(writer.end()))
    )

/** Streams the parts of a document in their order, from part number `from`. Each part begins with its label. */
export const streamParts = <Part, E>(
  writer: Writer,
  parts: ReadonlyArray<Part>,
  options: { readonly from: number; readonly labelOf: (part: Part, number: number) => string },
  read: (part: Part) => Stream.Stream<Piece, E>
): Stream.Stream<Piece, E> =>
  Stream.fromIterable(parts).pipe(
    Stream.rechunk(1),
    Stream.map((part, index) =>
      Stream.suspend(() => {
        writer.nextPart(options.labelOf(part, index + 1))
        return index + 1 < options.from ? Stream.empty : read(part)
      })
    ),
    Stream.flatMap((part) => part),
    appendRest(writer)
  )
