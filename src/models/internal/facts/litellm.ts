/** Converts the price file of litellm (MIT) to rows of the catalogue. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { valueAt } from "../../../support/json/valueAt.ts"
import { corrections, type CatalogueFile, type Rate, type Row, type Rows } from "./catalogue.ts"

/** Our name of a provider → the source's name, and the text before its ids. */
const sources: { readonly [ours: string]: readonly [name: string, prefix: string] } = {
  anthropic: ["anthropic", ""],
  openai: ["openai", ""],
  gemini: ["gemini", "gemini/"],
  xai: ["xai", "xai/"],
  mistral: ["mistral", "mistral/"],
  deepseek: ["deepseek", "deepseek/"],
  groq: ["groq", "groq/"],
  together: ["together_ai", "together_ai/"],
  fireworks: ["fireworks_ai", "fireworks_ai/"],
  cerebras: ["cerebras", "cerebras/"],
  bedrock: ["bedrock_converse", ""]
}

const optional = Schema.optionalKey

const Model = Schema.StructWithRest(
  Schema.Struct({
    litellm_provider: optional(Schema.String),
    mode: optional(Schema.String),
    max_input_tokens: optional(Schema.Number),
    max_output_tokens: optional(Schema.Number),
    supports_function_calling: optional(Schema.Boolean),
    supports_reasoning: optional(Schema.Boolean),
    supports_vision: optional(Schema.Boolean),
    reasoning_effort_levels: optional(Schema.Array(Schema.String)),
    search_context_cost_per_query: optional(Schema.Struct({ search_context_size_medium: optional(Schema.Number) })),
    provider_specific_entry: optional(Schema.NullOr(Schema.Record(Schema.String, Schema.Unknown))),
    deprecation_date: optional(Schema.String),
    successor_model: optional(Schema.String)
  }),
  [Schema.Record(Schema.String, Schema.Unknown)]
)
type Model = typeof Model.Type

/** The source's file: models by name. */
export const Source = Schema.Record(Schema.String, Schema.Unknown)

const decodeModel = Schema.decodeUnknownOption(Model)

const amount = (value: unknown): number | null => {
  const dollars = typeof value === "number" ? Number((value * 1_000_000).toPrecision(6)) : -1
  return dollars >= 0 && Number.isFinite(dollars) ? dollars : null
}

const count = (value: number | undefined): number | undefined =>
  Number.isSafeInteger(value) && Number(value) > 0 ? value : undefined

const kinds = [
  "input_cost_per_token",
  "output_cost_per_token",
  "cache_read_input_token_cost",
  "cache_creation_input_token_cost"
]

/** A rate, without unknown amounts at its end. `undefined` without a price of input and output. */
const rateOf = (model: Model, suffix: string): Rate | undefined => {
  const amounts = kinds.map((kind) => amount(model[`${kind}${suffix}`]))
  if (amounts[0] === null || amounts[1] === null) return undefined
  return amounts.slice(0, amounts.findLastIndex((one) => one !== null) + 1)
}

const dropUnset = (row: { readonly [key: string]: unknown }) =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined && value !== false))

const tiersOf = (model: Model, suffix: string) => ({
  flex: rateOf(model, `${suffix}_flex`),
  priority: rateOf(model, `${suffix}_priority`),
  batch: rateOf(model, `${suffix}_batches`)
})

const bandsOf = (model: Model) => {
  const sizes = new Set(
    Object.keys(model).flatMap((key) => /^input_cost_per_token_above_(\d+)k_tokens$/.exec(key)?.[1] ?? [])
  )
  const bands = Array.from(sizes, Number)
    .sort((left, right) => left - right)
    .flatMap((size) => {
      const suffix = `_above_${size}k_tokens`
      const prices = rateOf(model, suffix)
      const isReached = size * 1_000 < (model.max_input_tokens ?? Infinity)
      return prices === undefined || !isReached
        ? []
        : [{ above: size * 1_000, ...dropUnset({ prices, ...tiersOf(model, suffix) }) }]
    })
  return bands.length === 0 ? undefined : bands
}

/** Names of factors. The source has other names there, too. */
const factorNames = ["fast", "us"]

const factorsOf = ({ provider_specific_entry: entry }: Model): Row["factors"] => {
  const factors = factorNames.flatMap((name) => {
    const factor = valueAt(entry ?? {}, name)
    return typeof factor === "number" && factor > 0 ? [[name, factor] as const] : []
  })
  return factors.length === 0 ? undefined : Object.fromEntries(factors)
}

const usual = ["low", "medium", "high"]
const levels = ["none", "minimal", ...usual, "xhigh", "max"]

