/** Searches operations by words. */
import { normaliseName } from "../../../support/text/names.ts"
import { words } from "../../../support/text/words.ts"

/** Texts of an operation that are searched. */
interface SearchTexts {
  readonly description: string
  readonly operation: {
    readonly name: string
    readonly path: string
    readonly tags: ReadonlyArray<string>
    readonly summary: string
    readonly isDeprecated: boolean
  }
}

/** Splits text and identifiers such as `listPullRequests` and `pulls/list` into words. */
const wordsOf = (text: string): ReadonlyArray<string> =>
  words(text.replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2").replaceAll(/[_/{}.-]/g, " "))

/** Removes the ending of plurals: `issues` matches `issue`. */
const removePlural = (word: string): string => (word.length > 3 && word.endsWith("s") ? word.slice(0, -1) : word)

/** Finds the best matches. Rare words weigh more, and words of the name and path weigh most. */
export const findOperations = <A extends SearchTexts>(
  candidates: ReadonlyArray<A>,
  query: string,
  limit: number
): ReadonlyArray<A> => {
  const wanted = new Set(wordsOf(query.slice(0, 1_000)).map(removePlural))
  const indexed = candidates.map((one) => {
    const { operation } = one
    const strong = new Set(wordsOf(`${operation.name} ${operation.path} ${operation.tags.join(" ")}`).map(removePlural))
    const weak = new Set(wordsOf(`${operation.summary} ${one.description}`).map(removePlural))
    return { one, strong, weak }
  })
  const weights = new Map(
    [...wanted].map((word) => {
      const count = indexed.filter(({ strong, weak }) => strong.has(word) || weak.has(word)).length
      return [word, Math.log(1 + candidates.length / (1 + count))]
    })
  )
  return indexed
    .map(({ one, strong, weak }) => {
      let score = 0
      for (const [word, weight] of weights) score += weight * ((strong.has(word) ? 2 : 0) + (weak.has(word) ? 1 : 0))
      // Between equal matches, the shorter path wins: it names the thing itself.
      return {
        one,
        score: score === 0 ? 0 : score - one.operation.path.length / 1_000 - (one.operation.isDeprecated ? 1 : 0)
      }
    })
    .filter(({ score }) => score > 0)
    .sort((left, right) => right.score - left.score)
    .slice(0, limit)
    .map(({ one }) => one)
}

const pairsOf = (text: string): ReadonlySet<string> => {
  const plain = normaliseName(text.slice(0, 200))
  return new Set(Array.from({ length: Math.max(1, plain.length - 1) }, (_, at) => plain.slice(at, at + 2)))
}

/** Finds the most similar name by pairs of letters. At least half of the pairs must match. */
export const findNearest = (name: string, all: ReadonlyArray<string>): string | undefined => {
  const wanted = pairsOf(name)
  let best: { readonly name: string; readonly score: number } | undefined
  for (const one of all) {
    const own = pairsOf(one)
    let common = 0
    for (const pair of own) if (wanted.has(pair)) common++
    const score = (2 * common) / (own.size + wanted.size)
    if (score >= 0.5 && score > (best?.score ?? 0)) best = { name: one, score }
  }
  return best?.name
}
