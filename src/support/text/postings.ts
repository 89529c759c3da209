/** An index of words: what has a word, or a word that begins with it. */

/** Items by their words. */
export interface Postings<A> {
  readonly add: (item: A, words: Iterable<string>) => void
  readonly remove: (item: A, words: Iterable<string>) => void
  /** The items that have a word; `undefined` if nothing has it. */
  readonly holders: (word: string) => ReadonlySet<A> | undefined
  /** The items that have a word with this beginning. */
  readonly holdersOfBeginning: (beginning: string) => ReadonlySet<A>
}

/** The place of the first word that is not before another one. */
const placeOf = (sorted: ReadonlyArray<string>, word: string): number => {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle] ?? "") < word) low = middle + 1
    else high = middle
  }
  return low
}

/** Makes an empty index. */
export const make = <A>(): Postings<A> => {
  const byWord = new Map<string, Set<A>>()
  /** All words in their order, from the first search for a beginning on. */
  let sorted: Array<string> | undefined
  return {
    add: (item, words) => {
      for (const word of words) {
        const items = byWord.get(word)
        if (items === undefined) {
          byWord.set(word, new Set([item]))
          sorted?.splice(placeOf(sorted, word), 0, word)
        } else items.add(item)
      }
    },
    remove: (item, words) => {
      for (const word of words) {
        const items = byWord.get(word)
        items?.delete(item)
        if (items?.size !== 0) continue
        byWord.delete(word)
        sorted?.splice(placeOf(sorted, word), 1)
      }
    },
    holders: (word) => byWord.get(word),
    holdersOfBeginning: (beginning) => {
      sorted ??= [...byWord.keys()].sort()
      const matches = new Set<A>()
      for (let at = placeOf(sorted, beginning); sorted[at]?.startsWith(beginning) === true; at++) {
        for (const item of byWord.get(sorted[at] ?? "") ?? []) matches.add(item)
      }
      return matches
    }
  }
}
