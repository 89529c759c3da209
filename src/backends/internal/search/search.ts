/**
 * Searches the lines of a text, in the same way for every backend.
 *
 * `lines.ts` splits lines. RE2 matches the pattern against each line without its ending, in linear time; `^` and `$` are the
 * ends of the line. Case is ignored by Unicode's simple folding. Invalid UTF-8 becomes replacement characters. Binary files
 * have no matches.
 */
import type { GrepFile, GrepQuery } from "../../../core/Backend.ts"
import { boundaryAfter, boundaryBefore } from "../../../support/text/text.ts"
import { makeSniffer } from "../files/mime.ts"
import type { Matcher } from "./matcher.ts"

export { compileSearch, type Matcher } from "./matcher.ts"

/** The default limit of lines or files. */
export const defaultLimit = 1_000

/** Bounds the limit of a query. Without one, or for NaN, it is `otherwise`. */
export const limitOf = (limit: number | undefined, otherwise = defaultLimit): number =>
  limit === undefined || Number.isNaN(limit) ? otherwise : Math.max(0, Math.floor(limit))

/** The most lines of context before and after a match. */
export const maxContext = 20

/** The most characters of a line. A longer line is cut around the match. */
export const maxLineLength = 500

/**
 * The number of bytes that are searched in one step. To keep a time limit, push no more than this at once: it takes
 * seconds at worst, and some microseconds as a rule.
 */
export const stepLength = 64 * 1024

/** The sign that a line is cut at its beginning or end. */
const ellipsis = "…"

/** The way a file is searched. `limit` is how many lines it may give, for mode `content`. */
export interface FileQuery {
  readonly mode: "content" | "count" | "files"
  readonly context: number
  readonly limit: number
}

/** The settings of a query for each file, within bounds. `limit` is the limit of the whole query. */
export const fileQueryOf = (query: GrepQuery): FileQuery => {
  return {
    mode: query.mode ?? "content",
    context: Math.min(maxContext, limitOf(query.context, 0)),
    limit: Math.min(Number.MAX_SAFE_INTEGER, limitOf(query.limit))
  }
}

/** The result for a file. `more` tells that the limit cut matching lines. */
export interface FileMatches {
  readonly file: GrepFile | undefined
  readonly more: boolean
}

/** Puts the files of a search together, up to its limit. */
export const makeResult = ({ limit, mode }: FileQuery) => {
  const files: Array<GrepFile> = []
  let total = 0
  let truncated = false
  const add = ({ file, more }: FileMatches): void => {
    if (truncated) return
    const room = mode === "content" ? limit - total : 1
    if (file !== undefined && mode !== "content" && total === limit) truncated = true
    else if (file !== undefined && mode === "content" && file.count > room) {
      if (room > 0) files.push({ path: file.path, count: room, matches: file.matches.slice(0, room) })
      truncated = true
    } else if (file !== undefined) {
      files.push(file)
      total += mode === "content" ? file.count : 1
    }
    if (more) truncated = true
  }
  return { files, add, room: () => limit - total, isTruncated: () => truncated }
}

/**
 * Searches a file chunk by chunk, in order. `push` says whether more is needed: it is not, if the file is binary, or
 * all that was asked for is found. `end` is called once, after the last chunk.
 */
export interface FileSearch {
  readonly push: (chunk: Uint8Array) => boolean
  readonly end: () => FileMatches
}

/**
 * The part of a long line around a match. It is a copy: a slice would hold on to the whole line, or chunk, that it is
 * of.
 */
const cutLine = (line: string, at: number): string => {
  if (line.length <= maxLineLength) return copy(line)
  const from = boundaryBefore(line, Math.max(0, Math.min(at - maxLineLength / 5, line.length - maxLineLength)))
  const to = boundaryAfter(line, Math.min(line.length, from + maxLineLength))
  return `${from > 0 ? ellipsis : ""}${copy(line.slice(from, to))}${to < line.length ? ellipsis : ""}`
}

const copy = (text: string): string => Array.from(text).join("")

interface Match {
  readonly line: number
  readonly text: string
  readonly before: ReadonlyArray<string>
  readonly after: Array<string>
}

