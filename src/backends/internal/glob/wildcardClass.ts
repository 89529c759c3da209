/**
 * Classes of characters in wildcards, such as `[a-z]`, `[!a]` and `[[:alpha:]]`, read as git reads them.
 */

/** One of the code points in these ranges, or none of them. */
export interface Class {
  readonly _tag: "Class"
  readonly negated: boolean
  readonly ranges: ReadonlyArray<readonly [number, number]>
}

const code = (char: string): number => char.codePointAt(0) ?? 0
const [open, close, escape, dash, bang, caret, colon] = [
  code("["),
  code("]"),
  code("\\"),
  code("-"),
  code("!"),
  code("^"),
  code(":")
]

/** The POSIX classes, of ASCII, as git has them. */
const posixClasses: { readonly [name: string]: ReadonlyArray<readonly [number, number]> } = {
  alnum: [
    [48, 57],
    [65, 90],
    [97, 122]
  ],
  alpha: [
    [65, 90],
    [97, 122]
  ],
  blank: [
    [32, 32],
    [9, 9]
  ],
  cntrl: [
    [0, 31],
    [127, 127]
  ],
  digit: [[48, 57]],
  graph: [[33, 126]],
  lower: [[97, 122]],
  print: [[32, 126]],
  punct: [
    [33, 47],
    [58, 64],
    [91, 96],
    [123, 126]
  ],
  space: [
    [32, 32],
    [9, 10],
    [13, 13]
  ],
  upper: [[65, 90]],
  xdigit: [
    [48, 57],
    [65, 70],
    [97, 102]
  ]
}

/** Reads the class that begins behind `[` at `from`: the class and the index behind its `]`, or nothing if it has no end. */
export const readClass = (
  pattern: ReadonlyArray<number>,
  from: number
): { readonly single: Class; readonly next: number } | undefined => {
  const ranges: Array<readonly [number, number]> = []
  let i = from
  const negated = pattern[i] === bang || pattern[i] === caret
  if (negated) i++
  const first = i
  /** A member, and whether it can begin a range. */
  let low: number | undefined
  for (;;) {
    let char = pattern[i]
    if (char === undefined) return undefined
    // A `]` that comes first is a member.
    if (char === close && i > first) return { single: { _tag: "Class", negated, ranges }, next: i + 1 }
    if (char === open && pattern[i + 1] === colon) {
      const end = pattern.indexOf(close, i + 2)
      if (end === -1) return undefined
      if (end > i + 2 && pattern[end - 1] === colon) {
        const name = String.fromCodePoint(...pattern.slice(i + 2, Math.min(end - 1, i + 10)))
        const posix = Object.hasOwn(posixClasses, name) ? posixClasses[name] : undefined
        if (posix === undefined) return undefined
        ranges.push(...posix)
        low = undefined
        i = end + 1
        continue
      }
    }
    if (char === dash && low !== undefined && pattern[i + 1] !== undefined && pattern[i + 1] !== close) {
      i++
      if (pattern[i] === escape) i++
      const high = pattern[i]
      if (high === undefined) return undefined
      ranges.push([low, high])
      low = undefined
      i++
      continue
    }
    if (char === escape) {
      i++
      char = pattern[i]
      if (char === undefined) return undefined
    }
    ranges.push([char, char])
    low = char
    i++
  }
}

/** The index behind a class that begins with a `[` at `from`, or behind that `[` if the class has no end. */
export const skipClass = (pattern: string, from: number): number => {
  let i = from + 1
  // What has no end at all is not read to the end for each `[`.
  if (!pattern.includes("]", i)) return i
  if (pattern[i] === "!" || pattern[i] === "^") i++
  if (pattern[i] === "]") i++
  for (; i < pattern.length && pattern[i] !== "]"; i++) {
    if (pattern[i] === "\\") i++
    else if (pattern.startsWith("[:", i)) {
      const end = pattern.indexOf("]", i + 2)
      if (end > i + 2 && pattern[end - 1] === ":") i = end
    }
  }
  return i < pattern.length ? i + 1 : from + 1
}
