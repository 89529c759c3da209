/**
 * Adapts JSON Schemas to the subset that node-llama-cpp makes grammars from.
 *
 * A grammar produces every declared property. An optional property may therefore be `null`, which is removed from the
 * answer. The tool's own decoder checks constraints that a grammar can't express (a pattern, a range).
 */
import type { GbnfJsonObjectSchema } from "node-llama-cpp"
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { allowsNull, definitionsOf, isInfinity, membersOf, resolve } from "../../../support/json/jsonSchema.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import { merge } from "../../internal/wire/read.ts"

/** A schema for a grammar, and the function that restores answers to the original schema. */
export interface GrammarSchema {
  readonly schema: GbnfJsonObjectSchema
  readonly restore: (json: JsonObject) => JsonObject
}

/** Longer repetitions make a grammar that takes seconds to build. */
const repetitionLimit = 100

const isSmall = (value: Json | undefined): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= repetitionLimit

const pick = (schema: JsonObject, keys: ReadonlyArray<string>): JsonObject =>
  Object.fromEntries(keys.flatMap((key) => (isSmall(schema[key]) ? [[key, schema[key]]] : [])))

const listOf = (value: Json | undefined): ReadonlyArray<Json> => (Array.isArray(value) ? value : [])

const anything: JsonObject = {
  oneOf: [
    { type: ["string", "number", "boolean", "null"] },
    { type: "array" },
    { type: "object", additionalProperties: true }
  ]
}

const formats = ["date-time", "date", "time"]

const refName = (schema: JsonObject): string | undefined => {
  const { $ref } = schema
  return typeof $ref === "string" ? /^#\/(?:\$defs|definitions)\/([^/]+)$/.exec($ref)?.[1] : undefined
}

/** One schema of a schema and all that it has to be as well; `undefined` if they don't go together. */
const intersected = (schema: JsonObject, defs: JsonObject, depth: number): JsonObject | undefined => {
  const { allOf, ...own } = schema
  if (!Array.isArray(allOf)) return schema
  if (depth > 8) return undefined
  let all: JsonObject = own
  for (const member of allOf) {
    if (!isObject(member)) continue
    const name = refName(member)
    const target = name === undefined ? member : valueAt(defs, name)
    const part = isObject(target) ? intersected(target, defs, depth + 1) : undefined
    if (part === undefined || (all["type"] !== undefined && (part["type"] ?? all["type"]) !== all["type"])) {
      return undefined
    }
    const properties: Record<string, Json> = isObject(all["properties"]) ? Object.assign({}, all["properties"]) : {}
    for (const [key, value] of Object.entries(isObject(part["properties"]) ? part["properties"] : {})) {
      const before = properties[key]
      properties[key] = before === undefined ? value : { allOf: [before, value] }
    }
    const required = [...new Set([...listOf(all["required"]), ...listOf(part["required"])])]
    all = merge(
      part,
      all,
      Object.keys(properties).length > 0 ? { properties } : {},
      required.length > 0 ? { required } : {}
    )
  }
  return all
}

interface Context {
  readonly defs: JsonObject
  /** Lets an optional property be `null`; else it is always there. */
  readonly nulls: boolean
}

const objectSchema = (schema: JsonObject, context: Context): JsonObject => {
  const { additionalProperties, properties } = schema
  const required = listOf(schema["required"])
  const declared = isObject(properties) ? Object.entries(properties) : []
  const own = declared.map(([key, value]) => {
    const converted = convert(value, context)
    const isOptional = context.nulls && !required.includes(key) && !allowsNull(value, { $defs: context.defs })
    return [key, isOptional ? { oneOf: [converted, { type: "null" }] } : converted]
  })
  // Beside declared properties `true` only tells a validator to accept more. The model should not produce more.
  const isOpen = declared.length === 0 && additionalProperties !== false
  return {
    type: "object",
    properties: Object.fromEntries(own),
    ...(isObject(additionalProperties)
      ? { additionalProperties: convert(additionalProperties, context) }
      : isOpen
        ? { additionalProperties: true }
        : {})
  }
}

const ofType = (type: Json, schema: JsonObject, context: Context): JsonObject => {
  if (type === "object") return objectSchema(schema, context)
  if (type === "array") {
    const { items, prefixItems } = schema
    return merge(
      { type },
      isObject(items) ? { items: convert(items, context) } : {},
      Array.isArray(prefixItems) ? { prefixItems: prefixItems.map((item) => convert(item, context)) } : {},
      pick(schema, ["minItems", "maxItems"])
    )
  }
  if (type === "string") {
    const { format } = schema
    return typeof format === "string" && formats.includes(format)
      ? { type, format }
      : merge({ type }, pick(schema, ["minLength", "maxLength"]))
  }
  return { type }
}

