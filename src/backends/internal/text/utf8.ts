/** Lengths and cuts of Unicode text, in bytes of UTF-8. */
import { boundaryAfter } from "../../../support/text/text.ts"

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
