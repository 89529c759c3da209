/**
 * Renders files for a model: numbered lines, listings and search results, within a limit of characters and with a notice
 * on how to get the rest.
 *
 * Notices are in square brackets on lines of their own, and name the parameters of the tools (`offset`, `limit`,
 * `column`, `path`, `glob`, `regex`). The constants are exported so that the descriptions of tools can be made from
 * them.
 */
import type {
  Entry,
  GrepFile,
  GrepMatch,
  GrepQuery,
  GrepResult,
  Listing,
  TextFile,
  Window
} from "../../../core/Backend.ts"
import { boundaryAfter } from "../../../support/text/text.ts"
import { showPath } from "../tools/text.ts"
import { boundsOf } from "./lines.ts"

/** The most characters that a result has, but for its notices. */
export const maxCharacters = 60_000

/** The number of characters of a line that are shown in one row; a longer line goes on in rows N.1, N.2 … */
export const maxRowLength = 5_000

/** The least width of the line numbers before the text. */
const minGutter = 4

interface Row {
  readonly line: number
  readonly label: string
  readonly text: string
  /** The column of the line that the row begins at. */
  readonly column: number
}

/**
 * The rows of one line without its first `column` characters. Rows begin at multiples of their length.
 */
const rowsOf = (line: number, text: string, column: number): ReadonlyArray<Row> => {
  const rows: Array<Row> = []
  const end = column + text.length
  let from = column
  let part = Math.floor(column / maxRowLength)
  do {
    const most = Math.min(end, (part + 1) * maxRowLength)
    // A character is never parted, so a row may be one unit longer.
    const to = column + boundaryAfter(text, most - column)
    const label = from === 0 ? String(line) : `${line}.${Math.max(1, part)}`
    rows.push({ line, label, text: text.slice(from - column, to - column), column: from })
    from = to
    part++
  } while (from < end)
  return rows
}

const notice = (text: string): string => `[${text}]`

const linesNoun = (count: number): string => (count === 1 ? "1 line" : `${count} lines`)

/** Says where to go on reading: behind the last row that is shown. */
const goOn = (line: number, column: number): string =>
  column === 0 ? `go on with offset ${line}` : `go on with offset ${line} and column ${column}`

/** Describes a window that has no line. */
const emptyNotice = (file: TextFile, limit: number): string =>
  file.totalLines === 0
    ? "the file is empty"
    : limit === 0
      ? `no lines were asked for (limit 0); the file has ${linesNoun(file.totalLines)}`
      : `offset ${file.startLine} is past the end; the file has ${linesNoun(file.totalLines)}`

interface ShownRows {
  readonly rows: ReadonlyArray<Row>
  /** The beginning of the hidden rest; `undefined` for a whole window. */
  readonly next: { readonly line: number; readonly column: number } | undefined
}

/** The whole lines that fit; if the first line does not fit, its rows that fit. */
const fit = (lines: ReadonlyArray<ReadonlyArray<Row>>, gutter: number, room: number): ShownRows => {
  const rows: Array<Row> = []
  let used = 0
  const fits = (row: Row) => {
    used += gutter + 2 + row.text.length
    return used <= room
  }
  for (const [index, ofLine] of lines.entries()) {
    const cut = ofLine.findIndex((row) => !fits(row))
    const first = ofLine[0]
    if (cut !== -1 && index > 0 && first !== undefined) return { rows, next: { line: first.line, column: 0 } }
    // A row is always shown, or reading on would never get anywhere.
    const count = cut === -1 ? ofLine.length : Math.max(1, cut)
    rows.push(...ofLine.slice(0, count))
    const next = ofLine[count]
    if (next !== undefined) return { rows, next: { line: next.line, column: next.column } }
  }
  return { rows, next: undefined }
}

/** A negative offset is clamped, so the model must learn of it. */
const clampNotices = (offset: number): ReadonlyArray<string> =>
  offset < 0 ? [notice(`offset ${offset} is before the first line, so this is from line 1; lines count from 1`)] : []

/**
 * Renders a window of a text with line numbers, and a notice on the rest. `window` is the requested window, `room`
 * the number of characters for the lines.
 */
export const renderWindow = (file: TextFile, window?: Window, room = maxCharacters): string => {
  const { column, limit } = boundsOf(window)
  const { offset = 1 } = window ?? {}
  const clamped = clampNotices(offset)
  if (file.endLine < file.startLine) return [notice(emptyNotice(file, limit)), ...clamped].join("\n")
  const lines = file.text
    .split("\n")
    .map((text, index) => rowsOf(file.startLine + index, text, index === 0 ? column : 0))
  const gutter = lines.reduce((widest, rows) => Math.max(widest, rows.at(-1)?.label.length ?? 0), minGutter)
  const excerpt = fit(lines, gutter, room)
  const text = excerpt.rows.map((row) => `${row.label.padStart(gutter)}\t${row.text}`)
  const ofFile = file.nextColumn === undefined ? undefined : { line: file.endLine, column: file.nextColumn }
  const ofLines = file.endLine < file.totalLines ? { line: file.endLine + 1, column: 0 } : undefined
  const next = excerpt.next ?? ofFile ?? ofLines
  const last = excerpt.rows.at(-1)?.line ?? file.endLine
  const isAll = next === undefined && file.startLine === 1 && column === 0
  const range = file.startLine === last ? `line ${last}` : `lines ${file.startLine}–${last}`
  const from = column > 0 ? ` from column ${column}` : ""
  return [
    ...text,
    ...clamped,
    ...(isAll
      ? []
      : [
          notice(
            `${range}${from} of ${file.totalLines}${next === undefined ? "" : `; ${goOn(next.line, next.column)}`}`
          )
        ]),
    ...(isAll && file.text.trim() === "" ? [notice("the file has nothing but whitespace")] : []),
    ...(file.crlf === true ? [notice("lines end with \\r\\n; an edit with \\n keeps them so")] : [])
  ].join("\n")
}

