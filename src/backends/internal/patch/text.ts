/** Applies hunks to the text of a file. */
import * as Result from "effect/Result"
import { invalid, quote } from "./format.ts"
import { find, findHeader, type MatchResult, type Haystack, haystack, isAt } from "./match.ts"
import { type Hunk, type HunkLine, InvalidPatch } from "./model.ts"

const maxLines = 1_000_000

const endings = /\r\n|[\n\r]/g

const byteOrderMark = "\uFEFF"

interface Text {
  readonly mark: string
  readonly lines: ReadonlyArray<string>
  /** The ending of each line. The last may have none. */
  readonly ends: ReadonlyArray<string>
  /** The ending of most lines. */
  readonly ending: string
}

const splitText = (text: string): Text => {
  const mark = text.startsWith(byteOrderMark) ? byteOrderMark : ""
  const lines: Array<string> = []
  const ends: Array<string> = []
  const counts = new Map<string, number>()
  let start = mark.length
  for (const match of text.matchAll(endings)) {
    lines.push(text.slice(start, match.index))
    ends.push(match[0])
    counts.set(match[0], (counts.get(match[0]) ?? 0) + 1)
    start = match.index + match[0].length
  }
  if (start < text.length) {
    lines.push(text.slice(start))
    ends.push("")
  }
  let ending = "\n"
  for (const [candidate, count] of counts) if (count > (counts.get(ending) ?? 0)) ending = candidate
  return { mark, lines, ends, ending }
}

/** Part of a file that a hunk replaces: `lines` of the hunk, at `index`. */
interface Place {
  readonly index: number
  readonly lines: ReadonlyArray<HunkLine>
}

const stays = (lines: ReadonlyArray<HunkLine>): ReadonlyArray<string> =>
  lines.flatMap((line) => (line.kind === "add" ? [] : [line.text]))

/** Removes blank lines at the end of a hunk, which may separate it from the next section. */
const withoutTrailingBlanks = (lines: ReadonlyArray<HunkLine>): ReadonlyArray<HunkLine> => {
  let end = lines.length
  while (end > 0 && lines[end - 1]?.kind === "keep" && lines[end - 1]?.text === "") end--
  return lines.slice(0, end)
}

const tooMuch = (hunk: Hunk): InvalidPatch =>
  invalid(hunk.line, hunk.lines[0]?.text, "fewer hunks that are hard to find: send this change in smaller patches")

const misfit = (
  hay: Haystack,
  hunk: Hunk,
  needle: ReadonlyArray<string>,
  missed: MatchResult,
  path: string
): InvalidPatch => {
  const earlier = find(hay, needle, 0)
  if (hay.left <= 0) return tooMuch(hunk)
  if (earlier.isFound) {
    return invalid(
      hunk.line,
      hunk.lines[0]?.text,
      `hunks in the order of ${path}; this one is at its line ${earlier.index + 1}, before the one above ends`
    )
  }
  let position = 0
  const offset = hunk.lines.findIndex((line) => line.kind !== "add" && position++ === missed.matched)
  const line = hunk.line + offset
  const lineText = hunk.lines[offset]?.text
  if (missed.matched === 0) {
    const where = missed.index === 0 ? path : `${path} from its line ${missed.index + 1} on`
    return invalid(line, lineText, `a line of ${where} (read the file, and copy its lines as they are)`)
  }
  const there = hay.lines[missed.index + missed.matched]
  return invalid(
    line,
    lineText,
    there === undefined
      ? `nothing more of ${path}, which ends with the ${missed.matched} lines before`
      : `${quote(there)}, which is line ${missed.index + missed.matched + 1} of ${path} (the ${missed.matched} before fit)`
  )
}

/** The place where the search for a hunk begins, and where its added lines go without context. */
interface Lead {
  readonly from: number
  readonly insert: number
}

