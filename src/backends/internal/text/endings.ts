/** Endings of lines: `\n`, `\r\n` and a lone `\r`, counted in bytes or found in a text. */

export const lf = 10
export const cr = 13

/** Endings of lines so far. An ending by `\r` is counted at once; a `\n` behind it makes it `\r\n`. */
export interface Counter {
  endings: number
  crlf: number
  afterCr: boolean
}

/** Counts on from an index until there are `stop` endings, and gives the index behind the last one, or the length. */
export const countEndings = (counter: Counter, bytes: Uint8Array, from: number, stop: number): number => {
  const whole = from === 0 ? countPlain(counter, bytes) : undefined
  if (whole !== undefined && counter.endings + whole < stop) {
    counter.endings += whole
    counter.afterCr = false
    return bytes.length
  }
  let { afterCr, crlf, endings } = counter
  let i = from
  for (; i < bytes.length && endings < stop; i++) {
    const byte = bytes[i] ?? 0
    if (byte > cr) {
      afterCr = false
    } else if (byte === lf) {
      if (afterCr) crlf++
      else endings++
      afterCr = false
    } else {
      afterCr = byte === cr
      if (afterCr) endings++
    }
  }
  counter.endings = endings
  counter.crlf = crlf
  counter.afterCr = afterCr
  return i
}

/** Counts each `\n`, if there is no `\r` about: the same without a branch, which is several times as fast. */
const countPlain = (counter: Counter, bytes: Uint8Array): number | undefined => {
  if (counter.afterCr || bytes.includes(cr)) return undefined
  let count = 0
  for (let i = 0; i < bytes.length; i++) count += bytes[i] === lf ? 1 : 0
  return count
}

/** The number of the line that an index of a text is in, counted from 1; `from` is where a known line begins. */
export const lineAt = (
  text: string,
  index: number,
  from: { readonly index: number; readonly line: number } = { index: 0, line: 1 }
): number => {
  let line = from.line
  for (let i = from.index; i < index; i++) {
    const unit = text.charCodeAt(i)
    if (unit > cr) continue
    // A `\r\n` ends its line once, behind the `\n`.
    if (unit === lf || (unit === cr && text.charCodeAt(i + 1) !== lf)) line++
  }
  return line
}

/** Tells whether all lines of a text that end, end with `\r\n`, and one does. */
export const usesCrlf = (text: string): boolean => {
  if (!text.includes("\r\n")) return false
  for (let i = text.indexOf("\n"); i !== -1; i = text.indexOf("\n", i + 1))
    if (text.charCodeAt(i - 1) !== cr) return false
  for (let i = text.indexOf("\r"); i !== -1; i = text.indexOf("\r", i + 1))
    if (text.charCodeAt(i + 1) !== lf) return false
  return true
}
