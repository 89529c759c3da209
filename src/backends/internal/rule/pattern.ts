/** The patterns of commands in rules: words, `*` inside of a word, and an open end. */
import { hasHazards, hazardsOf } from "../risk/options.ts"
import { commandsIn, gitWords, isOption, nameOf } from "../risk/unwrap.ts"
import { isInside, type Where } from "./places.ts"
import { harmless, runners } from "./programs.ts"
import { behindRunners } from "./reading.ts"
import { type Command, parse, type Word } from "./strict.ts"

/** The words of a pattern. An open one lets anything follow. */
export interface Pattern {
  readonly words: ReadonlyArray<Word>
  readonly isOpen: boolean
}

/** The part of a pattern before its open end, `:*` or ` *`; `undefined` without one. */
const beforeOpenEnd = (source: string): string | undefined =>
  /(?::|\s)\*$/.test(source.slice(-2)) ? source.slice(0, -2).trimEnd() : undefined

/** Reads a pattern. Returns the problem of a wrong one. */
const readPattern = (text: string): Pattern | string => {
  const source = text.trim()
  if (source === "*") return { words: [], isOpen: true }
  const before = beforeOpenEnd(source)
  const isOpen = before !== undefined
  const fixed = before ?? source
  if (fixed.trim() === "") return "it names no command"
  if (/\*\*/.test(fixed)) return "`**` means nothing in a command; write `*` at the end for all that may follow"
  const commands = parse(fixed.startsWith("*") ? "" : fixed)
  const [command] = commands ?? []
  if (command === undefined || commands?.length !== 1) {
    return "it is not one plain command; a rule for each command of a line decides on the line"
  }
  const { assigns, reads, words, writes } = command
  if (assigns.length + reads.length + writes.length > 0 || command.joint !== "") {
    return "variables and files of redirections have no place in it"
  }
  return { words, isOpen }
}

const patterns = new Map<string, Pattern | string>()

/** The pattern of a text, read once. */
export const patternOf = (text: string): Pattern | string => {
  const cachedPattern = patterns.get(text)
  if (cachedPattern !== undefined) return cachedPattern
  const pattern = readPattern(text)
  if (patterns.size < 10_000) patterns.set(text, pattern)
  return pattern
}

/** Tells whether a word fits one with wildcards. The time grows with both lengths, and no faster. */
const fitsWord = ({ isPlain, text }: Word, word: string): boolean => {
  if (isPlain || !text.includes("*")) return text === word
  const [first = "", ...rest] = text.split("*")
  const last = rest.pop() ?? ""
  if (!word.startsWith(first) || word.length < first.length + last.length) return false
  let from = first.length
  for (const part of rest) {
    const index = word.indexOf(part, from)
    if (index === -1) return false
    from = index + part.length
  }
  return word.length - last.length >= from && word.endsWith(last)
}

/** Tells whether words fit a pattern. An option at the end of an open one stands for itself with any value. */
const fitsWords = ({ isOpen, words: fixed }: Pattern, words: ReadonlyArray<string>): boolean =>
  (isOpen ? words.length >= fixed.length : words.length === fixed.length) &&
  fixed.every((part, at) => {
    const word = words[at] ?? ""
    const isLast = isOpen && at === fixed.length - 1 && part.text.startsWith("--")
    return fitsWord(part, word) || (isLast && word.startsWith(`${part.text}=`))
  })

/** Tells whether the words that a pattern leaves open have an option that writes a file or runs a program. */
const addsHazard = ({ words: fixed }: Pattern, words: ReadonlyArray<Word>): boolean => {
  const texts = words.map(({ text }) => text)
  const named = new Set(fixed.map(({ text }) => text))
  const hazards = hazardsOf(texts, texts[0] === "git" ? gitWords(texts)[0] : undefined)
  return hazards.some(({ word }) => !named.has(word) && !named.has(word.split("=")[0] ?? ""))
}

/** Tells whether a rule that allows covers a command of the subset: with no more than its words say. */
export const allows = (
  pattern: Pattern,
  command: Command,
  where: Where | undefined,
  cwds: ReadonlyArray<string>
): boolean => {
  const isRunner = runners.has(pattern.words[0]?.text ?? "")
  const words = isRunner || pattern.words.length === 0 ? command.words : behindRunners(command)
  if (words === undefined) return false
  const texts = words.map(({ text }) => text)
  return (
    fitsWords(pattern, texts) &&
    // The name of a file must not become an option.
    !(hasHazards(texts[0] ?? "") && words.some(({ leads }) => leads)) &&
    (pattern.words.length === 0 || !addsHazard(pattern, words)) &&
    command.assigns.every(([name]) => harmless.has(name)) &&
    command.writes.every(({ text }) => text === "/dev/null") &&
    command.reads.every(({ text }) => where !== undefined && cwds.every((cwd) => isInside(text, true, where, cwd)))
  )
}

/** The ways to read a command for a rule that restricts: as it stands, and without the options before its action. */
const readingsOf = (words: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> => {
  const [first = "", ...rest] = words
  const name = nameOf(first).toLowerCase()
  const ways = [rest]
  let at = 0
  while (isOption(rest[at] ?? "")) {
    at++
    ways.push(rest.slice(at))
    // The next word may be the value of the option.
    if (rest[at] !== undefined && !isOption(rest[at] ?? "")) ways.push(rest.slice(at + 1))
    if (ways.length > 40) break
    if (rest[at] !== undefined && !isOption(rest[at] ?? "") && isOption(rest[at + 1] ?? "")) at++
  }
  return ways.map((way) => [name, ...way])
}

/** Tells whether a rule that restricts is for a line: any command of it, behind any program that runs it. */
export const restricts = (pattern: Pattern, line: string): boolean => {
  if (pattern.words.length === 0) return true
  const [first, ...rest] = pattern.words
  const folded = {
    ...pattern,
    words: first === undefined ? [] : [{ ...first, text: nameOf(first.text).toLowerCase() }, ...rest]
  }
  return commandsIn(line).some((words) => readingsOf(words).some((way) => fitsWords(folded, way)))
}
