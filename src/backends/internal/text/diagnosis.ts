/**
 * Explains why a text to replace is not in a file: gives the nearest text, and the difference. Takes time
 * proportional to the file.
 */
import { valueAt } from "../../../support/json/valueAt.ts"
import { cut } from "../../../support/text/text.ts"
import { indexOf, forEachOccurrence } from "../search/find.ts"
import { type Aspect, aspectNames, aspects, fold } from "./fold.ts"
import { nearestLine } from "./nearest.ts"

/** The length of a line that is quoted in a hint. */
const quoteLength = 200

const quote = (line: string): string => JSON.stringify(cut(line, quoteLength))

const all: ReadonlySet<Aspect> = new Set(aspects)
/** The file keeps its edges, so that its lines keep their numbers. */
const allButEdges: ReadonlySet<Aspect> = new Set(aspects.filter((aspect) => aspect !== "edges"))

/** Lines `from` to `to` of a text, counted from 1, with their endings. */
const linesFrom = (text: string, from: number, to: number): string => {
  let line = 1
  let start = from <= 1 ? 0 : text.length
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit !== 10 && unit !== 13) continue
    if (unit === 13 && text.charCodeAt(i + 1) === 10) i++
    line++
    if (line === from) start = i + 1
    if (line === to + 1) return text.slice(start, i + 1)
  }
  return text.slice(start)
}

/** Removes the ending of a line. A regular expression would take quadratic time. */
const lineText = (text: string, line: number): string => {
  const whole = linesFrom(text, line, line)
  let end = whole.length
  while (whole[end - 1] === "\r" || whole[end - 1] === "\n") end--
  return whole.slice(0, end)
}

const countBreaks = (text: string, to = text.length): number => {
  let count = 0
  for (let i = text.indexOf("\n"); i !== -1 && i < to; i = text.indexOf("\n", i + 1)) count++
  return count
}

const joinNames = (names: ReadonlyArray<string>): string =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`

/** Names the differences between texts that are equal with all aspects folded. */
const differences = (region: string, old: string): ReadonlyArray<string> =>
  aspects
    .filter((aspect) => {
      const others = new Set(aspects.filter((other) => other !== aspect))
      const inRegion = new Set([...others].filter((other) => other !== "edges"))
      const wanted = fold(old, others)
      return wanted !== "" && indexOf(fold(region, inRegion), wanted) === -1
    })
    .map((aspect) => aspectNames[aspect])

/** A file, as it is and folded. */
interface FoldedText {
  readonly text: string
  readonly folded: string
}

/** Finds a text that is equal after folding. */
const alike = ({ folded, text }: FoldedText, old: string): string | undefined => {
  const wanted = fold(old, all)
  const at = wanted === "" ? -1 : indexOf(folded, wanted)
  if (at === -1) return undefined
  const line = 1 + countBreaks(folded, at)
  // The line breaks at the edges of `old` are looked for too.
  const around = 2
  const region = linesFrom(text, Math.max(1, line - around), line + countBreaks(wanted) + around)
  const names = differences(region, old)
  const what = names.length === 0 ? "whitespace" : joinNames(names)
  return `line ${line} has it but for ${what}: ${quote(lineText(text, line))}`
}

const withoutNumbers = (old: string): string | undefined => {
  const lines = old.split("\n")
  const numbered = lines.every((line) => line === "" || /^ {0,12}\d{1,9}(?:\.\d{1,9})?\t/.test(line))
  return numbered ? lines.map((line) => line.slice(line.indexOf("\t") + 1)).join("\n") : undefined
}

const escapes: { readonly [escaped: string]: string } = { "\\n": "\n", "\\t": "\t", '\\"': '"', "\\'": "'" }

const withoutEscapes = (old: string): string | undefined => {
  const plain = old.replace(/\\[nt"']/g, (escaped) => valueAt(escapes, escaped) ?? escaped)
  return plain === old ? undefined : plain
}

/** Undoes common accidents of models. */
const mishaps = ({ folded }: FoldedText, old: string): string | undefined => {
  const isThere = (changed: string | undefined) => {
    const wanted = changed === undefined ? "" : fold(changed, all)
    return wanted !== "" && indexOf(folded, wanted) !== -1
  }
  if (isThere(withoutNumbers(old))) return "`old` has the line numbers that reading shows; leave them out"
  if (isThere(withoutEscapes(old))) {
    return '`old` has escapes (such as \\n or \\") where the file has the characters themselves'
  }
  return undefined
}

/** The number of beginnings that are looked at, and of characters of all of them. */
const maxBeginnings = 1_000
const maxCompared = 1_000_000

/** Finds the place where the first lines are equal, and the first different line. */
const beginning = ({ folded, text }: FoldedText, old: string): string | undefined => {
  const wanted = fold(old, all)
  const end = wanted.indexOf("\n")
  if (end < 1) return undefined
  const file = `\n${folded}\n`
  let best = { at: -1, length: 0 }
  let beginnings = 0
  let compared = 0
  forEachOccurrence(file, `\n${wanted.slice(0, end)}\n`, { overlapping: true }, (at) => {
    let length = end
    while (length < wanted.length && wanted.charCodeAt(length) === file.charCodeAt(at + 1 + length)) length++
    compared += length
    if (length > best.length) best = { at, length }
    return ++beginnings < maxBeginnings && compared < maxCompared
  })
  if (best.at === -1) return undefined
  const first = 1 + countBreaks(file, best.at)
  const same = countBreaks(wanted, best.length)
  const differs = first + same
  const range = same === 1 ? `line ${first} is` : `lines ${first}–${differs - 1} are`
  const begins = fold(old, new Set(["endings", "edges"])).split("\n")[same] ?? ""
  const there = lineText(text, differs)
  const instead = differs > countBreaks(folded) + 1 ? "the file ends there" : `line ${differs} is ${quote(there)}`
  return `${range} as in \`old\`, but then ${instead} where \`old\` has ${quote(begins)}`
}

/** Describes the nearest text for a text that is not in a file, as a sentence or two after a colon. */
export const diagnose = (text: string, old: string): string => {
  if (text === "") return "the file is empty"
  if (old.trim() === "") return "`old` is only whitespace; give text around it"
  const file = { text, folded: fold(text, allButEdges) }
  const near = alike(file, old) ?? mishaps(file, old) ?? beginning(file, old)
  if (near !== undefined) return near
  const line = nearestLine(file.folded, fold(old, all))
  return line === undefined
    ? "nothing in it is like it; read the file again"
    : `the nearest line is ${line}: ${quote(lineText(text, line))}`
}
