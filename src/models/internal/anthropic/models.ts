/**
 * Facts about Claude models, as data: context windows, output limits, prices, and what a model refuses.
 *
 * From Anthropic's model pages of November 2026. A model that isn't here works, with the defaults at the end of this
 * file, and everything can be overridden where a layer is made.
 */
import { type Prices, priced, type Usage } from "../../../core/Usage.ts"

/** US dollars for a million tokens. Cache writes cost 1.25 (five minutes) and 2 (an hour) times the input. */
export interface Rates {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  /** Rates of requests that read more than this many tokens. */
  readonly long?: (Rates & { readonly above: number }) | undefined
}

/**
 * - `maxTokens`: what a request asks for when nobody says how much, thinking included
 * - `structuredOutput`: whether an answer in a schema can be asked for
 * - `forcedTools`: whether the model can be made to call a tool
 * - `thinkingOff`: how the model is told not to think
 * - `thinkingBy`: how it is told how much to think: tokens, levels, or either
 */
export interface Profile {
  readonly contextWindowTokens: number | undefined
  readonly maxOutputTokens: number
  readonly maxTokens: number
  readonly supportsVision: boolean
  readonly structuredOutput: "native" | "tool"
  readonly forcedTools: boolean
  readonly thinkingOff: "disabled" | "between_tools"
  readonly thinkingBy: "budget" | "level" | "either"
  readonly rates?: Rates | undefined
}

const current: Profile = {
  contextWindowTokens: 1_000_000,
  maxOutputTokens: 128_000,
  maxTokens: 32_000,
  supportsVision: true,
  structuredOutput: "native",
  forcedTools: true,
  thinkingOff: "disabled",
  thinkingBy: "level"
}

/** From Fable 5.1 on, a tool can be offered but not forced. */
const unforced: Profile = { ...current, forcedTools: false }

const before46: Profile = {
  ...current,
  contextWindowTokens: 200_000,
  maxOutputTokens: 64_000,
  thinkingBy: "budget"
}

const before45: Profile = { ...before46, maxOutputTokens: 32_000, structuredOutput: "tool" }

const rates = (input: number, output: number, cacheRead = input / 10): Rates => ({ input, output, cacheRead })

const table: { readonly [model: string]: Profile } = {
  "claude-fable-5-1": { ...unforced, rates: rates(10, 50, 0.25) },
  "claude-mythos-5-1": { ...unforced, rates: rates(10, 50, 0.25) },
  "claude-fable-5": { ...current, rates: rates(10, 50) },
  "claude-mythos-5": { ...current, rates: rates(10, 50) },
  "claude-opus-5-5": { ...unforced, rates: rates(4, 20, 0.2) },
  "claude-opus-5": { ...current, rates: rates(5, 25) },
  "claude-opus-4-8": { ...current, rates: rates(5, 25) },
  "claude-opus-4-7": { ...current, rates: rates(5, 25) },
  "claude-opus-4-6": { ...current, thinkingBy: "either", rates: rates(5, 25) },
  "claude-opus-4-5": { ...before46, rates: rates(5, 25) },
  "claude-opus-4-1": { ...before45, rates: rates(15, 75) },
  "claude-opus-4": { ...before45, rates: rates(15, 75) },
  "claude-sonnet-5-5": { ...unforced, thinkingOff: "between_tools", rates: rates(2, 10, 0.1) },
  "claude-sonnet-5": { ...current, rates: rates(2, 10) },
  "claude-sonnet-4-6": { ...current, thinkingBy: "either", rates: rates(3, 15) },
  "claude-sonnet-4-5": { ...before46, rates: rates(3, 15) },
  "claude-sonnet-4": { ...before45, maxOutputTokens: 64_000, rates: rates(3, 15) },
  "claude-haiku-5-5": { ...current, rates: { ...rates(0.1, 0.5), long: { ...rates(0.5, 2.5), above: 100_000 } } },
  "claude-haiku-4-5": { ...before46, rates: rates(1, 5) }
}

/** A Claude that this table does not know yet: what holds for the most careful of those it knows. */
const unknownClaude: Profile = {
  contextWindowTokens: 200_000,
  maxOutputTokens: 32_000,
  maxTokens: 8_192,
  supportsVision: true,
  structuredOutput: "tool",
  forcedTools: false,
  thinkingOff: "disabled",
  thinkingBy: "either"
}

/** Another model behind a server that speaks this API. */
const stranger: Profile = {
  ...unknownClaude,
  contextWindowTokens: undefined,
  supportsVision: false,
  forcedTools: true
}

const inferenceProfile = /^[a-z-]+\.(?=anthropic\.)/

/** A model's id without what a platform and a snapshot add to it: region, vendor, date, version. */
export const baseModel = (model: string): string =>
  (model.startsWith("arn:") ? model.slice(model.lastIndexOf("/") + 1) : model)
    .replace(inferenceProfile, "")
    .replace(/^anthropic\./, "")
    .replace(/-v\d+(:\d+(:.*)?)?$/, "")
    .replace(/[-@]\d{8}$/, "")

/** Gives the facts about a model. */
export const profileOf = (model: string): Profile => {
  const base = baseModel(model)
  return table[base] ?? (base.startsWith("claude-") ? unknownClaude : stranger)
}

/** On Bedrock, to be asked in one geography costs a tenth more than to be asked wherever there is room (since 4.5). */
export const bedrockFactor = (model: string): number =>
  /(^|\/)global\./.test(model) || /^claude-(3|opus-4(-1)?$|sonnet-4$)/.test(baseModel(model)) ? 1 : 1.1

const pricesOf = (own: Rates, ttl: "5m" | "1h", factor: number): Prices => ({
  input: own.input * factor,
  output: own.output * factor,
  cacheRead: own.cacheRead * factor,
  cacheWrite: own.input * (ttl === "1h" ? 2 : 1.25) * factor
})

/** Puts a price on usage. `undefined` when no price is known. */
export const pricing = (
  profile: Profile,
  ttl: "5m" | "1h",
  factor = 1
): { readonly prices: Prices; readonly cost: (usage: Usage) => Usage } | undefined => {
  if (profile.rates === undefined) return undefined
  const { long } = profile.rates
  const prices = pricesOf(profile.rates, ttl, factor)
  const longPrices = long === undefined ? prices : pricesOf(long, ttl, factor)
  return {
    prices,
    cost: (usage) => priced(usage, long !== undefined && usage.inputTokens > long.above ? longPrices : prices)
  }
}
