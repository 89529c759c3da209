/** Fills in the defaults of a foreign JSON Schema. Circles, depth and the number of values are bounded. */
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import { allowsNull, membersOf, resolve } from "./jsonSchema.ts"

type Json = Schema.Json
type JsonObject = Schema.JsonObject

const isObject = (value: unknown): value is JsonObject => Predicate.isObject(value) && !Array.isArray(value)

const listOf = (value: Json | undefined): ReadonlyArray<Json> => (Array.isArray(value) ? value : [])

/** The most filled values, and the greatest depth: a hostile schema asks for more. */
const maxFilled = 1000
const maxDepth = 64

/** A schema with the members of its unions and of its `allOf`, recursively: every schema about a value. */
const partsOf = (subschema: Json | undefined, root: JsonObject): ReadonlySet<JsonObject> => {
  const parts = new Set<JsonObject>()
  const todo: Array<Json | undefined> = [subschema]
  while (todo.length > 0) {
    const schema = resolve(todo.pop(), root)
    if (schema === undefined || parts.has(schema)) continue
    parts.add(schema)
    todo.push(...(membersOf(schema) ?? []), ...listOf(schema["allOf"]))
  }
  return parts
}

/** The default of a property: its own, or a referenced schema's. */
const defaultOf = (subschema: Json | undefined, root: JsonObject): Json | undefined => {
  if (isObject(subschema) && subschema["default"] !== undefined) return subschema["default"]
  for (const part of partsOf(subschema, root)) if (part["default"] !== undefined) return part["default"]
  return undefined
}

/**
 * Fills in missing values with a default, at any depth, in all alternatives of a union. `null` counts as missing if the
 * schema does not allow it. Returns the same object if nothing is filled in.
 */
export const withDefaults = (schema: JsonObject, args: JsonObject): JsonObject => {
  let room = maxFilled
  const inObject = (parts: ReadonlySet<JsonObject>, value: JsonObject, depth: number): JsonObject => {
    let filled: { [name: string]: Json } | undefined
    const setDefault = (name: string, item: Json): void => {
      filled ??= Object.fromEntries(Object.entries(value))
      Object.defineProperty(filled, name, { value: item, enumerable: true, configurable: true, writable: true })
    }
    const valueOf = (name: string): Json | undefined => {
      const now = filled ?? value
      return Object.hasOwn(now, name) ? now[name] : undefined
    }
    const properties = [...parts].flatMap((part) =>
      isObject(part["properties"]) ? Object.entries(part["properties"]) : []
    )
    // Nested values come second, so that the first of many can't use up the limit for all.
    for (const [name, property] of properties) {
      const own = valueOf(name)
      if (room === 0 || (own !== undefined && (own !== null || allowsNull(property, schema)))) continue
      const item = defaultOf(property, schema)
      if (item === undefined) continue
      room--
      setDefault(name, item)
    }
    for (const [name, property] of properties) {
      const own = valueOf(name)
      const item = own === undefined ? undefined : fill(property, own, depth + 1)
      if (item !== undefined && item !== own) setDefault(name, item)
    }
    return filled ?? value
  }
  const fill = (subschema: Json | undefined, value: Json, depth: number): Json => {
    if (typeof value !== "object" || value === null || depth > maxDepth) return value
    const parts = partsOf(subschema, schema)
    if (isObject(value)) return inObject(parts, value, depth)
    let items: ReadonlyArray<Json> = listOf(value)
    for (const { items: each, prefixItems } of parts) {
      const first = listOf(prefixItems)
      const next = items.map((item, index) => fill(first[index] ?? each, item, depth + 1))
      if (next.some((item, index) => item !== items[index])) items = next
    }
    return items
  }
  return inObject(partsOf(schema, schema), args, 0)
}