/** As many rows as there is room for, at least one. */
const fitRows = (rows: ReadonlyArray<string>, room: number): ReadonlyArray<string> => {
  let used = 0
  const count = rows.findIndex((row, index) => {
    used += row.length + 1
    return used > room && index > 0
  })
  return count === -1 ? rows : rows.slice(0, count)
}

const why = { limit: "the limit was reached", time: "the time was up" }

const entryRow = (entry: Entry): string => {
  const path = showPath(entry.path)
  switch (entry.kind) {
    case "directory":
      return entry.path.endsWith("/") ? path : `${path}/`
    case "link":
      return `${path} (a link that leads nowhere, or out of the root)`
    case "file":
      return entry.size === undefined ? path : `${path} (${entry.size} bytes)`
  }
}

const listRows = (
  rows: ReadonlyArray<string>,
  options: {
    readonly none: string
    readonly truncated: Listing["truncated"]
    readonly narrow: string
    readonly room: number
  }
): string => {
  const { narrow, none, room, truncated } = options
  const visibleRows = fitRows(rows, room)
  const notices = [
    ...(rows.length === 0 && truncated === undefined ? [none] : []),
    ...(visibleRows.length < rows.length ? [`${visibleRows.length} of ${rows.length} are shown; ${narrow}`] : []),
    ...(truncated === undefined ? [] : [`there may be more: ${why[truncated]}; ${narrow}`])
  ]
  return [...visibleRows, ...notices.map(notice)].join("\n")
}

/** Lists a directory: a row for each entry, directories with a `/` at the end. */
export const renderListing = (listing: Listing, room = maxCharacters): string =>
  listRows(listing.entries.map(entryRow), {
    none: "the directory is empty",
    truncated: listing.truncated,
    narrow: "list a directory in it, or use glob with a narrower pattern",
    room
  })

/** The files that a glob found: a path in each row. */
export const renderGlob = (listing: Listing): string =>
  listRows(
    listing.entries.map((entry) => showPath(entry.path)),
    {
      none: "no file matches",
      truncated: listing.truncated,
      narrow: "narrow it down by path or pattern",
      room: maxCharacters
    }
  )

/** The rows of a match and its context, `N:` for matching lines and `N-` for others. */
const matchRows = (match: GrepMatch): ReadonlyArray<{ readonly line: number; readonly row: string }> => [
  ...match.before.map((text, index) => {
    const line = match.line - match.before.length + index
    return { line, row: `  ${line}- ${text}` }
  }),
  { line: match.line, row: `  ${match.line}: ${match.text}` },
  ...match.after.map((text, index) => ({
    line: match.line + 1 + index,
    row: `  ${match.line + 1 + index}- ${text}`
  }))
]

/** The rows of a file. Where context was asked for, a gap between lines is shown. */
const contentRows = (file: GrepFile, context: boolean): ReadonlyArray<string> => {
  const rows: Array<string> = [`${showPath(file.path)}:`]
  let last: number | undefined
  for (const match of file.matches) {
    for (const { line, row } of matchRows(match)) {
      if (context && last !== undefined && line > last + 1) rows.push("  --")
      rows.push(row)
      last = line
    }
  }
  return rows
}

const looksLikeRegex = (pattern: string): boolean => /\||\.[*+]|\\[bBdDsSwW.]|\[.{1,200}\]|^\^|\$$/.test(pattern)

/** Renders the results of a query. */
export const renderGrep = (result: GrepResult, query: GrepQuery, room = maxCharacters): string => {
  const mode = query.mode ?? "content"
  const rows = result.files.flatMap((file): ReadonlyArray<string> => {
    switch (mode) {
      case "content":
        return contentRows(file, (query.context ?? 0) > 0)
      case "count":
        return [`${showPath(file.path)}: ${file.count}`]
      case "files":
        return [showPath(file.path)]
    }
  })
  const literal =
    query.regex !== true && looksLikeRegex(query.pattern)
      ? "; the pattern was taken as literal text, set regex to true if it is a regular expression"
      : ""
  return listRows(rows, {
    none: `nothing matches${literal}`,
    truncated: result.truncated,
    narrow: "narrow it down by path, glob or a longer pattern",
    room
  })
}
