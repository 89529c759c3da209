/** The statistics of reports. */

/**
 * Wilson's interval of a share at 95 %: it holds for few trials, too.
 * Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference (1927).
 */
export const intervalOf = (hits: number, of: number): readonly [low: number, high: number] => {
  if (of === 0) return [0, 1]
  const z = 1.959964
  const share = hits / of
  const scale = 1 + (z * z) / of
  const centre = share + (z * z) / (2 * of)
  const reach = z * Math.sqrt((share * (1 - share)) / of + (z * z) / (4 * of * of))
  return [Math.max(0, (centre - reach) / scale), Math.min(1, (centre + reach) / scale)]
}

/** The share of the subsets of `k` among `of` that lie in `hits`. */
const shareOfSubsets = (hits: number, of: number, k: number): number => {
  let share = 1
  for (let i = 0; i < k; i++) share *= Math.max(0, hits - i) / (of - i)
  return share
}

/** The estimate of pass^k without bias: the chance that all of `k` trials pass. */
export const passAll = (passed: number, of: number, k: number): number => shareOfSubsets(passed, of, k)

/** The estimate of pass@k without bias: the chance that one or more of `k` trials pass. */
export const passAny = (passed: number, of: number, k: number): number => 1 - shareOfSubsets(of - passed, of, k)

/** Above these numbers, the exact test is replaced by its normal approximation. */
const most = { steps: 20_000_000, reach: 100_000 } as const

/** The probability that a standard normal value is further from 0 than `z`. Source: Abramowitz and Stegun, 7.1.26. */
const beyond = (z: number): number => {
  const x = Math.abs(z) / Math.SQRT2
  const t = 1 / (1 + 0.3275911 * x)
  const poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
  return poly * Math.exp(-x * x)
}

/** Fractions over a common denominator, as whole numbers. Beyond all bounds they are rounded. */
export const toWholes = (fractions: ReadonlyArray<{ readonly part: number; readonly of: number }>): Array<number> => {
  const divisor = (left: number, right: number): number => (right === 0 ? left : divisor(right, left % right))
  const unit = fractions.reduce((product, { of }) => Math.min((product / divisor(product, of)) * of, 1e9), 1)
  return fractions.map(({ of, part }) => Math.round((part / of) * unit))
}

/**
 * The p-value of a paired permutation test of both sides: how probable a sum of differences this far from 0 is, if each
 * difference could as well have had the other sign. Exact for whole differences.
 * Source: R. A. Fisher, The Design of Experiments (1935).
 */
export const permutationTest = (differences: ReadonlyArray<number>): number => {
  const steps = differences.map(Math.abs).filter((size) => size > 0)
  const reach = steps.reduce((sum, size) => sum + size, 0)
  if (reach === 0) return 1
  const observed = Math.abs(differences.reduce((sum, one) => sum + one, 0))
  if (reach > most.reach || steps.length * reach > most.steps) {
    return beyond(observed / Math.sqrt(steps.reduce((sum, size) => sum + size * size, 0)))
  }
  // The probability of each sum, from -reach to reach.
  let chances = new Float64Array(2 * reach + 1)
  chances[reach] = 1
  for (const size of steps) {
    const next = new Float64Array(2 * reach + 1)
    for (const [place, chance] of chances.entries()) {
      if (chance === 0) continue
      next[place + size] = (next[place + size] ?? 0) + chance / 2
      next[place - size] = (next[place - size] ?? 0) + chance / 2
    }
    chances = next
  }
  const extreme = chances.reduce((sum, chance, place) => (Math.abs(place - reach) >= observed ? sum + chance : sum), 0)
  return Math.min(1, extreme)
}
