/** The derived searches: `grep` and `glob`, within a time limit, without keeping others from their work. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type * as Backend from "../../../core/Backend.ts"
import { defined } from "../../../support/json/defined.ts"
import { boundaryBefore } from "../../../support/text/text.ts"
import * as Path from "../files/path.ts"
import { descend, unlessHidden, type Visit, walk } from "../files/walk.ts"
import { compileFilter, compileGlob, type Glob } from "../glob/glob.ts"
import { indexOf } from "../search/find.ts"
import * as Search from "../search/search.ts"
import { entryOf, isLarge, pieces } from "./files.ts"
import type { Child, Content } from "./primitives.ts"
import { fail, type Failing, find, on, type SearchTarget, type Target } from "./target.ts"

/** The time that a search may take, in milliseconds. */
const grepTime = 15_000
const globTime = 5_000

/** Gives others their turn now and then: a search in memory never waits for anything. */
const makeTurns = () => {
  let bytes = 0
  return (searched: number): Effect.Effect<void> => {
    bytes += searched
    if (bytes < Search.stepLength) return Effect.void
    bytes = 0
    return Effect.yieldNow
  }
}

/** Matches found so far are kept outside of the search, which may be ended at any time. */
interface Progress {
  truncated: Backend.Truncation | undefined
}

const limitTime = (time: number, progress: Progress, search: Failing<void>): Failing<void> =>
  Effect.map(Effect.timeoutOption(search, time), (ended) => {
    if (Option.isNone(ended)) progress.truncated = "time"
  })

/** A text in parts that are not too long to be searched in one go. */
function* partsOf(content: Content): Iterable<Uint8Array> {
  const encoder = new TextEncoder()
  let from = 0
  while (from < content.length) {
    let to = Math.min(content.length, from + Search.stepLength)
    if (typeof content === "string") {
      if (to < content.length) to = boundaryBefore(content, to)
      yield encoder.encode(content.slice(from, to))
    } else yield content.subarray(from, to)
    from = to
  }
}

const notFound: Search.FileMatches = { file: undefined, more: false }

/** The name of a found file in results. */
const nameOf = (target: Target, path: string): string =>
  target.normal === target.real ? path : Path.join(target.normal, Path.relative(path, target.real))

/** The query that all files of one search share. */
interface Job {
  readonly source: SearchTarget
  readonly target: Target
  readonly matcher: Search.Matcher
  /** The pattern, if it is to be found as it is. */
  readonly literal: string | undefined
  readonly turn: (searched: number) => Effect.Effect<void>
}

const searchFile = (
  { literal, matcher, source, target, turn }: Job,
  path: string,
  file: Child,
  query: Search.FileQuery
): Failing<Search.FileMatches> =>
  Effect.gen(function* () {
    const isInPieces = isLarge(source, file)
    const content = isInPieces ? "" : yield* source.primitives.read(path)
    if (!isInPieces && typeof content === "string" && literal !== undefined && indexOf(content, literal) === -1) {
      yield* turn(content.length / 16)
      return notFound
    }
    const search = Search.makeFileSearch(nameOf(target, path), matcher, query)
    const push = Effect.fnUntraced(function* (piece: Content) {
      for (const part of partsOf(piece)) {
        const more = search.push(part)
        yield* turn(part.length)
        if (!more) return false
      }
      return true
    })
    if (isInPieces) yield* Stream.runForEachWhile(pieces(source, { ...target, real: path }, file.size ?? 0), push)
    else yield* push(content)
    return search.end()
  })

/** Selects files by their path from the directory that is searched; a single file, by its own path. */
const wantedBy = (glob: Glob | undefined, target: Target) => (path: string) =>
  glob === undefined || glob.matches(path === target.real ? target.normal.slice(1) : Path.relative(path, target.real))

interface WalkOptions {
  readonly glob: Glob | undefined
  readonly ignored: boolean | undefined
}

