/**
 * Facts about models from the catalogue that `node scripts/models.ts` writes, and rows over it. Options of a layer win.
 */
import { type Prices, priced, type Usage } from "../../../core/Usage.ts"
import { defined } from "../../../support/json/defined.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import { type Effort, efforts } from "../turn/thinking.ts"
import { type Catalogue, type Rate, type Row, shipped } from "./catalogue.ts"

/** The known facts about one model. */
export interface ModelFacts {
  /** The most tokens of a request. */
  readonly contextWindowTokens: number
  /** The most tokens of an answer. */
  readonly maxOutputTokens?: number | undefined
  readonly vision: boolean
  /** The efforts that the model accepts, least first. Empty if it does not reason or always reasons alike. */
  readonly efforts: ReadonlyArray<Effort>
  /** US dollars per million tokens. */
  readonly prices?: Prices | undefined
  /** The prices of requests that wait (`flex`), in a batch (`batch`), and before others (`priority`). */
  readonly tiers?: { readonly [tier: string]: Prices } | undefined
  /** US dollars for one search of the web by the provider. */
  readonly searchPrice?: number | undefined
  /** Factors on the prices of tokens, by the provider's names: a faster answer (`fast`), a place (`us`). */
  readonly factors?: { readonly [name: string]: number } | undefined
  /** The day on which the provider takes the model away, as `2026-12-11`. */
  readonly retiresOn?: string | undefined
  /** The model that the provider names in its place. */
  readonly successor?: string | undefined
}

type Rates = Pick<Row, "prices" | "flex" | "priority" | "batch">

const rateOf = (rate: Rate | undefined): Prices | undefined => {
  const [input, output, cacheRead, cacheWrite] = rate ?? []
  if (typeof input !== "number" || typeof output !== "number") return undefined
  return { input, output, ...defined({ cacheRead: cacheRead ?? undefined, cacheWrite: cacheWrite ?? undefined }) }
}

const pricesOf = (row: Row, tier: keyof Rates): Prices | undefined => {
  const short = rateOf(row[tier])
  const long = row.long?.flatMap(({ above, ...more }) => {
    const rate = rateOf(more[tier])
    return rate === undefined ? [] : [{ above, ...rate }]
  })
  return short === undefined || long === undefined ? short : { ...short, long }
}

const tiersOf = (row: Row): ModelFacts["tiers"] => {
  const tiers = defined({
    flex: pricesOf(row, "flex"),
    priority: pricesOf(row, "priority"),
    batch: pricesOf(row, "batch")
  })
  return Object.keys(tiers).length === 0 ? undefined : tiers
}

const factsOf = (row: Row): ModelFacts | undefined => {
  if (row.in === undefined) return undefined
  const words = row.efforts?.split(" ") ?? []
  return {
    contextWindowTokens: row.in,
    vision: row.vision === true,
    efforts: efforts.filter((effort) => words.includes(effort)),
    ...defined({
      maxOutputTokens: row.out,
      prices: pricesOf(row, "prices"),
      tiers: tiersOf(row),
      searchPrice: row.search,
      factors: row.factors,
      retiresOn: row.until,
      successor: row.next
    })
  }
}

/** Finds the first of several names among the models of a provider. */
export const findIn = (
  { providers }: Catalogue,
  provider: string,
  ...names: ReadonlyArray<string>
): ModelFacts | undefined => {
  const models = valueAt(providers, provider) ?? {}
  const name = names.find((one) => Object.hasOwn(models, one))
  const row = valueAt(models, name)
  return row === undefined ? undefined : factsOf(row)
}

/** Finds a model in the catalogue inside the package. */
export const findFacts = (provider: string, ...names: ReadonlyArray<string>): ModelFacts | undefined =>
  findIn(shipped, provider, ...names)

/** The facts of a served request that decide its cost. */
export interface ServedFacts {
  /** The provider's name of the tier, such as `flex`. */
  readonly tier?: string | undefined
  /** Searches of the web by the provider. */
  readonly searches?: number | undefined
  /** The speed and the place of the request, by the provider's names. Names without a factor change no price. */
  readonly names?: ReadonlyArray<string> | undefined
}

/** Puts a cost on usage that has none. */
export type PriceUsage = (usage: Usage, served?: ServedFacts) => Usage

/** Prices usage by the tier of a request, its speed and place, and its searches. Prices of the layer win. */
export const pricingOf = (
  facts: Pick<ModelFacts, "prices" | "tiers" | "searchPrice" | "factors"> | undefined,
  own?: Prices
): PriceUsage => {
  const { factors = {}, prices, searchPrice = 0, tiers = {} } = facts ?? {}
  if (prices === undefined || own !== undefined) return (usage) => usage
  return (usage, { names = [], searches = 0, tier } = {}) => {
    if (usage.cost !== undefined) return usage
    const factor = names.reduce((product, name) => product * (valueAt(factors, name) ?? 1), 1)
    const { cost = 0, ...counts } = priced(usage, valueAt(tiers, tier) ?? prices)
    return { ...counts, cost: cost * factor + searches * searchPrice }
  }
}

/** Prices all usage by one tier, such as `batch`. Without a tier, by the one that an answer names. */
export const atTier = (price: PriceUsage, tier: string | undefined): PriceUsage =>
  tier === undefined ? price : (usage, served) => price(usage, { ...served, tier })
