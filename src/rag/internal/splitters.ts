/** Parts of texts that are better kept whole: sections, pages, tables, fenced code, sentences. */
import { boundaryAfter, boundaryBefore } from "../../support/text/text.ts"
import type { Document } from "../Chunk.ts"

/** A part of a text that no chunk crosses. */
export interface Span {
  readonly start: number
  readonly end: number
  /** The titles of the sections around it, the outermost first. */
  readonly headings: ReadonlyArray<string>
  /** The name of its page, sheet or slide. */
  readonly label: string
}

/** The end of the line at a place, with its line break. */
const lineEnd = (text: string, at: number): number => {
  const newline = text.indexOf("\n", at)
  return newline === -1 ? text.length : newline + 1
}

/** The characters of a line that decide what it is. */
const markLength = 400

/** Follows the fences of code over the lines of a text. */
const makeFences = () => {
  let fence = ""
  /** Reports whether a line is in a fence, or opens or closes it. */
  return (line: string): boolean => {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]
    if (mark === undefined) return fence !== ""
    if (fence === "") fence = mark
    else if (mark[0] === fence[0] && mark.length >= fence.length) fence = ""
    return true
  }
}

/** The sections of a Markdown text by its `#` headings. */
export const sections = ({ text }: Document): ReadonlyArray<Span> => {
  const spans: Array<Span> = []
  const isFenced = makeFences()
  let above: ReadonlyArray<{ readonly depth: number; readonly title: string }> = []
  let headings: ReadonlyArray<string> = []
  let from = 0
  for (let at = 0; at < text.length;) {
    const end = lineEnd(text, at)
    const line = text.slice(at, Math.min(end, at + markLength))
    const heading = isFenced(line) ? null : /^ {0,3}(#{1,6})[ \t]+(.*)$/.exec(line.trimEnd())
    if (heading !== null) {
      if (at > from) spans.push({ start: from, end: at, headings, label: "" })
      const depth = heading[1]?.length ?? 1
      // A document may leave out levels.
      above = [...above.filter((one) => one.depth < depth), { depth, title: (heading[2] ?? "").trim() }]
      headings = above.map(({ title }) => title)
      from = at
    }
    at = end
  }
  if (text.length > from) spans.push({ start: from, end: text.length, headings, label: "" })
  return spans
}

/** The pages, sheets and slides of a document; the whole text without any. */
export const pages = ({ parts = [], text }: Document): ReadonlyArray<Span> => {
  const starts = [...new Set(parts.map(({ start }) => Math.min(Math.max(0, Math.trunc(start) || 0), text.length)))]
  starts.sort((left, right) => left - right)
  const labels = new Map(parts.map(({ label, start }) => [start, label]))
  if (starts[0] !== 0) starts.unshift(0)
  return starts.map((start, index) => ({
    start: boundaryBefore(text, start),
    end: boundaryBefore(text, starts[index + 1] ?? text.length),
    headings: [],
    label: labels.get(start) ?? ""
  }))
}

/** The place at or before `wanted`, and behind `from`, that parts no character. */
export const placeWithin = (text: string, from: number, wanted: number): number => {
  const before = boundaryBefore(text, wanted)
  return before > from ? before : boundaryAfter(text, from + 1)
}

const segmenter = new Intl.Segmenter(undefined, { granularity: "sentence" })

/** The units that are segmented at once. */
const windowLength = 4_000

/** The ends of the sentences between two places. A sentence without an end for 4,000 characters is cut. */
function* sentenceEnds(text: string, start: number, end: number): Generator<number> {
  let at = start
  while (at < end) {
    const to = Math.min(end, at + windowLength)
    let last = at
    for (const { index, segment } of segmenter.segment(text.slice(at, to))) {
      const stop = at + index + segment.length
      // The last segment of a window goes on in the next one.
      if (stop >= to && to < end) break
      last = stop
      yield stop
    }
    if (last === at) {
      last = to < end ? placeWithin(text, at, to) : to
      yield last
    }
    at = last
  }
}

/** The longest table or fence that is kept whole, in characters. */
const longestBlock = 16_000

/** The ends of the units between two places: tables and fenced code that fit whole, else sentences. */
export function* unitEnds(
  text: string,
  start: number,
  end: number,
  fits: (start: number, end: number) => boolean
): Generator<number> {
  const isFenced = makeFences()
  let prose = start
  let block: { start: number; kind: string } | undefined
  for (let at = start; at <= end;) {
    const next = at < end ? Math.min(end, lineEnd(text, at)) : end + 1
    const line = text.slice(at, Math.min(next, at + markLength, end))
    const kind = at >= end ? "" : isFenced(line) ? "fence" : /^\s*\|/.test(line) ? "table" : ""
    if (block !== undefined && block.kind !== kind) {
      if (at - block.start <= longestBlock && fits(block.start, at)) yield at
      else yield* sentenceEnds(text, block.start, at)
      prose = at
      block = undefined
    }
    if (block === undefined && (kind !== "" || at >= end)) {
      if (at > prose) yield* sentenceEnds(text, prose, at)
      if (kind !== "") block = { start: at, kind }
    }
    at = next
  }
}
