/** Colours and widths of lines for a terminal. */
import stringWidth from "string-width"
import wrapAnsi from "wrap-ansi"
import { codeOf, type Colour, type Theme } from "./themes.ts"

/** Text styles. Without colours each style returns its text. */
export interface Style {
  readonly bold: (text: string) => string
  readonly dim: (text: string) => string
  readonly italic: (text: string) => string
  readonly underline: (text: string) => string
  readonly inverse: (text: string) => string
  readonly red: (text: string) => string
  readonly green: (text: string) => string
  readonly yellow: (text: string) => string
  readonly blue: (text: string) => string
  readonly magenta: (text: string) => string
  readonly cyan: (text: string) => string
  /** Makes a clickable link. Terminals without links show the label. */
  readonly link: (label: string, url: string) => string
}

const same = (text: string): string => text

/** Addresses that a link may have. */
const linkable = /^(?:https?|file):[\x21-\x7e]+$/

/** Makes the styles. The theme may change, so each call reads it. */
export const styleOf = (hasColours: boolean, theme: () => Theme = () => "auto"): Style => {
  const markText = (text: string, on: number | string, off: number): string => `\u001b[${on}m${text}\u001b[${off}m`
  const mark = (on: number, off: number) =>
    hasColours ? (text: string) => (theme() === "none" ? text : markText(text, on, off)) : same
  const colour = (name: Colour) =>
    hasColours
      ? (text: string) => {
          const code = codeOf(theme(), name)
          return code === undefined ? text : markText(text, code, 39)
        }
      : same
  return {
    bold: mark(1, 22),
    dim: mark(2, 22),
    italic: mark(3, 23),
    underline: mark(4, 24),
    inverse: mark(7, 27),
    red: colour("red"),
    green: colour("green"),
    yellow: colour("yellow"),
    blue: colour("blue"),
    magenta: colour("magenta"),
    cyan: colour("cyan"),
    link: (label, url) =>
      hasColours && theme() !== "none" && linkable.test(url)
        ? `\u001b]8;;${url}\u001b\\${label}\u001b]8;;\u001b\\`
        : label
  }
}

const ascii = /^[\x20-\x7e]*$/

/** Measures a line in columns. */
export const widthOf = (line: string): number => (ascii.test(line) ? line.length : stringWidth(line))

/** Wraps a line at words. */
export const wrap = (text: string, columns: number): ReadonlyArray<string> =>
  widthOf(text) <= columns ? [text] : wrapAnsi(text, Math.max(1, columns), { hard: true, trim: true }).split("\n")

const segments = new Intl.Segmenter(undefined, { granularity: "grapheme" })
const ends = /^\u001b\[(?:2[2-9]|39|0)m$/
const escapes = /(\u001b\[[0-9;]*m|\u001b\]8;;[^\u001b]*\u001b\\)/

/** Cuts a line to a width, with a mark, and ends its colours. */
export const fit = (line: string, columns: number): string => {
  if (widthOf(line) <= columns) return line
  let room = columns - 1
  let out = ""
  let isOver = false
  for (const [index, piece] of line.split(escapes).entries()) {
    if (index % 2 === 1) {
      // Ends the codes that are still open.
      if (!isOver || piece.endsWith(";;\u001b\\") || ends.test(piece)) out += piece
      continue
    }
    if (isOver) continue
    for (const { segment } of segments.segment(piece)) {
      room -= widthOf(segment)
      if (room < 0) {
        isOver = true
        out += "…"
        break
      }
      out += segment
    }
  }
  return out
}
