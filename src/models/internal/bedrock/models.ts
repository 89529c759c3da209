/**
 * Facts about the models that Bedrock's Converse API serves, and the ways of their families: what each refuses.
 *
 * From AWS's pages of November 2026. A model that isn't here works, as one of its family, or as one of which nothing is
 * known.
 */
import { defined } from "../../../support/json/defined.ts"
import { bedrockFactor, pricing, profileOf } from "../anthropic/models.ts"
import type { Dialect } from "../schema/toolSchema.ts"
import { type ModelFacts, row } from "../servers/Server.ts"

/**
 * - `caches`: where there may be a cache point: everywhere, in prompt and texts, or nowhere
 * - `forces`: whether the model can be made to call a tool; where it can't, it is told to
 * - `tellsErrors`: whether a result may say that it is an error
 * - `seesResults`: whether images and files may stand in results
 * - `callIds`: the longest call id, in characters; `exactly` so many letters and digits
 * - `schemas`: the part of JSON Schema that it reads; `plainRoot` takes nothing but properties at the root
 * - `thinking`: the field that says how much it thinks
 * - `thoughts`: whether thoughts without a signature go back
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

const table: { readonly [model: string]: ModelFacts } = {
  "amazon.nova-micro": row(128_000, "plain", "reads", 0.035, 0.14, 0.00875),
  "amazon.nova-lite": row(300_000, "plain", "sees", 0.06, 0.24, 0.015),
  "amazon.nova-pro": row(300_000, "plain", "sees", 0.8, 3.2, 0.2),
  "amazon.nova-premier": row(1_000_000, "plain", "sees", 2.5, 12.5, 0.625),
  "amazon.nova-2-lite": row(1_000_000, "four", "sees", 0.3, 2.5, 0.075),
  "meta.llama3-1-8b-instruct": row(128_000, "plain", "reads", 0.22, 0.22),
  "meta.llama3-1-70b-instruct": row(128_000, "plain", "reads", 0.72, 0.72),
  "meta.llama3-2-11b-instruct": row(128_000, "plain", "sees", 0.16, 0.16),
  "meta.llama3-2-90b-instruct": row(128_000, "plain", "sees", 0.72, 0.72),
  "meta.llama3-3-70b-instruct": row(128_000, "plain", "reads", 0.72, 0.72),
  "meta.llama4-scout-17b-instruct": row(3_500_000, "plain", "sees", 0.17, 0.66),
  "meta.llama4-maverick-17b-instruct": row(1_000_000, "plain", "sees", 0.24, 0.97),
  "mistral.mistral-large-2407": row(128_000, "plain", "reads", 2, 6),
  "mistral.pixtral-large-2502": row(128_000, "plain", "sees", 2, 6),
  "openai.gpt-oss-120b": row(128_000, "three", "reads", 0.15, 0.6),
  "openai.gpt-oss-20b": row(128_000, "three", "reads", 0.07, 0.3),
  "deepseek.r1": row(128_000, "plain", "reads", 1.35, 5.4)
}

/** A model's id without region and version: `us.amazon.nova-pro-v1:0` is `amazon.nova-pro`. */
const baseOf = (model: string): string =>
  (model.startsWith("arn:") ? model.slice(model.lastIndexOf("/") + 1) : model)
    .replace(/^(?:us|us-gov|eu|apac|au|ca|jp|global)\./, "")
    .replace(/(?:-v\d+|-\d+)(?::\d+(?::.*)?)$/, "")

/** Prices of a model of Anthropic's, and what usage costs by them: long requests may cost more. */
export const pricingOf = (model: string, ttl: "5m" | "1h") =>
  familyOf(model).thinking === "claude" ? pricing(profileOf(model), ttl, bedrockFactor(model)) : undefined

/** Gives the facts about a model, as far as a table has them. */
export const factsOf = (model: string): Partial<ModelFacts> | undefined => {
  if (familyOf(model).thinking === "claude") {
    const profile = profileOf(model)
    if (profile.rates === undefined) return undefined
    return defined({
      contextWindowTokens: profile.contextWindowTokens,
      vision: profile.supportsVision,
      prices: pricingOf(model, "5m")?.prices
    })
  }
  const base = baseOf(model)
  return Object.hasOwn(table, base) ? table[base] : undefined
}
