/** The line of a text that is most like another one, by the pairs of characters that they share. */

/** The number of characters of a line that are compared. */
const maxCompared = 1_000
/** The likeness that a line must have, from 0 to 1: 1 has the same pairs. */
const threshold = 0.5

/** Pairs of characters have numbers below this; different ones may have the same. */
const size = 1 << 16
const pairAt = (text: string, index: number): number =>
  (Math.imul(text.charCodeAt(index), 31) + text.charCodeAt(index + 1)) & (size - 1)

/** The number of the line of `text`, counted from 1, that is most like the longest line of `wanted`, if one is. */
export const nearestLine = (text: string, wanted: string): number | undefined => {
  const longest = wanted.split("\n").reduce((best, line) => (line.length > best.length ? line : best), "")
  const anchor = longest.slice(0, maxCompared)
  const pairs = anchor.length - 1
  if (pairs < 2) return undefined
  /**
   * The number of times that each pair is in the anchor, and how often that is used up by the line that is looked at.
   */
  const there = new Int32Array(size)
  for (let i = 0; i < pairs; i++) {
    const pair = pairAt(anchor, i)
    there[pair] = (there[pair] ?? 0) + 1
  }
  const used = new Int32Array(size)
  const usedBy = new Int32Array(size)
  let best: { readonly line: number; readonly score: number } | undefined
  let line = 1
  for (let from = 0; from < text.length; line++) {
    const next = text.indexOf("\n", from)
    const end = next === -1 ? text.length : next
    const last = Math.min(end, from + maxCompared) - 1
    let common = 0
    for (let i = from; i < last; i++) {
      const pair = pairAt(text, i)
      const most = there[pair] ?? 0
      if (most === 0) continue
      const count = usedBy[pair] === line ? (used[pair] ?? 0) : 0
      if (count < most) common++
      used[pair] = count + 1
      usedBy[pair] = line
    }
    const score = (2 * common) / (pairs + Math.max(0, last - from))
    if (score >= threshold && (best === undefined || score > best.score)) best = { line, score }
    from = end + 1
  }
  return best?.line
}
