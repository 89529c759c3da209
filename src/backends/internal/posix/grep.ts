/**
 * Looks into the files that a remote shell found: short ones come together, of a long one only the lines that may
 * match.
 */
import * as Effect from "effect/Effect"
import type { BackendError } from "../../../core/BackendError.ts"
import { isBinary, sniffLength } from "../files/mime.ts"
import { grepArguments, type Literals } from "../search/literals.ts"
import { type FileQuery, type FileMatches, makeFileSearch, type Matcher, searchText } from "../search/search.ts"
import type { Source } from "./files.ts"
import * as Find from "./find.ts"
import { maxArguments, type Subject } from "./remote.ts"
import { checkAnswer, quote } from "./shell.ts"

/** The files to search, in order, and the query. */
interface Work {
  readonly paths: ReadonlyArray<string>
  readonly matcher: Matcher
  readonly literals: Literals | undefined
  readonly query: FileQuery
}

/** The place that findings are added to. */
interface Result {
  readonly add: (found: FileMatches) => void
  readonly room: () => number
  readonly isTruncated: () => boolean
}

type Failing<A> = Effect.Effect<A, BackendError>

/** A file of at most this many bytes comes as a whole. */
const wholeSize = 256 * 1024

/** The bytes of files in an answer: few at first, then more. */
const firstBudget = 300 * 1024
const laterBudget = 4 * 1024 * 1024

/** The bytes of one part of a long file. */
const chunkSize = 2 * 1024 * 1024

/** No more lines of a long file than these are looked at. */
const mostLines = 100_000

const nothing: FileMatches = { file: undefined, more: false }

/** As many paths as fit into a command. */
const someOf = (paths: ReadonlyArray<string>, from: number): ReadonlyArray<string> => {
  let size = 0
  let to = from
  while (to < paths.length && (to === from || size < maxArguments)) size += quote(paths[to++] ?? "").length * 3 + 8
  return paths.slice(from, to)
}

/** The numbers of lines are moved by as many empty lines as it takes to be no binary file, whatever follows. */
const padding = "\n".repeat(sniffLength)

/** Rebuilds a file from some of its lines. The other lines are empty, and match no literal. */
const fill = function* (numbered: string): Generator<Uint8Array> {
  const encoder = new TextEncoder()
  yield encoder.encode(padding)
  let next = 1
  for (const line of numbered.split("\n")) {
    const colon = line.indexOf(":")
    const number = Number(line.slice(0, colon))
    if (colon < 1 || !Number.isSafeInteger(number) || number < next) continue
    for (; number - next > 65_536; next += 65_536) yield encoder.encode("\n".repeat(65_536))
    yield encoder.encode(`${"\n".repeat(number - next)}${line.slice(colon + 1)}\n`)
    next = number + 1
  }
}

const unpad = ({ file, more }: FileMatches, query: FileQuery): FileMatches =>
  file === undefined
    ? { file, more }
    : {
        more,
        file: {
          ...file,
          matches: file.matches.map((match) => {
            const line = match.line - sniffLength
            const before = Math.min(query.context, line - 1)
            return { ...match, line, before: before === 0 ? [] : match.before.slice(-before) }
          })
        }
      }

/** Searches a long file by its lines with a literal. */
const searchLines = (
  { remote }: Source,
  subject: Subject,
  path: string,
  work: Work,
  literals: Literals,
  query: FileQuery
): Failing<FileMatches> =>
  Effect.gen(function* () {
    const most = query.mode === "content" ? Math.min(query.limit * 2 + 100, mostLines) : mostLines
    const args = [path, String(query.context), String(most), ...grepArguments(literals)]
    const records = yield* checkAnswer(subject.operation, path, yield* remote.run(subject, Find.extract, args))
    if (isBinary(records.take(sniffLength), { complete: false })) return nothing
    const numbered = records.rest()
    const search = makeFileSearch(path, work.matcher, query)
    for (const part of fill(new TextDecoder("utf-8", { ignoreBOM: true }).decode(numbered))) {
      if (!search.push(part)) break
    }
    const result = unpad(search.end(), query)
    return numbered.length < Find.searchBytes ? result : { ...result, more: true }
  })

/** Looks into a long file piece by piece. */
const searchWhole = (
  { remote }: Source,
  subject: Subject,
  path: string,
  work: Work,
  query: FileQuery
): Failing<FileMatches> =>
  Effect.gen(function* () {
    const search = makeFileSearch(path, work.matcher, query)
    for (let from = 1; ; from += chunkSize) {
      const answer = yield* remote.run(subject, Find.chunk, [path, String(from), String(chunkSize)])
      const chunk = (yield* checkAnswer(subject.operation, path, answer)).rest()
      if (!search.push(chunk) || chunk.length < chunkSize) return search.end()
    }
  })

/** Looks into files one after the other, until there is no room for more. */
export const searchFiles = Effect.fnUntraced(function* (
  source: Source,
  subject: Subject,
  work: Work,
  result: Result
): Effect.fn.Return<void, BackendError> {
  let at = 0
  let budget = firstBudget
  while (at < work.paths.length && !result.isTruncated()) {
    const paths = someOf(work.paths, at)
    const args = [String(budget), String(wholeSize), ...paths]
    const records = yield* checkAnswer("grep", subject.path, yield* source.remote.run(subject, Find.gather, args))
    const start = at
    while (!records.isEmpty() && at - start < paths.length && !result.isTruncated()) {
      const path = work.paths[at++] ?? ""
      const query = { ...work.query, limit: work.query.mode === "content" ? result.room() : work.query.limit }
      const size = records.number()
      if (size >= 0) result.add(searchText(path, records.take(size), work.matcher, query))
      else if (size === -1) {
        result.add(
          yield* work.literals === undefined
            ? searchWhole(source, subject, path, work, query)
            : searchLines(source, subject, path, work, work.literals, query)
        )
      }
    }
    if (at === start) return
    budget = laterBudget
  }
})
