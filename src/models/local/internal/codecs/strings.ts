/** Quoted strings of JSON and Python, read as they come and written as JSON. */
import { valueAt } from "../../../../support/json/valueAt.ts"
import { type Cursor, type Parser, type Problem, tag } from "./cursor.ts"

/** Takes JSON text. */
export type Out = (json: string) => void

/** One character inside of a JSON string. */
export const escaped = (char: string): string =>
  char === '"' || char === "\\" || char < " " ? JSON.stringify(char).slice(1, -1) : char

const unclosed = "a string is not closed"

const letters: { readonly [letter: string]: string } = {
  n: "\n",
  t: "\t",
  r: "\r",
  b: "\b",
  f: "\f",
  v: "\v",
  a: "\u0007",
  "0": "\0",
  "/": "/",
  "\\": "\\",
  "'": "'",
  '"': '"',
  // A line that goes on.
  "\n": ""
}

const digits: { readonly [letter: string]: number } = { x: 2, u: 4, U: 8 }

const hex = /^[0-9a-fA-F]$/

/**
 * Reads the character behind a backslash. One that escapes nothing is a backslash: models write regular expressions so.
 */
const escape = function* (cursor: Cursor, out: Out): Parser<Problem> {
  yield
  const letter = cursor.char
  if (letter === "") return unclosed
  const replaced = valueAt(letters, letter)
  const count = valueAt(digits, letter)
  if (count === undefined) {
    yield
    for (const char of replaced ?? `\\${letter}`) out(escaped(char))
    return undefined
  }
  yield
  let code = ""
  while (code.length < count && hex.test(cursor.char)) {
    code += cursor.char
    yield
  }
  const point = Number.parseInt(code, 16)
  if (code.length < count || point > 0x10ffff) return `\`\\${letter}${code}\` is not a character`
  for (const unit of String.fromCodePoint(point).split("")) out(escaped(unit))
  return undefined
}

const isLetter = (char: string): boolean => /^\p{L}$/u.test(char)

/**
 * A string in `"`, `'`, or three of them. A line break in it is kept. An apostrophe between two letters does not close
 * a string in `'`: templates that don't escape teach models to write `'it's'`.
 */
export const quoted = function* (cursor: Cursor, out: Out): Parser<Problem> {
  const quote = cursor.char
  yield
  out('"')
  let long = false
  if (cursor.char === quote) {
    yield
    long = cursor.char === quote
    if (!long) {
      out('"')
      return undefined
    }
    yield
  }
  let closing = 0
  let before = ""
  while (cursor.char !== "") {
    const { char } = cursor
    if (char === quote) {
      yield
      closing++
      if (long ? closing === 3 : !(quote === "'" && isLetter(before) && isLetter(cursor.char))) {
        out('"')
        return undefined
      }
      if (!long) {
        out("'")
        closing = 0
      }
    } else {
      for (; closing > 0; closing--) out(escaped(quote))
      if (char === "\\") {
        const problem = yield* escape(cursor, out)
        if (problem !== undefined) return problem
      } else {
        out(escaped(char))
        yield
      }
    }
    before = char
  }
  return unclosed
}

/** A string between two of the same tags, without escapes. */
export const tagged = function* (cursor: Cursor, out: Out, quote: string): Parser<Problem> {
  const opening = yield* tag(cursor, [quote])
  if (opening !== quote) return `\`${opening}\` does not open a string`
  out('"')
  while (cursor.char !== "") {
    if (cursor.char !== quote.charAt(0)) {
      out(escaped(cursor.char))
      yield
      continue
    }
    const tagText = yield* tag(cursor, [quote])
    if (tagText === quote) {
      out('"')
      return undefined
    }
    for (const char of tagText) out(escaped(char))
  }
  return unclosed
}
