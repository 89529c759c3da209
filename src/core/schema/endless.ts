/** Finds JSON Schemas that can't be decoded by. */
import { targetOf } from "../../support/json/jsonSchema.ts"
import { isObject, type Json, type JsonObject } from "../Json.ts"

/** The schemas that hold for the very value that this one holds for. */
const alternativesOf = (schema: JsonObject, root: JsonObject): ReadonlyArray<Json> => {
  const { allOf, anyOf, oneOf } = schema
  const lists = [allOf, anyOf, oneOf].flatMap((list) => (Array.isArray(list) ? list : []))
  const target = targetOf(schema, root)
  return target === undefined ? lists : [...lists, target]
}

/**
 * Tells whether a JSON Schema leads back to itself without a step into the value (`A` is `A` or a string): a decoder of
 * it never comes to an end.
 */
export const isEndless = (root: JsonObject): boolean => {
  const finite = new Set<JsonObject>()
  const open = new Set<JsonObject>()
  /** Visits a schema and its alternatives for the same value. */
  const visit = (schema: Json): boolean => {
    if (!isObject(schema) || finite.has(schema)) return false
    if (open.has(schema)) return true
    open.add(schema)
    const hasCycle = alternativesOf(schema, root).some(visit)
    open.delete(schema)
    finite.add(schema)
    return hasCycle
  }
  const todo: Array<Json> = [root]
  const seen = new Set<Json>()
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    if (typeof next !== "object" || next === null || seen.has(next)) continue
    seen.add(next)
    if (visit(next)) return true
    todo.push(...Object.values(next))
  }
  return false
}
