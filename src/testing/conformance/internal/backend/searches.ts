/** The reference for searches: line by line, in linear time. */
import * as Result from "effect/Result"
import { RE2JS } from "re2js"
import type { GrepMatch, GrepQuery } from "../../../../core/Backend.ts"
import { toLines } from "./texts.ts"

type Find = (line: string) => readonly [start: number, end: number] | undefined

const aroundLength = 1000

/** Truncates a long line around its match. */
const cutAround = (line: string, start: number): string =>
  line.length <= 2 * aroundLength ? line : line.slice(Math.max(0, start - aroundLength), start + aroundLength)

/** Compiles a query. Fails with the problem of the pattern. */
export const compileSearch = (query: GrepQuery): Result.Result<Find, string> => {
  const { pattern } = query
  if (pattern === "" || /[\n\r]/.test(pattern)) return Result.fail("nothing that could be in a line")
  if (query.regex !== true && query.ignoreCase !== true) {
    return Result.succeed((line) => {
      const start = line.indexOf(pattern)
      return start < 0 ? undefined : [start, start + pattern.length]
    })
  }
  return Result.try({
    try: (): Find => {
      const source = query.regex === true ? pattern : RE2JS.quote(pattern)
      const compiled = RE2JS.compile(source, query.ignoreCase === true ? RE2JS.CASE_INSENSITIVE : 0)
      return (line) => {
        const matcher = compiled.matcher(line)
        return matcher.find() ? [matcher.start(), matcher.end()] : undefined
      }
    },
    catch: (problem) => (problem instanceof Error ? problem.message : String(problem))
  })
}

/**
 * Finds matching lines up to a limit, with their context. A context line occurs once: after the previous match if it is in
 * reach, else before the next match.
 */
export const searchText = (text: string, find: Find, context: number, limit: number): ReadonlyArray<GrepMatch> => {
  const lines = toLines(text.replace(/^\uFEFF/, ""))
  const around = Math.max(0, Math.floor(Math.min(context, 20)) || 0)
  const hits: Array<readonly [index: number, start: number]> = []
  for (const [index, line] of lines.entries()) {
    if (hits.length > limit) break
    const range = find(line)
    if (range !== undefined) hits.push([index, range[0]])
  }
  const cutLine = (line: string) => cutAround(line, 0)
  let end = 0
  return hits.slice(0, limit).map(([index, start], match) => {
    const next = hits[match + 1]?.[0] ?? lines.length
    const before = lines.slice(Math.max(end, index - around), index)
    end = Math.min(next, index + 1 + around)
    return {
      line: index + 1,
      text: cutAround(lines[index] ?? "", start),
      before: before.map(cutLine),
      after: lines.slice(index + 1, end).map(cutLine)
    }
  })
}
