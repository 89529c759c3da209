/** A Claude model as the service that the library knows, wherever it is served. */
import type { Service } from "../../../core/ChatModel.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import { atTier } from "../facts/facts.ts"
import type { Overrides } from "../wire/overrides.ts"
import { abilitiesOf, pricing } from "./models.ts"
import type { Encoding } from "./request.ts"
import { makeClaudeSessions, type Setup } from "./session.ts"
import { cacheTtl } from "./settings.ts"

/**
 * The parts that a platform brings. `idle` is the longest wait for an event (milliseconds); `priceFactor` multiplies
 * Anthropic's own prices.
 */
export interface Platform {
  readonly provider: string
  readonly address?: Setup["address"]
  readonly encoding: Encoding
  readonly overrides: Overrides
  readonly open: Setup["open"]
  readonly secrets: ReadonlyArray<string>
  readonly idle: number
  readonly priceFactor: number
  readonly accessToken?: Setup["accessToken"]
  /** The tier that all requests are served in. Default: the one that an answer names. */
  readonly tier?: string | undefined
}

/** Makes the service. */
export const makeService = ({
  accessToken,
  address,
  encoding,
  idle,
  open,
  overrides,
  priceFactor,
  provider,
  secrets,
  tier
}: Platform): Service => {
  const { model, profile, settings } = encoding
  const own = overrides.prices === undefined ? pricing(profile, cacheTtl(settings) ?? "5m", priceFactor) : undefined
  const priced = atTier(own?.cost ?? ((usage) => usage), tier)
  return {
    modelId: model,
    provider,
    supportsVision: overrides.supportsVision ?? profile.supportsVision,
    contextWindowTokens: overrides.contextWindowTokens ?? profile.contextWindowTokens,
    structuredOutput: overrides.structuredOutput ?? profile.structuredOutput,
    prices: overrides.prices ?? valueAt(profile.facts?.tiers ?? {}, tier) ?? own?.prices,
    abilities: overrides.abilities ?? (encoding.remote ? abilitiesOf(model) : []),
    makeSession: makeClaudeSessions({ provider, address, encoding, open, secrets, idle, priced, accessToken })
  }
}
