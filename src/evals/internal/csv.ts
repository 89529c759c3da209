/** Reads CSV. Source: RFC 4180. */
import { withoutMark } from "./lines.ts"

/** A cell in quotes, or one without; then a comma, the end of the row, or the end of the text. */
const cell = /(?:"((?:[^"]+|"")*)"|(?!")([^,\r\n]*))(,|\r?\n|\r|$)/y

/** A row, and the line of the text that it begins in. */
export interface Row {
  readonly line: number
  readonly cells: ReadonlyArray<string>
}

const lineEnd = /\r?\n|\r/g

/** The rows of a text, without empty ones. A quote that is not closed ends with the text. */
export const parseCsv = (text: string): ReadonlyArray<Row> => {
  const rows: Array<Row> = []
  let row: Array<string> = []
  let line = 1
  let next = 1
  const source = withoutMark(text)
  const end = () => {
    if (row.length > 1 || row[0] !== "") rows.push({ line, cells: row })
    row = []
    line = next
  }
  cell.lastIndex = 0
  while (cell.lastIndex <= source.length) {
    const from = cell.lastIndex
    const match = cell.exec(source)
    if (match === null) {
      row.push(source.slice(from))
      break
    }
    const [all, quoted, plain = "", after] = match
    next += all.match(lineEnd)?.length ?? 0
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'))
    if (after !== ",") end()
    if (after === "") return rows
  }
  if (row.length > 0) end()
  return rows
}
