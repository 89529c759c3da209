/**
 * Fits a JSON Schema to a provider's constrained output, and reports the lost constraints.
 *
 * A constraint that a provider can't enforce moves into the description, and our own decoder still checks it. A schema
 * whose meaning would change is not adapted.
 */
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { allowsNull, definitionsOf, membersOf, resolve } from "../../../support/json/jsonSchema.ts"
import { merge } from "../wire/read.ts"

/**
 * - `allRequired`: every property must be required, so an optional one is made nullable (and `restore` takes the nulls
 *   out of the answer)
 * - `keywords`: the constraints that may be sent, `formats` the values of `format`
 */
export interface SchemaRules {
  readonly allRequired: boolean
  readonly keywords: ReadonlySet<string>
  readonly formats: ReadonlySet<string>
}

/** `removed` lists the constraints that the provider will not enforce, as `path: keyword`. */
export interface AdaptedSchema {
  readonly schema: JsonObject
  readonly removed: ReadonlyArray<string>
  readonly restore: (answer: Json) => Json
}

const structural = new Set(["type", "description", "enum", "properties", "required", "items", "anyOf", "$defs"])

/** Keywords that say nothing about which values are valid. */
const annotations = new Set([
  "$schema",
  "$id",
  "$comment",
  "title",
  "default",
  "examples",
  "deprecated",
  "readOnly",
  "writeOnly"
])

const refName = (ref: Json | undefined): string | undefined =>
  typeof ref === "string" ? /^#\/(?:\$defs|definitions)\/([^/]+)$/.exec(ref)?.[1] : undefined

/** Replaces a reference at the root by its target, because providers require an object there. */
export const inlineRoot = (schema: JsonObject): JsonObject => {
  const target = "$ref" in schema ? resolve(schema, schema) : undefined
  return target === undefined ? schema : merge(target, { $defs: definitionsOf(schema) })
}

const requiredOf = (schema: JsonObject): ReadonlyArray<Json> => {
  const required = schema["required"]
  return Array.isArray(required) ? required : []
}

const noted = (schema: JsonObject, notes: ReadonlyArray<string>): JsonObject => {
  if (notes.length === 0) return schema
  const before = typeof schema["description"] === "string" ? `${schema["description"]} ` : ""
  return merge(schema, { description: `${before}(${notes.join(", ")})` })
}

/** Constraints that were put in an `allOf` of their own; anything else in one is beyond every provider. */
const flattened = (schema: JsonObject): JsonObject | undefined => {
  const { allOf, ...rest } = schema
  if (allOf === undefined) return schema
  if (!Array.isArray(allOf)) return undefined
  let merged: JsonObject = rest
  for (const member of allOf) {
    if (!isObject(member)) return undefined
    for (const [key, value] of Object.entries(member)) {
      if (annotations.has(key)) continue
      if (key in merged && JSON.stringify(merged[key]) !== JSON.stringify(value)) {
        if (key !== "description") return undefined
      } else merged = merge(merged, { [key]: value })
    }
  }
  return merged
}

