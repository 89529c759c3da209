/** Reads the output of a remote command between its marks, up to a limit. */
import { boundaryAfter, boundaryBefore } from "../../../support/text/text.ts"

/** The last characters of a text. */
export const endOfText = (text: string, length: number): string =>
  text.slice(boundaryAfter(text, Math.max(0, text.length - length)))

/** Half of the characters that are allowed from the beginning, half of them from the end. */
export const cutMiddle = (text: string, limit: number): { readonly output: string; readonly truncated: boolean } => {
  if (text.length <= limit) return { output: text, truncated: false }
  const head = text.slice(0, boundaryBefore(text, Math.ceil(limit / 2)))
  const tail = endOfText(text, Math.floor(limit / 2))
  return { output: `${head}\n… the middle of the output was left out …\n${tail}`, truncated: true }
}

/** Takes the marks off a text that comes in pieces, cut anywhere. */
export interface Unframer {
  /** Text that is known to be output. */
  readonly push: (text: string) => string
  /** The content of the end mark, if it came. */
  readonly status: () => string | undefined
  /** The text that came instead of a beginning. */
  readonly refusal: () => string
  /** The last of the output. */
  readonly last: () => string
}

const longestBanner = 64 * 1024
const keptAtEnd = 4_000

/** Counts the characters at the end of a text that may be the beginning of a mark. */
const overlap = (text: string, mark: string): number => {
  for (let length = Math.min(text.length, mark.length - 1); length > 0; length--) {
    if (mark.startsWith(text.slice(text.length - length))) return length
  }
  return 0
}

export const makeUnframer = (begin: string, end: string, refusal: string): Unframer => {
  let before = ""
  let begun = false
  let buffer = ""
  let status: string | undefined
  let last = ""
  const output = (text: string): string => {
    last = (last + text).slice(-keptAtEnd)
    return text
  }
  const inside = (text: string): string => {
    buffer += text
    const at = buffer.indexOf(end)
    if (at >= 0) {
      const close = buffer.indexOf(">", at)
      if (close < 0) {
        const content = buffer.slice(0, at)
        buffer = buffer.slice(at)
        return output(content)
      }
      status = buffer.slice(at + end.length, close)
      const content = buffer.slice(0, at)
      buffer = ""
      return output(content)
    }
    const keep = overlap(buffer, end)
    const content = buffer.slice(0, buffer.length - keep)
    buffer = buffer.slice(buffer.length - keep)
    return output(content)
  }
  return {
    push: (text) => {
      if (status !== undefined) return ""
      if (begun) return inside(text)
      before += text
      const at = before.indexOf(begin)
      if (at < 0) {
        if (before.length > longestBanner && !before.includes(refusal)) before = before.slice(-begin.length)
        return ""
      }
      begun = true
      return inside(before.slice(at + begin.length))
    },
    status: () => (status === undefined || !/^(?:\d+|late)$/.test(status) ? undefined : status),
    refusal: () => (begun ? "" : before),
    last: () => last
  }
}
