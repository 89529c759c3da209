/** Claude models: windows, limits and prices from the catalogue, and the rules of each generation. */
import type { Ability } from "../../../core/ChatModel.ts"
import type { Prices } from "../../../core/Usage.ts"
import { defined } from "../../../support/json/defined.ts"
import { type Catalogue, shipped } from "../facts/catalogue.ts"
import { findIn, type ModelFacts, type PriceUsage, pricingOf } from "../facts/facts.ts"
import type { Effort } from "../turn/thinking.ts"

/** The abilities and limits of a Claude model. */
export interface Profile {
  readonly contextWindowTokens: number | undefined
  readonly maxOutputTokens: number
  /** The limit of an answer when no request sets one. Thinking counts. */
  readonly maxTokens: number
  readonly supportsVision: boolean
  /** An answer in a schema comes by the API's own means, or by a tool call. */
  readonly structuredOutput: "native" | "tool"
  /** True if a request can force the model to call a tool. */
  readonly forcedTools: boolean
  /** The setting that turns thinking off. */
  readonly thinkingOff: "disabled" | "between_tools"
  /** The unit of a thinking limit: tokens, levels, or either. */
  readonly thinkingBy: "budget" | "level" | "either"
  /** The efforts that the model accepts, least first. */
  readonly efforts: ReadonlyArray<ClaudeEffort>
  /** Undefined for an unknown model. */
  readonly facts?: ModelFacts | undefined
}

/** An effort, as the API names it. */
export type ClaudeEffort = "low" | "medium" | "high" | "xhigh" | "max"

/** The efforts of a generation. A newer generation takes all: an effort that it refuses is lowered. */
const effortsBy = (version: number): ReadonlyArray<ClaudeEffort> =>
  version < 4.6
    ? ["low", "medium", "high"]
    : version < 4.7
      ? ["low", "medium", "high", "max"]
      : ["low", "medium", "high", "xhigh", "max"]

const isClaudeEffort = (effort: Effort): effort is ClaudeEffort => effort !== "none" && effort !== "minimal"

/** The efforts that the catalogue tells, else those of the generation. */
const effortsOf = (facts: ModelFacts, version: number): ReadonlyArray<ClaudeEffort> =>
  facts.efforts.length === 0 ? effortsBy(version) : facts.efforts.filter(isClaudeEffort)

/** An unknown Claude, with the limits of the most restricted known one. */
const unknownClaude: Profile = {
  contextWindowTokens: 200_000,
  maxOutputTokens: 32_000,
  maxTokens: 8_192,
  supportsVision: true,
  structuredOutput: "tool",
  forcedTools: false,
  thinkingOff: "disabled",
  thinkingBy: "either",
  efforts: effortsBy(Infinity)
}

/** A model of another vendor behind a server that speaks this API. */
const stranger: Profile = {
  ...unknownClaude,
  contextWindowTokens: undefined,
  supportsVision: false,
  forcedTools: true
}

const inferenceProfile = /^[a-z-]+\.(?=anthropic\.)/

/** Drops region, vendor, date and version from a model's id. */
export const baseModel = (model: string): string =>
  (model.startsWith("arn:") ? model.slice(model.lastIndexOf("/") + 1) : model)
    .replace(inferenceProfile, "")
    .replace(/^anthropic\./, "")
    .replace(/-v\d+(:\d+(:.*)?)?$/, "")
    .replace(/[-@]\d{8}$/, "")

/** Reads the version of a Claude: 4.6 for `claude-opus-4-6`. */
const versionOf = (base: string): number => {
  const [, major, minor = "0"] = /-(\d+)(?:-(\d+))?$/.exec(base) ?? []
  return Number(`${major}.${minor}`)
}

/** Gives the facts about a model. */
export const profileOf = (model: string, catalogue: Catalogue = shipped): Profile => {
  const base = baseModel(model)
  const facts = findIn(catalogue, "anthropic", base)
  if (facts === undefined) return base.startsWith("claude-") ? unknownClaude : stranger
  const version = versionOf(base)
  return {
    contextWindowTokens: facts.contextWindowTokens,
    maxOutputTokens: facts.maxOutputTokens ?? unknownClaude.maxOutputTokens,
    maxTokens: 32_000,
    supportsVision: facts.vision,
    structuredOutput: version < 4.5 ? "tool" : "native",
    forcedTools: !/-(?:fable|mythos)-5-1$|-(?:opus|sonnet)-5-5$/.test(base),
    thinkingOff: base === "claude-sonnet-5-5" ? "between_tools" : "disabled",
    thinkingBy: version < 4.6 ? "budget" : version < 4.7 ? "either" : "level",
    efforts: effortsOf(facts, version),
    facts
  }
}

/** The abilities of Anthropic's own API for a model. */
export const abilitiesOf = (model: string): ReadonlyArray<Ability> => {
  const base = baseModel(model)
  const version = base.startsWith("claude-") ? versionOf(base) : 0
  return [...(version >= 4.5 ? (["toolSearch"] as const) : []), ...(version >= 4.6 ? (["compaction"] as const) : [])]
}

/** Bedrock charges a tenth more for a request that stays in one geography (since Claude 4.5). */
export const bedrockFactor = (model: string): number =>
  /(^|\/)global\./.test(model) || /^claude-(3|opus-4(-1)?$|sonnet-4$)/.test(baseModel(model)) ? 1 : 1.1

/** Cache writes cost 1.25 times the input for five minutes, and twice the input for an hour. */
const pricesOf = (prices: Prices, ttl: "5m" | "1h", factor: number): Prices => {
  const change = <Rate extends Prices>({ cacheRead, input, output, ...rest }: Rate) => ({
    ...rest,
    input: input * factor,
    output: output * factor,
    cacheRead: (cacheRead ?? input) * factor,
    cacheWrite: input * (ttl === "1h" ? 2 : 1.25) * factor
  })
  return { ...change(prices), ...defined({ long: prices.long?.map(change) }) }
}

/** The prices of a model, and its pricing. `undefined` if no price is known. */
export const pricing = (
  { facts }: Profile,
  ttl: "5m" | "1h",
  factor = 1
): { readonly prices: Prices; readonly cost: PriceUsage } | undefined => {
  if (facts?.prices === undefined) return undefined
  const prices = pricesOf(facts.prices, ttl, factor)
  return { prices, cost: pricingOf({ ...facts, prices }) }
}
