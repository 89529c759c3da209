/**
 * Streaming parsers as generators: straight-line code that waits at each `yield` for the next character.
 *
 * A parser sees one character, `cursor.char`; `yield` takes it and waits for the next. At the end of the text it is
 * `""`, and a parser that goes on asking is left. No parser goes back, so every text takes time linear in its length.
 */
import type { Decoder } from "./Codec.ts"

/** The place of a parser. `raw` is the text it took since `raw` was last set. */
export interface Cursor {
  char: string
  raw: string
}

/** A parser that gives `A`. */
export type Parser<A> = Generator<void, A, void>

/** Runs a parser; `flush` is called after each text. */
export const run = (cursor: Cursor, parser: Parser<void>, flush: () => void): Decoder => {
  let over = parser.next().done === true
  const take = (char: string): void => {
    if (over) return
    cursor.raw += cursor.char
    cursor.char = char
    over = parser.next().done === true
  }
  return {
    push: (text) => {
      for (let index = 0; index < text.length; index++) take(text.charAt(index))
      flush()
    },
    end: () => {
      take("")
      if (!over) parser.return()
      over = true
      flush()
    }
  }
}

/** Reports whether this character is next. */
export const at = (cursor: Cursor, char: string): boolean => cursor.char === char

/** Reports whether a character separates words. */
export const isSpace = (char: string): boolean => char === " " || char === "\n" || char === "\t" || char === "\r"

/** Takes white space, and gives it. */
export const space = function* (cursor: Cursor): Parser<string> {
  let blanks = ""
  while (isSpace(cursor.char)) {
    blanks += cursor.char
    yield
  }
  return blanks
}

/**
 * Consumes one of several tags, or its longest matching beginning, and returns the consumed text. `begun` is text
 * consumed earlier. No tag is a prefix of another, and a tag's first character occurs in it only once, so a failed
 * match can't hide the start of a tag.
 */
export const tag = function* (cursor: Cursor, tags: ReadonlyArray<string>, begun = ""): Parser<string> {
  let text = begun
  while (cursor.char !== "" && tags.some((one) => one.startsWith(text + cursor.char))) {
    text += cursor.char
    yield
    if (tags.includes(text)) return text
  }
  return text
}

/** Consumes everything up to and including a tag, or to the end. The tag may have begun in the text consumed last. */
export const skipTo = function* (cursor: Cursor, end: string): Parser<void> {
  const last = cursor.raw.slice(-end.length)
  const begun = last.slice(Math.max(0, last.lastIndexOf(end.charAt(0))))
  if (begun !== "" && end.startsWith(begun) && (yield* tag(cursor, [end], begun)) === end) return
  while (cursor.char !== "") {
    if (cursor.char !== end.charAt(0)) yield
    else if ((yield* tag(cursor, [end])) === end) return
  }
}

/** A description of a problem for the model. `undefined` if there is no problem. */
export type Problem = string | undefined

/** Describes an unexpected character. */
export const expected = (cursor: Cursor, what: string): string =>
  cursor.char === ""
    ? `it ends where ${what} should be`
    : `expected ${what}, found ${cursor.char === "\n" ? "a line break" : `\`${cursor.char}\``}`
