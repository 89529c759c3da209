/** Reads CSV. Source: RFC 4180. */

/** A cell in quotes, or one without; then a comma, the end of the row, or the end of the text. */
const cell = /(?:"((?:[^"]+|"")*)"|(?!")([^,\r\n]*))(,|\r?\n|\r|$)/y

/** The rows of a text, without empty ones. A quote that is not closed ends with the text. */
export const parseCsv = (text: string): ReadonlyArray<ReadonlyArray<string>> => {
  const rows: Array<ReadonlyArray<string>> = []
  let row: Array<string> = []
  const source = text.replace(/^\ufeff/, "")
  const end = () => {
    if (row.length > 1 || row[0] !== "") rows.push(row)
    row = []
  }
  cell.lastIndex = 0
  while (cell.lastIndex <= source.length) {
    const from = cell.lastIndex
    const found = cell.exec(source)
    if (found === null) {
      row.push(source.slice(from))
      break
    }
    const [, quoted, plain = "", after] = found
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'))
    if (after !== ",") end()
    if (after === "") return rows
  }
  if (row.length > 0) end()
  return rows
}
