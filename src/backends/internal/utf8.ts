/**
 * Lengths and cuts of Unicode text.
 */

/** The length of a text in bytes of UTF-8. A lone surrogate counts as the replacement character that it becomes. */
export const utf8Length = (text: string): number => {
  let bytes = text.length
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80) continue
    if (unit < 0x800) bytes += 1
    else if (unit < 0xd800 || unit > 0xdbff) bytes += 2
    else {
      const next = text.charCodeAt(i + 1)
      bytes += 2
      // A pair is 4 bytes and 2 units.
      if (next >= 0xdc00 && next <= 0xdfff) i++
    }
  }
  return bytes
}

/** Whether a text can be cut before the unit at `index` without parting the two halves of a character. */
const isBoundary = (text: string, index: number): boolean => {
  const before = text.charCodeAt(index - 1)
  const after = text.charCodeAt(index)
  return !(before >= 0xd800 && before <= 0xdbff && after >= 0xdc00 && after <= 0xdfff)
}

/** The last place that a text can be cut at, at `index` or before it. */
export const boundaryBefore = (text: string, index: number): number => (isBoundary(text, index) ? index : index - 1)

/** The first place that a text can be cut at, at `index` or after it. */
export const boundaryAfter = (text: string, index: number): number => (isBoundary(text, index) ? index : index + 1)

/** At most `length` UTF-16 units of a text, and an ellipsis if that is not all. */
export const cut = (text: string, length: number): string =>
  text.length <= length ? text : `${text.slice(0, boundaryBefore(text, length))}…`

/** The longest beginning of a text that is at most `bytes` bytes of UTF-8. */
export const takeBytes = (text: string, bytes: number): string => {
  let used = 0
  let index = 0
  while (index < text.length) {
    const unit = text.charCodeAt(index)
    const isPair = boundaryAfter(text, index + 1) === index + 2
    used += unit < 0x80 ? 1 : unit < 0x800 ? 2 : isPair ? 4 : 3
    if (used > bytes) break
    index += isPair ? 2 : 1
  }
  return text.slice(0, index)
}
