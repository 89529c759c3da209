/** Sums up the usage of an agent of others: it reports the size of its context, and sometimes its whole cost. */
import { make, priced, type Prices, type Usage } from "../../../core/Usage.ts"
import type * as Incoming from "./incoming.ts"

/** The last report: tokens in the context, and the cost so far. */
export interface UsageReport {
  readonly used: number
  readonly cost: number
}

export const nothing: UsageReport = { used: 0, cost: 0 }

/**
 * The usage since the last report. Tokens are the increase of the context, so they are an estimate: a report does not
 * count the tokens of repeated requests. A context that shrank was compacted, and counts from there. Costs in other
 * currencies are ignored.
 */
export const increase = (
  before: UsageReport,
  { cost, used }: Incoming.Usage,
  prices: Prices | undefined
): readonly [UsageReport, Usage] => {
  const now = Math.max(0, used)
  const tokens = Math.max(0, now - before.used)
  const isReported = cost !== undefined && cost !== null && cost.currency.toUpperCase() === "USD"
  const total = isReported ? Math.max(before.cost, cost.amount) : before.cost
  const usage = make({ inputTokens: tokens, isEstimated: true })
  const turnUsage = isReported
    ? { ...usage, cost: total - before.cost }
    : prices === undefined
      ? usage
      : priced(usage, prices)
  return [{ used: now, cost: total }, turnUsage]
}
