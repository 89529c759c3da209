/**
 * Facts about the models of Bedrock's Converse API, and the rules of their families.
 *
 * From AWS's pages of November 2026. An unlisted model follows its family, or the common subset.
 */
import { defined } from "../../../support/json/defined.ts"
import { bedrockFactor, pricing, profileOf } from "../anthropic/models.ts"
import { type Catalogue, shipped } from "../facts/catalogue.ts"
import { findIn, type ModelFacts } from "../facts/facts.ts"
import type { Dialect } from "../schema/toolSchema.ts"

/**
 * The rules of a family of models.
 *
 * - `caches`: the places for cache points: everywhere, in prompt and texts, or nowhere
 * - `forces`: true if a request can force a tool call. Other models get an instruction
 * - `tellsErrors`: true if a result can be marked as an error
 * - `seesResults`: true if results can hold images and files
 * - `callIds`: the longest call id in characters; with `exactly`, that many letters and digits
 * - `schemas`: the supported subset of JSON Schema; `plainRoot` allows only properties at the root
 * - `thinking`: the form of the parameter for thinking
 * - `thoughts`: true if thoughts without a signature are sent back
 */
export interface Family {
  readonly caches: "all" | "text" | "none"
  readonly forces: boolean
  readonly tellsErrors: boolean
  readonly seesResults: boolean
  readonly callIds: { readonly length: number; readonly exactly?: true }
  readonly schemas: Dialect
  readonly plainRoot: boolean
  readonly thinking: "claude" | "nova" | "effort" | "none"
  readonly thoughts: boolean
}

const plain: Family = {
  caches: "none",
  forces: false,
  tellsErrors: false,
  seesResults: false,
  callIds: { length: 64 },
  schemas: "openai",
  plainRoot: false,
  thinking: "none",
  thoughts: true
}

const nova: Family = {
  ...plain,
  caches: "text",
  forces: true,
  tellsErrors: true,
  seesResults: true,
  schemas: "gemini",
  plainRoot: true
}

const families: ReadonlyArray<readonly [RegExp, Family]> = [
  [
    /anthropic\.|claude/,
    {
      ...plain,
      caches: "all",
      forces: true,
      tellsErrors: true,
      seesResults: true,
      schemas: "anthropic",
      thinking: "claude",
      thoughts: false
    }
  ],
  [/amazon\.nova-2/, { ...nova, thinking: "nova" }],
  [/amazon\.nova/, nova],
  [/mistral\./, { ...plain, forces: true, callIds: { length: 9, exactly: true } }],
  [/openai\.gpt-oss/, { ...plain, thinking: "effort" }],
  [/deepseek\./, { ...plain, thoughts: false }]
]

/** The ways of a model, by its name. */
export const familyOf = (model: string): Family => families.find(([name]) => name.test(model))?.[1] ?? plain

/** A model's id without region and version: `us.amazon.nova-pro-v1:0` is `amazon.nova-pro`. */
const baseOf = (model: string): string =>
  (model.startsWith("arn:") ? model.slice(model.lastIndexOf("/") + 1) : model)
    .replace(/^(?:us|us-gov|eu|apac|au|ca|jp|global)\./, "")
    .replace(/(?:-v\d+|-\d+)(?::\d+(?::.*)?)$/, "")

/** Prices of a model of Anthropic's. */
export const pricesOf = (model: string, ttl: "5m" | "1h") =>
  familyOf(model).thinking === "claude" ? pricing(profileOf(model), ttl, bedrockFactor(model))?.prices : undefined

/** Gives the facts about a model, as far as a table has them. */
export const factsOf = (model: string, catalogue: Catalogue = shipped): Partial<ModelFacts> | undefined => {
  if (familyOf(model).thinking === "claude") {
    const profile = profileOf(model, catalogue)
    if (profile.facts === undefined) return undefined
    return defined({
      contextWindowTokens: profile.contextWindowTokens,
      vision: profile.supportsVision,
      prices: pricesOf(model, "5m")
    })
  }
  return findIn(catalogue, "bedrock", baseOf(model))
}
