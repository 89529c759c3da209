/** The fields that an object may have, from a schema in good order with all its alternatives. */
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { combinators, definitionOf, depthLimit, stringsOf } from "./orderedSchema.ts"

/** One schema for what either may be; values that are listed become one list. */
const either = (left: Json | undefined, right: Json): Json => {
  if (left === undefined || JSON.stringify(left) === JSON.stringify(right)) return right
  if (!isObject(left) || !isObject(right)) return {}
  const [one, two] = [left["enum"], right["enum"]]
  if (Array.isArray(one) && Array.isArray(two) && left["type"] === right["type"]) {
    return { ...right, ...left, enum: [...new Set([...one, ...two])] }
  }
  const before = left["anyOf"]
  const isUnion = Array.isArray(before) && Object.keys(left).length === 1
  return { anyOf: [...(isUnion ? before : [left]), right] }
}

interface Fields {
  readonly properties: ReadonlyMap<string, Json>
  readonly required: ReadonlyArray<string>
}

const noFields: Fields = { properties: new Map(), required: [] }

const join = (fields: ReadonlyArray<Fields>, required: ReadonlyArray<string>): Fields => {
  const properties = new Map<string, Json>()
  for (const one of fields) {
    for (const [key, value] of one.properties) properties.set(key, either(properties.get(key), value))
  }
  return { properties, required: [...new Set(required)] }
}

/**
 * Collects the properties of an object and of all its alternatives. A property is required if each alternative requires
 * it. `known` caches results and stops recursion.
 */
export const fieldsOf = (
  schema: JsonObject,
  definitions: JsonObject,
  known: Map<JsonObject, Fields> = new Map(),
  depth = 0
): Fields => {
  const before = known.get(schema)
  if (before !== undefined || depth > depthLimit) return before ?? noFields
  known.set(schema, noFields)
  const { properties, required } = schema
  const own: Fields = {
    properties: new Map(Object.entries(isObject(properties) ? properties : {})),
    required: stringsOf(required)
  }
  const target = definitionOf(schema, definitions)
  const parts = [own, ...(target === undefined ? [] : [fieldsOf(target, definitions, known, depth + 1)])]
  for (const key of combinators) {
    const members = schema[key]
    if (!Array.isArray(members)) continue
    const fields = members.filter(isObject).map((member) => fieldsOf(member, definitions, known, depth + 1))
    const inAll = (fields[0]?.required ?? []).filter((name) => fields.every((one) => one.required.includes(name)))
    parts.push(join(fields, key === "allOf" ? fields.flatMap((one) => one.required) : inAll))
  }
  const all = join(
    parts,
    parts.flatMap((one) => one.required)
  )
  known.set(schema, all)
  return all
}
