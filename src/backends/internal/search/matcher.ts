/** Patterns that lines are matched against: literal text, or regular expressions by RE2, all in linear time. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { GrepQuery } from "../../../core/Backend.ts"
import type * as BackendError from "../../../core/BackendError.ts"
import { cut } from "../../../support/text/text.ts"
import { indexOf } from "./find.ts"
import { type Re2, re2 } from "./re2.ts"

/** The longest pattern, in characters. */
const maxPatternLength = 1_000

/** The largest regular expression, in instructions of its program. */
const maxProgramSize = 1_000

/**
 * The number of characters of a line that are searched at most. A large regular expression is matched against fewer.
 */
const maxSearchedLength = 1024 * 1024

/** Instructions times characters, for one line: about a second at worst. */
const maxWork = 32 * 1024 * 1024

/** A pattern, ready to match lines. */
export interface Matcher {
  readonly test: (line: string) => boolean
  /** Finds the index of the first match, or -1. */
  readonly index: (line: string) => number
  /**
   * Skips lines that don't match, in lines that end with `\n`. Gives the index to search on from, or -1 if no line
   * matches. `from` is the beginning of a line.
   */
  readonly skip: (lines: string, from: number) => number
  /** The number of characters of a line that are searched. */
  readonly maxLength: number
}

const compileLiteral = (pattern: string): Matcher => ({
  test: (line) => indexOf(line, pattern) !== -1,
  index: (line) => indexOf(line, pattern),
  skip: (lines, from) => indexOf(lines, pattern, from),
  maxLength: maxSearchedLength
})

const compileRegex = (
  RE2JS: Re2,
  pattern: string,
  regex: boolean,
  ignoreCase: boolean
): Result.Result<Matcher, string> => {
  const source = regex ? pattern : RE2JS.quote(pattern)
  const flags = ignoreCase ? RE2JS.CASE_INSENSITIVE : 0
  const compiled = Result.try({
    try: () => ({ line: RE2JS.compile(source, flags), lines: RE2JS.compile(source, flags | RE2JS.MULTILINE) }),
    catch: (cause) => `${cause instanceof Error ? cause.message : "it is no regular expression"} (the syntax is RE2)`
  })
  if (Result.isFailure(compiled)) return Result.fail(compiled.failure)
  const { line: expression, lines: multiline } = compiled.success
  const size = Math.max(1, expression.programSize())
  if (regex && size > maxProgramSize) return Result.fail("it is too large; repeat less, or look for less at once")
  // The ends of a line are also found in several lines, but those of a text are not; nor if flags are taken away.
  const isLocal = !/\\[Az]|\(\?[a-zA-Z]*-/.test(source)
  return Result.succeed({
    test: (line) => expression.test(line),
    index: (line) => {
      const matcher = expression.matcher(line)
      return matcher.find() ? matcher.start() : -1
    },
    // A match may span lines here, but without any match no line matches.
    skip: (lines, from) => (from === 0 && isLocal && !multiline.test(lines) ? -1 : from),
    maxLength: Math.min(maxSearchedLength, Math.floor(maxWork / size))
  })
}

/** Makes a pattern ready to match. Fails with `InvalidPattern`. */
export const compileSearch = (
  query: Pick<GrepQuery, "ignoreCase" | "pattern" | "regex">
): Effect.Effect<Matcher, BackendError.Reason> => {
  const { ignoreCase = false, pattern, regex = false } = query
  const invalid = (problem: string): BackendError.Reason => ({
    _tag: "InvalidPattern",
    pattern: cut(pattern, 200),
    problem
  })
  if (pattern === "") return Effect.fail(invalid("it is empty"))
  if (pattern.length > maxPatternLength) return Effect.fail(invalid(`it is longer than ${maxPatternLength} characters`))
  if (!pattern.isWellFormed()) return Effect.fail(invalid("it is not valid Unicode"))
  if (/[\n\r]/.test(pattern))
    return Effect.fail(invalid("it has a line break, but is matched line by line; look for one of the lines"))
  if (!regex && !ignoreCase) return Effect.succeed(compileLiteral(pattern))
  return Effect.flatMap(re2, (loaded) =>
    Effect.fromResult(Result.mapError(compileRegex(loaded, pattern, regex, ignoreCase), invalid))
  )
}
