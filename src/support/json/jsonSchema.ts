/** Reads foreign JSON Schemas: references, unions, and whether `null` is allowed. Circles and depth are bounded. */
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import { decodePart } from "../text/percent.ts"

type Json = Schema.Json
type JsonObject = Schema.JsonObject

const isObject = (value: unknown): value is JsonObject => Predicate.isObject(value) && !Array.isArray(value)

/** The path of a reference within its own document; `undefined` for another document. */
export const pathOf = (ref: Json | undefined): ReadonlyArray<string> | undefined => {
  if (typeof ref !== "string" || !(ref === "#" || ref.startsWith("#/"))) return undefined
  if (ref === "#") return []
  return ref
    .slice(2)
    .split("/")
    .map((part) => decodePart(part).replaceAll("~1", "/").replaceAll("~0", "~"))
}

/** The schema at a path. */
export const follow = (root: JsonObject, path: ReadonlyArray<string>): JsonObject | undefined => {
  let node: Json | undefined = root
  for (const part of path) {
    const own: Json | undefined = Array.isArray(node)
      ? node[Number(part)]
      : isObject(node) && Object.hasOwn(node, part)
        ? node[part]
        : undefined
    node = own
  }
  return isObject(node) ? node : undefined
}

/** The definitions of a document, by either keyword of the standard's versions. */
export const definitionsOf = ({ $defs, definitions }: JsonObject): JsonObject =>
  isObject($defs) ? $defs : isObject(definitions) ? definitions : {}

/** The schema of a reference, in one step. */
export const targetOf = ({ $ref }: JsonObject, root: JsonObject): JsonObject | undefined => {
  const path = pathOf($ref)
  const [kind, ...rest] = path ?? []
  if (path === undefined) return undefined
  return kind === "$defs" || kind === "definitions" ? follow(definitionsOf(root), rest) : follow(root, path)
}

/** More references to one schema only occur in a circle, or in a hostile document. */
const stepLimit = 64

/** Resolves a schema's references; `undefined` for dangling ones. */
export const resolve = (subschema: Json | undefined, root: JsonObject): JsonObject | undefined => {
  let schema = isObject(subschema) ? subschema : undefined
  for (let step = 0; schema !== undefined && "$ref" in schema; step++) {
    schema = step < stepLimit ? targetOf(schema, root) : undefined
  }
  return schema
}

/** The members of a union. */
export const membersOf = ({ anyOf, oneOf }: JsonObject): ReadonlyArray<Json> | undefined =>
  Array.isArray(anyOf) ? anyOf : Array.isArray(oneOf) ? oneOf : undefined

/** Reports whether a schema names a type. */
export const allows = ({ type }: JsonObject, wanted: string): boolean =>
  type === wanted || (Array.isArray(type) && type.includes(wanted))

/** `Schema.Number` is a number or a literal for infinities; for a model it is a number. */
export const isInfinity = (schema: Json): boolean =>
  isObject(schema) && Array.isArray(schema["enum"]) && schema["enum"].includes("Infinity")

/** Keywords that restrict the valid values. */
const saying = ["type", "allOf", "not", "if", "properties", "items", "prefixItems", "additionalProperties"]

/** A schema with the members of its unions, recursively, each once; a dangling reference is `{}`. */
export const alternativesOf = (subschema: Json | undefined, root: JsonObject): ReadonlySet<JsonObject> => {
  const alternatives = new Set<JsonObject>()
  const todo = [subschema]
  while (todo.length > 0) {
    const next = todo.pop()
    const schema = next === false ? undefined : (resolve(next, root) ?? {})
    if (schema === undefined || alternatives.has(schema)) continue
    alternatives.add(schema)
    todo.push(...(membersOf(schema) ?? []))
  }
  return alternatives
}

/** Reports whether `null` is valid. A circular union does not allow it by itself. */
export const allowsNull = (subschema: Json | undefined, root: JsonObject): boolean =>
  [...alternativesOf(subschema, root)].some((schema) => {
    if (allows(schema, "null")) return true
    if (membersOf(schema) !== undefined) return false
    const { const: constant, enum: values } = schema
    if (constant !== undefined || Array.isArray(values)) {
      return constant === null || (Array.isArray(values) && values.includes(null))
    }
    return !saying.some((keyword) => keyword in schema)
  })
