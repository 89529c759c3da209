/**
 * RE2 patterns in ripgrep's syntax.
 *
 * Literal texts of a pattern (`literals.ts`) would do for most: searches by them take as long. But where a pattern has
 * none, such as `^\s*$` or `[0-9a-f]{8}`, or one that most files have, they take 8 to 14 times as long, over 20,000
 * files.
 *
 * The translation finds every line that the original finds, maybe more: what ripgrep gives are files to look into, not
 * results. So bytes that are not UTF-8, which our search takes for U+FFFD, are matched by whatever matches that.
 * Patterns that mean something else by the tables of different Unicode versions are not translated.
 */

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

interface Read<A> {
  readonly value: A
  readonly next: number
}

/** The character of an escape that stands for one, at its backslash. */
const readEscape = (pattern: string, at: number): Read<number> | undefined => {
  const octal = /^\\(?:0[0-7]{0,2}|[1-7][0-7]{1,2})/.exec(pattern.slice(at, at + 4))?.[0]
  if (octal !== undefined) return { value: Number.parseInt(octal.slice(1), 8), next: at + octal.length }
  const byHex = /^\\x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]+)\})/.exec(pattern.slice(at, at + 16))
  if (byHex !== null) return { value: Number.parseInt(byHex[1] ?? byHex[2] ?? "", 16), next: at + byHex[0].length }
  const char = pattern.codePointAt(at + 1)
  if (char === undefined) return undefined
  const text = String.fromCodePoint(char)
  const control = controls[text]
  if (control !== undefined) return { value: control, next: at + 2 }
  return /[0-9A-Za-z]/.test(text) ? undefined : { value: char, next: at + 1 + text.length }
}

const readOne = (pattern: string, at: number): Read<number> | undefined => {
  if (pattern[at] === "\\") return readEscape(pattern, at)
  const char = pattern.codePointAt(at)
  return char === undefined ? undefined : { value: char, next: at + (char > 0xffff ? 2 : 1) }
}

/** `\d`, `\W` … at a backslash. */
const readPerl = (pattern: string, at: number): Read<ReadonlyArray<Range>> | undefined => {
  const name = pattern[at + 1] ?? ""
  const ranges = pattern[at] === "\\" ? perl[name.toLowerCase()] : undefined
  if (ranges === undefined) return undefined
  return { value: name === name.toLowerCase() ? ranges : complement(ranges), next: at + 2 }
}

const readPosix = (pattern: string, at: number): Read<ReadonlyArray<Range>> | undefined => {
  const match = /^\[:(\^?)([a-z]+):\]/.exec(pattern.slice(at, at + 16))
  const ranges = posix[match?.[2] ?? ""]
  if (match === null || ranges === undefined) return undefined
  return { value: match[1] === "" ? ranges : complement(ranges), next: at + match[0].length }
}

/** A class, at its `[`. */
const readClass = (pattern: string, from: number): Read<ReadonlyArray<Range>> | undefined => {
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

/** A group that begins at a `(`: what it becomes. */
const readGroup = (pattern: string, at: number): Read<string> | undefined => {
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

/** The pattern that ripgrep is given. `nul` says that it can match NUL. */
export interface Translated {
  readonly pattern: string
  readonly nul: boolean
}

/** Translates a valid RE2 pattern, or gives up on it. */
export const translate = (pattern: string, ignoreCase: boolean): Translated | undefined => {
  const parts: Array<string> = []
  let nul = false
  const folds = ignoreCase || /\(\?[a-zA-Z]*i/.test(pattern)
  const put = (ranges: ReadonlyArray<Range>): boolean => {
    if (ranges.some(([low]) => low === 0)) nul = true
    parts.push(classOf(ranges))
    return !folds || ranges.every(([low, high]) => high === maxCode || foldsAlike(low, high))
  }
  let at = 0
  while (at < pattern.length) {
    const char = pattern[at] ?? ""
    if (char === "[") {
      const read = readClass(pattern, at)
      if (read === undefined || !put(read.value)) return undefined
      at = read.next
    } else if (char === "(") {
      const read = readGroup(pattern, at)
      if (read === undefined) return undefined
      parts.push(read.value)
      at = read.next
    } else if (char === ".") {
      if (!put([[0, maxCode]])) return undefined
      at++
    } else if (char === "{") {
      const repeat = /^\{[0-9]+(?:,[0-9]*)?\}/.exec(pattern.slice(at, at + 16))?.[0]
      parts.push(repeat ?? "\\{")
      at += repeat?.length ?? 1
    } else if (/[)|*+?^$]/.test(char)) {
      parts.push(char)
      at++
    } else if (char === "\\" && pattern[at + 1] === "Q") {
      const end = pattern.indexOf("\\E", at + 2)
      for (const quoted of pattern.slice(at + 2, end === -1 ? undefined : end)) {
        if (!put([[code(quoted), code(quoted)]])) return undefined
      }
      at = end === -1 ? pattern.length : end + 2
    } else if (char === "\\" && /[bBAz]/.test(pattern[at + 1] ?? "")) {
      parts.push({ b: "(?-u:\\b)", B: "(?-u:\\B)", A: "^", z: "$" }[pattern[at + 1] ?? ""] ?? "")
      at += 2
    } else {
      const set = readPerl(pattern, at)
      const one = set === undefined ? readOne(pattern, at) : undefined
      const ranges = set?.value ?? (one === undefined ? undefined : [[one.value, one.value] as const])
      if (ranges === undefined || !put(ranges)) return undefined
      at = set?.next ?? one?.next ?? pattern.length
    }
  }
  return { pattern: parts.join(""), nul }
}
