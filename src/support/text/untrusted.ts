/** Makes foreign texts safe in a prompt: they can't pass for a part of the prompt itself. */
import { valueAt } from "../json/valueAt.ts"

/** The beginning of the `source` of human messages that came from outside, and that no person wrote. */
export const outside = "trigger:"

/** Every line break for a model or a person. */
const breaks = /\r\n|[\r\n\v\f\u0085\u2028\u2029]/g

/**
 * Characters that nobody sees: control characters, and format characters that hide or turn text. Joiners belong to the
 * script.
 */
const unseen = /(?![\t\n\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}]/gu

const plain = (text: string): string => text.replaceAll(breaks, "\n").replaceAll(unseen, "")

/** A text as a block quote: every line of it begins with `>`, so none can begin like a line of the prompt. */
export const quote = (text: string): string =>
  plain(text)
    .split("\n")
    .map((line) => (line === "" ? ">" : `> ${line}`))
    .join("\n")

/** A text on one line. */
export const oneLine = (text: string): string => plain(text).replaceAll(/\s+/g, " ").trim()

/** Removes invisible characters. */
export const visible = plain

const names: { readonly [character: string]: string } = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }

const escape = (character: string): string =>
  valueAt(names, character) ?? `\\u{${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}}`

/** Control characters of terminals, and invisible characters. */
const acting = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** A text on one line with its control and invisible characters escaped: `\n`, `\u{001b}`. */
export const escaped = (text: string): string => text.replaceAll(acting, escape)

/** Reads the characters that {@link escaped} wrote by their number. */
export const unescaped = (text: string): string =>
  text.replaceAll(/\\u\{([\da-f]{4,6})\}/g, (all, digits: string) => {
    const code = Number.parseInt(digits, 16)
    return code > 0x10ffff ? all : String.fromCodePoint(code)
  })

/** The beginning of a text, of so many bytes at most, up to the end of a line if there is one. */
export const head = (text: string, maxBytes: number): string => {
  // No character has more bytes than three for each unit of its text.
  if (text.length * 3 <= maxBytes) return text
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(maxBytes))
  if (read === text.length) return text
  const end = text.lastIndexOf("\n", read)
  return text.slice(0, end > 0 ? end : read)
}

/** Removes HTML comments. An unclosed comment is text. */
export const withoutComments = (text: string): string => {
  let outside = ""
  let from = 0
  for (;;) {
    const start = text.indexOf("<!--", from)
    const end = start < 0 ? -1 : text.indexOf("-->", start + 4)
    if (end < 0) return outside + text.slice(from)
    outside += text.slice(from, start)
    from = end + 3
  }
}
