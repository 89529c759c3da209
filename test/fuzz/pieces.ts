/** Texts that make parsers slow. */
import { isFull, sampled } from "../scale.ts"
import { growth, type Work } from "./growth.ts"

/** The largest input, in characters. */
const most = isFull ? 16_384 : 8_192

/** Pieces that make parsers slow when there are many of them. */
const pieces: ReadonlyArray<string> = [
  "a",
  " ",
  "\n",
  "\r",
  "\t",
  "\u2028",
  "0",
  "1,",
  ".",
  "/",
  "\\",
  '"',
  "'",
  "`",
  "-",
  "*",
  "**/",
  "*a",
  "?",
  "!",
  "#",
  ":",
  ",",
  "=",
  "(",
  "[",
  "{",
  "{a,",
  "[[",
  "[[:",
  "<",
  "</",
  "<a",
  "<think>",
  "</think",
  "<tool_call>",
  "<function=a>",
  "<parameter=a>",
  "<|tool_call_start|>[",
  "<|tool_call>call:",
  '<|"|>',
  "a(",
  "a(b=",
  '{"a":',
  '"\\u',
  "\ud83d",
  "é",
  "- a\n",
  "a: &b [",
  "a:\n ",
  "*** Update File: a\n@@\n",
  "@@\n",
  "+a\n",
  "-a\n a\n",
  "input token count ",
  "maximum context length is 1 tokens ",
  "request 1 tokens",
  "https://",
  "https://a?",
  "</user ",
  "```\n",
  "> 1",
  "a b ",
  "a_-"
]

/** A text of about so many characters, of one piece. */
export const textOf = (piece: string, size: number): string => piece.repeat(Math.ceil(size / piece.length))

export const inPieces = (text: string, length: number): ReadonlyArray<string> =>
  Array.from({ length: Math.ceil(text.length / length) }, (_, at) => text.slice(at * length, (at + 1) * length))

export type Parser = (text: string) => unknown

/** Says for which pieces the cost of a parser grows faster than the text does, and how. */
export const slowOn = (parse: Parser, more: ReadonlyArray<string> = []): ReadonlyArray<string> =>
  sampled([...pieces, ...more]).flatMap((piece) => {
    const prepare = (size: number): Work => {
      const text = textOf(piece, size)
      return () => parse(text)
    }
    const problem = growth(prepare, most)
    return problem === undefined ? [] : [`${JSON.stringify(piece)}: ${problem}`]
  })
