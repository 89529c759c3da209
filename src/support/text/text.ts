/** Cuts texts between whole characters, and orders them. */

/** Reports whether a text can be cut before the unit at `index` without parting the two halves of a character. */
const isBoundary = (text: string, index: number): boolean => {
  const before = text.charCodeAt(index - 1)
  const after = text.charCodeAt(index)
  return !(before >= 0xd800 && before <= 0xdbff && after >= 0xdc00 && after <= 0xdfff)
}

/** The last place that a text can be cut at, at `index` or before it. */
export const boundaryBefore = (text: string, index: number): number => (isBoundary(text, index) ? index : index - 1)

/** The first place that a text can be cut at, at `index` or after it. */
export const boundaryAfter = (text: string, index: number): number => (isBoundary(text, index) ? index : index + 1)

/** The beginning of a text: at most `length` UTF-16 units. */
export const headOf = (text: string, length: number): string =>
  text.length <= length ? text : text.slice(0, boundaryBefore(text, length))

/** At most `length` UTF-16 units of a text, with a mark if it was longer. */
export const cut = (text: string, length: number, mark = "…"): string =>
  text.length <= length ? text : `${headOf(text, length)}${mark}`

/**
 * At most `limit` units of a text with a note in place of its middle: two thirds are its beginning, one its end. The
 * parameter of `note` is the number of omitted units.
 */
export const cutMiddle = (text: string, limit: number, note: (left: number) => string): string => {
  if (text.length <= limit) return text
  const head = boundaryBefore(text, Math.ceil((limit * 2) / 3))
  const tail = boundaryAfter(text, text.length - Math.floor(limit / 3))
  return `${text.slice(0, head)}${note(tail - head)}${text.slice(tail)}`
}

/** The lines of a text without the spaces around them. (A pattern for it would go back over each run of spaces.) */
export const trimLines = (text: string): string =>
  text
    .split("\n")
    .map((line) => line.trim())
    .join("\n")

/** The lines of a text on one, with a space between; empty ones are left out. */
export const joinLines = (text: string): string =>
  text
    .split(/[\r\n]/)
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join(" ")

/** Compares texts by code points, as databases do: surrogates come behind everything else. */
export const compareText = (left: string, right: string): number => {
  const end = Math.min(left.length, right.length)
  let index = 0
  while (index < end && left[index] === right[index]) index++
  if (index === end) return left.length - right.length
  const rank = (unit: number) => (unit >= 0xd800 && unit <= 0xdfff ? unit + 0x1_0000 : unit)
  return rank(left.charCodeAt(index)) - rank(right.charCodeAt(index))
}

/** Counts things by a word: `1 round`, `2 rounds`. */
export const countThings = (amount: number, word: string): string => `${amount} ${word}${amount === 1 ? "" : "s"}`
