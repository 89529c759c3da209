/** Rules for ids and names that callers choose, and the comparison of names that hosts write differently. */

/** A name without case, `-` and `_`: in these, hosts differ and small models err. */
export const normaliseName = (name: string): string => name.toLowerCase().replaceAll(/[-_]/g, "")

/** Gives the name itself the first time, then with a number behind it, in at most `most` characters. */
export type FreeName = (name: string, most?: number) => string

/** Makes names that are all different, however many are given alike. */
export const freeNames = (): FreeName => {
  const usedNames = new Set<string>()
  const counts = new Map<string, number>()
  return (name, most = Infinity) => {
    // The number has six characters at most with its `_`.
    const stem = name.slice(0, most - 6)
    let candidate = name
    let count = counts.get(stem) ?? 1
    while (usedNames.has(candidate)) candidate = `${stem}_${++count}`
    counts.set(stem, count)
    usedNames.add(candidate)
    return candidate
  }
}

/**
 * The number of characters to insert, leave out, replace or swap with the next one, to make one text of another; more than
 * `most` is `Infinity`.
 */
const distance = (left: string, right: string, most: number): number => {
  if (Math.abs(left.length - right.length) > most) return Infinity
  let row = Array.from({ length: right.length + 1 }, (_, index) => index)
  let before = row
  for (let at = 1; at <= left.length; at++) {
    const next = [at]
    for (let to = 1; to <= right.length; to++) {
      const same = (row[to - 1] ?? 0) + (left[at - 1] === right[to - 1] ? 0 : 1)
      const isSwapped = at > 1 && to > 1 && left[at - 1] === right[to - 2] && left[at - 2] === right[to - 1]
      const swapped = isSwapped ? (before[to - 2] ?? 0) + 1 : Infinity
      next.push(Math.min(same, swapped, (row[to] ?? 0) + 1, (next[to - 1] ?? 0) + 1))
    }
    // A swap may still come down from the row above.
    if (Math.min(...row, ...next) > most) return Infinity
    before = row
    row = next
  }
  return row[right.length] ?? Infinity
}

/** The nearest names to a misspelt one, three at most. */
const nearestNames = (name: string, names: Iterable<string>): ReadonlyArray<string> => {
  const key = normaliseName(name).slice(0, 128)
  const most = Math.max(1, Math.floor(key.length / 3))
  return [...names]
    .map((one) => ({ one, far: distance(key, normaliseName(one).slice(0, 128), most) }))
    .filter(({ far }) => far <= most)
    .sort((left, right) => left.far - right.far)
    .slice(0, 3)
    .map(({ one }) => one)
}

/** A question whether one of these names was meant, with a leading space; empty without a near name. */
export const didYouMean = (name: string, names: Iterable<string>): string => {
  const suggestions = nearestNames(name, names).map((one) => JSON.stringify(one))
  return suggestions.length === 0 ? "" : ` Did you mean ${suggestions.join(" or ")}?`
}

const control = /[\p{Cc}\u2028\u2029]/u

/** Says why a text of at most `most` characters can't be an id or a name; `undefined` if it can. */
export const nameProblem = (name: string, most: number): string | undefined => {
  if (typeof name !== "string" || name === "") return "it is empty"
  if (name.length > most) return `it is longer than ${most} characters`
  if (!name.isWellFormed()) return "it is no valid Unicode"
  return control.test(name) ? "it has control characters" : undefined
}
