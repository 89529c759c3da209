/**
 * Reads values out of the text of a model: JSON, the blocks of Markdown, matches of a pattern. All are total: they throw
 * nothing, and give each value with its place.
 *
 * ```ts
 * import { Result, Schema } from "effect"
 * import { Parse } from "effect-deepagents"
 *
 * const Score = Schema.Struct({ score: Schema.Finite })
 * const decode = Schema.decodeUnknownResult(Score)
 *
 * const scoreIn = (text: string) => Result.flatMap(Parse.json(text), ({ value }) => decode(value))
 * ```
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { TaggedError } from "../support/effect/taggedError.ts"
import { toJson } from "../support/json/jsonc.ts"
import { Json } from "./Json.ts"
import { isTooDeep, maxDepth } from "./schema/jsonTree.ts"

/** A part of a text: from `start` up to, and without, `end`. */
export interface Span {
  readonly start: number
  readonly end: number
}

/** A value, and its place in the text. */
export interface FoundValue<out A> extends Span {
  readonly value: A
}

/** A text has no JSON. `position` is the first bracket that is not JSON. */
export class ParseError extends TaggedError<ParseError>()("ParseError", {
  problem: Schema.String,
  position: Schema.Finite
}) {
  override get message(): string {
    return `${this.problem} (at character ${this.position + 1})`
  }
}

const decode = Schema.decodeUnknownResult(Schema.fromJsonString(Json))

const readJson = (text: string): Result.Result<Json, unknown> => Result.orElse(decode(text), () => decode(toJson(text)))

/** The end of the brackets that open at `from`; `undefined` if they never close. */
const endOf = (text: string, from: number): number | undefined => {
  const open: Array<string> = []
  for (let at = from; at < text.length; at++) {
    const character = text[at]
    if (character === '"') {
      at++
      while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1
    } else if (character === "{") open.push("}")
    else if (character === "[") open.push("]")
    else if (character === "}" || character === "]") {
      if (open.pop() !== character) return undefined
      if (open.length === 0) return at + 1
    }
  }
  return undefined
}

