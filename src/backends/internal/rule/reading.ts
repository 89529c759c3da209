/** Finds commands that only read: known programs with known options, in the folders, without secrets. */
import { isInside, staysInside, type Where, wholePath } from "./places.ts"
import { findBy, harmless, type Reading, readings, runners } from "./programs.ts"
import type { Command, Word } from "./strict.ts"

/** The words of a command behind its runners; `undefined` if one of them has more than is known. */
export const behindRunners = (command: Pick<Command, "words">): ReadonlyArray<Word> | undefined => {
  let words = command.words
  for (let depth = 0; depth < 5; depth++) {
    const runner = runners.get(words[0]?.text ?? "")
    if (runner === undefined) return words
    let at = 1
    for (let word = words[at]; word?.text.startsWith("-") === true; word = words[at]) {
      if (!runner.options.test(word.text) || !word.isPlain) return undefined
      at += runner.valued.test(word.text) ? 2 : 1
    }
    for (const form of runner.operands) if (!form.test(words[at++]?.text ?? "")) return undefined
    words = words.slice(at)
    const [first] = words
    if (first === undefined || !first.isPlain || first.text === "" || first.text.includes("=")) return undefined
  }
  return undefined
}

export const isOption = (text: string): boolean => text.startsWith("-") && text !== "-"

/** Splits words into options and operands. Behind `--` all are operands. */
const splitWords = (words: ReadonlyArray<Word>) => {
  const end = words.findIndex(({ text }) => text === "--")
  const before = end === -1 ? words : words.slice(0, end)
  const behind = end === -1 ? [] : words.slice(end + 1)
  return {
    options: before.filter(({ text }) => isOption(text)),
    operands: [...before.filter(({ text }) => !isOption(text)), ...behind],
    /** The words whose names of files could be taken for options. */
    exposed: before.filter(({ leads }) => leads)
  }
}

/** Tells whether an option is one of these. An abbreviation of a long one is that one, a letter may be in a cluster. */
const isOneOf = (text: string, { long, short }: NonNullable<Reading["not"]>): boolean => {
  if (text.startsWith("--")) {
    const name = text.slice(2).split("=")[0] ?? ""
    return long.some((one) => one === name || (name !== "" && one.startsWith(name)))
  }
  return Array.from(short).some((letter) => text.slice(1).includes(letter))
}

/** Options that need no value and change nothing, right behind the name of git. */
const withoutPager = (words: ReadonlyArray<Word>): ReadonlyArray<Word> =>
  words[0]?.text === "git" && /^(?:--no-pager|-P)$/.test(words[1]?.text ?? "") ? [words[0], ...words.slice(2)] : words

/** The operands that are paths: all but the pattern of a search that has none by an option. */
const pathsOf = ({ operands: kind }: Reading, operands: ReadonlyArray<Word>, options: ReadonlyArray<Word>) => {
  if (kind === "paths") return operands
  // A pattern may come by an option, so that the first operand is a file.
  if (kind === "pattern")
    return options.some(({ text }) => /^(?:-[^-]*e|--r|--files)/.test(text)) ? operands : operands.slice(1)
  return operands.filter(({ isPlain }) => !isPlain)
}

/** Tells whether a program, by its words, only reads. `hasMoved` is true behind a `cd`. */
const readsOnly = (
  allWords: ReadonlyArray<Word>,
  where: Where,
  cwds: ReadonlyArray<string>,
  hasMoved: boolean
): boolean => {
  const words = withoutPager(allWords)
  const [length, reading] = findBy(
    readings,
    words.map(({ text }) => text)
  ) ?? [0, undefined]
  if (reading === undefined) return false
  // A folder that looks like a repository has settings that name programs.
  if (words[0]?.text === "git" && hasMoved) return false
  const { exposed, operands, options } = splitWords(words.slice(length))
  const { check, globs = false, most, not, options: knownOptions } = reading
  if (exposed.length > 0 && !globs) return false
  if (not !== undefined && options.some(({ text }) => isOneOf(text, not))) return false
  if (knownOptions !== "any" && !options.every(({ text }) => knownOptions.test(text))) return false
  if (reading.operands === "none" && operands.length > 0) return false
  // Some programs take an option behind an operand for a file.
  const first = words.slice(length).findIndex(({ text }) => !isOption(text))
  if (most !== undefined && first !== -1 && words.length - length - first > most) return false
  const texts = { options: options.map(({ text }) => text), operands: operands.map(({ text }) => text) }
  if (check?.(texts) === false) return false
  return [...options, ...pathsOf(reading, operands, options)].every((word) => staysInside(word, where, cwds))
}

/** The folders in which the next command may run. */
export interface WorkingFolders {
  readonly cwds: ReadonlyArray<string>
  /** All folders that a command before may have gone to. */
  readonly all: ReadonlyArray<string>
  readonly hasMoved: boolean
  /** True if every command before in this list has run: they are joined by `&&`. */
  readonly isChain: boolean
}

const begin = ({ cwd }: Where): WorkingFolders => ({ cwds: [cwd], all: [cwd], hasMoved: false, isChain: true })

/** Follows a command to the next one. Behind `cd … &&` it is surely gone; else the `cd` may have failed. */
const follow = (command: Command, isPiped: boolean, going: WorkingFolders, where: Where): WorkingFolders => {
  const { joint } = command
  const isChain = joint === ";" || (joint !== "||" && going.isChain)
  const [first, to] = behindRunners(command) ?? []
  if (first?.text !== "cd" || to === undefined) {
    return { ...going, isChain, cwds: joint === "&&" || joint === "|" ? going.cwds : going.all }
  }
  const next = going.cwds.map((cwd) => wholePath(to.text, cwd))
  // A link is another folder than its text says.
  const isPlace = where.look === undefined || next.every((path) => where.look?.(path)?.every((real) => real === path))
  const all = [...new Set([...going.all, ...next, ...(isPlace ? [] : ["/"])])]
  const isSure = joint === "&&" && going.isChain && !isPiped && isPlace
  return { cwds: isSure ? next : all, all, hasMoved: true, isChain }
}

/** Tells whether a command only reads, with its variables and redirections. */
export const isReadingCommand = (command: Command, where: Where, { cwds, hasMoved }: WorkingFolders): boolean => {
  const words = behindRunners(command)
  if (words === undefined) return false
  const isSame = words.length === command.words.length
  if (words[0]?.text === "cd" && !isSame) return false
  return (
    command.assigns.every(([name]) => harmless.has(name)) &&
    command.writes.every(({ text }) => text === "/dev/null") &&
    command.reads.every(({ text }) => cwds.every((cwd) => isInside(text, true, where, cwd))) &&
    readsOnly(words, where, cwds, hasMoved) &&
    (words[0]?.text !== "git" || where.namesPrograms?.() !== true)
  )
}

/** Goes through the commands of a line, each with the folders in which it may run. */
export const everyCommand = (
  commands: ReadonlyArray<Command>,
  where: Where,
  holds: (command: Command, going: WorkingFolders) => boolean
): boolean => {
  let going = begin(where)
  let isPiped = false
  for (const command of commands) {
    if (!holds(command, going)) return false
    going = follow(command, isPiped || command.joint === "|", going, where)
    isPiped = command.joint === "|"
  }
  return true
}