/** The efforts of a family that the source only marks as reasoning. A wrong effort is refused once, and lowered. */
const families: { readonly [provider: string]: ReadonlyArray<readonly [id: RegExp, efforts: ReadonlyArray<string>]> } =
  {
    openai: [[/./, usual]],
    gemini: [
      [/gemini-2\.5-pro/, usual],
      [/gemini-2\.5/, ["none", ...usual]],
      [/gemini-(?:[3-9]|\d\d).*pro|gemini-pro/, usual],
      [/gemini-(?:[3-9]|\d\d|flash)/, ["minimal", ...usual]]
    ],
    xai: [[/^grok-4\.[3-9]|^grok-(?:[5-9]|\d\d)/, ["none", ...usual]]],
    deepseek: [[/flash|pro|v4/, ["none", "high", "max"]]]
  }

/** The efforts that a model takes: the efforts in the source, else the family's, corrected by the source. */
const effortsOf = (provider: string, id: string, model: Model): string | undefined => {
  if (model.reasoning_effort_levels !== undefined) return model.reasoning_effort_levels.join(" ")
  if (model.supports_reasoning !== true) return undefined
  const family = valueAt(families, provider)?.find(([pattern]) => pattern.test(id))?.[1]
  if (family === undefined) return undefined
  const says = (level: string) => model[`supports_${level}_reasoning_effort`]
  return levels.filter((level) => (family.includes(level) ? says(level) !== false : says(level) === true)).join(" ")
}

/** The name of a model without the source's prefix of its provider. */
const nameOf = (provider: string, id: string | undefined): string | undefined => {
  const prefix = valueAt(sources, provider)?.[1] ?? ""
  return id?.startsWith(prefix) === true ? id.slice(prefix.length) : id
}

const rowOf = (provider: string, id: string, model: Model): Row => {
  const { max_input_tokens: input, max_output_tokens: output, search_context_cost_per_query: search } = model
  return dropUnset({
    in: count(input),
    // If the source knows no limit of answers, it repeats the other limit.
    out: output === input ? undefined : count(output),
    vision: model.supports_vision,
    efforts: effortsOf(provider, id, model),
    prices: rateOf(model, ""),
    ...tiersOf(model, ""),
    long: bandsOf(model),
    search: search?.search_context_size_medium,
    factors: factorsOf(model),
    until: model.deprecation_date,
    next: nameOf(provider, model.successor_model)
  })
}

const dated = /[-@](?:\d{4}-\d{2}-\d{2}|\d{8})$/

/** Bedrock's ids have a region before, and a version behind. */
const idOf = (provider: string, id: string): string | undefined => {
  if (id.startsWith("ft:")) return undefined
  if (provider !== "bedrock") return id
  if (id.includes("anthropic.")) return undefined
  return id.replace(/^(?:us|us-gov|eu|apac|au|ca|jp|global)\./, "").replace(/(?:-v\d+|-\d+)?(?::\d+)$/, "")
}

/** Converts the models of one provider. Corrections win. */
const rowsOf = (
  provider: string,
  source: typeof Source.Type,
  own: { readonly [model: string]: Row & { readonly why?: string } }
): { readonly [model: string]: Row } => {
  const [name, prefix] = valueAt(sources, provider) ?? ["", ""]
  const rows = new Map<string, Row>()
  for (const [key, value] of Object.entries(source)) {
    const model = Option.getOrUndefined(decodeModel(value))
    if (model === undefined || model.litellm_provider !== name || !key.startsWith(prefix)) continue
    const isChat = model.mode === "chat" || model.mode === "responses"
    const id = idOf(provider, key.slice(prefix.length))
    if (!isChat || model.supports_function_calling !== true || id === undefined || rows.has(id)) continue
    const row = rowOf(provider, id, model)
    if (row.prices !== undefined) rows.set(id, row)
  }
  // A date behind a name means the model of that name.
  for (const [id, row] of rows) {
    const base = rows.get(id.replace(dated, ""))
    if (dated.test(id) && JSON.stringify(base) === JSON.stringify(row)) rows.delete(id)
  }
  for (const [id, { why: _, ...row }] of Object.entries(own)) rows.set(id, { ...rows.get(id), ...row })
  return Object.fromEntries(Array.from(rows).sort(([left], [right]) => (left < right ? -1 : 1)))
}

/** Converts the whole source. */
export const fromLitellm = (source: typeof Source.Type, ownRows: Rows): Rows =>
  Object.fromEntries(
    Object.keys(sources).map((provider) => [provider, rowsOf(provider, source, valueAt(ownRows, provider) ?? {})])
  )

const decodeSource = Schema.decodeUnknownOption(Schema.fromJsonString(Source))

/** Reads the text of the source's file. `undefined` if it is another file. */
export const parseLitellm = (text: string): CatalogueFile | undefined => {
  const source = Option.getOrUndefined(decodeSource(text))
  if (source === undefined || !Object.values(source).some((one) => decodeModel(one)._tag === "Some" && isListed(one))) {
    return undefined
  }
  return { providers: fromLitellm(source, corrections) }
}

const isListed = (row: unknown): boolean => typeof row === "object" && row !== null && "litellm_provider" in row
