/**
 * Ignore files: the files and directories that `.gitignore` excludes from a search.
 *
 * A walk goes from the root down: it checks each entry, adds the ignore file of each directory, and never enters an
 * ignored directory (so nothing in it can be re-included, as with git). Only ignore files count, not the
 * configuration of a machine. `.git` is always ignored.
 */
import { isWithin, relative } from "../files/path.ts"
import { readClass } from "./characterClass.ts"
import * as Wildcard from "./wildcard.ts"

/** The name of an ignore file. */
export const ignoreFile = ".gitignore"

/** The name of the folder, or of the file, that makes a folder a repository. */
export const repository = ".git"

/** The part of an ignore file that is read, in bytes; the rest says nothing. */
export const maxIgnoreBytes = 64 * 1024

/**
 * The number of characters that count of all ignore files above a file, the outer ones first: each name costs by these.
 */
const maxTotal = 4 * maxIgnoreBytes

/** The longest pattern, in characters. No path that is worth ignoring needs a longer one. */
const maxPatternLength = 1_024

interface Rule {
  /** Tests the path of an entry from the ignore file's folder on. */
  readonly matches: Wildcard.Wildcard
  readonly negated: boolean
  readonly directoryOnly: boolean
}

/** The rules of one ignore file, the last one first. */
interface Rules {
  readonly folder: string
  readonly rules: ReadonlyArray<Rule>
  /** The number of characters that it and those above it have. */
  readonly total: number
}

/** The rules of all ignore files from the root down to a directory, the deepest first. */
export type Ignore = ReadonlyArray<Rules>

/** No rules, but for `.git`. */
export const none: Ignore = []

/** A line without the spaces at its end, unless they are escaped. */
const trimEnd = (line: string): string => {
  let end = line.length
  while (end > 0 && line[end - 1] === " ") end--
  if (end === line.length) return line
  let escapes = 0
  while (line[end - 1 - escapes] === "\\") escapes++
  return line.slice(0, escapes % 2 === 1 ? end + 1 : end)
}

const deep = "**"

/** Translates a pattern of git to the syntax of `effect/Glob`; `undefined` for an invalid pattern. */
const translate = (pattern: string): string | undefined => {
  let text = ""
  for (let at = 0; at < pattern.length; at++) {
    const char = pattern.charAt(at)
    if (char === "[") {
      const characterClass = readClass(pattern, at)
      if (characterClass === undefined) return undefined
      text += characterClass.text
      at = characterClass.next - 1
    } else if (char === "\\") {
      const escaped = pattern[++at]
      if (escaped === undefined) return undefined
      // As with git, a `**` before an escaped `/` stands for at least one name.
      text = escaped === "/" ? `${text.replace(/(^|\/)\*\*$/, `$1*/${deep}`)}/` : `${text}\\${escaped}`
    } else text += /[{},]/.test(char) ? `\\${char}` : char
  }
  return text
}

const parseLine = (line: string): Rule | undefined => {
  const trimmed = trimEnd(line)
  if (trimmed === "" || trimmed.startsWith("#") || trimmed.length > maxPatternLength) return undefined
  const negated = trimmed.startsWith("!")
  const body = negated ? trimmed.slice(1) : trimmed
  const directoryOnly = body.endsWith("/")
  const pattern = directoryOnly ? body.slice(0, -1) : body
  const segments = translate(pattern.startsWith("/") ? pattern.slice(1) : pattern)?.split("/")
  // A name is not empty, `.` or `..`.
  if (segments === undefined || segments.some((name) => /^\.{0,2}$/.test(name))) return undefined
  const matches = Wildcard.compile(pattern.includes("/") ? segments : ["**", ...segments])
  return { matches, negated, directoryOnly }
}

/** Adds the ignore file of a folder below the folders of the previous rules. */
export const extend = (ignore: Ignore, folder: string, text: string): Ignore => {
  const rules: Array<Rule> = []
  const above = ignore[0]?.total ?? 0
  const counted = text.slice(0, Math.min(maxIgnoreBytes, maxTotal - above))
  for (const line of counted.replace(/^\uFEFF/, "").split("\n")) {
    const rule = parseLine(line.endsWith("\r") ? line.slice(0, -1) : line)
    if (rule !== undefined) rules.push(rule)
  }
  return rules.length === 0 ? ignore : [{ folder, rules: rules.reverse(), total: above + counted.length }, ...ignore]
}

/**
 * Tells whether an entry is ignored, if the directory that it is in is not. `path` is normal; rules of ignore files
 * that are not above it don't count.
 */
export const isIgnored = (ignore: Ignore, path: string, isDirectory: boolean): boolean => {
  if (path.endsWith("/.git")) return true
  if (ignore.length === 0) return false
  for (const { folder, rules } of ignore) {
    if (!isWithin(path, folder) || path === folder) continue
    const below = relative(path, folder)
    const rule = rules.find(({ directoryOnly, matches }) => (isDirectory || !directoryOnly) && matches(below))
    if (rule !== undefined) return !rule.negated
  }
  return false
}
