/**
 * Renews the facts about models in `src/models/internal/facts/models.json` from the data of models.dev:
 *
 * ```sh
 * node scripts/models.ts                      # downloads https://models.dev/api.json
 * node scripts/models.ts api.json             # reads a file, or another address
 * ```
 *
 * It changes windows, limits, vision and prices of the models that are listed, and adds new models of the providers
 * that are listed. Efforts, prices of long requests, and models that the source does not have stay.
 */
import { readFileSync, writeFileSync } from "node:fs"
import * as Schema from "effect/Schema"

const target = "src/models/internal/facts/models.json"

/** Our name of a provider → the name that models.dev has for it. */
const names: { readonly [ours: string]: string } = {
  anthropic: "anthropic",
  openai: "openai",
  gemini: "google",
  xai: "xai",
  mistral: "mistral",
  deepseek: "deepseek",
  groq: "groq",
  together: "togetherai",
  fireworks: "fireworks-ai",
  cerebras: "cerebras"
}

const optional = Schema.optionalKey

const Source = Schema.Record(
  Schema.String,
  Schema.Struct({
    models: Schema.Record(
      Schema.String,
      Schema.Struct({
        tool_call: optional(Schema.Boolean),
        modalities: optional(Schema.Struct({ input: Schema.Array(Schema.String) })),
        limit: optional(Schema.Struct({ context: Schema.Number, output: optional(Schema.Number) })),
        cost: optional(
          Schema.Struct({
            input: Schema.Number,
            output: Schema.Number,
            cache_read: optional(Schema.Number),
            cache_write: optional(Schema.Number)
          })
        )
      })
    )
  })
)

const Prices = Schema.Struct({
  input: Schema.Number,
  output: Schema.Number,
  cacheRead: optional(Schema.Number),
  cacheWrite: optional(Schema.Number)
})

const Row = Schema.Struct({
  contextWindowTokens: Schema.Number,
  maxOutputTokens: optional(Schema.Number),
  vision: Schema.Boolean,
  efforts: optional(Schema.String),
  prices: optional(Prices),
  long: optional(Schema.Struct({ above: Schema.Number, prices: Prices }))
})

const Facts = Schema.Struct({
  asOf: Schema.String,
  providers: Schema.Record(Schema.String, Schema.Record(Schema.String, Row))
})

type Theirs = (typeof Source.Type)[string]["models"][string]

const rowOf = ({ cost, limit, modalities }: Theirs, old: typeof Row.Type | undefined): typeof Row.Type | undefined => {
  // A window that the table has lower, since a higher price begins there, stays.
  const contextWindowTokens = Math.min(limit?.context ?? Infinity, old?.contextWindowTokens ?? Infinity)
  if (!Number.isFinite(contextWindowTokens) || contextWindowTokens <= 0) return old
  const prices = cost && {
    ...old?.prices,
    input: cost.input,
    output: cost.output,
    ...(cost.cache_read === undefined ? {} : { cacheRead: cost.cache_read }),
    ...(cost.cache_write === undefined || old?.prices?.cacheWrite === undefined ? {} : { cacheWrite: cost.cache_write })
  }
  const maxOutputTokens = old?.maxOutputTokens === undefined ? undefined : (limit?.output ?? old.maxOutputTokens)
  return {
    contextWindowTokens,
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    vision: modalities === undefined ? (old?.vision ?? false) : modalities.input.includes("image"),
    ...(old?.efforts === undefined ? {} : { efforts: old.efforts }),
    ...(prices === undefined ? (old?.prices === undefined ? {} : { prices: old.prices }) : { prices }),
    ...(old?.long === undefined ? {} : { long: old.long })
  }
}

const textOf = async (source: string) =>
  /^https?:/.test(source) ? (await fetch(source)).text() : readFileSync(source, "utf8")

const theirs = Schema.decodeUnknownSync(Schema.fromJsonString(Source))(
  await textOf(process.argv[2] ?? "https://models.dev/api.json")
)
const facts = Schema.decodeUnknownSync(Schema.fromJsonString(Facts))(readFileSync(target, "utf8"))

const changes: Array<string> = []
const providers = Object.fromEntries(
  Object.entries(facts.providers).map(([provider, models]) => {
    const source = theirs[names[provider] ?? ""]?.models ?? {}
    const fresh = Object.keys(source).filter((id) => !Object.hasOwn(models, id) && source[id]?.tool_call === true)
    const rows = [...Object.keys(models), ...fresh].flatMap((id) => {
      const found = source[id]
      const row = found === undefined ? models[id] : rowOf(found, models[id])
      if (row === undefined) return []
      if (JSON.stringify(row) !== JSON.stringify(models[id])) changes.push(`${provider}:${id}`)
      return [[id, row] as const]
    })
    return [provider, rows] as const
  })
)

/** One model a line; the formatter breaks those that are too long. */
const lines = Object.entries(providers).map(
  ([provider, rows]) =>
    `    ${JSON.stringify(provider)}: {\n${rows.map(([id, row]) => `      ${JSON.stringify(id)}: ${JSON.stringify(row)}`).join(",\n")}\n    }`
)
const asOf = changes.length === 0 ? facts.asOf : new Date().toISOString().slice(0, 10)
writeFileSync(target, `{\n  "asOf": ${JSON.stringify(asOf)},\n  "providers": {\n${lines.join(",\n")}\n  }\n}\n`)
console.log(`models: ${changes.length} changed\n${changes.join("\n")}\nRun \`npx oxfmt ${target}\` now.`)
