/**
 * Globs: which paths a pattern such as `src/**\/*.{ts,tsx}` means.
 *
 * `*` and `?` stay in one name, `**` as a whole segment crosses directories, `{a,b}` are alternatives (nested ones too),
 * `[a-z]`, `[!a]` and `[[:digit:]]` are classes, `\` takes the meaning of what follows. Dot files are matched, and case
 * matters. A pattern without `/` matches names at any depth; one with `/` starts at the folder that is searched. A `/` at
 * the end means all that is in the directory.
 */
import * as Result from "effect/Result"
import type * as BackendError from "../../../core/BackendError.ts"
import { cut } from "../../../support/text.ts"
import * as Wildcard from "./wildcard.ts"
import { skipClass } from "./wildcardClass.ts"

/** The longest pattern, in characters. */
const maxPatternLength = 1_024

/** How many alternatives the braces of a pattern may have together. */
const maxAlternatives = 1_000

/** How many characters all alternatives may have: each path is compared with all of them. */
const maxExpandedLength = 65_536

/** A glob, ready to match. */
export interface Glob {
  /** Whether a path, relative to the folder that is searched (`src/index.ts`), is meant. Only paths of files. */
  readonly matches: (relativePath: string) => boolean
  /** The folder that all paths that are meant are in, relative too; empty if that can be any. */
  readonly base: string
}

/** A braces' content, or text that is none. */
type Part = string | ReadonlyArray<ReadonlyArray<Part>>

interface Parsed {
  readonly parts: ReadonlyArray<Part>
  readonly next: number
}

/** How deep braces may be nested: the reader calls itself. */
const maxDepth = 20

/** Reads up to the end, or up to a `,` or `}` if it is inside of braces. */
const parse = (pattern: string, from: number, depth: number): Result.Result<Parsed, string> => {
  const parts: Array<Part> = []
  let i = from
  let textFrom = from
  const endText = () => {
    if (i > textFrom) parts.push(pattern.slice(textFrom, i))
  }
  while (i < pattern.length) {
    const char = pattern[i]
    if (char === "\\") i += 2
    else if (char === "[") i = skipClass(pattern, i)
    else if (depth > 0 && (char === "," || char === "}")) break
    else if (char === "{") {
      endText()
      if (depth >= maxDepth) return Result.fail(`its braces are nested more than ${maxDepth} deep`)
      const alternatives: Array<ReadonlyArray<Part>> = []
      do {
        const alternative = parse(pattern, i + 1, depth + 1)
        if (Result.isFailure(alternative)) return alternative
        alternatives.push(alternative.success.parts)
        i = alternative.success.next
      } while (pattern[i] === ",")
      if (isRange(alternatives)) return Result.fail("braces can't have a range; name each of them: {1,2,3}")
      if (pattern[i] !== "}") return Result.fail("a { has no }; write \\{ for the character itself")
      parts.push(alternatives)
      textFrom = ++i
    } else i++
  }
  i = Math.min(i, pattern.length)
  endText()
  return Result.succeed({ parts, next: i })
}

/** All texts that parts stand for, or nothing if there are too many. */
const expand = (parts: ReadonlyArray<Part>): ReadonlyArray<string> | undefined => {
  let texts: ReadonlyArray<string> = [""]
  for (const part of parts) {
    const options: Array<string> = []
    if (typeof part === "string") options.push(part)
    else {
      for (const alternative of part) {
        const expanded = expand(alternative)
        if (expanded === undefined) return undefined
        options.push(...expanded)
      }
    }
    if (texts.length * options.length > maxAlternatives) return undefined
    texts = texts.flatMap((text) => options.map((option) => text + option))
  }
  return texts
}

/** Braces as shells have them for numbers and letters in a row. They would pass for a text that no file has. */
const range = /^(?:-?\d+\.\.-?\d+|[A-Za-z]\.\.[A-Za-z])(?:\.\.-?\d+)?$/

const isRange = (alternatives: ReadonlyArray<ReadonlyArray<Part>>): boolean => {
  const [[part] = [], ...others] = alternatives
  return others.length === 0 && typeof part === "string" && alternatives[0]?.length === 1 && range.test(part)
}

const problems: { readonly [malformed in Wildcard.Malformed]: string } = {
  class: "a [ has no ], or names a class that there is not; write \\[ for the character itself",
  escape: "it ends with a \\; write \\\\ for the character itself"
}

/** The segments of one alternative, without those that mean nothing. */
const segmentsOf = (alternative: string): ReadonlyArray<string> => {
  const segments = Wildcard.split(alternative)
  const named = segments.filter((segment) => segment !== "" && segment !== ".")
  return segments.length > 1 && segments.at(-1) === "" ? [...named, "**"] : named
}

/** Makes a glob ready to match. Fails with `InvalidPattern`. */
export const compileGlob = (pattern: string): Result.Result<Glob, BackendError.Reason> => {
  const invalid = (problem: string): Result.Result<never, BackendError.Reason> =>
    Result.fail({ _tag: "InvalidPattern", pattern: cut(pattern, 200), problem })
  if (pattern === "") return invalid("it is empty; write ** for all files")
  if (pattern.length > maxPatternLength) return invalid(`it is longer than ${maxPatternLength} characters`)
  const parsed = parse(pattern, 0, 0)
  if (Result.isFailure(parsed)) return invalid(parsed.failure)
  const alternatives = expand(parsed.success.parts)
  if (alternatives === undefined) return invalid(`its braces stand for more than ${maxAlternatives} alternatives`)
  if (alternatives.reduce((length, alternative) => length + alternative.length, 0) > maxExpandedLength) {
    return invalid(`the alternatives of its braces have more than ${maxExpandedLength} characters together`)
  }
  const anyDepth = !pattern.includes("/")
  const wildcards: Array<Wildcard.Wildcard> = []
  for (const alternative of new Set(alternatives)) {
    const segments = segmentsOf(alternative)
    if (segments.includes("..")) return invalid("it has a '..'; set the path to search in instead")
    const wildcard = Wildcard.compile(anyDepth ? ["**", ...segments] : segments)
    if (typeof wildcard === "string") return invalid(problems[wildcard])
    wildcards.push(wildcard)
  }
  // Of most patterns only the last name counts, and of most paths only that is looked at then.
  const partsOf = wildcards.every(Wildcard.isOfName)
    ? (path: string) => [path.slice(path.lastIndexOf("/") + 1)]
    : (path: string) => path.split("/")
  return Result.succeed({
    matches: (relativePath) => {
      const names = partsOf(relativePath)
      return wildcards.some((wildcard) => Wildcard.matches(wildcard, names))
    },
    base: commonPrefix(wildcards.map(Wildcard.prefixOf)).join("/")
  })
}

const commonPrefix = (prefixes: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  const [first = [], ...others] = prefixes
  const length = first.findIndex((name, index) => others.some((other) => other[index] !== name))
  return length === -1 ? first : first.slice(0, length)
}
