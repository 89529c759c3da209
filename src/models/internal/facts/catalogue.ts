/** The catalogue of models as a file: rows by provider and model. Unknown fields and wrong rows are left out. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { valueAt } from "../../../support/json/valueAt.ts"
import shippedFile from "./models.json" with { type: "json" }

const optional = Schema.optionalKey
const Count = Schema.Number.check(Schema.isFinite(), Schema.isGreaterThanOrEqualTo(0))

/** Dollars of a million tokens: of input, of output, of input from the cache, into it, and into it for an hour. */
const Rate = Schema.Array(Schema.NullOr(Count))
export type Rate = typeof Rate.Type

const rates = { prices: optional(Rate), flex: optional(Rate), priority: optional(Rate), batch: optional(Rate) }

/** The facts of one model, in the short names of the file. */
export const Row = Schema.Struct({
  in: optional(Count),
  out: optional(Count),
  vision: optional(Schema.Boolean),
  efforts: optional(Schema.String),
  ...rates,
  long: optional(Schema.Array(Schema.Struct({ above: Count, ...rates }))),
  search: optional(Count),
  factors: optional(Schema.Record(Schema.String, Count)),
  until: optional(Schema.String),
  next: optional(Schema.String)
})
export type Row = typeof Row.Type

/** Rows by provider and model. */
export type Rows = { readonly [provider: string]: { readonly [model: string]: Row } }

/** The facts about models, and the day that they are of. */
export interface Catalogue {
  /** The day, as `2026-11-28`. */
  readonly asOf: string
  readonly providers: Rows
}

/** The catalogue inside the package. */
export const shipped: Catalogue = shippedFile

/** Corrections of the catalogue's source, which win over a newer one. */
export const corrections: Rows = shippedFile.corrections

const Table = Schema.Record(Schema.String, Schema.Unknown)

const File = Schema.Struct({
  asOf: optional(Schema.String.check(Schema.isPattern(/^\d{4}-\d{2}-\d{2}$/))),
  providers: Schema.Record(Schema.String, Table)
})

/** What a file says. `asOf` is missing in a file of one's own rows. */
export interface CatalogueFile {
  readonly asOf?: string | undefined
  readonly providers: Rows
}

const decodeRow = Schema.decodeUnknownOption(Row)

const rowsOf = (table: { readonly [model: string]: unknown }) =>
  Object.fromEntries(
    Object.entries(table).flatMap(([model, row]) =>
      Option.match(decodeRow(row), { onNone: () => [], onSome: (one) => [[model, one] as const] })
    )
  )

const decodeFile = Schema.decodeUnknownOption(Schema.fromJsonString(File))

/** Reads the text of a file. `undefined` if it is no catalogue. */
export const parseCatalogue = (text: string): CatalogueFile | undefined =>
  Option.match(decodeFile(text), {
    onNone: () => undefined,
    onSome: ({ asOf, providers }) => ({
      asOf,
      providers: Object.fromEntries(Object.entries(providers).map(([name, table]) => [name, rowsOf(table)]))
    })
  })

/** Lays rows over a catalogue: each field of a row wins over the same field below. */
export const overlay = (below: Catalogue, { asOf, providers }: CatalogueFile): Catalogue => {
  const names = new Set([...Object.keys(below.providers), ...Object.keys(providers)])
  const merged = Array.from(names, (name) => {
    const under = valueAt(below.providers, name) ?? {}
    const over = valueAt(providers, name) ?? {}
    const rows = Object.entries(over).map(([model, row]) => [model, { ...valueAt(under, model), ...row }] as const)
    return [name, { ...under, ...Object.fromEntries(rows) }] as const
  })
  return { asOf: asOf !== undefined && asOf > below.asOf ? asOf : below.asOf, providers: Object.fromEntries(merged) }
}

const week = 7 * 86_400_000

/** Weeks from which a catalogue is old. */
const old = 8

/** Describes the age of a catalogue, from eight weeks on. */
export const ageOf = ({ asOf }: Catalogue, now: number): string | undefined => {
  const weeks = Math.floor((now - Date.parse(asOf)) / week)
  return weeks >= old
    ? `The facts about models are of ${asOf}, ${weeks} weeks old: prices, windows and models may have changed since. Renew them by deepagents models refresh, by ModelCatalogue.layerFile, or with the package.`
    : undefined
}

/** Writes a catalogue as a file, one row a line, so that a difference can be read. `more` are further lines. */
export const writeCatalogue = (
  source: string,
  { asOf, providers }: Catalogue,
  more: { readonly [key: string]: unknown } = {}
): string => {
  const blocks = Object.entries(providers).map(([provider, rows]) => {
    const lines = Object.entries(rows).map(([id, row]) => `      ${JSON.stringify(id)}: ${JSON.stringify(row)}`)
    return `    ${JSON.stringify(provider)}: {\n${lines.join(",\n")}\n    }`
  })
  const fields = Object.entries({ source, asOf }).map(
    ([key, value]) => `  ${JSON.stringify(key)}: ${JSON.stringify(value)}`
  )
  const further = Object.entries(more).map(([key, value]) => `  ${JSON.stringify(key)}: ${JSON.stringify(value)}`)
  return `{\n${[...fields, `  "providers": {\n${blocks.join(",\n")}\n  }`, ...further].join(",\n")}\n}\n`
}
