/**
 * Writes the facts about models, `src/models/internal/facts/models.json`, from the price file of litellm (MIT) and from
 * `scripts/models/corrections.json`, which wins and gives a reason for each of its rows.
 *
 * ```sh
 * pip download litellm --no-deps && unzip litellm-*.whl
 * node scripts/models.ts litellm/model_prices_and_context_window_backup.json 1.110.2   # writes the file
 * node scripts/models.ts litellm/model_prices_and_context_window_backup.json --check   # fails if it would differ
 * ```
 */
import { readFileSync, writeFileSync } from "node:fs"
import * as Schema from "effect/Schema"

const target = "src/models/internal/facts/models.json"

/** Our name of a provider → the source's name, and the text before its ids. */
const providers: { readonly [ours: string]: readonly [name: string, prefix: string] } = {
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
    deprecation_date: optional(Schema.String),
    successor_model: optional(Schema.String)
  }),
  [Schema.Record(Schema.String, Schema.Unknown)]
)
type Model = typeof Model.Type

const Source = Schema.Record(Schema.String, Schema.Unknown)

/** Dollars of a million tokens: of input, of output, of input from the cache and into it. Unknown ones are `null`. */
const Rate = Schema.Array(Schema.NullOr(Schema.Number))
type Rate = typeof Rate.Type

const Band = Schema.Struct({
  above: Schema.Number,
  prices: Rate,
  flex: optional(Rate),
  priority: optional(Rate)
})

const Row = Schema.Struct({
  in: optional(Schema.Number),
  out: optional(Schema.Number),
  vision: optional(Schema.Boolean),
  efforts: optional(Schema.String),
  prices: optional(Rate),
  flex: optional(Rate),
  priority: optional(Rate),
  long: optional(Schema.Array(Band)),
  search: optional(Schema.Number),
  until: optional(Schema.String),
  next: optional(Schema.String)
})
type Row = typeof Row.Type

const Corrections = Schema.Record(
  Schema.String,
  Schema.Record(Schema.String, Schema.Struct({ why: Schema.String, ...Row.fields }))
)

const readText = (path: string) => readFileSync(path, "utf8")
const [, , path = "", version = ""] = process.argv
const isCheck = version === "--check"
const source = Schema.decodeUnknownSync(Schema.fromJsonString(Source))(readText(path))
const corrections = Schema.decodeUnknownSync(Schema.fromJsonString(Corrections), { onExcessProperty: "error" })(
  readText("scripts/models/corrections.json")
)
const decodeModel = Schema.decodeUnknownOption(Model)

const amount = (value: unknown): number | null =>
  typeof value === "number" ? Number((value * 1_000_000).toPrecision(6)) : null

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

const defined = (row: { readonly [key: string]: unknown }) =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined && value !== false))

const tiersOf = (model: Model, suffix: string) => ({
  flex: rateOf(model, `${suffix}_flex`),
  priority: rateOf(model, `${suffix}_priority`)
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
        : [defined({ above: size * 1_000, prices, ...tiersOf(model, suffix) })]
    })
  return bands.length === 0 ? undefined : bands
}

const usual = ["low", "medium", "high"]
const levels = ["none", "minimal", ...usual, "xhigh", "max"]

/** The efforts that a model takes. Only OpenAI's models take the usual ones without a word of it. */
const effortsOf = (provider: string, model: Model): string | undefined => {
  if (model.reasoning_effort_levels !== undefined) return model.reasoning_effort_levels.join(" ")
  if (provider !== "openai" || model.supports_reasoning !== true) return undefined
  const says = (level: string) => model[`supports_${level}_reasoning_effort`]
  return levels.filter((level) => (usual.includes(level) ? says(level) !== false : says(level) === true)).join(" ")
}

const rowOf = (provider: string, model: Model): Row => {
  const { max_input_tokens: input, max_output_tokens: output, search_context_cost_per_query: search } = model
  return defined({
    in: input,
    // Where the source knows no limit of answers, it repeats the other one.
    out: output === input ? undefined : output,
    vision: model.supports_vision,
    efforts: effortsOf(provider, model),
    prices: rateOf(model, ""),
    ...tiersOf(model, ""),
    long: bandsOf(model),
    search: search?.search_context_size_medium,
    until: model.deprecation_date,
    next: model.successor_model
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

const rowsOf = (provider: string): ReadonlyArray<readonly [string, Row]> => {
  const [name, prefix] = providers[provider] ?? ["", ""]
  const rows = new Map<string, Row>()
  for (const [key, value] of Object.entries(source)) {
    const decoded = decodeModel(value)
    if (decoded._tag === "None" || decoded.value.litellm_provider !== name || !key.startsWith(prefix)) continue
    const model = decoded.value
    const isChat = model.mode === "chat" || model.mode === "responses"
    const id = idOf(provider, key.slice(prefix.length))
    if (!isChat || model.supports_function_calling !== true || id === undefined || rows.has(id)) continue
    const row = rowOf(provider, model)
    if (row.prices !== undefined) rows.set(id, row)
  }
  // A date behind a name means the model of that name.
  for (const [id, row] of rows) {
    const base = rows.get(id.replace(dated, ""))
    if (dated.test(id) && JSON.stringify(base) === JSON.stringify(row)) rows.delete(id)
  }
  for (const [id, { why: _, ...row }] of Object.entries(corrections[provider] ?? {})) {
    rows.set(id, { ...rows.get(id), ...row })
  }
  return Array.from(rows).sort(([left], [right]) => (left < right ? -1 : 1))
}

const before = JSON.parse(readText(target))
const asOf = isCheck ? before.asOf : new Date().toISOString().slice(0, 10)
const from = isCheck ? before.source : `litellm ${version} (MIT), model_prices_and_context_window_backup.json`
const blocks = Object.keys(providers).map((provider) => {
  const rows = rowsOf(provider).map(([id, row]) => `      ${JSON.stringify(id)}: ${JSON.stringify(row)}`)
  return `    ${JSON.stringify(provider)}: {\n${rows.join(",\n")}\n    }`
})
const text = `{\n  "source": ${JSON.stringify(from)},\n  "asOf": ${JSON.stringify(asOf)},\n  "providers": {\n${blocks.join(",\n")}\n  }\n}\n`
if (isCheck && text !== readText(target)) throw new Error(`${target} differs from its source and corrections`)
writeFileSync(target, text)
console.log(
  `models: ${blocks.reduce((sum, block) => sum + block.split("\n").length - 2, 0)} rows, ${text.length} bytes`
)
