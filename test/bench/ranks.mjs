// How good a list of ten hits is.

/** The gain of relevant hits among the first ten, as a share of the best possible one. */
export const ndcg = (hits, relevant) => {
  const gainOf = (count) => Array.from({ length: count }, (_, rank) => 1 / Math.log2(rank + 2))
  const sum = (values) => values.reduce((before, value) => before + value, 0)
  const found = gainOf(10).filter((_, rank) => relevant.has(hits[rank]))
  return sum(found) / Math.max(1e-9, sum(gainOf(Math.min(10, relevant.size))))
}

/** The share of what is relevant among the first ten hits. */
export const recall = (hits, relevant) =>
  hits.slice(0, 10).filter((hit) => relevant.has(hit)).length / Math.max(1, relevant.size)

/** Joins ranked lists with their weights, by reciprocal ranks. */
export const join = (lists) => {
  const found = new Map()
  for (const [weight, list] of lists) {
    list.forEach((id, rank) => found.set(id, (found.get(id) ?? 0) + weight / (60 + rank)))
  }
  return [...found].sort((left, right) => right[1] - left[1]).map(([id]) => id)
}
