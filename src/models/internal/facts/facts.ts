/** Facts about models from `models.json`, which `node scripts/models.ts` renews. Options of a layer win over them. */
import type { Prices } from "../../../core/Usage.ts"
import { type Effort, efforts } from "../turn/thinking.ts"
import file from "./models.json" with { type: "json" }

/** The facts about one model, without those that nobody knows. */
export interface ModelFacts {
  readonly contextWindowTokens: number
  readonly maxOutputTokens?: number | undefined
  readonly vision: boolean
  /** The efforts that the model accepts, least first. Empty if it does not reason or always reasons alike. */
  readonly efforts: ReadonlyArray<Effort>
  /** US dollars per million tokens. A model with two rates has the lower one here. */
  readonly prices?: Prices | undefined
  /** The prices of requests above a number of input tokens. */
  readonly long?: { readonly above: number; readonly prices: Prices } | undefined
}

interface Row extends Omit<ModelFacts, "efforts"> {
  readonly efforts?: string | undefined
}

const providers: { readonly [provider: string]: { readonly [model: string]: Row } } = file.providers

/** Finds the first of several names among the models of a provider. */
export const findFacts = (provider: string, ...names: ReadonlyArray<string>): ModelFacts | undefined => {
  const models = Object.hasOwn(providers, provider) ? (providers[provider] ?? {}) : {}
  const name = names.find((one) => Object.hasOwn(models, one))
  const row = name === undefined ? undefined : models[name]
  if (row === undefined) return undefined
  const words = row.efforts?.split(" ") ?? []
  return { ...row, efforts: efforts.filter((effort) => words.includes(effort)) }
}
