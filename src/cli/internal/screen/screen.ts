/**
 * A screen without an alternate buffer. Finished lines are appended once to the scrollback; a few live lines below
 * them are redrawn by difference. All movement is relative, and nothing foreign is cleared.
 */
import type { Frame } from "../render/live.ts"
import { fit, widthOf } from "../render/style.ts"

/** The part of a terminal that the screen uses. */
export interface Output {
  readonly write: (text: string) => void
  readonly columns: () => number
  readonly rows: () => number
}

export interface Screen {
  /** Appends lines above the live ones, permanently. */
  readonly commit: (lines: ReadonlyArray<string>) => void
  /** Draws the difference to the last frame. */
  readonly paint: () => void
  /** Redraws after the terminal changed its width. */
  readonly resized: () => void
  /** Removes the live lines, and puts the cursor below the scrollback. */
  readonly close: () => void
  /** Drops the knowledge of the screen, after another program wrote to it. */
  readonly forget: () => void
}

const begin = "\u001b[?2026h"
const end = "\u001b[?2026l"
const eraseLine = "\u001b[K"
const eraseBelow = "\u001b[J"

const vertical = (by: number): string => (by > 0 ? `\u001b[${by}B` : by < 0 ? `\u001b[${-by}A` : "")
const toColumn = (column: number): string => (column === 0 ? "\r" : `\r\u001b[${column}C`)

export const makeScreen = (out: Output, view: (columns: number, rows: number) => Frame): Screen => {
  let live: ReadonlyArray<string> = []
  /** The live line with the cursor. */
  let row = 0
  let pending: Array<string> = []

  /** Leaves one column and one row free: terminals disagree about the last cell. */
  const next = (): Frame => {
    const columns = Math.max(2, out.columns() - 1)
    const rows = Math.max(1, out.rows() - 1)
    const { caret, lines } = view(columns, rows)
    const visibleLines = lines.slice(-rows).map((line) => fit(line, columns))
    const cut = lines.length - visibleLines.length
    return {
      lines: visibleLines,
      caret: { row: Math.max(0, Math.min(caret.row - cut, visibleLines.length - 1)), column: caret.column }
    }
  }

  const changed = (lines: ReadonlyArray<string>): string => {
    let text = ""
    let at = row
    for (const [index, line] of lines.entries()) {
      if (line === live[index]) continue
      if (index >= live.length && index > 0) {
        text += `${vertical(Math.max(0, index - 1) - at)}\r\n${line}${eraseLine}`
      } else {
        text += `${vertical(index - at)}\r${line}${eraseLine}`
      }
      at = index
    }
    if (lines.length < live.length) {
      const first = Math.max(0, lines.length - 1)
      text += `${vertical(first - at)}${toColumn(widthOf(lines[first] ?? ""))}${eraseBelow}`
      at = first
    }
    row = at
    return text
  }

  /** Writes a line that may be longer than the screen. The terminal wraps it, and old text below is erased. */
  const whole = (line: string): string => {
    const width = widthOf(line)
    const columns = Math.max(1, out.columns())
    // After the last cell of a row, an erase would take that cell.
    const after = width > 0 && width % columns === 0 ? "" : eraseLine
    return `${width < columns ? "" : eraseLine}${line}${after}\r\n`
  }

  const appended = (lines: ReadonlyArray<string>): string => {
    const text =
      vertical(-row) +
      "\r" +
      pending.map(whole).join("") +
      lines.map((line) => line + eraseLine).join("\r\n") +
      eraseBelow
    pending = []
    row = Math.max(0, lines.length - 1)
    return text
  }

  const paint = (): void => {
    const { caret, lines } = next()
    const before = row
    const output = pending.length > 0 ? appended(lines) : changed(lines)
    const text = `${output}${vertical(caret.row - row)}${toColumn(caret.column)}`
    const isSame = output === "" && caret.row === before && caret.column === column
    live = lines
    row = caret.row
    column = caret.column
    if (!isSame) out.write(`${begin}${text}${end}`)
  }
  let column = -1

  return {
    commit: (lines) => {
      // A spread would overflow the stack with very many lines.
      for (const line of lines) pending.push(line)
    },
    paint,
    resized: () => {
      const columns = Math.max(1, out.columns())
      let up = 0
      for (let index = 0; index < row; index++) up += Math.max(1, Math.ceil(widthOf(live[index] ?? "") / columns))
      up += Math.floor(Math.max(0, column) / columns)
      out.write(`${begin}\r${vertical(-up)}${eraseBelow}${end}`)
      live = []
      row = 0
      column = -1
      paint()
    },
    close: () => {
      const text = pending.map((line) => `${line}${eraseLine}\r\n`).join("")
      out.write(`${begin}\r${vertical(-row)}${text}${eraseBelow}${end}`)
      pending = []
      live = []
      row = 0
      column = -1
    },
    forget: () => {
      live = []
      row = 0
      column = -1
    }
  }
}
