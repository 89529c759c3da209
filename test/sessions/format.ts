/**
 * The format that threads are stored in, written down: a schema of every record, and the shape of everything else that
 * is in the files which this version writes.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { Schema } from "effect"
import { AgentEvent, Journal, type Json, Message } from "effect-deepagents"
import { ThreadEvent } from "effect-deepagents/durable"
import * as fc from "fast-check"
import { DoneRecord } from "../../src/core/loop/records/records.ts"
import { Suspension } from "../../src/core/thread/suspension.ts"
import { schema as outcomeSchema } from "../../src/durable/internal/outcome.ts"
import { Decide, Send } from "../../src/durable/internal/protocol.ts"
import { Stored } from "../../src/sessions/internal/codec.ts"
import { version } from "../../src/support/store/version.ts"

type JsonSchema = { readonly [key: string]: unknown }

/** The records that are read by a schema, by their names in the stored format. */
export const records = {
  message: Message.Message,
  event: AgentEvent.AgentEvent,
  entry: Journal.Entry,
  stored: Stored,
  threadEvent: ThreadEvent.ThreadEvent,
  outcome: outcomeSchema(Schema.String),
  suspension: Suspension,
  inside: DoneRecord,
  send: Schema.Struct(Send.fields),
  decide: Schema.Struct(Decide.fields)
} satisfies { readonly [name: string]: Schema.Codec<unknown, unknown> }

export interface Format {
  readonly v: number
  readonly records: { readonly [name: string]: JsonSchema }
  readonly shared: { readonly [name: string]: JsonSchema }
  readonly shapes: { readonly [place: string]: ReadonlyArray<unknown> }
  readonly tables: ReadonlyArray<string>
}

const isObject = (value: unknown): value is JsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Moves repeated parts out of schemas. */
const share = (schemas: { readonly [name: string]: unknown }): Pick<Format, "records" | "shared"> => {
  const seen = new Map<string, number>()
  const count = (value: unknown): void => {
    if (Array.isArray(value)) return value.forEach(count)
    if (!isObject(value)) return
    const text = JSON.stringify(value)
    seen.set(text, (seen.get(text) ?? 0) + 1)
    if (seen.get(text) === 1) Object.values(value).forEach(count)
  }
  count(schemas)
  const names = new Map<string, string>()
  const shared: { [name: string]: JsonSchema } = {}
  const toWritten = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(toWritten)
    if (!isObject(value)) return value
    const text = JSON.stringify(value)
    const inner = () => Object.fromEntries(Object.entries(value).map(([key, one]) => [key, toWritten(one)]))
    if (text.length < 100 || (seen.get(text) ?? 0) < 2 || value["type"] === undefined) return inner()
    const known = names.get(text)
    if (known !== undefined) return { $ref: known }
    const name = String(names.size + 1)
    names.set(text, name)
    shared[name] = inner()
    return { $ref: name }
  }
  return { records: toWritten(schemas) as Format["records"], shared }
}

const ids = /[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32,}|\d+/g

/** The words by which a reader tells records apart. */
const words = new Set(["_tag", "role", "type", "kind", "stopReason", "status"])

const distinct = (values: ReadonlyArray<unknown>): ReadonlyArray<unknown> =>
  [...new Set(values.map((value) => JSON.stringify(value)))].sort().map((text) => JSON.parse(text))

/** A value's shape: its keys and types, without the content. */
const shapeOf = (value: unknown, key = ""): unknown => {
  if (Array.isArray(value)) return distinct(value.map((one) => shapeOf(one)))
  if (!isObject(value)) return words.has(key) ? value : value === null ? null : typeof value
  const entries = Object.entries(value).map(([name, one]) => [name.replaceAll(ids, "#"), shapeOf(one, name)] as const)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}

const linesIn = (folder: string): ReadonlyArray<unknown> =>
  readdirSync(folder)
    .flatMap((file) => readFileSync(join(folder, file), "utf8").split("\n"))
    .flatMap((line): ReadonlyArray<unknown> => (line === "" ? [] : [JSON.parse(line)]))

