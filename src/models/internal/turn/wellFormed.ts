/**
 * Text that a strict JSON reader takes: half of a surrogate pair, left where a text was cut or written by a model,
 * makes a provider refuse the request, and with it the thread for good.
 */
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"

/** The text with U+FFFD in the place of every half of a pair. */
export const wellFormed = (text: string): string => (text.isWellFormed() ? text : text.toWellFormed())

/** Arrays and objects that may lie in each other: writers of JSON run out of stack further down. */
const depthLimit = 512

const visit = (value: Json, depth: number): Json => {
  if (typeof value === "string") return wellFormed(value)
  if (value === null || typeof value !== "object") return value
  if (depth > depthLimit) return "[nested too deep]"
  if (Array.isArray(value)) {
    const items = value.map((item) => visit(item, depth + 1))
    return items.every((item, index) => item === value[index]) ? value : items
  }
  return isObject(value) ? visitObject(value, depth) : value
}

const visitObject = (object: JsonObject, depth: number): JsonObject => {
  const entries = Object.entries(object)
  const newEntries = entries.map(([key, value]) => [wellFormed(key), visit(value, depth + 1)] as const)
  const isSame = newEntries.every(([key, value], index) => key === entries[index]?.[0] && value === entries[index]?.[1])
  return isSame ? object : Object.fromEntries(newEntries)
}

/** The value with well-formed texts and keys; itself if it has no others. */
export const wellFormedJson = (value: Json): Json => visit(value, 0)

/** As {@link wellFormedJson}, for an object. */
export const wellFormedObject = (object: JsonObject): JsonObject => visitObject(object, 0)
