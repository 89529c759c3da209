/** Finds lines in a file, exactly or nearly. */

/** Lines of a file to search, and their normalised forms for looser comparisons. */
export interface Haystack {
  readonly lines: ReadonlyArray<string>
  readonly folded: Array<ReadonlyArray<string> | undefined>
  /** The number of comparisons of lines that are left: many hunks that fit nowhere must not take forever. */
  left: number
}

const comparisons = 30_000_000

export const haystack = (lines: ReadonlyArray<string>): Haystack => ({ lines, folded: [lines], left: comparisons })

const dashes = /[\u2010-\u2015\u2212]/g
const singleQuotes = /[\u2018-\u201b]/g
const doubleQuotes = /[\u201c-\u201f]/g
const spaces = /[\u00a0\u2002-\u200a\u202f\u205f\u3000]/g

const fold = (line: string): string =>
  line
    .replace(dashes, "-")
    .replace(singleQuotes, "'")
    .replace(doubleQuotes, '"')
    .replace(spaces, " ")
    .replace(/\u2026/g, "...")
    .trim()

/**
 * The ways in which two lines may differ and still be the same, from not at all to what editors and models change by
 * themselves.
 */
const folds: ReadonlyArray<(line: string) => string> = [
  (line) => line,
  (line) => line.trimEnd(),
  (line) => line.trim(),
  fold
]

const at = (hay: Haystack, level: number): ReadonlyArray<string> =>
  (hay.folded[level] ??= hay.lines.map(folds[level] ?? fold))

/** The failure function of Knuth, Morris and Pratt for lines. */
const failures = (needle: ReadonlyArray<string>): ReadonlyArray<number> => {
  const table = [0]
  for (let index = 1, length = 0; index < needle.length; index++) {
    while (length > 0 && needle[index] !== needle[length]) length = table[length - 1] ?? 0
    if (needle[index] === needle[length]) length++
    table.push(length)
  }
  return table
}

/** The place of the lines, or how far they fit at best: `matched` of them, from `index` on. */
export interface MatchResult {
  readonly isFound: boolean
  readonly index: number
  readonly matched: number
}

const scan = (hay: Haystack, needle: ReadonlyArray<string>, from: number, level: number): MatchResult => {
  const lines = at(hay, level)
  const wanted = needle.map(folds[level] ?? fold)
  const table = failures(wanted)
  let length = 0
  let best = { isFound: false, index: from, matched: 0 }
  for (let index = from; index < lines.length && hay.left > 0; index++) {
    hay.left--
    while (length > 0 && lines[index] !== wanted[length]) {
      hay.left--
      length = table[length - 1] ?? 0
    }
    if (lines[index] !== wanted[length]) continue
    length++
    if (length > best.matched) best = { isFound: false, index: index + 1 - length, matched: length }
    if (length === wanted.length) return { ...best, isFound: true }
  }
  return best
}

/** Finds lines at or after `from`: their first exact place, else the first approximate one. */
export const find = (hay: Haystack, needle: ReadonlyArray<string>, from: number): MatchResult => {
  let best: MatchResult = { isFound: false, index: from, matched: 0 }
  for (const level of folds.keys()) {
    const match = scan(hay, needle, from, level)
    if (match.isFound) return match
    if (match.matched > best.matched) best = match
  }
  return best
}

/** Tells whether lines are at an index, nearly at least. */
export const isAt = (hay: Haystack, needle: ReadonlyArray<string>, index: number): boolean =>
  needle.every((line, offset) => fold(hay.lines[index + offset] ?? "") === fold(line))

/** Finds the line of a header at or after `from`, as a whole line or as its beginning. */
export const findHeader = (hay: Haystack, header: string, from: number): number | undefined => {
  const whole = find(hay, [header], from)
  if (whole.isFound) return whole.index
  const start = fold(header)
  const lines = at(hay, folds.length - 1)
  for (let index = from; index < lines.length && hay.left > 0; index++) {
    hay.left--
    if (lines[index]?.startsWith(start) === true) return index
  }
  return undefined
}