/** Goes from header to header. */
const follow = (hay: Haystack, hunk: Hunk, from: number, path: string): Result.Result<Lead, InvalidPatch> => {
  let lead: Lead = { from, insert: hunk.headers.length === 0 ? hay.lines.length : from }
  for (const [index, header] of hunk.headers.entries()) {
    const headerIndex = findHeader(hay, header, lead.from)
    if (headerIndex !== undefined) {
      // A hunk may begin with the line of its header, so it is looked for from there.
      const last = index === hunk.headers.length - 1
      lead = { from: last ? headerIndex : headerIndex + 1, insert: headerIndex + 1 }
      continue
    }
    // A hunk after the first of a class or a function names it again.
    const before = findHeader(hay, header, 0)
    if (before === undefined || before >= lead.from) {
      if (hay.left <= 0) return Result.fail(tooMuch(hunk))
      const line = hunk.line - hunk.headers.length + index
      return Result.fail(invalid(line, `@@ ${header}`, `"@@" and a line of ${path}, or "@@" alone`))
    }
  }
  return Result.succeed(hunk.endOfFile ? { ...lead, insert: hay.lines.length } : lead)
}

const locate = (hay: Haystack, hunk: Hunk, from: number, path: string): Result.Result<Place, InvalidPatch> =>
  Result.flatMap(follow(hay, hunk, from, path), (lead) => {
    let missed: MatchResult | undefined
    for (const lines of [hunk.lines, withoutTrailingBlanks(hunk.lines)]) {
      const needle = stays(lines)
      if (needle.length === 0) return Result.succeed({ index: lead.insert, lines })
      const last = hay.lines.length - needle.length
      if (hunk.endOfFile && last >= lead.from && isAt(hay, needle, last)) return Result.succeed({ index: last, lines })
      const match = find(hay, needle, lead.from)
      if (match.isFound) return Result.succeed({ index: match.index, lines })
      missed ??= match
    }
    const needle = stays(hunk.lines)
    return Result.fail(misfit(hay, hunk, needle, missed ?? { isFound: false, index: lead.from, matched: 0 }, path))
  })

const replace = (text: Text, places: ReadonlyArray<Place>): string => {
  const pieces: Array<string> = []
  let end = ""
  const push = (line: string, ending: string) => {
    pieces.push(line, ending)
    end = ending
  }
  /** The last line of the file may have no ending; it needs one if it is not the last any more. */
  const keep = (index: number) => push(text.lines[index] ?? "", text.ends[index] || text.ending)
  let at = 0
  for (const { index, lines } of places) {
    while (at < index) keep(at++)
    for (const line of lines) {
      if (line.kind === "add") push(line.text, text.ending)
      else if (line.kind === "keep") keep(at++)
      else at++
    }
  }
  while (at < text.lines.length) keep(at++)
  const whole = pieces.join("")
  const unended = text.ends.at(-1) === ""
  return text.mark + (unended ? whole.slice(0, whole.length - end.length) : whole)
}

/**
 * Applies the hunks of a section to a file. Each is looked for after the one before it. Lines that stay are the file's
 * own, even if the patch writes them differently; lines that are added get the line ending that most lines have.
 */
export const apply = (
  before: string,
  hunks: ReadonlyArray<Hunk>,
  path: string
): Result.Result<string, InvalidPatch> => {
  const text = splitText(before)
  if (text.lines.length > maxLines) {
    return Result.fail(
      new InvalidPatch({
        line: hunks[0]?.line ?? 1,
        found: `${path}, which has ${text.lines.length}`,
        expected: `a file of at most ${maxLines} lines`
      })
    )
  }
  const hay = haystack(text.lines)
  const places: Array<Place> = []
  let cursor = 0
  for (const hunk of hunks) {
    const place = locate(hay, hunk, cursor, path)
    if (Result.isFailure(place)) return Result.fail(place.failure)
    places.push(place.success)
    cursor = place.success.index + stays(place.success.lines).length
  }
  return Result.succeed(replace(text, places))
}
