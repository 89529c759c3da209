/**
 * Lists that are made of a conversation, item by item. A conversation grows at its end, so the results for a beginning
 * that stayed the same are kept: a round compares items by identity, and makes the rest.
 */

/** A list that was made. The next conversation changes it: take a copy to keep it. */
export interface Folded<B> {
  readonly output: ReadonlyArray<B>
  /** The number of elements behind each item. */
  readonly ends: ReadonlyArray<number>
  /** The last element behind each item. A later item may have replaced it. */
  readonly lasts: ReadonlyArray<B | undefined>
}

/** The item before the one that is added, and the key of the list. */
interface Context<A, Key> {
  readonly before: A | undefined
  readonly key: Key
}

/**
 * Makes a function that makes lists. `add` adds elements of an item at the end, and may replace the last element. A list
 * of another key is made anew. Items that are not `isFixed` are added anew each time, with all behind them.
 */
export const makeFold = <A, B, Key = void>(
  add: (output: Array<B>, item: A, context: Context<A, Key>) => void,
  isFixed?: (item: A) => boolean
) => {
  const items: Array<A> = []
  const output: Array<B> = []
  const ends: Array<number> = []
  const lasts: Array<B | undefined> = []
  let lastKey: Key | undefined
  let firstLoose = Infinity

  const rewind = (count: number): void => {
    items.length = count
    ends.length = count
    lasts.length = count
    output.length = ends[count - 1] ?? 0
    const last = lasts[count - 1]
    if (output.length > 0 && last !== undefined) output[output.length - 1] = last
    if (firstLoose >= count) firstLoose = Infinity
  }

  return (list: ReadonlyArray<A>, key: Key): Folded<B> => {
    const most = lastKey === key ? Math.min(items.length, list.length, firstLoose) : 0
    let same = 0
    while (same < most && items[same] === list[same]) same++
    rewind(same)
    lastKey = key
    for (let at = same; at < list.length; at++) {
      const item = list[at] as A
      add(output, item, { before: items[at - 1], key })
      items.push(item)
      ends.push(output.length)
      lasts.push(output[output.length - 1])
      if (isFixed?.(item) === false) firstLoose = Math.min(firstLoose, at)
    }
    return { output, ends, lasts }
  }
}
