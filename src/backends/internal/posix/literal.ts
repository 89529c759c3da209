/**
 * What each line that matches a pattern must have in it: one of some literal texts. So a tool that knows nothing of RE2
 * can leave out files in which no line can match.
 */
import type { GrepQuery } from "../../../core/Backend.ts"

/** Texts of which a line has one. `fold`: in any case, and then they are letters that ASCII can fold. */
export interface Literals {
  readonly texts: ReadonlyArray<string>
  readonly fold: boolean
}

/** More alternatives than these are not worth the command that has them. */
const mostTexts = 20

type Texts = ReadonlyArray<string>

/** Of two conditions that both hold, the one that leaves out more: the one whose shortest text is longer. */
const better = (left: Texts | undefined, right: Texts | undefined): Texts | undefined => {
  if (left === undefined || right === undefined) return left ?? right
  const shortest = (texts: Texts) => Math.min(...texts.map((text) => text.length))
  return shortest(right) > shortest(left) ? right : left
}

/** Either of some conditions: nothing is known if nothing is known of one. */
const either = (all: ReadonlyArray<Texts | undefined>): Texts | undefined => {
  const texts: Array<string> = []
  for (const one of all) {
    if (one === undefined) return undefined
    texts.push(...one)
  }
  return texts.length > mostTexts ? undefined : texts
}

interface Cursor {
  readonly chars: ReadonlyArray<string>
  at: number
}

const skipClass = (cursor: Cursor): void => {
  cursor.at++
  if (cursor.chars[cursor.at] === "^") cursor.at++
  if (cursor.chars[cursor.at] === "]") cursor.at++
  for (; cursor.at < cursor.chars.length && cursor.chars[cursor.at] !== "]"; cursor.at++) {
    if (cursor.chars[cursor.at] === "\\") cursor.at++
    else if (cursor.chars[cursor.at] === "[" && cursor.chars[cursor.at + 1] === ":") {
      const end = cursor.chars.indexOf("]", cursor.at + 2)
      if (end > 0 && cursor.chars[end - 1] === ":") cursor.at = end
    }
  }
  cursor.at++
}

/** The character that an escape stands for, if it is one that stands for itself. */
const readEscape = (cursor: Cursor): string | undefined => {
  const char = cursor.chars[cursor.at + 1] ?? ""
  cursor.at += 2
  if (/^[^A-Za-z0-9]$/u.test(char)) return char
  if (/[xpP]/.test(char) && cursor.chars[cursor.at] === "{") {
    const end = cursor.chars.indexOf("}", cursor.at)
    cursor.at = end < 0 ? cursor.chars.length : end + 1
  } else if (char === "x") cursor.at += 2
  else if (/[pP]/.test(char)) cursor.at += 1
  else if (/[0-7]/.test(char)) while (/^[0-7]$/.test(cursor.chars[cursor.at] ?? "")) cursor.at++
  return undefined
}

/** Takes a quantifier, and says whether what is before it may be missing; `undefined` if there is none. */
const readQuantifier = (cursor: Cursor): "needed" | "optional" | undefined => {
  const rest = cursor.chars.slice(cursor.at, cursor.at + 16).join("")
  const found = /^(?:[*+?]|\{\d+(?:,\d*)?\})\??/.exec(rest)?.[0]
  if (found === undefined) return undefined
  cursor.at += found.length
  return /^(?:\+|\{0*[1-9])/.test(found) ? "needed" : "optional"
}

const readGroup = (cursor: Cursor): Texts | undefined => {
  cursor.at++
  if (cursor.chars[cursor.at] === "?") {
    while (cursor.at < cursor.chars.length && !/[:>)]/.test(cursor.chars[cursor.at] ?? "")) cursor.at++
    if (cursor.chars[cursor.at] !== ")") cursor.at++
  }
  const inner = readAlternatives(cursor)
  cursor.at++
  return inner
}

const readSequence = (cursor: Cursor): Texts | undefined => {
  let best: Texts | undefined
  let run = ""
  const close = () => {
    if (run !== "") best = better(best, [run])
    run = ""
  }
  while (cursor.at < cursor.chars.length) {
    const char = cursor.chars[cursor.at] ?? ""
    if (char === "|" || char === ")") break
    let literal: string | undefined
    let group: Texts | undefined
    if (char === "(") group = readGroup(cursor)
    else if (char === "[") skipClass(cursor)
    else if (char === "\\") literal = readEscape(cursor)
    else {
      cursor.at++
      if (!/[.^$*+?]/.test(char)) literal = char
    }
    let isQuantified = false
    let isOptional = false
    for (let found = readQuantifier(cursor); found !== undefined; found = readQuantifier(cursor)) {
      isQuantified = true
      if (found === "optional") isOptional = true
    }
    if (literal === undefined || isQuantified) close()
    if (isOptional) continue
    if (literal !== undefined) run += literal
    best = better(best, group)
    if (isQuantified) close()
  }
  close()
  return best
}

const readAlternatives = (cursor: Cursor): Texts | undefined => {
  const all = [readSequence(cursor)]
  while (cursor.chars[cursor.at] === "|") {
    cursor.at++
    all.push(readSequence(cursor))
  }
  return either(all)
}

/** Letters that ASCII folds to each other and to nothing else: `k` and `s` have a third form. */
const folding = (text: string): string =>
  (text.match(/[\x20-\x7E]+/g) ?? [])
    .flatMap((part) => part.split(/[kKsS]/))
    .reduce((longest, part) => (part.length > longest.length ? part : longest), "")

/** What lines that match have in them; `undefined` if nothing is known, so that each line must be looked at. */
export const literalsOf = (query: Pick<GrepQuery, "ignoreCase" | "pattern" | "regex">): Literals | undefined => {
  const { ignoreCase = false, pattern, regex = false } = query
  if (regex && /\\[QE]/.test(pattern)) return undefined
  const cursor: Cursor = { chars: Array.from(pattern), at: 0 }
  const texts = regex ? readAlternatives(cursor) : [pattern]
  if (texts === undefined || (regex && cursor.at < cursor.chars.length)) return undefined
  const fold = ignoreCase || (regex && /\(\?[A-Za-z]*i/.test(pattern))
  const usable = fold ? texts.map(folding) : texts
  // What is not UTF-8 is read as U+FFFD, and looks different to others. No command line can have a NUL.
  if (usable.some((text) => text === "" || !text.isWellFormed() || /[\0\uFFFD]/.test(text))) return undefined
  return { texts: usable, fold }
}

/** What `grep` is told to look for. */
export const grepArguments = ({ fold, texts }: Literals): ReadonlyArray<string> => [
  ...(fold ? ["-i"] : []),
  "-F",
  ...texts.flatMap((text) => ["-e", text])
]
