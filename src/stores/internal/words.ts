/** Searches facts by words, and ranks the hits. */
import { words } from "../../support/text/words.ts"

/** Gives the indices of the wanted words with which a word of the text begins. */
export const findWords = (text: string, wanted: ReadonlyArray<string>): ReadonlyArray<number> => {
  const own = words(text)
  return wanted.flatMap((start, index) => (own.some((one) => one.startsWith(start)) ? [index] : []))
}

/**
 * Sorts hits, the best first: a rare word counts more. `of` is the number of searched texts. Equal hits stay in order.
 */
export const rankHits = <A>(
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
