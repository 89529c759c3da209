/**
 * Searches through a remote shell, which preselects files and sends their relevant parts. The shared code decides on
 * paths, ignore rules and matches.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import { defined } from "../../../support/json/defined.ts"
import * as Path from "../files/path.ts"
import * as Turns from "../files/turns.ts"
import { compileFilter, compileGlob, type Glob } from "../glob/glob.ts"
import { grepArguments, literalsOf } from "../search/literals.ts"
import { compileSearch, fileQueryOf, limitOf, makeResult } from "../search/search.ts"
import { on, type Source } from "./files.ts"
import * as Find from "./find.ts"
import { searchFiles } from "./grep.ts"
import { isListed } from "./ignore.ts"
import type { Subject } from "./remote.ts"
import { failureOf, type Reader, reader } from "./shell.ts"

type Failing<A> = Effect.Effect<A, BackendError.BackendError>

/** The time that a search may take, in seconds. */
const grepTime = 15
const globTime = 5

/** The time on top of that for the way there and back, in milliseconds. */
const grace = 30_000

/** The paths of files that were found, in the order of results, and whether that is all. */
interface Candidates {
  readonly paths: ReadonlyArray<string>
  readonly truncated: Backend.Truncation | undefined
}

interface Query {
  readonly path: string
  readonly glob: Glob | undefined
  /** The original glob, as a hint for the remote side. */
  readonly pattern: string | undefined
  readonly ignored: boolean
  readonly seconds: number
  readonly literals: ReadonlyArray<string>
}

/** A pattern of the last name of a path for `find`, if `*` alone expresses it. */
const nameHint = (pattern: string | undefined): string => {
  if (pattern === undefined || /[[\]{}\\?!]/.test(pattern)) return "*"
  const last = pattern.slice(pattern.lastIndexOf("/") + 1)
  return last === "" || last.includes("**") || /[^\x20-\x7E]/.test(last) ? "*" : last
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

/** Paths, a line each, between records for paths with a newline. */
const pathsOf = (bytes: Uint8Array): Candidates => {
  const parts = decoder.decode(bytes).split("\0")
  const last = parts.length > 1 ? parts.at(-2) : undefined
  const isWhole = parts.at(-1) === "" && (last === "done" || last === "time")
  // The last two records give the end of the search; without them the last path may be cut.
  const paths = (isWhole ? parts.slice(0, -2) : parts).flatMap((part, index) =>
    index % 2 === 1 ? [part] : part.split("\n").filter((path) => path !== "")
  )
  return {
    paths: (isWhole ? paths : paths.slice(0, -1)).map((path) => path.replace(/^\.\//, "")),
    truncated: isWhole ? (last === "time" ? "time" : undefined) : "limit"
  }
}

/** Reads the ignore files, up to the empty record. */
const ignoreFilesOf = (records: Reader, folder: string): Map<string, string> => {
  const files = new Map<string, string>()
  while (!records.isEmpty()) {
    const name = records.text()
    if (name === "") break
    const text = records.text()
    const path = name.startsWith("/") ? name.slice(0, -1) || "/" : Path.parent(Path.join(folder, name.slice(2)))
    files.set(path, text)
  }
  return files
}

/** Finds candidate files. */
const find = Effect.fnUntraced(function* (
  { remote }: Source,
  subject: Subject,
  query: Query
): Effect.fn.Return<Candidates, BackendError.BackendError> {
  const { glob, ignored, literals, path, pattern, seconds } = query
  const args = [path, String(seconds), ignored ? "1" : "", nameHint(pattern), ...literals]
  const answer = yield* remote.run(subject, Find.find, args, seconds * 1000 + grace)
  const records = reader(answer)
  const status = records.text()
  if (status !== "file" && status !== "ok")
    return yield* Effect.fail(failureOf(subject.operation, subject.path, status))
  const real = records.text()
  const isKept = ignored ? () => true : isListed(ignoreFilesOf(records, real))
  if (ignored) ignoreFilesOf(records, real)
  if (status === "file") {
    const isWanted = glob === undefined || glob.matches(path.slice(1))
    return { paths: isWanted && isKept(real) ? [path] : [], truncated: undefined }
  }
  const listing = pathsOf(records.rest())
  const paths: Array<string> = []
  const isOver = Turns.make()
  const keep = Effect.gen(function* () {
    for (const one of listing.paths) {
      // A pattern or an ignore file can make each path take milliseconds.
      if (isOver()) yield* Effect.yieldNow
      if (glob?.matches(one) !== false && isKept(Path.join(real, one))) paths.push(Path.join(path, one))
    }
  })
  const outcome = yield* Effect.timeoutOption(keep, seconds * 1000)
  return { paths: paths.sort(Path.compare), truncated: Option.isNone(outcome) ? "time" : listing.truncated }
})

const invalid = (subject: Subject, reason: BackendError.Reason): Failing<never> =>
  Effect.fail(BackendError.make(subject.operation, subject.path, reason))

export const glob =
  (source: Source): Backend.Service["glob"] =>
  ({ ignored = false, limit, path: inputPath = "/", pattern }) =>
    on("glob", inputPath, (path, subject) =>
      Effect.gen(function* () {
        const compiled = compileGlob(pattern)
        if (Result.isFailure(compiled)) return yield* invalid(subject, compiled.failure)
        const query = { path, glob: compiled.success, pattern, ignored, seconds: globTime, literals: [] }
        const { paths, truncated } = yield* find(source, subject, query)
        const most = limitOf(limit)
        const why = truncated ?? (paths.length > most ? "limit" : undefined)
        return defined({
          entries: paths.slice(0, most).map((one) => ({ path: one, kind: "file" as const })),
          truncated: why
        })
      })
    )

export const grep =
  (source: Source): Backend.Service["grep"] =>
  (request) =>
    on("grep", request.path ?? "/", (path, subject) =>
      Effect.gen(function* () {
        const { glob: wanted, matcher } = yield* Effect.all({
          matcher: compileSearch(request),
          glob: Effect.fromResult(compileFilter(request.glob))
        }).pipe(Effect.catch((reason) => invalid(subject, reason)))
        const literals = yield* literalsOf(request)
        const query = fileQueryOf(request)
        const result = makeResult(query)
        let why: Backend.Truncation | undefined
        const search = Effect.gen(function* () {
          const listing = yield* find(source, subject, {
            path,
            glob: wanted,
            pattern: request.glob,
            ignored: request.ignored ?? false,
            seconds: grepTime,
            literals: literals === undefined ? [] : grepArguments(literals)
          })
          why = listing.truncated
          yield* searchFiles(source, subject, { paths: listing.paths, matcher, literals, query }, result)
        })
        const ended = yield* Effect.timeoutOption(search, grepTime * 1000)
        if (Option.isNone(ended)) why = "time"
        const truncated = result.isTruncated() ? "limit" : why
        return defined({ files: result.files, truncated })
      })
    )
