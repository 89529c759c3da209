/** Search in facts: which words a text has, and which hit is the best. */
import { words } from "../../support/text/words.ts"

/** The indices of the wanted words that a text has, each as the beginning of one of its own. */
export const found = (text: string, wanted: ReadonlyArray<string>): ReadonlyArray<number> => {
  const own = words(text)
  return wanted.flatMap((start, index) => (own.some((one) => one.startsWith(start)) ? [index] : []))
}

/**
 * Sorts hits, the best first: the fewer texts have a word, the more it counts. `of` is how many were searched. Hits
 * that are equally good stay in order.
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
