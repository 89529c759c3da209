/**
 * Translates RE2 patterns to ripgrep's syntax.
 *
 * The literals of a pattern (`literals.ts`) are as fast for most searches. But patterns without literals, such as
 * `^\s*$` or `[0-9a-f]{8}`, or with common ones, take 8 to 14 times as long without ripgrep, over 20,000 files.
 *
 * The translation matches every line of the original, perhaps more: ripgrep only preselects files. Our search reads
 * invalid UTF-8 as U+FFFD, so a pattern for U+FFFD also matches invalid bytes. Patterns that depend on the Unicode
 * version are not translated.
 */
import { valueAt } from "../../../support/json/valueAt.ts"

type Range = readonly [number, number]

const maxCode = 0x10ffff
const replacement = 0xfffd
const code = (char: string): number => char.codePointAt(0) ?? 0

/** Reads ranges from pairs of characters. */
const rangesOf = (pairs: string): ReadonlyArray<Range> =>
  Array.from({ length: pairs.length / 2 }, (_, at) => [pairs.charCodeAt(2 * at), pairs.charCodeAt(2 * at + 1)])

const perl: { readonly [name: string]: ReadonlyArray<Range> | undefined } = {
  d: rangesOf("09"),
  s: rangesOf("\t\n\f\r  "),
  w: rangesOf("09AZ__az")
}

const posix: { readonly [name: string]: ReadonlyArray<Range> | undefined } = {
  alnum: rangesOf("09AZaz"),
  alpha: rangesOf("AZaz"),
  ascii: rangesOf("\0\x7F"),
  blank: rangesOf("\t\t  "),
  cntrl: rangesOf("\0\x1F\x7F\x7F"),
  digit: rangesOf("09"),
  graph: rangesOf("!~"),
  lower: rangesOf("az"),
  print: rangesOf(" ~"),
  punct: rangesOf("!/:@[`{~"),
  space: rangesOf("\t\r  "),
  upper: rangesOf("AZ"),
  word: rangesOf("09AZ__az"),
  xdigit: rangesOf("09AFaf")
}

const controls: { readonly [name: string]: number | undefined } = { a: 7, f: 12, n: 10, r: 13, t: 9, v: 11 }

const complement = (all: ReadonlyArray<Range>): ReadonlyArray<Range> => {
  const rest: Array<Range> = []
  let from = 0
  for (const [low, high] of all.toSorted((left, right) => left[0] - right[0])) {
    if (low > from) rest.push([from, low - 1])
    from = Math.max(from, high + 1)
  }
  if (from <= maxCode) rest.push([from, maxCode])
  return rest
}

const hex = (char: number): string => `\\x{${char.toString(16)}}`

/** The characters that a line can have in it: no line breaks, and no surrogates, which ripgrep does not know. */
const inLines: ReadonlyArray<Range> = [
  [0, 9],
  [11, 12],
  [14, 0xd7ff],
  [0xe000, maxCode]
]

const onlyInLines = (ranges: ReadonlyArray<Range>): ReadonlyArray<Range> =>
  ranges.flatMap(([low, high]) =>
    inLines.flatMap(([from, to]): ReadonlyArray<Range> =>
      low <= to && from <= high ? [[Math.max(low, from), Math.min(high, to)]] : []
    )
  )

/** Up to three bytes that are not UTF-8 become one replacement character. */
const orInvalid = (pattern: string): string => `(?:${pattern}|(?-u:[\\x80-\\xff]){1,3})`

const classOf = (ranges: ReadonlyArray<Range>): string => {
  const valid = onlyInLines(ranges)
  // A class that nothing is in.
  if (valid.length === 0) return "[^\\x{0}-\\x{10ffff}]"
  const pattern = `[${valid.map(([low, high]) => (low === high ? hex(low) : `${hex(low)}-${hex(high)}`)).join("")}]`
  return valid.some(([low, high]) => low <= replacement && replacement <= high) ? orInvalid(pattern) : pattern
}

/** Tells whether these are letters whose other cases have been the same since long before any version in use. */
export const foldsAlike = (low: number, high = low): boolean => high <= 0x17f || (low >= 0x370 && high <= 0x52f)

interface ReadValue<A> {
  readonly value: A
  readonly next: number
}

/** The character of an escape that stands for one, at its backslash. */
const readEscape = (pattern: string, at: number): ReadValue<number> | undefined => {
  const octal = /^\\(?:0[0-7]{0,2}|[1-7][0-7]{1,2})/.exec(pattern.slice(at, at + 4))?.[0]
  if (octal !== undefined) return { value: Number.parseInt(octal.slice(1), 8), next: at + octal.length }
  const byHex = /^\\x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]+)\})/.exec(pattern.slice(at, at + 16))
  if (byHex !== null) return { value: Number.parseInt(byHex[1] ?? byHex[2] ?? "", 16), next: at + byHex[0].length }
  const char = pattern.codePointAt(at + 1)
  if (char === undefined) return undefined
  const text = String.fromCodePoint(char)
  const control = valueAt(controls, text)
  if (control !== undefined) return { value: control, next: at + 2 }
  return /[0-9A-Za-z]/.test(text) ? undefined : { value: char, next: at + 1 + text.length }
}

const readOne = (pattern: string, at: number): ReadValue<number> | undefined => {
  if (pattern[at] === "\\") return readEscape(pattern, at)
  const char = pattern.codePointAt(at)
  return char === undefined ? undefined : { value: char, next: at + (char > 0xffff ? 2 : 1) }
}