const described = (schema: JsonObject, converted: JsonObject): JsonObject =>
  typeof schema["description"] === "string" ? merge(converted, { description: schema["description"] }) : converted

const convert = (rawSchema: Json, context: Context): JsonObject => {
  if (!isObject(rawSchema)) return anything
  const name = refName(rawSchema)
  if (name !== undefined) return isObject(valueAt(context.defs, name)) ? { $ref: `#/$defs/${name}` } : anything
  const schema = intersected(rawSchema, context.defs, 0)
  if (schema === undefined) return anything
  const { const: constant, enum: values, type } = schema
  const isScalar = (value: Json) => value === null || typeof value !== "object"
  if (constant !== undefined && isScalar(constant)) return described(schema, { const: constant })
  if (Array.isArray(values) && values.every(isScalar)) return described(schema, { enum: values })
  const members = membersOf(schema)
  if (members !== undefined) {
    const finiteMembers = members.filter((member) => !isInfinity(member))
    return described(schema, { oneOf: finiteMembers.map((member) => convert(member, context)) })
  }
  if (Array.isArray(type)) return described(schema, { oneOf: type.map((one) => ofType(one, schema, context)) })
  const implied = type ?? (isObject(schema["properties"]) ? "object" : "items" in schema ? "array" : undefined)
  return implied === undefined ? anything : described(schema, ofType(implied, schema, context))
}

/** Takes away the `null` of properties that were left out. */
const restored = (value: Json, rawSchema: Json | undefined, defs: JsonObject): Json => {
  const resolved = resolve(rawSchema, { $defs: defs })
  if (resolved === undefined) return value
  const schema = intersected(resolved, defs, 0) ?? resolved
  const members = [...listOf(schema["anyOf"]), ...listOf(schema["oneOf"])]
  if (members.length > 0) {
    const fits = members.find((member) => fitsKeys(value, member, defs))
    return fits === undefined ? value : restored(value, fits, defs)
  }
  if (Array.isArray(value)) return value.map((item) => restored(item, schema["items"], defs))
  const { properties } = schema
  if (!isObject(value) || !isObject(properties)) return value
  const required = listOf(schema["required"])
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) => {
      const own = properties[key]
      const isLeftOut =
        item === null && own !== undefined && !required.includes(key) && !allowsNull(own, { $defs: defs })
      return isLeftOut ? [] : [[key, restored(item, own, defs)]]
    })
  )
}

/**
 * Reports whether a value of a union is one of this member's: an object has all of its keys, since a grammar gives them
 * all.
 */
const fitsKeys = (value: Json, rawSchema: Json, defs: JsonObject): boolean => {
  const member = resolve(rawSchema, { $defs: defs })
  if (member === undefined) return false
  if (Array.isArray(value)) return member["type"] === "array"
  const { properties } = member
  return isObject(value) && isObject(properties) && Object.keys(properties).every((key) => key in value)
}

/** Keywords that a grammar does not enforce. */
const unheld: ReadonlySet<string> = new Set([
  "pattern",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "uniqueItems",
  "minProperties",
  "maxProperties",
  "propertyNames",
  "patternProperties",
  "contains",
  "not",
  "if"
])

/** The keywords of a schema that its grammar leaves out. */
export const unheldIn = (schema: Json): ReadonlyArray<string> => {
  const keywords = new Set<string>()
  const visit = (value: Json, isNamed: boolean): void => {
    if (Array.isArray(value)) for (const item of value) visit(item, false)
    if (!isObject(value)) return
    for (const [key, item] of Object.entries(value)) {
      // Under `properties` and `$defs`, keys are names of the user's.
      if (!isNamed && unheld.has(key)) keywords.add(key)
      if (isNamed || (key !== "const" && key !== "enum" && key !== "default")) {
        visit(item, !isNamed && (key === "properties" || key === "$defs" || key === "definitions"))
      }
    }
  }
  visit(schema, false)
  return [...keywords].sort()
}

/** Makes a schema for a grammar. With `nulls: false` every property is always there. */
export const adapt = (rawSchema: JsonObject, options?: { readonly nulls: boolean }): GrammarSchema => {
  const defs = definitionsOf(rawSchema)
  const context: Context = { defs, nulls: options?.nulls ?? true }
  const $defs = Object.fromEntries(Object.entries(defs).map(([name, schema]) => [name, convert(schema, context)]))
  const converted = convert(rawSchema, context)
  const schema = Object.keys($defs).length === 0 ? converted : merge(converted, { $defs })
  return {
    // The result of `convert` is in the library's part of the language; its types ask for literals.
    schema: schema as JsonObject & GbnfJsonObjectSchema,
    restore: (json) => {
      const value = context.nulls ? restored(json, rawSchema, defs) : json
      return isObject(value) ? value : json
    }
  }
}
