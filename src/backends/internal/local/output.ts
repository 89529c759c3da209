/** The text that a command writes: decoded, and its beginning and its end, however much it is. */
import type { Chunk } from "./command.ts"

/** The text that was kept. `truncated`: its middle was left out. */
export interface KeptOutput {
  readonly output: string
  readonly truncated: boolean
}

export interface Keeper {
  readonly add: (text: string) => void
  readonly kept: () => KeptOutput
  /** The last characters. */
  readonly end: (length: number) => string
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff
const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff

/** The beginning, without half a character at its end. */
const beginning = (text: string, length: number): string =>
  text.slice(0, length > 0 && isHighSurrogate(text.charCodeAt(length - 1)) ? length - 1 : length)

/** The end, without half a character at its beginning. */
const ending = (text: string, length: number): string => {
  if (length <= 0) return ""
  const start = Math.max(0, text.length - length)
  return text.slice(start > 0 && isLowSurrogate(text.charCodeAt(start)) ? start + 1 : start)
}

/** Keeps at most `limit` characters: half of them from the beginning, the rest from the end. */
export const keeper = (limit: number): Keeper => {
  const headLimit = Math.ceil(limit / 2)
  const tailLimit = limit - headLimit
  let head = ""
  let tail: Array<string> = []
  let tailLength = 0
  let total = 0

  /** Joined when they are twice as many as needed: each character is copied a few times at most. */
  const shorten = (): void => {
    const joined = ending(tail.join(""), tailLimit)
    tail = [joined]
    tailLength = joined.length
  }

  const add = (text: string): void => {
    total += text.length
    const room = headLimit - head.length
    const first = text.slice(0, Math.max(0, room))
    head += first
    const rest = text.slice(first.length)
    if (rest === "") return
    tail.push(rest)
    tailLength += rest.length
    if (tailLength > 2 * tailLimit + 65_536) shorten()
  }

  const makeKept = (): KeptOutput => {
    if (total <= limit) return { output: head + tail.join(""), truncated: false }
    const start = beginning(head, headLimit)
    shorten()
    const end = tail.join("")
    return { output: `${start}\n… ${total - start.length - end.length} characters left out …\n${end}`, truncated: true }
  }

  return { add, kept: makeKept, end: (length) => ending(head + tail.join(""), length) }
}

/** Some text that a command wrote. */
export interface Piece {
  readonly channel: "stdout" | "stderr"
  readonly text: string
}

/** Decodes bytes in arbitrary pieces. Invalid UTF-8 becomes U+FFFD. */
export const decoder = () => {
  const make = () => new TextDecoder("utf-8", { ignoreBOM: true })
  const decoders = { stdout: make(), stderr: make() }
  const channels = ["stdout", "stderr"] as const
  const withText = (pieces: ReadonlyArray<Piece>) => pieces.filter(({ text }) => text !== "")
  return {
    add: (chunks: ReadonlyArray<Chunk>): ReadonlyArray<Piece> =>
      withText(
        chunks.map(({ channel, bytes }) => ({ channel, text: decoders[channel].decode(bytes, { stream: true }) }))
      ),
    /** The rest: characters that were begun only. */
    end: (): ReadonlyArray<Piece> =>
      withText(channels.map((channel) => ({ channel, text: decoders[channel].decode() })))
  }
}
