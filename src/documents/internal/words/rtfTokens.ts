/** Scans the tokens of RTF. */
import { sliceLength } from "../limits.ts"

/** Receives the tokens of RTF. */
export interface TokenHandler {
  readonly openGroup: () => void
  readonly closeGroup: () => void
  readonly word: (name: string, value: number | undefined) => void
  /** Handles a byte of text. */
  readonly byte: (code: number) => void
  /** Handles `\*`, which marks a group that older programs may ignore. */
  readonly optional: () => void
}

const isLetter = (code: number): boolean => (code >= 97 && code <= 122) || (code >= 65 && code <= 90)
const isDigit = (code: number): boolean => code >= 48 && code <= 57

/** Bytes of text that are written with a backslash before them. */
const escapes = new Map([
  [126, 32],
  [95, 45],
  [92, 92],
  [123, 123],
  [125, 125]
])

const textOf = (bytes: Uint8Array, start: number, end: number): string =>
  String.fromCharCode(...bytes.subarray(start, end))

/** Scans a control word, and returns the index of its last byte. `\bin` skips its binary data. */
const scanWord = (bytes: Uint8Array, start: number, handler: TokenHandler): number => {
  let end = start
  while (end < start + 32 && isLetter(bytes[end] ?? 0)) end++
  const name = textOf(bytes, start, end)
  const digits = end
  if (bytes[end] === 45) end++
  while (end < digits + 11 && isDigit(bytes[end] ?? 0)) end++
  const value = end > digits ? Number(textOf(bytes, digits, end)) : undefined
  const last = bytes[end] === 32 ? end : end - 1
  if (name === "bin") return last + Math.max(0, value ?? 0)
  handler.word(name, Number.isNaN(value) ? undefined : value)
  return last
}

/** Scans a token that begins with a backslash, and returns the index of its last byte. */
const scanControl = (bytes: Uint8Array, at: number, handler: TokenHandler): number => {
  const code = bytes[at] ?? 0
  if (isLetter(code)) return scanWord(bytes, at, handler)
  if (code === 39) {
    handler.byte(Number.parseInt(textOf(bytes, at + 1, at + 3), 16) || 63)
    return at + 2
  }
  const escape = escapes.get(code)
  if (code === 42) handler.optional()
  else if (code === 10 || code === 13) handler.word("par", undefined)
  else if (escape !== undefined) handler.byte(escape)
  return at
}

/** Passes all tokens to a handler. It yields after each slice. */
export const scanTokens = function* (bytes: Uint8Array, handler: TokenHandler): Generator<void> {
  let next = sliceLength
  for (let at = 0; at < bytes.length; at++) {
    if (at >= next) {
      next = at + sliceLength
      yield
    }
    const code = bytes[at] ?? 0
    if (code === 123) handler.openGroup()
    else if (code === 125) handler.closeGroup()
    else if (code === 92) at = scanControl(bytes, at + 1, handler)
    else if (code !== 10 && code !== 13 && code !== 0) handler.byte(code)
  }
}
