/** Values in the notations that models use (JSON, Python, Gemma's), read as they come and written as JSON. */
import { valueAt } from "../../../../support/json/valueAt.ts"
import { at, type Cursor, expected, isSpace, type Parser, type Problem, run, space } from "./cursor.ts"
import { type Out, quoted, tagged } from "./strings.ts"

/** A notation: its tag around strings if it has one, and whether a bare word is a string. */
export interface Notation {
  readonly quote?: string | undefined
  readonly bareStrings: boolean
}

export const json: Notation = { bareStrings: false }

export const python: Notation = { bareStrings: true }

/** Deeper values are no arguments; code that walks over them later should not run out of stack. */
const depthLimit = 64

const words: { readonly [word: string]: string } = {
  true: "true",
  True: "true",
  false: "false",
  False: "false",
  null: "null",
  None: "null",
  none: "null"
}

const number = /^[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/

/** A number as JSON. Digits that a double can't hold are kept, as a string: they are an id more often than a number. */
const numeral = (word: string): string | undefined => {
  const value = Number(word)
  if (!Number.isFinite(value)) return undefined
  return /^[+-]?\d+$/.test(word) && !Number.isSafeInteger(value) ? JSON.stringify(word) : JSON.stringify(value)
}

const isDelimiter = (char: string): boolean => char === "" || isSpace(char) || ",:()[]{}\"'<>=".includes(char)

const readWord = function* (cursor: Cursor): Parser<string> {
  let word = ""
  while (!isDelimiter(cursor.char)) {
    word += cursor.char
    yield
  }
  return word
}

const scalar = function* (cursor: Cursor, out: Out, notation: Notation): Parser<Problem> {
  const word = yield* readWord(cursor)
  if (word === "") return expected(cursor, "a value")
  const value =
    valueAt(words, word) ??
    (number.test(word) ? numeral(word) : notation.bareStrings ? JSON.stringify(word) : undefined)
  if (value === undefined) return `\`${word.slice(0, 80)}\` is not a value`
  out(value)
  return undefined
}

const text = (cursor: Cursor, out: Out, notation: Notation): Parser<Problem> | undefined => {
  if (at(cursor, '"') || at(cursor, "'")) return quoted(cursor, out)
  return notation.quote !== undefined && cursor.char === notation.quote.charAt(0)
    ? tagged(cursor, out, notation.quote)
    : undefined
}

const key = function* (cursor: Cursor, out: Out, notation: Notation): Parser<Problem> {
  const parser = text(cursor, out, notation)
  if (parser !== undefined) return yield* parser
  const word = yield* readWord(cursor)
  if (word === "") return expected(cursor, "a key")
  out(JSON.stringify(word))
  return undefined
}

const object = function* (cursor: Cursor, out: Out, notation: Notation, depth: number): Parser<Problem> {
  yield
  out("{")
  for (let first = true; ; first = false) {
    yield* space(cursor)
    if (at(cursor, "}")) break
    if (!first) out(",")
    const wrongKey = yield* key(cursor, out, notation)
    if (wrongKey !== undefined) return wrongKey
    yield* space(cursor)
    if (!at(cursor, ":")) return expected(cursor, "`:`")
    yield
    out(":")
    const wrongValue = yield* value(cursor, out, notation, depth + 1)
    if (wrongValue !== undefined) return wrongValue
    yield* space(cursor)
    if (at(cursor, "}")) break
    if (!at(cursor, ",")) return expected(cursor, "`,` or `}`")
    yield
  }
  yield
  out("}")
  return undefined
}

const array = function* (cursor: Cursor, out: Out, notation: Notation, depth: number): Parser<Problem> {
  const close = at(cursor, "(") ? ")" : "]"
  yield
  out("[")
  for (let first = true; ; first = false) {
    yield* space(cursor)
    if (at(cursor, close)) break
    if (!first) out(",")
    const wrong = yield* value(cursor, out, notation, depth + 1)
    if (wrong !== undefined) return wrong
    yield* space(cursor)
    if (at(cursor, close)) break
    if (!at(cursor, ",")) return expected(cursor, `\`,\` or \`${close}\``)
    yield
  }
  yield
  out("]")
  return undefined
}

/** One value. What `out` was given is whole JSON if there was no problem. */
export const value = function* (cursor: Cursor, out: Out, notation: Notation, depth = 0): Parser<Problem> {
  if (depth > depthLimit) return `it is nested deeper than ${depthLimit}`
  yield* space(cursor)
  if (at(cursor, "{")) return yield* object(cursor, out, notation, depth)
  if (at(cursor, "[") || at(cursor, "(")) return yield* array(cursor, out, notation, depth)
  const parser = text(cursor, out, notation)
  return parser === undefined ? yield* scalar(cursor, out, notation) : yield* parser
}

/** The JSON of a text that is one value and nothing else. */
export const toJson = (source: string, notation: Notation): string | undefined => {
  const cursor: Cursor = { char: "", raw: "" }
  let output = ""
  let whole = false
  const parser = (function* (): Parser<void> {
    yield
    const problem = yield* value(cursor, (part) => (output += part), notation)
    yield* space(cursor)
    whole = problem === undefined && at(cursor, "")
  })()
  const decoder = run(cursor, parser, () => undefined)
  decoder.push(source)
  decoder.end()
  return whole ? output : undefined
}
