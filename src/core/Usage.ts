/** The usage of model calls: tokens, and money when prices are known. */
import * as Schema from "effect/Schema"

/**
 * Token counts of model calls. `inputTokens` includes cached tokens. `cost` is in the currency of the prices (US
 * dollars by convention), absent without a price. `isEstimated` is true if a part of the counts is an estimate, such as the
 * tokens of an interrupted answer.
 */
export const Usage = Schema.Struct({
  inputTokens: Schema.Finite,
  outputTokens: Schema.Finite,
  cacheReadTokens: Schema.Finite,
  cacheWriteTokens: Schema.Finite,
  reasoningTokens: Schema.Finite,
  cost: Schema.optionalKey(Schema.Finite),
  isEstimated: Schema.optionalKey(Schema.Boolean)
})
export type Usage = typeof Usage.Type

/**
 * The work of a run and everything below it since its input, counted on when the run is resumed. `rounds` are turns of
 * the model, forced final answers not counted; `toolCalls` are calls that were begun; `time` is milliseconds of work,
 * without the time that people were waited for; `beside` is the usage of tasks in the background.
 */
export const Spent = Schema.Struct({
  rounds: Schema.Finite,
  toolCalls: Schema.Finite,
  time: Schema.Finite,
  beside: Schema.optionalKey(Usage)
})
export type Spent = typeof Spent.Type

/** Price of one million tokens. A kind that is left out is charged as its plain counterpart (input or output). */
interface Rate {
  /** The price of input. */
  readonly input: number
  /** The price of output. */
  readonly output: number
  /** The price of input from the cache. Default: the price of input. */
  readonly cacheRead?: number | undefined
  /** The price of input into the cache. Default: the price of input. */
  readonly cacheWrite?: number | undefined
}

/** Prices of one million tokens. Long requests may have their own. */
export interface Prices extends Rate {
  /** The prices of requests with more than `above` tokens of input. Default: none. */
  readonly long?:
    | ReadonlyArray<
        Rate & {
          /** The tokens of input above which these prices hold. */
          readonly above: number
        }
      >
    | undefined
}

/** Nothing used. */
export const zero: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0
}

/** No work done. */
export const nothingSpent: Spent = { rounds: 0, toolCalls: 0, time: 0 }

/** Makes a usage from the counts that are known. */
export const make = (counts: Partial<Usage>): Usage => ({ ...zero, ...counts })

/** Tokens in and out together. */
export const totalTokens = (usage: Usage): number => usage.inputTokens + usage.outputTokens

/** True for a count or a cost that can be added up: no `NaN`, no infinity, nothing above `Number.MAX_SAFE_INTEGER`. */
const isCount = (value: unknown): value is number =>
  typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER

const isSound = (usage: Usage): boolean =>
  isCount(usage.inputTokens) &&
  isCount(usage.outputTokens) &&
  isCount(usage.cacheReadTokens) &&
  isCount(usage.cacheWriteTokens) &&
  isCount(usage.reasoningTokens) &&
  (usage.cost === undefined || isCount(usage.cost))

/** Combines the counts of two usages. A literal: V8 makes a fast object of it. */
const combine = (left: Usage, right: Usage, f: (left: number, right: number) => number): Usage => ({
  inputTokens: f(left.inputTokens, right.inputTokens),
  outputTokens: f(left.outputTokens, right.outputTokens),
  cacheReadTokens: f(left.cacheReadTokens, right.cacheReadTokens),
  cacheWriteTokens: f(left.cacheWriteTokens, right.cacheWriteTokens),
  reasoningTokens: f(left.reasoningTokens, right.reasoningTokens)
})

/** Marks a usage as an estimate. A usage without one keeps its shape. */
const mark = (usage: Usage, isEstimated: boolean | undefined): Usage =>
  isEstimated === true ? { ...usage, isEstimated } : usage

const orZero = (value: number): number => (isCount(value) ? value : 0)

/**
 * Replaces counts that are no counts: `NaN`, negative, infinite or above `Number.MAX_SAFE_INTEGER`. They become 0, and such
 * a cost is left out. A usage without any is given back as it is, so a comparison says whether there was one.
 */
export const sanitize = (usage: Usage): Usage => {
  if (isSound(usage)) return usage
  const counts = mark(combine(usage, zero, orZero), usage.isEstimated)
  return usage.cost === undefined || !isCount(usage.cost) ? counts : { ...counts, cost: usage.cost }
}

/** Adds two usages. The sum has a cost if either has. Invalid counts add nothing; see {@link sanitize}. */
export const add = (one: Usage, other: Usage): Usage => {
  const left = sanitize(one)
  const right = sanitize(other)
  const sum = mark(
    combine(left, right, (a, b) => a + b),
    left.isEstimated === true || right.isEstimated === true
  )
  return left.cost === undefined && right.cost === undefined
    ? sum
    : { ...sum, cost: (left.cost ?? 0) + (right.cost ?? 0) }
}

/** The usage since an earlier count: `left` less `right`. */
export const subtract = (left: Usage, right: Usage): Usage => {
  const rest = mark(
    combine(left, right, (a, b) => a - b),
    left.isEstimated
  )
  return left.cost === undefined ? rest : { ...rest, cost: left.cost - (right.cost ?? 0) }
}

/** The prices of a request with so much input. */
const rateOf = (prices: Prices, inputTokens: number): Rate => {
  let rate: Rate & { readonly above?: number } = prices
  for (const band of prices.long ?? []) {
    if (inputTokens > band.above && band.above > (rate.above ?? -1)) rate = band
  }
  return rate
}

/** Sets `cost` from prices, unless the provider already told it. */
export const priced = (usage: Usage, prices: Prices): Usage => {
  if (usage.cost !== undefined) return usage
  const rate = rateOf(prices, usage.inputTokens)
  const fresh = Math.max(0, usage.inputTokens - usage.cacheReadTokens - usage.cacheWriteTokens)
  const cost =
    fresh * rate.input +
    usage.cacheReadTokens * (rate.cacheRead ?? rate.input) +
    usage.cacheWriteTokens * (rate.cacheWrite ?? rate.input) +
    usage.outputTokens * rate.output
  return { ...usage, cost: cost / 1_000_000 }
}