/** Makes a schema fit, or gives nothing when no schema that the provider accepts means the same. */
export const adaptSchema = (rawSchema: JsonObject, rules: SchemaRules): AdaptedSchema | undefined => {
  const root = inlineRoot(rawSchema)
  const removed: Array<string> = []
  let isLossy = false

  const many = (schemas: Json | undefined, path: string): JsonObject =>
    isObject(schemas)
      ? Object.fromEntries(Object.entries(schemas).map(([key, value]) => [key, visit(value, `${path}.${key}`)]))
      : {}

  const object = (schema: JsonObject, path: string): JsonObject => {
    const { additionalProperties, properties } = schema
    const open = additionalProperties !== undefined && additionalProperties !== false
    if ("patternProperties" in schema || isObject(additionalProperties) || (open && !isObject(properties)))
      isLossy = true
    const required = requiredOf(schema)
    const own = many(properties, path)
    const adapted = Object.fromEntries(
      Object.entries(own).map(([key, value]) => {
        const optional = !required.includes(key) && rules.allRequired
        const original = isObject(properties) ? properties[key] : undefined
        if (!optional || allowsNull(original, root) || !isObject(value)) return [key, value]
        return [key, { anyOf: [...(membersOf(value) ?? [value]), { type: "null" }] }]
      })
    )
    return {
      properties: adapted,
      required: rules.allRequired ? Object.keys(adapted) : required,
      additionalProperties: false
    }
  }

  /** Keeps the keywords that are enforced, and notes the others for the description. */
  const keywordsOf = (schema: JsonObject, path: string) => {
    const notes: Array<string> = []
    const keywords: Record<string, Json> = {}
    for (const [key, value] of Object.entries(schema)) {
      if (structural.has(key) || rules.keywords.has(key)) keywords[key] = value
      else if (key === "format" && typeof value === "string" && rules.formats.has(value)) keywords[key] = value
      else if (key === "const") keywords["enum"] = [value]
      else if (!annotations.has(key) && !["additionalProperties", "oneOf", "definitions", "$ref"].includes(key)) {
        removed.push(`${path}: ${key}`)
        notes.push(`${key}: ${JSON.stringify(value)}`)
      }
    }
    return { keywords, notes }
  }

  const visit = (node: Json, path: string): JsonObject => {
    const schema = isObject(node) ? flattened(node) : undefined
    if (schema === undefined || "prefixItems" in schema || "not" in schema || "if" in schema) {
      isLossy = true
      return {}
    }
    const name = refName(schema["$ref"])
    if (name !== undefined) return { $ref: `#/$defs/${name}` }
    if (schema["$ref"] === "#") return { $ref: "#" }
    const { keywords, notes } = keywordsOf(schema, path)
    const union = membersOf(schema)
    if (union !== undefined) keywords["anyOf"] = union.map((member, index) => visit(member, `${path}[${index}]`))
    if (schema["type"] === "array") keywords["items"] = visit(schema["items"] ?? true, `${path}[]`)
    if (schema["type"] === "object") Object.assign(keywords, object(schema, path))
    if (!["type", "anyOf", "enum"].some((key) => key in keywords)) isLossy = true
    delete keywords["$defs"]
    return noted(keywords, notes)
  }

  const definitions = definitionsOf(root)
  const schema = visit(root, "$")
  const defs = many(definitions, "$defs")
  if (isLossy || schema["type"] !== "object" || "anyOf" in schema) return undefined
  return {
    schema: Object.keys(defs).length === 0 ? schema : merge(schema, { $defs: defs }),
    removed,
    restore: rules.allRequired ? (answer) => withoutNulls(root, answer, root) : (answer) => answer
  }
}

const fits = (schema: JsonObject | undefined, value: Json): boolean => {
  if (schema === undefined) return false
  const type = schema["type"]
  if (Array.isArray(value)) return type === "array"
  if (!isObject(value)) return type === (value === null ? "null" : typeof value)
  const properties = schema["properties"]
  if (type !== "object" || !isObject(properties)) return false
  return (
    Object.keys(value).every((key) => key in properties) &&
    requiredOf(schema).every((key) => typeof key === "string" && key in value) &&
    Object.entries(properties).every(([key, property]) => {
      const only = isObject(property) ? (property["const"] ?? property["enum"]) : undefined
      return only === undefined || (Array.isArray(only) ? only.includes(value[key] ?? null) : only === value[key])
    })
  )
}

const withoutNulls = (rawSchema: Json | undefined, value: Json, root: JsonObject): Json => {
  const schema = resolve(rawSchema, root)
  const union = schema === undefined ? undefined : membersOf(schema)
  if (union !== undefined) {
    const variant = union.find((member) => fits(resolve(member, root), value))
    return variant === undefined ? value : withoutNulls(variant, value, root)
  }
  if (schema === undefined) return value
  if (Array.isArray(value)) return value.map((item) => withoutNulls(schema["items"], item, root))
  const properties = schema["properties"]
  if (!isObject(value) || !isObject(properties)) return value
  const required = requiredOf(schema)
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) => {
      const dropped = item === null && !required.includes(key) && !allowsNull(properties[key], root)
      return dropped ? [] : [[key, withoutNulls(properties[key], item, root)]]
    })
  )
}

/** Reports whether a schema, at its root or below, takes properties of any name. */
const isOpen = (value: Json): boolean => {
  if (Array.isArray(value)) return value.some(isOpen)
  if (!isObject(value)) return false
  const { additionalProperties: more, patternProperties, properties, type } = value
  const isBare = type === "object" && properties === undefined && more !== false
  const isMap = more === true || isObject(more) || isObject(patternProperties)
  return isBare || isMap || Object.values(value).some(isOpen)
}

/**
 * The parameters of a tool as a provider can hold a model to them. Nothing where no such schema means the same, or where
 * the tool takes properties of any name.
 */
export const adaptParameters = (schema: JsonObject, rules: SchemaRules): AdaptedSchema | undefined =>
  isOpen(schema) ? undefined : adaptSchema(schema, rules)
