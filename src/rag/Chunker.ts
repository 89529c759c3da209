/**
 * Splits documents into chunks of whole sentences, tables and sections, with true offsets.
 *
 * ```ts
 * import { Chunker } from "effect-deepagents/rag"
 *
 * const document = { id: "/guide.md", text: "# Install\nRun it.\n\n# Use\nAsk it." }
 * const chunks = Chunker.chunk(document, { split: Chunker.markdown, tokens: 256, overlap: 32 })
 * ```
 */
import * as Effect from "effect/Effect"
import { makeEffectCheck } from "../support/options/check.ts"
import { textTokens } from "../support/text/tokens.ts"
import { type Chunk, type Document, idOf } from "./Chunk.ts"
import * as shapes from "./internal/shapes.ts"
import { pages, placeWithin, sections, type Span, unitEnds } from "./internal/splitters.ts"

export type { Span }

/** Splits a document into spans, in their order. No chunk crosses the end of a span. */
export type Splitter = (document: Document) => ReadonlyArray<Span>

/** Splits by the pages, sheets and slides of a document. */
export const parts: Splitter = pages

/** Splits a Markdown text into sections by its headings. Headings in fenced code do not count. */
export const markdown: Splitter = sections

/** Options of {@link chunk}. */
export interface Options {
  /** The most tokens of a chunk, by estimate. Default: 512. */
  readonly tokens?: number | undefined
  /** The tokens at the end of a chunk that the next one repeats. Default: 64. */
  readonly overlap?: number | undefined
  /** Splits the text first. Default: {@link parts}. */
  readonly split?: Splitter | undefined
}

/** The most chunks of a document. An index refuses a document with more. */
export const mostChunks = 50_000

const isBlank = (code: number): boolean => code <= 32

const trim = (text: string, from: number, to: number): readonly [start: number, end: number] => {
  let start = from
  let end = to
  while (start < end && isBlank(text.charCodeAt(start))) start++
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--
  return [start, end]
}

/** A unit of a chunk: its end, and its tokens. */
interface Unit {
  readonly end: number
  readonly tokens: number
}

const commonOf = (left: ReadonlyArray<string>, right: ReadonlyArray<string>): ReadonlyArray<string> => {
  let depth = 0
  while (depth < left.length && left[depth] === right[depth]) depth++
  return left.slice(0, depth)
}

/** Joins sections of less than `least` tokens with the next section of the same parent. */
const joinSmall = (text: string, spans: ReadonlyArray<Span>, least: number): ReadonlyArray<Span> => {
  const joined: Array<Span> = []
  let open: { readonly span: Span; readonly tokens: number } | undefined
  for (const span of spans) {
    const tokens = textTokens(text.slice(span.start, span.end))
    const common: ReadonlyArray<string> = open === undefined ? [] : commonOf(open.span.headings, span.headings)
    const isSibling =
      open !== undefined && open.span.label === span.label && common.length + 1 >= open.span.headings.length
    if (open !== undefined && isSibling && open.tokens + tokens <= least) {
      open = { span: { ...open.span, end: span.end, headings: common }, tokens: open.tokens + tokens }
      continue
    }
    if (open !== undefined) joined.push(open.span)
    open = { span, tokens }
  }
  if (open !== undefined) joined.push(open.span)
  return joined
}

/** The units at the end of a chunk that the next one repeats before a unit of `size` tokens. */
const keepLast = (units: ReadonlyArray<Unit>, overlap: number, room: number): ReadonlyArray<Unit> => {
  let first = units.length
  let sum = 0
  while (first > 1) {
    const tokens = units[first - 1]?.tokens ?? 0
    if (sum + tokens > overlap || sum + tokens > room) break
    sum += tokens
    first--
  }
  return units.slice(first)
}

const sumOf = (units: ReadonlyArray<Unit>): number => units.reduce((sum, { tokens }) => sum + tokens, 0)

/** The end of the first part of a unit that is at most `tokens` long, and the tokens of that part. */
const firstPart = (text: string, start: number, end: number, tokens: number): Unit => {
  // Prose has at most six characters a token.
  let stop = end - start > tokens * 8 ? placeWithin(text, start, start + tokens * 8) : end
  let size = textTokens(text.slice(start, stop))
  while (size > tokens && stop - start > 2) {
    const next = placeWithin(text, start, start + Math.floor(((stop - start) * tokens) / size / 1.05))
    if (next >= stop) break
    stop = next
    size = textTokens(text.slice(start, stop))
  }
  return { end: stop, tokens: size }
}

/** Gives the places of the chunks of a span. */
function* placesOf(text: string, span: Span, most: number, overlap: number): Generator<readonly [number, number]> {
  const [start, stop] = trim(text, span.start, span.end)
  let from = start
  let units: Array<Unit> = []
  let sum = 0
  let begin = start
  const fits = (first: number, last: number) => textTokens(text.slice(first, last)) <= most
  for (const end of unitEnds(text, start, stop, fits)) {
    while (begin < end) {
      const unit = firstPart(text, begin, end, most)
      if (sum + unit.tokens > most && units.length > 0) {
        yield [from, begin]
        const tail = keepLast(units, overlap, most - unit.tokens)
        from = tail.length === 0 ? begin : (units[units.length - tail.length - 1]?.end ?? begin)
        units = [...tail]
        sum = sumOf(tail)
      }
      units.push(unit)
      sum += unit.tokens
      begin = unit.end
    }
  }
  if (from < stop) yield [from, stop]
}

const refuseChunk = makeEffectCheck("Chunker.chunk", shapes.chunkerChunk)

const bounded = (value: number | undefined, usual: number, most: number): number =>
  value === undefined || Number.isNaN(value) ? usual : Math.min(Math.max(0, Math.trunc(value)), most)

/**
 * Splits a document into chunks of at most `tokens`. A sentence, a table and a fence of code stay whole if they fit. Small
 * sections join the next one of their parent. A document has at most {@link mostChunks}, and one more shows that
 * there are more. Wrong options are a defect: it throws.
 */
export const chunk = (document: Document, options: Options = {}): ReadonlyArray<Chunk> => {
  const refused = refuseChunk(options)
  if (refused !== undefined) return Effect.runSync(refused)
  const tokens = Math.max(1, bounded(options.tokens, 512, 100_000))
  const overlap = bounded(options.overlap, Math.min(64, Math.floor(tokens / 8)), Math.floor(tokens / 2))
  const { text } = document
  const chunks: Array<Chunk> = []
  for (const span of joinSmall(text, (options.split ?? parts)(document), tokens / 2)) {
    for (const [from, to] of placesOf(text, span, tokens, overlap)) {
      const [start, end] = trim(text, from, to)
      const last = chunks.at(-1)
      if (end <= start || (last !== undefined && last.end >= end)) continue
      const index = chunks.length
      chunks.push({
        id: idOf(document.id, index),
        document: document.id,
        index,
        start,
        end,
        text: text.slice(start, end),
        headings: span.headings,
        label: span.label
      })
      if (chunks.length > mostChunks) return chunks
    }
  }
  return chunks
}
