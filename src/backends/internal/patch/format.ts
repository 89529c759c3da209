/** Reads the text of a patch into its parts. */
import * as Result from "effect/Result"
import { valueAt } from "../../../support/json/valueAt.ts"
import { type Change, type Hunk, type HunkLine, type Patch, InvalidPatch } from "./model.ts"

const maxQuoteLength = 160

/** A text in a message, cut if it is long. */
export const quote = (text: string): string =>
  JSON.stringify(text.length > maxQuoteLength ? `${text.slice(0, maxQuoteLength)}…` : text)

/** Makes an {@link InvalidPatch}; `found` is a line as it came, `undefined` for the end of the patch. */
export const invalid = (line: number, found: string | undefined, expected: string): InvalidPatch =>
  new InvalidPatch({ line, found: found === undefined ? "the end of the patch" : quote(found), expected })

export const marks = {
  begin: "*** Begin Patch",
  end: "*** End Patch",
  add: "*** Add File:",
  update: "*** Update File:",
  remove: "*** Delete File:",
  move: "*** Move to:",
  endOfFile: "*** End of File"
} as const

const section = `"${marks.add} path", "${marks.update} path", "${marks.remove} path" or "${marks.end}"`

/** `@@ -1,3 +1,4 @@ name` as other diffs have it: the numbers are guesses, and the name may be cut. */
const unifiedRange = /^-\d+(?:,\d+)? \+\d+(?:,\d+)? @@/