/** Visits the files that a query means. */
const visit = (source: SearchTarget, target: Target, { glob, ignored }: WalkOptions, each: Visit): Failing<void> =>
  Effect.gen(function* () {
    const stat = yield* find(source, target)
    if (stat.kind === "link") return yield* fail(target, { _tag: "OutsideRoot" })
    const base = stat.kind === "directory" ? (glob?.base ?? "") : ""
    const from = yield* descend(source.primitives, target.real, base)
    if (from === undefined) return
    const isWanted = wantedBy(glob, target)
    yield* walk(source.primitives, { path: from, ignored: ignored === true }, (path, file) =>
      isWanted(path) ? each(path, file) : true
    )
  })

export const grep =
  (source: SearchTarget): Backend.Service["grep"] =>
  (query) =>
    on(
      source,
      "grep",
      query.path ?? "/",
      Effect.fnUntraced(function* (target) {
        const { glob, matcher } = yield* Effect.all({
          matcher: Search.compileSearch(query),
          glob: Effect.fromResult(compileFilter(query.glob))
        }).pipe(Effect.catch((reason) => fail(target, reason)))
        const fileQuery = Search.fileQueryOf(query)
        const collector = Search.makeResult(fileQuery)
        const progress: Progress = { truncated: undefined }
        const literal = query.regex === true || query.ignoreCase === true ? undefined : query.pattern
        const job: Job = { source, target, matcher, literal, turn: makeTurns() }
        let waiting: Array<readonly [path: string, file: Child]> = []

        const limited = () => ({ ...fileQuery, limit: collector.room() })

        const searchWaiting = Effect.suspend(() => {
          const files = waiting
          waiting = []
          const query = limited()
          return Effect.forEach(
            files,
            ([path, file]) => {
              const search = searchFile(job, path, file, query)
              // A file that was named itself is not passed over in silence.
              return path === target.real ? search : unlessHidden(search, notFound)
            },
            { concurrency: source.concurrency }
          )
        }).pipe(
          Effect.map((results) => {
            for (const result of results) collector.add(result)
            return !collector.isTruncated()
          })
        )

        const searchNow = (path: string, content: Content): boolean => {
          collector.add(Search.searchText(nameOf(target, path), content, matcher, limited()))
          return !collector.isTruncated()
        }

        const search = visit(source, target, { glob, ignored: query.ignored }, (path, file) => {
          // Files before it in order are searched before.
          const content = waiting.length === 0 ? source.atHand?.(path) : undefined
          if (content !== undefined && content.length <= Search.stepLength) return searchNow(path, content)
          waiting.push([path, file])
          return waiting.length < source.concurrency ? true : searchWaiting
        }).pipe(
          Effect.andThen(Effect.suspend(() => (collector.isTruncated() ? Effect.void : Effect.asVoid(searchWaiting))))
        )
        yield* limitTime(grepTime, progress, search)
        const truncated = collector.isTruncated() ? "limit" : progress.truncated
        return defined({ files: collector.files, truncated })
      })
    )

export const glob =
  (source: SearchTarget): Backend.Service["glob"] =>
  (query) =>
    on(
      source,
      "glob",
      query.path ?? "/",
      Effect.fnUntraced(function* (target) {
        const compiled = compileGlob(query.pattern)
        if (Result.isFailure(compiled)) return yield* fail(target, compiled.failure)
        const limit = Search.limitOf(query.limit)
        const entries: Array<Backend.Entry> = []
        const progress: Progress = { truncated: undefined }
        const search = visit(source, target, { glob: compiled.success, ignored: query.ignored }, (path, file) => {
          if (entries.length === limit) {
            progress.truncated = "limit"
            return false
          }
          entries.push(entryOf(nameOf(target, path), file))
          return true
        })
        yield* limitTime(globTime, progress, search)
        return defined({ entries, truncated: progress.truncated })
      })
    )
