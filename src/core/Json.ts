/** JSON values as they travel in tool arguments, events and session entries. */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as tree from "./schema/jsonTree.ts"

/** Any JSON value. */
export type Json = Schema.Json

/** A JSON object, such as the arguments of a tool call. */
export type JsonObject = Schema.JsonObject

/** Schema of {@link Json}. */
export const Json: Schema.Codec<Json> = Schema.Json

/** Schema of {@link JsonObject}. */
export const JsonObject: Schema.Codec<JsonObject> = Schema.JsonObject

/** Tells whether a value is a JSON object and not an array or null. */
export const isObject = (value: unknown): value is JsonObject => Predicate.isObject(value) && !Array.isArray(value)

/** Writes a value as `JSON.stringify` does, at any depth. */
export const stringify: (value: Json) => string = tree.stringify

/**
 * Converts any value to JSON, as `JSON.stringify` does: `NaN` becomes `null`, a date its text; `undefined` and
 * functions are left out. Values that `JSON.stringify` rejects become words: big integers, bytes, errors, circular
 * references, and trees deeper than 512. The result is a copy. It never fails.
 */
export const fromUnknown = (value: unknown): Json =>
  Result.getOrElse(
    Result.try(() => convert(value, []) ?? null),
    () => "[can't be read]"
  )

const convert = (value: unknown, above: ReadonlyArray<object>): Json | undefined => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value
    case "number":
      return Number.isFinite(value) ? value : null
    case "bigint":
      return `${value}`
    case "object":
      return value === null ? null : convertObject(value, above)
    case "undefined":
    case "function":
    case "symbol":
      return undefined
  }
}

const convertObject = (value: object, above: ReadonlyArray<object>): Json | undefined => {
  if (above.length >= tree.maxDepth) return "[too deep]"
  if (above.includes(value)) return "[lies in itself]"
  const within = [...above, value]
  if (Predicate.hasProperty(value, "toJSON") && typeof value.toJSON === "function") {
    return convert(value.toJSON(), within)
  }
  if (value instanceof Error) return String(value)
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (Array.isArray(value)) return Array.from(value, (item: unknown) => convert(item, within) ?? null)
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]: readonly [string, unknown]) => {
      const json = convert(item, within)
      return json === undefined ? [] : [[key, json]]
    })
  )
}
