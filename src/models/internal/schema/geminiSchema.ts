/** The part of JSON Schema that Google's endpoint for OpenAI's clients reads: that of OpenAPI, without references. */
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { definitionOf, depthLimit, described, types, omitKeys } from "./orderedSchema.ts"
import { fieldsOf } from "./schemaFields.ts"

/** Nodes that a schema without references may have, before a repeated one is no longer written out. */
const nodeLimit = 2_000

/** Keywords that Gemini reads beside the structure of a schema. */
export const geminiKeywords: ReadonlySet<string> = new Set([
  "type",
  "description",
  "enum",
  "properties",
  "required",
  "items",
  "anyOf",
  "nullable",
  "minimum",
  "maximum",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "pattern"
])

const anything: JsonObject = {
  anyOf: [{ type: "string" }, { type: "number" }, { type: "boolean" }, { type: "object" }]
}

/** Gemini's subset: one type for each schema, values that are listed are texts, no references. */
export const geminiSchema = (root: JsonObject, definitions: JsonObject): JsonObject => {
  let nodes = 0

  const union = (members: ReadonlyArray<JsonObject>): JsonObject => {
    const others = members.filter((member) => member["type"] !== "null")
    const nullable = others.length < members.length || others.some((one) => one["nullable"] === true)
    const [only] = others
    const schema = only === undefined ? { type: "string" } : others.length === 1 ? only : { anyOf: others }
    return nullable ? { ...schema, nullable: true } : schema
  }

  /** Only text can be listed; of other values the type is told, and the values in words. */
  const toTextEnum = (schema: JsonObject, values: ReadonlyArray<Json>): JsonObject => {
    const texts = values.filter((value) => typeof value === "string")
    const others = values.filter((value) => value !== null && typeof value !== "string")
    const kinds = [...new Set(others.map((value) => typeof value))]
    const members: ReadonlyArray<JsonObject> = [
      ...(texts.length === 0 ? [] : [{ type: "string", enum: texts }]),
      ...kinds.map((type) => ({ type: types.has(type) ? type : "string" })),
      ...(values.includes(null) ? [{ type: "null" }] : [])
    ]
    const merged = { ...omitKeys(schema, "enum", "const", "type"), ...union(members) }
    return others.length === 0 ? merged : described(merged, `One of: ${JSON.stringify(values)}.`)
  }

  const ofType = (schema: JsonObject, type: Json, depth: number, above: ReadonlyArray<JsonObject>): JsonObject => {
    const { additionalProperties, items, prefixItems, properties } = schema
    if (type === "array") {
      const members = [...(Array.isArray(prefixItems) ? prefixItems : []), ...(isObject(items) ? [items] : [])]
      const all = members.filter(isObject).filter((item) => Object.keys(item).length > 0)
      const visited = all.map((item) => visit(item, depth + 1, above))
      const distinct = [...new Map(visited.map((item) => [JSON.stringify(item), item])).values()]
      return { type, items: distinct.length === 0 ? { type: "string" } : union(distinct) }
    }
    if (type !== "object" || !isObject(properties)) {
      const open = isObject(additionalProperties) && Object.keys(additionalProperties).length > 0
      return type === "object" && open
        ? { type, description: `An object of any keys, each value as in: ${JSON.stringify(additionalProperties)}.` }
        : { type }
    }
    const own = Object.entries(properties).map(([key, value]) => [key, visit(value, depth + 1, above)] as const)
    const { required } = schema
    return { type, properties: Object.fromEntries(own), ...(required === undefined ? {} : { required }) }
  }

  const visit = (rawSchema: Json, depth: number, above: ReadonlyArray<JsonObject>): JsonObject => {
    const node = isObject(rawSchema) ? rawSchema : {}
    nodes += 1
    const target = definitionOf(node, definitions)
    if (target !== undefined) {
      if (above.includes(target) || nodes > nodeLimit)
        return { type: target["type"] === "string" ? "string" : "object" }
      const schema = visit(target, depth + 1, [...above, target])
      const { description } = node
      return description === undefined ? schema : { ...schema, description }
    }
    if (depth > depthLimit || nodes > nodeLimit) return anything
    const { const: constant, enum: values, type } = node
    const plain = Object.fromEntries(
      Object.entries(node).filter(
        ([key]) =>
          geminiKeywords.has(key) && !["type", "properties", "required", "items", "anyOf", "enum"].includes(key)
      )
    )
    if (Array.isArray(values)) return toTextEnum(plain, values)
    if (constant !== undefined) return toTextEnum(plain, [constant])
    const members = [node["anyOf"], node["oneOf"]].find(Array.isArray)
    if (members !== undefined) return { ...plain, ...union(members.map((member) => visit(member, depth + 1, above))) }
    const parts = node["allOf"]
    if (Array.isArray(parts)) {
      const all = parts.filter(isObject).map((part) => definitionOf(part, definitions) ?? part)
      const merged = Object.assign({}, ...all, omitKeys(node, "allOf"))
      const fields = fieldsOf(node, definitions)
      const own =
        fields.properties.size === 0 ? {} : { type: "object", properties: Object.fromEntries(fields.properties) }
      return visit(omitKeys({ ...merged, ...own }, "allOf", "$ref"), depth + 1, above)
    }
    if (Array.isArray(type)) {
      return { ...plain, ...union(type.map((one) => ofType(node, one, depth, above))) }
    }
    return type === undefined || type === "null"
      ? { ...plain, ...(type === undefined ? anything : { type: "string", nullable: true }) }
      : { ...plain, ...ofType(node, type, depth, above) }
  }

  return visit(root, 0, [])
}