/** Collects the matches of a query line by line. */
const makeGatherer = (matcher: Matcher, query: FileQuery) => {
  const matches: Array<Match> = []
  /** The last lines that no match has as context. */
  let before: Array<string> = []
  /** The number of lines of context that the last match still needs. */
  let missing = 0
  let count = 0
  let number = 0
  let more = false
  let isDone = false
  const context = query.mode === "content" ? query.context : 0
  const keep = (line: string) => {
    number++
    if (missing > 0) {
      missing--
      matches.at(-1)?.after.push(cutLine(line, 0))
    } else if (context > 0) {
      before.push(line)
      if (before.length > context) before.shift()
    }
  }
  const give = (line: string) => {
    if (query.mode === "content" && count === query.limit) {
      more = true
      isDone = true
      return
    }
    count++
    number++
    if (query.mode === "files") isDone = true
    if (query.mode !== "content") return
    const at = line.length > maxLineLength ? matcher.index(line) : 0
    matches.push({ line: number, text: cutLine(line, at), before: before.map((one) => cutLine(one, 0)), after: [] })
    before = []
    missing = context
  }
  /** Lines that don't match: `to` is behind the ending of the last one. */
  const pass = (lines: string, from: number, to: number) => {
    for (let start = from; start < to;) {
      const end = lines.indexOf("\n", start)
      if (context === 0) number++
      else keep(lines.slice(start, end))
      start = end + 1
    }
  }
  /** Lines that all end with `\n`. */
  const takeAll = (lines: string) => {
    // Cuts at the searched length may create a match.
    const canSkip = lines.length <= matcher.maxLength
    for (let from = 0; from < lines.length && !isDone;) {
      const next = canSkip ? matcher.skip(lines, from) : from
      const start = next === -1 ? lines.length : next > from ? lines.lastIndexOf("\n", next - 1) + 1 : from
      if (start > from) {
        pass(lines, from, start)
        from = start
        continue
      }
      const end = lines.indexOf("\n", from)
      take(lines.slice(from, end))
      from = end + 1
    }
  }
  const take = (line: string) => {
    const searched = line.slice(0, matcher.maxLength)
    if (matcher.test(searched)) give(searched)
    else keep(searched)
  }
  return {
    isDone: () => isDone,
    take,
    takeAll,
    end: (path: string): FileMatches => ({ file: count === 0 ? undefined : { path, count, matches }, more })
  }
}

/** Searches the file at a path, whose bytes come in chunks. */
export const makeFileSearch = (path: string, matcher: Matcher, query: FileQuery): FileSearch => {
  const gatherer = makeGatherer(matcher, query)
  const sniffer = makeSniffer()
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true })
  let begun = false
  /** The beginning of a line that has not ended: no more of it than is searched. */
  let rest = ""
  let isOpen = false
  /** True if the text so far ended with `\r`, and a `\n` may follow. */
  let afterCr = false

  const add = (part: string) => {
    if (part.length > 0) isOpen = true
    if (rest.length < matcher.maxLength) rest += part.slice(0, matcher.maxLength - rest.length)
  }
  const close = () => {
    gatherer.take(rest)
    rest = ""
    isOpen = false
  }
  /** Takes text whose lines end with `\n`. */
  const take = (text: string) => {
    const first = text.indexOf("\n")
    if (first === -1) return add(text)
    let from = 0
    if (isOpen) {
      add(text.slice(0, first))
      close()
      from = first + 1
    }
    const last = text.lastIndexOf("\n") + 1
    if (from < last) gatherer.takeAll(text.slice(from, last))
    add(text.slice(last))
  }
  const decode = (bytes: Uint8Array, isLast: boolean) => {
    const decoded = decoder.decode(bytes, { stream: !isLast })
    const marked = !begun && decoded.startsWith("\uFEFF") ? decoded.slice(1) : decoded
    begun ||= decoded.length > 0
    const text = afterCr && !marked.startsWith("\n") && (marked !== "" || isLast) ? `\n${marked}` : marked
    if (text === "") return
    afterCr = text.endsWith("\r")
    if (!text.includes("\r")) return take(text)
    take((afterCr ? text.slice(0, -1) : text).replaceAll(/\r\n?/g, "\n"))
  }
  return {
    push: (chunk) => {
      if (!sniffer.push(chunk)) return false
      for (let i = 0; i < chunk.length && !gatherer.isDone(); i += stepLength) {
        decode(chunk.subarray(i, i + stepLength), false)
      }
      // Findings count only if the file is text.
      return !gatherer.isDone() || !sniffer.isKnown()
    },
    end: () => {
      if (!sniffer.end().isText) return { file: undefined, more: false }
      if (!gatherer.isDone()) decode(new Uint8Array(0), true)
      if (!gatherer.isDone() && isOpen) close()
      return gatherer.end(path)
    }
  }
}

/** Searches a file that is at hand, as its text or its bytes. */
export const searchText = (
  path: string,
  content: string | Uint8Array,
  matcher: Matcher,
  query: FileQuery
): FileMatches => {
  const search = makeFileSearch(path, matcher, query)
  search.push(typeof content === "string" ? new TextEncoder().encode(content) : content)
  return search.end()
}
