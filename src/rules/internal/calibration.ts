/** Isotonic regression of stated probabilities on outcomes, its error, and verdicts by expected cost. */

/** A stated probability, and the outcome. */
export interface LabelledDecision {
  /** The probability of yes that the model stated. */
  readonly probability: number
  /** True if the answer was yes. */
  readonly isYes: boolean
}

/** The costs of a wrong yes, of a wrong no, and of asking a person, in one unit. */
export interface Costs {
  /** The cost of a yes that should have been a no. */
  readonly wrongYes: number
  /** The cost of a no that should have been a yes. */
  readonly wrongNo: number
  /** The cost of a question to a person. */
  readonly person: number
}

/** A range of stated probabilities: their mean, the share of yes, the number of labels. */
export interface Bin {
  readonly stated: number
  readonly observed: number
  readonly count: number
}

/** Labels that a calibration needs, and labels of each outcome. */
export const least = { labels: 200, each: 10 } as const

const isLabelled = ({ probability }: LabelledDecision): boolean => probability >= 0 && probability <= 1

/** Keeps the labels whose probability is one. */
export const soundOf = (labelled: ReadonlyArray<LabelledDecision>): ReadonlyArray<LabelledDecision> =>
  labelled.filter(isLabelled)

const binCount = 10

/** Groups labels by tenths of their stated probability. */
export const binsOf = (labelled: ReadonlyArray<LabelledDecision>): ReadonlyArray<Bin> => {
  const sums = Array.from({ length: binCount }, () => ({ stated: 0, yes: 0, count: 0 }))
  for (const { isYes, probability } of labelled) {
    const bin = sums[Math.min(binCount - 1, Math.floor(probability * binCount))]
    if (bin === undefined) continue
    bin.stated += probability
    bin.yes += isYes ? 1 : 0
    bin.count++
  }
  return sums.flatMap(({ count, stated, yes }) =>
    count === 0 ? [] : [{ stated: stated / count, observed: yes / count, count }]
  )
}

/** The expected calibration error: the mean distance of the bins from the diagonal, by their labels. */
export const errorOf = (labelled: ReadonlyArray<LabelledDecision>): number =>
  labelled.length === 0
    ? 0
    : binsOf(labelled).reduce((sum, { count, observed, stated }) => sum + count * Math.abs(stated - observed), 0) /
      labelled.length

/** A range of stated probabilities with one calibrated value. */
interface Step {
  readonly to: number
  readonly value: number
}

/** The map from stated to calibrated probabilities, and the range of the labels. */
export interface Fit {
  readonly map: (stated: number) => number
  readonly from: number
  readonly to: number
}

interface Pool {
  yes: number
  count: number
  to: number
}

const shareOf = ({ count, yes }: Pool): number => yes / count

/** Half a yes and half a no are added to each step: a few labels are never certain. */
const valueOf = ({ count, yes }: Pool): number => (yes + 0.5) / (count + 1)

/** Groups labels by their stated probability, in its order. */
const poolsOf = (labelled: ReadonlyArray<LabelledDecision>): ReadonlyArray<Pool> => {
  const pools: Array<Pool> = []
  for (const { isYes, probability } of labelled.toSorted((left, right) => left.probability - right.probability)) {
    const last = pools.at(-1)
    // Equal probabilities have one value, whatever the order of their labels.
    if (last?.to === probability) {
      last.yes += isYes ? 1 : 0
      last.count++
    } else {
      pools.push({ yes: isYes ? 1 : 0, count: 1, to: probability })
    }
  }
  return pools
}

/** Pools neighbours until the measure of the pools rises (pool adjacent violators). */
const mergePools = (pools: ReadonlyArray<Pool>, measure: (pool: Pool) => number): ReadonlyArray<Pool> => {
  const stack: Array<Pool> = []
  for (const pool of pools) {
    let last = pool
    for (let before = stack.at(-1); before !== undefined; before = stack.at(-1)) {
      if (measure(before) < measure(last)) break
      stack.pop()
      last = { yes: before.yes + last.yes, count: before.count + last.count, to: last.to }
    }
    stack.push(last)
  }
  return stack
}

const stepAt = (steps: ReadonlyArray<Step>, stated: number): Step | undefined => {
  let low = 0
  let high = steps.length - 1
  while (low < high) {
    const middle = (low + high) >> 1
    if (stated <= (steps[middle]?.to ?? 1)) high = middle
    else low = middle + 1
  }
  return steps[low]
}

/** Fits a map to labels. Without labels it changes nothing. */
export const fit = (labelled: ReadonlyArray<LabelledDecision>): Fit => {
  const pools = poolsOf(labelled)
  // A step of few labels is drawn to the middle, maybe past its neighbour: both become one.
  const steps = mergePools(mergePools(pools, shareOf), valueOf).map((pool) => ({ to: pool.to, value: valueOf(pool) }))
  return {
    map: (stated) => stepAt(steps, stated)?.value ?? stated,
    from: pools[0]?.to ?? 1,
    to: pools.at(-1)?.to ?? 0
  }
}

const folds = 5

/** Calibrates each fifth of the labels by the other four: the error on labels that the map has not seen. */
export const crossFitted = (labelled: ReadonlyArray<LabelledDecision>): ReadonlyArray<LabelledDecision> =>
  Array.from({ length: folds }, (_, fold) => fold).flatMap((fold) => {
    const { map } = fit(labelled.filter((_, index) => index % folds !== fold))
    return labelled
      .filter((_, index) => index % folds === fold)
      .map(({ isYes, probability }) => ({ isYes, probability: map(probability) }))
  })

/** The calibrated probabilities from which an answer is yes, and up to which it is no. */
export interface Thresholds {
  readonly yes: number
  readonly no: number
}

/** No probability settles anything. */
const never: Thresholds = { yes: Infinity, no: -Infinity }

const clampShare = (value: number): number => Math.min(1, Math.max(0, value))

/** Finds the thresholds with the least expected cost. Costs that are no positive numbers settle nothing. */
export const thresholdsOf = ({ person, wrongNo, wrongYes }: Costs): Thresholds => {
  if (![wrongYes, wrongNo, person].every((cost) => Number.isFinite(cost) && cost > 0)) return never
  const even = wrongYes / (wrongYes + wrongNo)
  return { yes: clampShare(Math.max(even, 1 - person / wrongYes)), no: clampShare(Math.min(even, person / wrongNo)) }
}

/** An answer, or the question to a person. */
export type Settlement = "yes" | "no" | "person"

/** Settles a stated probability by thresholds. */
export const settleBy =
  ({ from, map, to }: Fit, { no, yes }: Thresholds) =>
  (stated: number): Settlement => {
    if (!(stated >= 0 && stated <= 1)) return "person"
    const probability = map(stated)
    // Below the lowest label nothing speaks for a yes, above the highest nothing for a no.
    if (probability >= yes) return stated < from ? "person" : "yes"
    if (probability <= no) return stated > to ? "person" : "no"
    return "person"
  }
