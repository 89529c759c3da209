/**
 * Literals of a pattern: every matching line contains one, so a tool without RE2 can exclude files.
 *
 * re2js computes them for its own use. The kinds of its conditions are detected by examples, and unknown ones are
 * ignored: another version of re2js can make searches slower, but not wrong.
 */
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { GrepQuery } from "../../../core/Backend.ts"
import { type Re2, re2 } from "./re2.ts"

/** Texts of which a line has one. `fold`: in any case, and then they are letters that ASCII can fold. */
export interface Literals {
  readonly texts: ReadonlyArray<string>
  readonly fold: boolean
}

/** More alternatives than these are not worth the command that has them. */
const mostTexts = 20

type Texts = ReadonlyArray<string>

/** The conditions of a line in re2js; `undefined` without any. */
const conditionOf = (RE2JS: Re2, pattern: string): unknown =>
  Result.getOrUndefined(Result.try((): unknown => RE2JS.compile(pattern).re2().prefilter))

const kindOf = (condition: unknown): unknown => (Predicate.hasProperty(condition, "type") ? condition.type : undefined)

interface Kinds {
  readonly text: unknown
  readonly all: unknown
  readonly any: unknown
}

const kindsOf = memoize((RE2JS: Re2): Kinds => {
  const kind = (pattern: string) => kindOf(conditionOf(RE2JS, pattern))
  return { text: kind("ab"), all: kind("ab.cd"), any: kind("ab|cd") }
})

const shortest = (texts: Texts): number => Math.min(...texts.map((text) => text.length))

const textsIn = (kinds: Kinds, condition: unknown): Texts | undefined => {
  const kind = kindOf(condition)
  if (kind === kinds.text) {
    return Predicate.hasProperty(condition, "str") && typeof condition.str === "string" ? [condition.str] : undefined
  }
  if (!Predicate.hasProperty(condition, "subs") || !Array.isArray(condition.subs)) return undefined
  const all = condition.subs.map((one) => textsIn(kinds, one))
  const textLists = all.filter((texts) => texts !== undefined)
  if (kind === kinds.any) return textLists.length === all.length ? textLists.flat() : undefined
  // All of them are met: the longer its texts, the more one leaves out.
  return kind === kinds.all ? textLists.toSorted((left, right) => shortest(right) - shortest(left))[0] : undefined
}

/** Finds texts of which each line that matches a regular expression has one. */
const textsOf = (RE2JS: Re2, pattern: string): Texts | undefined => {
  const kinds = kindsOf(RE2JS)
  const isKnown = new Set([undefined, ...Object.values(kinds)]).size === 4
  return isKnown ? textsIn(kinds, conditionOf(RE2JS, pattern)) : undefined
}

/** Letters that ASCII folds to each other and to nothing else: `k` and `s` have a third form. */
const folding = (text: string): string =>
  (text.match(/[\x20-\x7E]+/g) ?? [])
    .flatMap((part) => part.split(/[kKsS]/))
    .reduce((longest, part) => (part.length > longest.length ? part : longest), "")

const usableOf = (texts: Texts | undefined, fold: boolean): Literals | undefined => {
  if (texts === undefined || texts.length > mostTexts) return undefined
  const usable = fold ? texts.map(folding) : texts
  // Bytes that are no UTF-8 are read as U+FFFD, and look different to others. No command line can have a NUL.
  if (usable.some((text) => text === "" || !text.isWellFormed() || /[\0\n\r\uFFFD]/.test(text))) return undefined
  return { texts: usable, fold }
}

/** Finds literals that every matching line contains. With `undefined`, all lines must be searched. */
export const literalsOf = (
  query: Pick<GrepQuery, "ignoreCase" | "pattern" | "regex">
): Effect.Effect<Literals | undefined> => {
  const { ignoreCase = false, pattern, regex = false } = query
  if (!regex) return Effect.succeed(usableOf([pattern], ignoreCase))
  // In any case, a line has the same texts, in any case.
  const isFolded = pattern.startsWith("(?i)")
  return Effect.map(re2, (loaded) =>
    usableOf(textsOf(loaded, isFolded ? pattern.slice(4) : pattern), ignoreCase || isFolded)
  )
}

/** Writes the patterns for `grep`. */
export const grepArguments = ({ fold, texts }: Literals): ReadonlyArray<string> => [
  ...(fold ? ["-i"] : []),
  "-F",
  ...texts.flatMap((text) => ["-e", text])
]
