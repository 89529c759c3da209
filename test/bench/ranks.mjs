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
