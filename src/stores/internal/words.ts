/** Scripts that put no spaces between words: each character counts as a word. */
const unspaced = String.raw`\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}`
/** A word that is longer counts as several: without a bound, one of millions of characters overflows the stack. */
const word = new RegExp(`[${unspaced}]|(?:(?![${unspaced}])[\\p{L}\\p{N}\\p{M}]){1,100000}`, "gu")

/** The words of a text, as they are compared. */
export const words = (text: string): ReadonlyArray<string> => text.normalize("NFKC").toLowerCase().match(word) ?? []

/** Which of the words that are looked for a text has, each as the beginning of one of its own: their places. */
export const found = (text: string, wanted: ReadonlyArray<string>): ReadonlyArray<number> => {
  const own = words(text)
  return wanted.flatMap((start, index) => (own.some((one) => one.startsWith(start)) ? [index] : []))
}

/**
 * What was found, the best first: the fewer have a word, the more it counts. `of` is how many were searched. What is
 * equally good stays in order.
 */
export const ranked = <A>(
  hits: ReadonlyArray<{ readonly item: A; readonly found: ReadonlyArray<number> }>,
  of: number
): ReadonlyArray<A> => {
  const frequency = new Map<number, number>()
  for (const hit of hits) for (const index of hit.found) frequency.set(index, (frequency.get(index) ?? 0) + 1)
  const weight = (index: number): number => Math.log(1 + of / (frequency.get(index) ?? 1))
  return hits
    .map(({ found, item }) => ({ item, score: found.reduce((sum, index) => sum + weight(index), 0) }))
    .sort((left, right) => right.score - left.score)
    .map(({ item }) => item)
}
