/**
 * JSON values as they travel in tool arguments, events and session entries.
 */
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"

/** Any JSON value. */
export type Json = Schema.Json

/** A JSON object: what a tool call's arguments are. */
export type JsonObject = Schema.JsonObject

/** Schema of {@link Json}. */
export const Json: Schema.Codec<Json> = Schema.Json

/** Schema of {@link JsonObject}. */
export const JsonObject: Schema.Codec<JsonObject> = Schema.JsonObject

/** Whether a value is a JSON object and not an array or null. */
export const isObject = (value: unknown): value is JsonObject => Predicate.isObject(value) && !Array.isArray(value)

/**
 * Renders a value with the keys of every object in order, so that two equal values give the same text whatever order
 * their keys came in. It tells `1` from `"1"` and `null` from `"null"`.
 */
export const canonical = (value: Json): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`
  if (!isObject(value)) return JSON.stringify(value)
  return `{${Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key] ?? null)}`)
    .join(",")}}`
}
