/** Finds JSON Schemas that can't be decoded by. */
import { targetOf } from "../../support/json/jsonSchema.ts"
import { isObject, type Json, type JsonObject } from "../Json.ts"
import { maxDepth } from "./jsonTree.ts"

/** The schemas that hold for the very value that this one holds for. */
const alternativesOf = (schema: JsonObject, root: JsonObject): ReadonlyArray<Json> => {
  const { allOf, anyOf, oneOf } = schema
  const lists = [allOf, anyOf, oneOf].flatMap((list) => (Array.isArray(list) ? list : []))
  const target = targetOf(schema, root)
  return target === undefined ? lists : [...lists, target]
}

/** More schemas for one value take too long to look at. Ten references to two schemas each are a thousand. */
const maxAlternatives = 10_000

/**
 * Tells whether a decoder of a JSON Schema never comes to an end, or would take too long. It leads back to itself without a
 * step into the value (`A` is `A` or a string), or its references multiply.
 */
export const isEndless = (root: JsonObject): boolean => {
  const counts = new Map<JsonObject, number>()
  /** Counts a schema and its alternatives for the same value: without end for a circle. */
  const count = (schema: Json, depth: number): number => {
    if (!isObject(schema)) return 0
    // A long chain of references would overflow the stack, here and in a decoder.
    if (depth > maxDepth) return Infinity
    const counted = counts.get(schema)
    if (counted !== undefined) return counted
    counts.set(schema, Infinity)
    const all = alternativesOf(schema, root).reduce((sum: number, one) => sum + count(one, depth + 1), 1)
    counts.set(schema, all)
    return all
  }
  const todo: Array<Json> = [root]
  const seen = new Set<Json>()
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    if (typeof next !== "object" || next === null || seen.has(next)) continue
    seen.add(next)
    if (isObject(next) && count(next, 0) > maxAlternatives) return true
    todo.push(...Object.values(next))
  }
  return false
}