const fence = /^(?:```|~~~)\w*$/

const heredoc = /<<-?\s?(['"]?)(\w+)\1/

interface Cursor {
  readonly lines: ReadonlyArray<string>
  at: number
}

const fail = ({ at, lines }: Cursor, expected: string): Result.Result<never, InvalidPatch> =>
  Result.fail(invalid(at + 1, lines[at], expected))

const header = (line: string): string => {
  const text = line.slice(2).trim()
  if (unifiedRange.test(text)) return ""
  return text.endsWith("@@") ? text.slice(0, -2).trimEnd() : text
}

/** A remark of other diffs on the line before it; whether a file ends with a newline stays as it is. */
const remark = "\\ No newline at end of file"

const kinds: { readonly [mark: string]: HunkLine["kind"] } = { " ": "keep", "+": "add", "-": "remove" }

/** Reads a hunk; `undefined` for blank lines between the parts of a patch. */
const parseHunk = (cursor: Cursor): Result.Result<Hunk | undefined, InvalidPatch> => {
  const start = cursor.at
  const headers: Array<string> = []
  for (; cursor.lines[cursor.at]?.startsWith("@@") === true; cursor.at++) {
    const text = header(cursor.lines[cursor.at] ?? "")
    if (text !== "") headers.push(text)
  }
  const line = cursor.at + 1
  const lines: Array<HunkLine> = []
  let endOfFile = false
  let blank = cursor.at === start
  for (; cursor.at < cursor.lines.length; cursor.at++) {
    const text = cursor.lines[cursor.at] ?? ""
    if (text.startsWith("@@")) break
    if (text.startsWith("*** ")) {
      endOfFile = text.trimEnd() === marks.endOfFile
      if (endOfFile) cursor.at++
      break
    }
    if (text.trimEnd() === remark) continue
    // An empty line is an empty line of the file, whose leading space was lost.
    const kind = text === "" ? "keep" : valueAt(kinds, text.charAt(0))
    if (kind === undefined) return fail(cursor, "a line that begins with ' ', '+' or '-', or \"@@\", or a line of ***")
    if (text !== "") blank = false
    lines.push({ kind, text: text.slice(1) })
  }
  if (blank && !endOfFile) return Result.succeed(undefined)
  if (lines.length === 0) return fail(cursor, "lines that begin with ' ', '+' or '-' after \"@@\"")
  return Result.succeed({ headers, lines, endOfFile, line })
}

const parseUpdate = (cursor: Cursor, path: string): Result.Result<Change, InvalidPatch> => {
  const start = cursor.at - 1
  const hunks: Array<Hunk> = []
  let moveTo: string | undefined
  const next = cursor.lines[cursor.at] ?? ""
  if (next.trim().startsWith(marks.move)) {
    moveTo = next.trim().slice(marks.move.length).trim()
    if (moveTo === "") return fail(cursor, `a path after "${marks.move}"`)
    cursor.at++
  }
  for (;;) {
    const text = cursor.lines[cursor.at]
    if (text === undefined || text.startsWith("*** ")) break
    const hunk = parseHunk(cursor)
    if (Result.isFailure(hunk)) return Result.fail(hunk.failure)
    if (hunk.success !== undefined) hunks.push(hunk.success)
  }
  if (moveTo === undefined && !hunks.some((hunk) => hunk.lines.some((line) => line.kind !== "keep"))) {
    return fail(cursor, "lines that begin with '+' or '-' before it")
  }
  return Result.succeed({ _tag: "Update", path, hunks, line: start + 1, ...(moveTo === undefined ? {} : { moveTo }) })
}

const parseAdd = (cursor: Cursor, path: string): Result.Result<Change, InvalidPatch> => {
  const line = cursor.at
  const lines: Array<string> = []
  let blank = 0
  for (; cursor.at < cursor.lines.length; cursor.at++) {
    const text = cursor.lines[cursor.at] ?? ""
    if (text.startsWith("*** ")) break
    if (text.trimEnd() === remark) continue
    if (text === "") {
      blank++
      continue
    }
    if (!text.startsWith("+")) return fail(cursor, "a line of the new file, which begins with '+'")
    for (; blank > 0; blank--) lines.push("")
    lines.push(text.slice(1))
  }
  return Result.succeed({ _tag: "Add", path, lines, line })
}

/** Skips the wrapper of a patch: a code fence, or a shell's here-document. */
const unwrap = (cursor: Cursor): string | undefined => {
  let word: string | undefined
  for (; cursor.at < cursor.lines.length; cursor.at++) {
    const text = (cursor.lines[cursor.at] ?? "").trim()
    if (text === "" || fence.test(text)) continue
    const delimiter = text.startsWith("***") ? undefined : heredoc.exec(text)?.[2]
    if (delimiter === undefined) break
    word = delimiter
  }
  return word
}

const parseSection = (cursor: Cursor, text: string): Result.Result<Change, InvalidPatch> => {
  for (const mark of [marks.add, marks.update, marks.remove]) {
    if (!text.startsWith(mark)) continue
    const path = text.slice(mark.length).trim()
    if (path === "") return fail(cursor, `a path after "${mark}"`)
    cursor.at++
    if (mark === marks.add) return parseAdd(cursor, path)
    if (mark === marks.update) return parseUpdate(cursor, path)
    return Result.succeed({ _tag: "Delete", path, line: cursor.at })
  }
  return fail(cursor, section)
}

const toLines = (text: string): ReadonlyArray<string> => {
  const lines = text.split("\n")
  if (lines.at(-1) === "") lines.pop()
  return lines.map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line))
}

/** Reads a patch in linear time. */
export const parse = (text: string): Result.Result<Patch, InvalidPatch> => {
  const cursor: Cursor = { lines: toLines(text), at: 0 }
  const word = unwrap(cursor)
  if (cursor.lines[cursor.at]?.trim() !== marks.begin) return fail(cursor, `"${marks.begin}"`)
  cursor.at++
  const changes: Array<Change> = []
  for (;;) {
    const line = cursor.lines[cursor.at]
    if (line === undefined) return fail(cursor, `${section}; the patch was cut, and nothing was changed`)
    const text = line.trim()
    if (text === marks.end) break
    if (text === "") {
      cursor.at++
      continue
    }
    const change = parseSection(cursor, text)
    if (Result.isFailure(change)) return Result.fail(change.failure)
    changes.push(change.success)
  }
  if (changes.length === 0) return fail(cursor, section)
  for (cursor.at++; cursor.at < cursor.lines.length; cursor.at++) {
    const rest = cursor.lines[cursor.at]?.trim() ?? ""
    if (rest !== "" && rest !== word && !fence.test(rest)) return fail(cursor, `nothing after "${marks.end}"`)
  }
  return Result.succeed({ changes })
}

const signs = { keep: " ", add: "+", remove: "-" }

const printHunk = (hunk: Hunk): ReadonlyArray<string> => [
  ...(hunk.headers.length === 0 ? ["@@"] : hunk.headers.map((one) => `@@ ${one}`)),
  ...hunk.lines.map((line) => signs[line.kind] + line.text),
  ...(hunk.endOfFile ? [marks.endOfFile] : [])
]

const printChange = (change: Change): ReadonlyArray<string> => {
  switch (change._tag) {
    case "Add":
      return [`${marks.add} ${change.path}`, ...change.lines.map((line) => `+${line}`)]
    case "Delete":
      return [`${marks.remove} ${change.path}`]
    case "Update":
      return [
        `${marks.update} ${change.path}`,
        ...(change.moveTo === undefined ? [] : [`${marks.move} ${change.moveTo}`]),
        ...change.hunks.flatMap(printHunk)
      ]
  }
}

/** Writes a patch. */
export const print = (patch: Patch): string =>
  [marks.begin, ...patch.changes.flatMap(printChange), marks.end, ""].join("\n")
