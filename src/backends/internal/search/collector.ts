/** The content of a window: takes the text of a file from its first line on, and keeps no more than was asked for. */
import type { Window } from "../../../core/Backend.ts"
import { defined } from "../../../support/json/defined.ts"
import { boundaryAfter } from "../../../support/text/text.ts"
import { cr, lf } from "../text/endings.ts"
import { takeBytes, utf8Length } from "../text/utf8.ts"

/** The default lines of a window. */
export const defaultLimit = 2_000

/** The longest text of a window, in bytes of UTF-8. */
export const maxWindowBytes = 256 * 1024

/** A window of a text, as in `Backend.TextFile`. `crlf` is set if all line endings are `\r\n`. */
export interface TextWindow {
  readonly text: string
  readonly startLine: number
  readonly endLine: number
  readonly totalLines: number
  readonly nextColumn?: number
  readonly crlf?: boolean
}

/** Clamps any number to whole numbers within bounds. */
const whole = (value: number | undefined, least: number, otherwise: number): number =>
  value === undefined || Number.isNaN(value)
    ? otherwise
    : Math.min(Number.MAX_SAFE_INTEGER, Math.max(least, Math.floor(value)))

export interface Bounds {
  readonly offset: number
  readonly limit: number
  readonly column: number
}

/** The bounds of a window: an offset below 1 is 1, negative numbers are 0. */
export const boundsOf = (window: Window = {}): Bounds => ({
  offset: whole(window.offset, 1, 1),
  limit: whole(window.limit, 0, defaultLimit),
  column: whole(window.column, 0, 0)
})

/** Collects the text of a window from its first line on. */
export interface Collector {
  readonly isFull: () => boolean
  readonly take: (text: string) => void
  readonly end: (total: number, crlf: boolean) => TextWindow
}

export const makeCollector = ({ column, limit, offset }: Bounds): Collector => {
  const lines: Array<string> = []
  let line = ""
  /** Characters to leave out of the first line. */
  let skip = column
  let skipped = 0
  /** Tells whether there is a line that has not ended. */
  let open = false
  let bytes = 0
  let full = limit === 0
  let nextColumn: number | undefined
  /** Tells whether the last unit was `\r`, so that a `\n` belongs to it. */
  let swallow = false

  /** Begins a line, which costs the `\n` before it. */
  const begin = () => {
    if (open) return
    open = true
    if (lines.length > 0) bytes += 1
  }
  const add = (part: string) => {
    let rest = part
    if (skip > 0) {
      const from = boundaryAfter(part, Math.min(skip, part.length))
      skip = Math.max(0, skip - from)
      skipped += from
      rest = part.slice(from)
    }
    const size = utf8Length(rest)
    if (bytes + size <= maxWindowBytes) {
      line += rest
      bytes += size
      return
    }
    full = true
    // Whole lines are easier to go on from than parts of one; only a line that is too long by itself is parted.
    if (lines.length > 0) return
    line += takeBytes(rest, maxWindowBytes - bytes)
    nextColumn = skipped + line.length
    lines.push(line)
  }
  const close = () => {
    lines.push(line)
    line = ""
    skip = 0
    open = false
    if (lines.length === limit) full = true
  }

  return {
    isFull: () => full,
    take: (text) => {
      let from = swallow && text.charCodeAt(0) === lf ? 1 : 0
      if (text.length > 0) swallow = false
      for (let i = from; i < text.length && !full; i++) {
        const unit = text.charCodeAt(i)
        if (unit !== lf && unit !== cr) continue
        begin()
        if (!full) add(text.slice(from, i))
        if (full) return
        close()
        if (unit === cr) {
          if (i + 1 === text.length) swallow = true
          else if (text.charCodeAt(i + 1) === lf) i++
        }
        from = i + 1
      }
      if (full || from >= text.length) return
      begin()
      if (!full) add(text.slice(from))
    },
    end: (total, crlf) => {
      if (open && !full) close()
      return defined({
        text: lines.join("\n"),
        startLine: offset,
        endLine: offset + lines.length - 1,
        totalLines: total,
        nextColumn,
        crlf: crlf || undefined
      })
    }
  }
}
