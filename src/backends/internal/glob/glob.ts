/**
 * Globs: which paths a pattern such as `src/**\/*.{ts,tsx}` means.
 *
 * `*` and `?` stay in one name, `**` as a whole segment crosses directories, `{a,b}` are alternatives (nested ones
 * too), `[a-z]`, `[!a]` and `[[:digit:]]` are classes, `\` takes the meaning of what follows. Dot files are matched,
 * and case matters. A pattern without `/` matches names at any depth; a pattern with `/` starts at the searched folder. A
 * `/` at the end means all files of the directory. `effect/Glob` matches. This module expands braces within bounds, and
 * rejects patterns that `effect/Glob` would take literally against their meaning.
 */
import * as Result from "effect/Result"
import type * as BackendError from "../../../core/BackendError.ts"
import { cut } from "../../../support/text/text.ts"
import { readClass } from "./characterClass.ts"
import * as Wildcard from "./wildcard.ts"

/** The longest pattern, in characters. */
const maxPatternLength = 1_024

/** The most alternatives that the braces of a pattern may have together. */
const maxAlternatives = 1_000

/** The most characters that all alternatives may have: each path is compared with all of them. */
const maxExpandedLength = 65_536

/** The depth to which braces may be nested: the reader calls itself. */
const maxDepth = 20

/** A glob, ready to match. */
export interface Glob {
  /** Reports whether the glob matches a file, by its path relative to the searched folder. */
  readonly matches: (relativePath: string) => boolean
  /** The folder of all possible matches, relative too; empty for any folder. */
  readonly base: string
}

/** The texts that a part of a pattern stands for, and the index behind it. */
interface Expansion {
  readonly texts: ReadonlyArray<string>
  readonly next: number
}

type GlobResult<A> = Result.Result<A, string>

/** Braces as shells have them for numbers and letters in a row. They would pass for a text that no file has. */
const range = /^\{(?:-?\d+\.\.-?\d+|[A-Za-z]\.\.[A-Za-z])(?:\.\.-?\d+)?\}/

const readBraces = (pattern: string, open: number, depth: number): GlobResult<Expansion> => {
  if (depth > maxDepth) return Result.fail(`its braces are nested more than ${maxDepth} deep`)
  if (range.test(pattern.slice(open))) return Result.fail("braces can't have a range; name each of them: {1,2,3}")
  const texts: Array<string> = []
  let at = open
  do {
    const alternative = readAlternatives(pattern, at + 1, depth)
    if (Result.isFailure(alternative)) return alternative
    texts.push(...alternative.success.texts)
    at = alternative.success.next
  } while (pattern[at] === ",")
  if (pattern[at] !== "}") return Result.fail("a { has no }; write \\{ for the character itself")
  return Result.succeed({ texts, next: at + 1 })
}

/** Reads a class, an escaped character or plain characters. */
const readText = (pattern: string, at: number): GlobResult<Expansion> => {
  if (pattern[at] === "[") {
    const characterClass = readClass(pattern, at)
    if (characterClass !== undefined) return Result.succeed({ texts: [characterClass.text], next: characterClass.next })
    return Result.fail("a [ has no ], or names a class that there is not; write \\[ for the character itself")
  }
  if (pattern[at] === "\\") {
    const escaped = pattern[at + 1]
    if (escaped === undefined) return Result.fail("it ends with a \\; write \\\\ for the character itself")
    return Result.succeed({ texts: [escaped === "/" ? "/" : `\\${escaped}`], next: at + 2 })
  }
  const plain = /^[^[\\{},]+/.exec(pattern.slice(at))?.[0] ?? pattern.slice(at, at + 1)
  return Result.succeed({ texts: [plain], next: at + plain.length })
}

/** Reads up to the end, or up to a `,` or `}` inside of braces. */
const readAlternatives = (pattern: string, from: number, depth: number): GlobResult<Expansion> => {
  let texts: ReadonlyArray<string> = [""]
  let at = from
  while (at < pattern.length && !(depth > 0 && (pattern[at] === "," || pattern[at] === "}"))) {
    const part = pattern[at] === "{" ? readBraces(pattern, at, depth + 1) : readText(pattern, at)
    if (Result.isFailure(part)) return part
    const options = part.success.texts
    if (texts.length * options.length > maxAlternatives) {
      return Result.fail(`its braces stand for more than ${maxAlternatives} alternatives`)
    }
    texts = texts.flatMap((text) => options.map((option) => text + option))
    at = part.success.next
  }
  return Result.succeed({ texts, next: at })
}

/** Splits an alternative into its segments, without empty ones. */
const segmentsOf = (alternative: string, anyDepth: boolean): ReadonlyArray<string> => {
  const named = alternative.split("/").filter((segment) => segment !== "" && segment !== ".")
  if (anyDepth) return ["**", ...named]
  return alternative.endsWith("/") ? [...named, "**"] : named
}

/** Names that a path must begin with to match: as many segments as are plain, but for the last one. */
const prefixOf = (segments: ReadonlyArray<string>): ReadonlyArray<string> => {
  const wild = segments.findIndex(
    (segment, index) => index === segments.length - 1 || /^(?:\\[^]|[^\\])*?[*?[]/.test(segment)
  )
  return segments.slice(0, Math.max(0, wild)).map((segment) => segment.replace(/\\([^])/g, "$1"))
}

const commonPrefix = (prefixes: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  const [first = [], ...others] = prefixes
  const length = first.findIndex((name, index) => others.some((other) => other[index] !== name))
  return length === -1 ? first : first.slice(0, length)
}

const compileAlternatives = (pattern: string): GlobResult<Glob> => {
  if (pattern === "") return Result.fail("it is empty; write ** for all files")
  if (pattern.length > maxPatternLength) return Result.fail(`it is longer than ${maxPatternLength} characters`)
  return Result.flatMap(readAlternatives(pattern, 0, 0), ({ texts }) => {
    if (texts.reduce((length, text) => length + text.length, 0) > maxExpandedLength) {
      return Result.fail(`the alternatives of its braces have more than ${maxExpandedLength} characters together`)
    }
    const alternatives = Array.from(new Set(texts), (text) => segmentsOf(text, !pattern.includes("/")))
    if (alternatives.some((segments) => segments.includes(".."))) {
      return Result.fail("it has a '..'; set the path to search in instead")
    }
    const wildcards = alternatives.map(Wildcard.compile)
    return Result.succeed({
      matches: (path) => wildcards.some((matches) => matches(path)),
      base: commonPrefix(alternatives.map(prefixOf)).join("/")
    })
  })
}

/** Makes a glob ready to match. Fails with `InvalidPattern`. */
export const compileGlob = (pattern: string): Result.Result<Glob, BackendError.Reason> =>
  Result.mapError(compileAlternatives(pattern), (problem): BackendError.Reason => ({
    _tag: "InvalidPattern",
    pattern: cut(pattern, 200),
    problem
  }))

/** Compiles the glob of a query, if it has one. */
export const compileFilter = (pattern: string | undefined): Result.Result<Glob | undefined, BackendError.Reason> =>
  pattern === undefined ? Result.succeed(undefined) : compileGlob(pattern)