/** `\d`, `\W` … at a backslash. */
const readPerl = (pattern: string, at: number): ReadValue<ReadonlyArray<Range>> | undefined => {
  const name = pattern[at + 1] ?? ""
  const ranges = pattern[at] === "\\" ? valueAt(perl, name.toLowerCase()) : undefined
  if (ranges === undefined) return undefined
  return { value: name === name.toLowerCase() ? ranges : complement(ranges), next: at + 2 }
}

const readPosix = (pattern: string, at: number): ReadValue<ReadonlyArray<Range>> | undefined => {
  const match = /^\[:(\^?)([a-z]+):\]/.exec(pattern.slice(at, at + 16))
  const ranges = valueAt(posix, match?.[2])
  if (match === null || ranges === undefined) return undefined
  return { value: match[1] === "" ? ranges : complement(ranges), next: at + match[0].length }
}

/** A class, at its `[`. */
const readClass = (pattern: string, from: number): ReadValue<ReadonlyArray<Range>> | undefined => {
  let at = from + 1
  const isNegated = pattern[at] === "^"
  if (isNegated) at++
  const first = at
  const ranges: Array<Range> = []
  while (pattern[at] !== "]" || at === first) {
    const set = readPerl(pattern, at) ?? readPosix(pattern, at)
    if (set !== undefined) {
      ranges.push(...set.value)
      at = set.next
      continue
    }
    const low = readOne(pattern, at)
    if (low === undefined) return undefined
    at = low.next
    if (pattern[at] !== "-" || pattern[at + 1] === "]") {
      ranges.push([low.value, low.value])
      continue
    }
    const high = readOne(pattern, at + 1)
    if (high === undefined || high.value < low.value) return undefined
    ranges.push([low.value, high.value])
    at = high.next
  }
  return { value: isNegated ? complement(ranges) : ranges, next: at + 1 }
}

/** Translates the beginning of a group. */
const readGroup = (pattern: string, at: number): ReadValue<string> | undefined => {
  if (pattern[at + 1] !== "?") return { value: "(?:", next: at + 1 }
  const named = /^\(\?P?<[A-Za-z0-9_]+>/.exec(pattern.slice(at, at + 64))
  if (named !== null) return { value: "(?:", next: at + named[0].length }
  const flagged = /^\(\?([imsU]*)(-[imsU]+)?([:)])/.exec(pattern.slice(at, at + 16))
  if (flagged === null) return undefined
  const [all, on = "", off = "", end = ""] = flagged
  // The other flags make no difference to whether a line matches.
  const flags = `${on.includes("i") ? "i" : ""}${off.includes("i") ? "-i" : ""}`
  if (end === ")" && flags === "") return { value: "", next: at + all.length }
  return { value: `(?${flags}${end}`, next: at + all.length }
}

/** The pattern for ripgrep. `nul`: it can match NUL. */
export interface TranslatedPattern {
  readonly pattern: string
  readonly nul: boolean
}

/** Reads an escape: a quoted text, an assertion, a Perl class or a character. */
const readBackslash = (pattern: string, at: number): ReadValue<Atom> | undefined => {
  const next = pattern[at + 1] ?? ""
  if (next === "Q") {
    const end = pattern.indexOf("\\E", at + 2)
    const quoted = Array.from(pattern.slice(at + 2, end === -1 ? undefined : end))
    return { value: quoted.map((char) => [[code(char), code(char)]]), next: end === -1 ? pattern.length : end + 2 }
  }
  const assertion = { b: "(?-u:\\b)", B: "(?-u:\\B)", A: "^", z: "$" }[next]
  if (assertion !== undefined) return { value: assertion, next: at + 2 }
  return readCharacters(pattern, at)
}

const readCharacters = (pattern: string, at: number): ReadValue<Atom> | undefined => {
  const set = readPerl(pattern, at)
  if (set !== undefined) return { value: [set.value], next: set.next }
  const one = readOne(pattern, at)
  return one === undefined ? undefined : { value: [[[one.value, one.value]]], next: one.next }
}

/** A part of a pattern: syntax of ripgrep, or sets of characters. */
type Atom = string | ReadonlyArray<ReadonlyArray<Range>>

const readAtom = (pattern: string, at: number): ReadValue<Atom> | undefined => {
  const char = pattern[at] ?? ""
  if (char === "[") {
    const characterClass = readClass(pattern, at)
    return characterClass === undefined ? undefined : { value: [characterClass.value], next: characterClass.next }
  }
  if (char === "(") return readGroup(pattern, at)
  if (char === ".") return { value: [[[0, maxCode]]], next: at + 1 }
  if (char === "{") {
    const repeat = /^\{[0-9]+(?:,[0-9]*)?\}/.exec(pattern.slice(at, at + 16))?.[0]
    return { value: repeat ?? "\\{", next: at + (repeat?.length ?? 1) }
  }
  if (/[)|*+?^$]/.test(char)) return { value: char, next: at + 1 }
  return char === "\\" ? readBackslash(pattern, at) : readCharacters(pattern, at)
}

/** Translates a valid RE2 pattern, or gives up on it. */
export const translate = (pattern: string, ignoreCase: boolean): TranslatedPattern | undefined => {
  const parts: Array<string> = []
  let nul = false
  const folds = ignoreCase || /\(\?[a-zA-Z]*i/.test(pattern)
  const addRanges = (ranges: ReadonlyArray<Range>): boolean => {
    if (ranges.some(([low]) => low === 0)) nul = true
    parts.push(classOf(ranges))
    return !folds || ranges.every(([low, high]) => high === maxCode || foldsAlike(low, high))
  }
  for (let at = 0; at < pattern.length;) {
    const atom = readAtom(pattern, at)
    if (atom === undefined) return undefined
    if (typeof atom.value === "string") parts.push(atom.value)
    else if (!atom.value.every(addRanges)) return undefined
    at = atom.next
  }
  return { pattern: parts.join(""), nul }
}