const tablesIn = (file: string): ReadonlyArray<string> => {
  const database = new DatabaseSync(file)
  const rows = database.prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").all()
  database.close()
  return rows.map(({ sql }) => String(sql).replaceAll(/\s+/g, " "))
}

/** The format of the present version, which wrote the files in this folder. */
export const formatOf = (at: string): Format => {
  const shapes = new Map<string, Array<unknown>>()
  const add = (place: string, value: unknown): void => {
    shapes.set(place, [...(shapes.get(place) ?? []), shapeOf(value)])
  }
  for (const line of [...linesIn(join(at, "jsonl")), ...linesIn(join(at, "export"))]) {
    if (!isObject(line)) continue
    const { entries, entry, ...rest } = line
    add(
      isObject(entry) ? "line of an export" : typeof line["_tag"] === "string" ? line["_tag"] : "head of an export",
      rest
    )
    for (const one of Array.isArray(entries) ? entries : []) add("entry of a file", { ...one, entry: {} })
    for (const one of [entry, ...(Array.isArray(entries) ? entries.map((stored) => stored.entry) : [])]) {
      if (isObject(one) && one["_tag"] === "State")
        add(`slot ${String(one["slot"]).replaceAll(ids, "#")}`, one["value"])
    }
  }
  const names = [...shapes.keys()].sort()
  const schemas: { [name: string]: unknown } = {}
  const defined: { [ref: string]: JsonSchema } = {}
  for (const [name, one] of Object.entries(records)) {
    const { definitions, schema } = Schema.toJsonSchemaDocument(one)
    schemas[name] = schema
    for (const [ref, definition] of Object.entries(definitions)) {
      defined[`#/$defs/${ref.replaceAll("~", "~0").replaceAll("/", "~1")}`] = definition
    }
  }
  const { records: described, shared } = share(schemas)
  return {
    v: version,
    records: described,
    shared: { ...shared, ...defined },
    shapes: Object.fromEntries(names.map((name) => [name, distinct(shapes.get(name) ?? [])])),
    tables: tablesIn(join(at, "threads.db"))
  }
}

const text = fc.oneof(fc.string({ unit: "grapheme" }), fc.constantFrom("", "\ud800", '"\\\n', "__proto__"))
const json = fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<Json.Json>

/** Any record that a kept schema describes. */
export const encodings = (format: Format, name: string): fc.Arbitrary<unknown> => {
  const known = new Map<string, fc.Arbitrary<unknown>>()
  const anyOf = (schema: JsonSchema): fc.Arbitrary<unknown> => {
    const { $ref: ref, anyOf: members, enum: literals, items, properties, type } = schema
    if (typeof ref === "string") {
      const before = known.get(ref)
      if (before !== undefined) return before
      // A schema inside of itself has any JSON there.
      known.set(ref, json)
      const found = anyOf(format.shared[ref] ?? {})
      known.set(ref, found)
      return found
    }
    if (Array.isArray(members)) return fc.oneof(...members.map(anyOf))
    if (Array.isArray(literals)) return fc.constantFrom(...literals)
    if (type === "string") return text
    if (type === "boolean") return fc.boolean()
    if (type === "null") return fc.constant(null)
    if (type === "number" || type === "integer") {
      return type === "integer" ? fc.integer() : fc.double({ noNaN: true, noDefaultInfinity: true })
    }
    if (type === "array") return isObject(items) ? fc.array(anyOf(items), { maxLength: 3 }) : fc.constant([])
    if (type !== "object") return json
    if (!isObject(properties)) {
      const { additionalProperties } = schema
      return fc.dictionary(text, isObject(additionalProperties) ? anyOf(additionalProperties) : json, { maxKeys: 3 })
    }
    const fields = Object.entries(properties).map(([key, one]) => [key, anyOf(isObject(one) ? one : {})] as const)
    const { required } = schema
    return fc.record(Object.fromEntries(fields), { requiredKeys: Array.isArray(required) ? required : [] })
  }
  return anyOf(format.records[name] ?? {})
}
