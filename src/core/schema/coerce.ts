/** Mends the form of arguments by their JSON Schema. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Schemas from "../../support/json/jsonSchema.ts"
import { isObject, type Json, type JsonObject } from "../Json.ts"
import { isTooDeep, maxDepth } from "./jsonTree.ts"

const { allows } = Schemas

const parseJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))

const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

const resolve = (schema: Json | undefined, root: JsonObject): JsonObject => Schemas.resolve(schema, root) ?? {}

/** The one alternative that is meant by a union, when only one is left beside null. */
const single = (schema: JsonObject, root: JsonObject): JsonObject => {
  const members = Schemas.membersOf(schema)
    ?.map((member) => resolve(member, root))
    .filter((member) => !allows(member, "null"))
  const [first, ...rest] = members ?? []
  return first !== undefined && rest.every(Schemas.isInfinity) ? first : schema
}

const scalar = (schema: JsonObject, value: Json): Json => {
  if (typeof value === "string") {
    const text = value.trim()
    if ((allows(schema, "number") || allows(schema, "integer")) && !allows(schema, "string") && number.test(text)) {
      return Number(text)
    }
    if (allows(schema, "boolean") && !allows(schema, "string")) {
      const word = text.toLowerCase()
      return word === "true" ? true : word === "false" ? false : value
    }
    return value
  }
  if (
    (typeof value === "number" || typeof value === "boolean") &&
    allows(schema, "string") &&
    !Array.isArray(schema["type"]) &&
    schema["enum"] === undefined
  ) {
    return String(value)
  }
  return value
}

const coerceItems = (schema: JsonObject, value: Json, root: JsonObject, depth: number): Json => {
  if (Array.isArray(value)) {
    const items = resolve(schema["items"], root)
    return value.map((item) => visit(items, item, root, depth + 1))
  }
  if (!isObject(value)) return value
  const properties = schema["properties"]
  if (!isObject(properties)) return value
  const required = Array.isArray(schema["required"]) ? schema["required"] : []
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) => {
      if (!Object.hasOwn(properties, key)) return [[key, item]]
      const property = resolve(properties[key], root)
      if (item === null && !required.includes(key) && !Schemas.allowsNull(properties[key], root)) return []
      return [[key, visit(property, item, root, depth + 1)]]
    })
  )
}

/**
 * Puts one value into the list that is expected, and into as many as lie in each other: never into a list of itself.
 */
const wrapInList = (schema: JsonObject, value: Json, root: JsonObject, depth: number): Json => {
  const items = single(resolve(schema["items"], root), root)
  const isEndless = items === schema || depth > maxDepth
  return isEndless ? value : [visit(items, value, root, depth + 1)]
}

const visit = (subschema: JsonObject, value: Json, root: JsonObject, depth: number): Json => {
  if (depth > maxDepth) return value
  const schema = single(resolve(subschema, root), root)
  const wantsArray = allows(schema, "array")
  const wantsObject = allows(schema, "object")
  if (typeof value === "string" && (wantsArray || wantsObject) && !allows(schema, "string")) {
    const parsed = Option.getOrUndefined(parseJson(value))
    if ((wantsArray && Array.isArray(parsed)) || (wantsObject && isObject(parsed))) {
      return coerceItems(schema, parsed, root, depth)
    }
  }
  if (wantsArray && !wantsObject && !Array.isArray(value) && value !== null)
    return wrapInList(schema, value, root, depth)
  return Array.isArray(value) || isObject(value) ? coerceItems(schema, value, root, depth) : scalar(schema, value)
}

/**
 * Mends the form of arguments where the JSON Schema leaves no doubt: a number or a boolean in a string, a scalar for a
 * string, a single value for a list, JSON inside a string, `null` for an optional key. Everything else stays, for the
 * decoder to reject.
 */
export const coerce = (schema: JsonObject, value: Json): Json => {
  const coerced = visit(schema, value, schema, 0)
  return isTooDeep(coerced) ? value : coerced
}
