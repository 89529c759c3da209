/** The reference for texts: detection, lines, windows, edits. */
import * as Result from "effect/Result"
import type { Replacement, Window } from "../../../../core/Backend.ts"
import type { Reason } from "../../../../core/BackendError.ts"
import { defined } from "../../../../support/json/defined.ts"
import { valueAt } from "../../../../support/json/valueAt.ts"
import { byteLength } from "./paths.ts"

const sniffed = 8192

const fatal = new TextDecoder("utf-8", { fatal: true })
const lossy = new TextDecoder("utf-8", { ignoreBOM: true })

/** Decodes a text with its byte order mark. */
export const decode = (bytes: Uint8Array): string => lossy.decode(bytes)

/** Returns true if all bytes are UTF-8. */
export const isUtf8 = (bytes: Uint8Array): boolean =>
  Result.isSuccess(Result.try({ try: () => fatal.decode(bytes), catch: () => undefined }))

/** Returns true if the first bytes are binary. */
export const isBinary = (bytes: Uint8Array): boolean => {
  const head = bytes.subarray(0, sniffed)
  if (head.includes(0)) return true
  if (bytes.length <= sniffed) return !isUtf8(bytes)
  // The last character may be incomplete.
  return ![0, 1, 2, 3].some((cut) => isUtf8(head.subarray(0, sniffed - cut)))
}

const mimeTypes: Readonly<Record<string, string>> = {
  gif: "image/gif",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  pdf: "application/pdf",
  png: "image/png",
  webp: "image/webp"
}

/** Finds the media type of a binary file by its name. */
export const mimeType = (path: string): string =>
  valueAt(mimeTypes, path.slice(path.lastIndexOf(".") + 1).toLowerCase()) ?? "application/octet-stream"

/** Splits a text into lines without endings. A final ending begins no line. */
export const toLines = (text: string): ReadonlyArray<string> => {
  if (text === "") return []
  const lines = text.split(/\r\n|\n|\r/)
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines
}

/** Maximum bytes of a window. */
const maxWindowBytes = 256 * 1024

const whole = (value: number | undefined, least: number, otherwise: number): number =>
  value === undefined || Number.isNaN(value) ? otherwise : Math.max(least, Math.floor(value))

/** Truncates a line to a number of bytes. */
const cutTo = (line: string, bytes: number): string => {
  let end = Math.min(line.length, bytes)
  while (byteLength(line.slice(0, end)) > bytes)
    end -= Math.max(1, Math.floor((byteLength(line.slice(0, end)) - bytes) / 3))
  return line.slice(0, end).isWellFormed() ? line.slice(0, end) : line.slice(0, end - 1)
}

/** Reads a window of a text. */
export const windowOf = (text: string, window: Window) => {
  const lines = toLines(text.replace(/^\uFEFF/, ""))
  const startLine = whole(window.offset, 1, 1)
  const column = whole(window.column, 0, 0)
  const parts: Array<string> = []
  let room = maxWindowBytes
  let nextColumn: number | undefined
  for (const [index, line] of lines.slice(startLine - 1, startLine - 1 + whole(window.limit, 0, 2000)).entries()) {
    const skipped = index === 0 ? column : 0
    const rest = line.slice(skipped)
    const part = cutTo(rest, room)
    if (part.length < rest.length && part === "" && index > 0) break
    parts.push(part)
    room -= byteLength(part) + 1
    if (part.length < rest.length) nextColumn = skipped + part.length
    if (part.length < rest.length || room <= 0) break
  }
  return defined({
    text: parts.join("\n"),
    startLine,
    endLine: startLine + parts.length - 1,
    totalLines: lines.length,
    nextColumn
  })
}

/** Finds the lines, from 1, of sorted positions. */
const linesAt = (text: string, positions: ReadonlyArray<number>): ReadonlyArray<number> => {
  const ending = /\r\n|\n|\r/g
  let line = 1
  let next = ending.exec(text)
  return positions.map((position) => {
    while (next !== null && next.index + next[0].length <= position) {
      line++
      next = ending.exec(text)
    }
    return line
  })
}

/** Shifts places by the growth of later replacements. Both lists are sorted. */
const shift = (
  starts: ReadonlyArray<number>,
  matches: ReadonlyArray<number>,
  length: number,
  grown: number
): ReadonlyArray<number> => {
  let passed = 0
  return starts.map((start) => {
    while ((matches[passed] ?? Infinity) < start) passed++
    const last = matches[passed - 1] ?? -Infinity
    return start < last + length ? last + grown * (passed - 1) : start + grown * passed
  })
}

const places = (text: string, old: string): ReadonlyArray<number> => {
  const starts: Array<number> = []
  for (let at = text.indexOf(old); at >= 0; at = text.indexOf(old, at + old.length)) starts.push(at)
  return starts
}

const kinds: ReadonlyArray<readonly [name: string, fold: (line: string) => string]> = [
  ["trailing space", (line) => line.trimEnd()],
  ["indentation", (line) => line.trim()],
  ["quotes", (line) => line.replace(/[‘’]/g, "'").replace(/[“”]/g, '"')],
  ["case", (line) => line.toLowerCase()]
]

/** Describes the most similar line of a missing text, and the difference. */
const diagnose = (text: string, old: string): string => {
  const lines = toLines(text)
  const wanted = toLines(old).find((line) => line.trim() !== "") ?? old
  for (const [name, fold] of kinds) {
    const line = lines.findIndex((one) => fold(one).includes(fold(wanted)))
    if (line >= 0) return `it is at line ${line + 1} but for its line endings or ${name}`
  }
  const words = new Set(wanted.toLowerCase().match(/\w+/g))
  const scores = lines.map((line) => (line.toLowerCase().match(/\w+/g) ?? []).filter((word) => words.has(word)).length)
  const best = scores.reduce((most, score) => Math.max(most, score), 0)
  return best === 0 ? "nothing in it is alike" : `the nearest is line ${scores.indexOf(best) + 1}`
}

const noMatch = (hint: string): Result.Result<never, Reason> => Result.fail({ _tag: "NoMatch", hint })

/** Applies replacements in order. Fails with the problem of a replacement. */
export const applyEdits = (
  original: string,
  replacements: ReadonlyArray<Replacement>
): Result.Result<
  { readonly text: string; readonly replaced: number; readonly lines: ReadonlyArray<number> },
  Reason
> => {
  const crlf = original.includes("\r\n") && !/(?<!\r)\n/.test(original)
  const convertEndings = (text: string) => (crlf ? text.replace(/(?<!\r)\n/g, "\r\n") : text)
  let text = original
  let starts: ReadonlyArray<number> = []
  let replaced = 0
  for (const replacement of replacements) {
    if (replacement.old === "") return noMatch("`old` must not be empty; to write a whole file, use write")
    if (replacement.old === replacement.new) return noMatch("`old` and `new` are the same")
    const old = replacement.old.includes("\r\n") ? replacement.old : convertEndings(replacement.old)
    const matches = places(text, old)
    if (matches.length === 0) return noMatch(diagnose(text, old))
    if (matches.length > 1 && replacement.replaceAll !== true) {
      return Result.fail({ _tag: "NotUnique", count: matches.length, lines: linesAt(text, matches) })
    }
    const insertion = convertEndings(replacement.new)
    const grown = insertion.length - old.length
    const added = matches.map((at, index) => at + grown * index)
    starts = [...shift(starts, matches, old.length, grown), ...added].sort((left, right) => left - right)
    replaced += matches.length
    text = text.split(old).join(insertion)
  }
  const lines = [...new Set(linesAt(text, starts))]
  return Result.succeed({ text, replaced, lines })
}
