/** The lines of a file of rows: decoded, and applied to rows. */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Rows from "../rows.ts"

/** The version of what is written, and the only one that is read. */
const version = 1

/** A row, and the change that set it: who expects a row names that change. */
export interface Entry {
  readonly by: string
  readonly value: string
}

/**
 * The changes of a space, in the order of lines. `Set` counts if the first row is as the change `where` left it
 * (`null`: not there); a row without a value is removed. Behind `Seal`, nothing counts: the file is followed by another
 * one.
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

/** Does to rows what a change says; `false` if it does not count. */
export const apply = (rows: Rows.Rows<Entry>, change: Exclude<Change, { readonly _tag: "Seal" }>): boolean => {
  if (change._tag === "Clear") {
    Rows.clear(rows)
    return true
  }
  const { by, where } = change
  if (where !== undefined && (rows.map.get(change.rows[0]?.[0] ?? "")?.by ?? null) !== where) return false
  for (const [key, value] of change.rows) {
    if (value === null) Rows.remove(rows, key)
    else Rows.set(rows, key, { by, value })
  }
  return true
}
