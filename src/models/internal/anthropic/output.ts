/** An answer in a schema, by the API's own means if it accepts the schema, else by an instruction. */
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { targetOf } from "../../../support/json/jsonSchema.ts"
import { adaptParameters, adaptSchema, type SchemaRules } from "../schema/jsonSchema.ts"
import { wellFormedObject } from "../turn/wellFormed.ts"

/** Keywords that Claude's constrained output enforces. */
const rules: SchemaRules = {
  allRequired: false,
  keywords: new Set(),
  formats: new Set(["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"])
}

/** The request for an answer in a schema: a format, or a text in the system prompt. */
export interface OutputRequest {
  readonly format?: { readonly type: "json_schema"; readonly schema: JsonObject } | undefined
  readonly plea?: string | undefined
  /** Constraints that the API will not enforce, as `path: keyword`. */
  readonly removed: ReadonlyArray<string>
}

/** Reports whether a schema refers to itself, which the API does not accept. */
const isRecursive = (root: JsonObject): boolean => {
  const open = new Set<Json>()
  const visited = new Set<Json>()
  const visit = (value: Json): boolean => {
    if (typeof value !== "object" || value === null || visited.has(value)) return false
    if (open.has(value)) return true
    open.add(value)
    const target = isObject(value) ? targetOf(value, root) : undefined
    const isFound = (target !== undefined && visit(target)) || Object.values(value).some(visit)
    open.delete(value)
    visited.add(value)
    return isFound
  }
  const { $defs: _definitions, ...used } = root
  return visit(used)
}

/** Adapts the parameters of a tool to strict mode. `undefined` if that is impossible. */
export const strictSchema = (schema: JsonObject): JsonObject | undefined => {
  const adapted = adaptParameters(schema, rules)
  return adapted === undefined || isRecursive(adapted.schema) ? undefined : adapted.schema
}

const make = (rawSchema: JsonObject): OutputRequest => {
  const schema = wellFormedObject(rawSchema)
  const adapted = adaptSchema(schema, rules)
  if (adapted !== undefined && !isRecursive(adapted.schema)) {
    // Closing an open object removes no valid value.
    const removed = adapted.removed.filter((one) => !one.endsWith(": additionalProperties"))
    return { format: { type: "json_schema", schema: adapted.schema }, removed }
  }
  const plea = `Answer with JSON that fits this JSON Schema, and with nothing else:\n${JSON.stringify(schema)}`
  return { plea, removed: ["$: the whole schema"] }
}

/** Makes output requests; one schema is adapted once. */
export const makeOutputRequests = (): ((schema: JsonObject | undefined) => OutputRequest | undefined) => {
  const cache = new WeakMap<JsonObject, OutputRequest>()
  return (schema) => {
    if (schema === undefined) return undefined
    const request = cache.get(schema) ?? make(schema)
    cache.set(schema, request)
    return request
  }
}
