/** Writes the JSON Schema of an Effect schema, in a form that models understand and all providers accept. */
import type * as JsonSchema from "effect/JsonSchema"
import * as Schema from "effect/Schema"
import { pathOf } from "../../support/json/jsonSchema.ts"
import { isObject, type Json, type JsonObject } from "../Json.ts"
import { maxDepth } from "./jsonTree.ts"

/** `Schema.Struct({})` accepts anything but `null`; its author means an object. */
const isEmptyStruct = ({ not }: JsonObject): boolean =>
  isObject(not) && not["type"] === "null" && Object.keys(not).length === 1

const isNull = ({ enum: values, type }: JsonObject): boolean =>
  type === "object" && Array.isArray(values) && values.length === 1 && values[0] === null

const omitKeys = (schema: JsonObject, ...keys: ReadonlyArray<string>): JsonObject =>
  Object.fromEntries(Object.entries(schema).filter(([key]) => !keys.includes(key)))

const mendNode = (schema: JsonObject): JsonObject => {
  if (isEmptyStruct(schema)) return { type: "object", properties: {}, ...omitKeys(schema, "not") }
  return isNull(schema) ? { ...omitKeys(schema, "enum"), type: "null" } : schema
}

/** Values under these are data, and under those schemas by names of the user's. */
const data = new Set(["enum", "const", "default", "examples"])
const named = new Set(["properties", "patternProperties", "$defs"])

/** Changes a schema and the schemas in it, the inner ones first. A schema that is too deep stays as it is below. */
const changeAll = (schema: Json, change: (node: JsonObject) => JsonObject, depth = 0): Json => {
  if (depth > maxDepth) return schema
  const visit = (inner: Json): Json => changeAll(inner, change, depth + 1)
  if (Array.isArray(schema)) return schema.map(visit)
  if (!isObject(schema)) return schema
  return change(
    Object.fromEntries(
      Object.entries(schema).map(([key, value]) => {
        if (data.has(key)) return [key, value]
        if (!named.has(key) || !isObject(value)) return [key, visit(value)]
        return [key, Object.fromEntries(Object.entries(value).map(([name, one]) => [name, visit(one)]))]
      })
    )
  )
}

const mendAll = (schema: Json): Json => changeAll(schema, mendNode)

/** Leaves out implied rules: further keys beside the named ones, and the bounds of all integers. */
const omitUsual = (schema: JsonObject): JsonObject => {
  const { additionalProperties, maximum, minimum, properties } = schema
  return omitKeys(
    schema,
    ...(additionalProperties === true && isObject(properties) ? ["additionalProperties"] : []),
    ...(minimum === Number.MIN_SAFE_INTEGER ? ["minimum"] : []),
    ...(maximum === Number.MAX_SAFE_INTEGER ? ["maximum"] : [])
  )
}

/** Shortens a schema for models. */
export const shorten = (schema: JsonObject): JsonObject => {
  const short = changeAll(schema, omitUsual)
  return isObject(short) ? short : schema
}

/** A JSON Schema is JSON by definition; its type is a loose record. */
const toJson = (schema: JsonSchema.JsonSchema): JsonObject => {
  const json: unknown = schema
  return isObject(json) ? json : {}
}

const nameOf = (ref: Json | undefined): string | undefined => {
  const [kind, name, ...rest] = pathOf(ref) ?? []
  return kind === "$defs" && rest.length === 0 ? name : undefined
}

const refersTo = (value: Json, name: string): boolean =>
  Array.isArray(value)
    ? value.some((item) => refersTo(item, name))
    : isObject(value) && (nameOf(value["$ref"]) === name || Object.values(value).some((item) => refersTo(item, name)))

/**
 * Inlines a root that is a reference (`Schema.Class`, a schema with an identifier). Its definition stays if others
 * refer to it.
 */
const inlineRoot = (root: JsonObject, definitions: JsonObject): JsonObject => {
  const name = nameOf(root["$ref"])
  const target = name === undefined ? undefined : definitions[name]
  const schema = isObject(target) ? { ...target, ...omitKeys(root, "$ref") } : root
  const isUsed = name === undefined || refersTo(Object.values(definitions), name)
  const $defs = isUsed ? definitions : omitKeys(definitions, name)
  return Object.keys($defs).length === 0 ? schema : { ...schema, $defs }
}

/** Writes the JSON Schema of a schema's encoded side. */
export const jsonSchemaOf = (schema: Schema.Constraint): JsonObject => {
  const document = Schema.toJsonSchemaDocument(schema)
  const definitions = mendAll(toJson({ $defs: document.definitions }))
  const $defs = isObject(definitions) && isObject(definitions["$defs"]) ? definitions["$defs"] : {}
  const root = mendAll(toJson(document.schema))
  return inlineRoot(isObject(root) ? root : {}, $defs)
}

/** True for a list with values that no list can be. Its author means the values of the items. */
const hasUnusableValues = ({ enum: values, type }: JsonObject): boolean =>
  type === "array" && Array.isArray(values) && !values.some((value) => Array.isArray(value))

/** Leaves out values that no list can be: nothing would be valid. */
export const withUsableValues = (schema: JsonObject): JsonObject => {
  const changed = changeAll(schema, (node) => (hasUnusableValues(node) ? omitKeys(node, "enum") : node))
  return isObject(changed) ? changed : schema
}