const bracket = /[{[]/g

/** The most brackets that are tried in vain, and the characters behind them: a text of brackets alone must not take long. */
const most = { tries: 100, characters: 1_000_000 }

/**
 * Finds the JSON of a text: the whole text, or else the longest object or array in it, in a fence or between words.
 * Comments and commas behind the last item are taken out. Of two values of one length the first is taken.
 */
export const json = (text: string): Result.Result<FoundValue<Json>, ParseError> => {
  const whole = decode(text)
  if (Result.isSuccess(whole) && !isTooDeep(whole.success)) {
    return Result.succeed({ value: whole.success, start: 0, end: text.length })
  }
  let best: FoundValue<Json> | undefined
  let first: ParseError | undefined
  let tries = 0
  let characters = 0
  const fail = (problem: string, position: number, end: number) => {
    tries++
    characters += end - position
    first ??= new ParseError({ problem, position })
  }
  bracket.lastIndex = 0
  for (
    let mark = bracket.exec(text);
    mark !== null && tries < most.tries && characters < most.characters;
    mark = bracket.exec(text)
  ) {
    const { index: start } = mark
    const end = endOf(text, start)
    if (end === undefined) {
      fail(`The "${text[start]}" is never closed`, start, text.length)
      continue
    }
    const result = readJson(text.slice(start, end))
    if (Result.isFailure(result)) fail("What stands in brackets is not JSON", start, end)
    else if (isTooDeep(result.success)) {
      return Result.fail(
        new ParseError({ problem: `The JSON lies more than ${maxDepth} arrays and objects deep`, position: start })
      )
    } else {
      if (best === undefined || end - start > best.end - best.start) best = { value: result.success, start, end }
      bracket.lastIndex = end
    }
  }
  return best === undefined
    ? Result.fail(first ?? new ParseError({ problem: "There is no object and no array in the text", position: 0 }))
    : Result.succeed(best)
}

/** A block of Markdown. `text` is without its marks. */
export type Block =
  | ({ readonly _tag: "Heading"; readonly level: number; readonly text: string } & Span)
  | ({ readonly _tag: "Code"; readonly language: string; readonly text: string } & Span)
  | ({ readonly _tag: "Item"; readonly indent: number; readonly isOrdered: boolean; readonly text: string } & Span)
  | ({ readonly _tag: "Text"; readonly text: string } & Span)

const fence = /^ {0,3}(`{3,}|~{3,})([^`\n]*)$/
const heading = /^ {0,3}(#{1,6})(?:[ \t]+(.*))?$/
const item = /^([ \t]*)(?:[-*+]|(\d{1,9})[.)])[ \t]+(.*)$/

/** A line of Markdown that is a block, or begins a listing. `undefined` is a line of words, or an empty one. */
const readLine = (line: string, start: number, end: number): Block | undefined => {
  const headed = heading.exec(line)
  if (headed !== null) {
    const [, marks = "", title = ""] = headed
    const text = title.replace(/(?:^|[ \t])#+[ \t]*$/, "").trim()
    return { _tag: "Heading", level: marks.length, text, start, end }
  }
  const listed = item.exec(line)
  if (listed === null) return undefined
  const [, indent = "", number, label = ""] = listed
  return { _tag: "Item", indent: indent.length, isOrdered: number !== undefined, text: label.trim(), start, end }
}

/** A listing that is open: its mark, and where its text begins. */
interface Listing {
  readonly start: number
  readonly mark: string
  readonly language: string
  readonly from: number
}

/**
 * Reads the blocks of Markdown in their order: headings, listings, items of lists, and the text between them. A listing
 * that is not closed ends with the text.
 */
export const markdown = (text: string): ReadonlyArray<Block> => {
  const blocks: Array<Block> = []
  let code: Listing | undefined
  let words: Span | undefined
  const closeWords = () => {
    if (words !== undefined) blocks.push({ _tag: "Text", text: text.slice(words.start, words.end), ...words })
    words = undefined
  }
  const closeCode = ({ from, language, start }: Listing, to: number, end: number) => {
    blocks.push({ _tag: "Code", language, text: text.slice(from, Math.max(from, to)), start, end })
    code = undefined
  }
  let next = 0
  for (const whole of text.split("\n")) {
    const start = next
    const end = start + whole.length
    next = end + 1
    const line = whole.endsWith("\r") ? whole.slice(0, -1) : whole
    const [, mark = "", info = ""] = fence.exec(line) ?? []
    if (code !== undefined) {
      if (mark.startsWith(code.mark) && info.trim() === "") closeCode(code, start - 1, end)
      continue
    }
    const block = mark === "" ? readLine(line, start, end) : undefined
    if (mark === "" && block === undefined && line.trim() !== "") {
      words = { start: words?.start ?? start, end: start + line.length }
      continue
    }
    closeWords()
    if (mark !== "")
      code = { start, mark, language: info.trim().split(/\s/)[0] ?? "", from: Math.min(next, text.length) }
    if (block !== undefined) blocks.push(block)
  }
  closeWords()
  if (code !== undefined) closeCode(code, text.length, text.length)
  return blocks
}

/** A match of a pattern. `groups` are its named groups that matched. */
export interface Match extends Span {
  readonly text: string
  readonly groups: { readonly [name: string]: string }
}

/** Finds all matches of a pattern, with or without its flag `g`. */
export const regex = (text: string, pattern: RegExp): ReadonlyArray<Match> => {
  const all = new RegExp(pattern.source, pattern.flags.includes("g") ? pattern.flags : `${pattern.flags}g`)
  return Array.from(text.matchAll(all), ({ 0: matched, groups = {}, index }) => ({
    text: matched,
    groups: Object.fromEntries(
      Object.entries(groups).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
    ),
    start: index,
    end: index + matched.length
  }))
}
