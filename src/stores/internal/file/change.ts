/** Decodes the lines of a file of rows, and applies them to rows. */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Rows from "../rows.ts"

/** The version of the file format. No other version is read. */
const version = 1

/** A row, with the id of the change that set it. A conditional change names that id. */
export interface Entry {
  readonly by: string
  readonly value: string
}

/**
 * The changes of a space, in the order of lines. `Set` applies if the change `where` set its first row (`null`: the row
 * is missing), and removes a row without a value. Lines after `Seal` are ignored: another file follows.
 */
const Change = Schema.Union([
  Schema.TaggedStruct("Set", {
    by: Schema.String,
    rows: Schema.Array(Schema.Tuple([Schema.String, Schema.NullOr(Schema.String)])),
    where: Schema.optionalKey(Schema.NullOr(Schema.String))
  }),
  Schema.TaggedStruct("Clear", { by: Schema.String }),
  Schema.TaggedStruct("Seal", { by: Schema.String })
])
export type Change = typeof Change.Type

/** The first line of a file. */
const Head = Schema.TaggedStruct("Head", { v: Schema.Literal(version), space: Schema.String })

const decodeLine = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Union([Change, Head])))

/** Reads a line; `undefined` if it can't be read. */
export const decode = (line: string): Change | typeof Head.Type | undefined => Result.getOrUndefined(decodeLine(line))

export const encode = (change: Change): string => JSON.stringify(change)

/** A whole file. */
export const encodeFile = (space: string, rows: Rows.Rows<Entry>): string => {
  const head: typeof Head.Type = { _tag: "Head", v: version, space }
  const lines = [...rows.map].map(([key, { by, value }]) => encode({ _tag: "Set", by, rows: [[key, value]] }))
  return `${[JSON.stringify(head), ...lines].join("\n")}\n`
}

/** Applies a change to rows; `false` if its condition fails. */
export const apply = (rows: Rows.Rows<Entry>, change: Exclude<Change, { readonly _tag: "Seal" }>): boolean => {
  if (change._tag === "Clear") {
    Rows.clear(rows)
    return true
  }
  const { by, where } = change
  if (where !== undefined && (rows.map.get(change.rows[0]?.[0] ?? "")?.by ?? null) !== where) return false
  for (const [key, value] of change.rows) {
    if (value === null) Rows.remove(rows, key)
    else Rows.setRow(rows, key, { by, value })
  }
  return true
}
