/** Ranks hits by their words. */

/**
 * Sorts hits, the best first: a rare word counts more. `of` is the number of searched texts. Equal hits stay in order.
 */
export const rankHits = <A>(
  hits: ReadonlyArray<{ readonly item: A; readonly places: ReadonlyArray<number> }>,
  of: number
): ReadonlyArray<A> => {
  const frequency = new Map<number, number>()
  for (const hit of hits) for (const index of hit.places) frequency.set(index, (frequency.get(index) ?? 0) + 1)
  const weight = (index: number): number => Math.log(1 + of / (frequency.get(index) ?? 1))
  return hits
    .map(({ places, item }) => ({ item, score: places.reduce((sum, index) => sum + weight(index), 0) }))
    .sort((left, right) => right.score - left.score)
    .map(({ item }) => item)
}
