/**
 * The arguments that a tool runs with, as JSON in the words of its parameters: defaults filled in, texts as decoded.
 * Rules decide on them.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { withDefaults } from "../../support/json/defaults.ts"
import { fromUnknown, isObject, type Json, type JsonObject } from "../Json.ts"
import { canonical } from "./jsonTree.ts"

/** Adds the keys that a value lacks and another one has, at any depth. */
const completed = (value: Json, other: Json): Json => {
  if (isObject(value) && isObject(other)) {
    const own = Object.entries(value).map(
      ([key, item]) => [key, Object.hasOwn(other, key) ? completed(item, other[key] ?? null) : item] as const
    )
    const more = Object.entries(other).filter(([key]) => !Object.hasOwn(value, key))
    return Object.fromEntries([...own, ...more])
  }
  if (!Array.isArray(value) || !Array.isArray(other) || value.length !== other.length) return value
  return value.map((item, index) => completed(item, other[index] ?? null))
}

/** Returns the arguments themselves if they are equal, so that there is one value to decide on. */
const settled = (schema: JsonObject, whole: Json, args: JsonObject): JsonObject => {
  const effectiveArgs = withDefaults(schema, isObject(whole) ? whole : args)
  return canonical(effectiveArgs) === canonical(args) ? args : effectiveArgs
}

export type Write<in A> = (value: A, args: JsonObject) => JsonObject

/**
 * Writes back by a schema. Its encoding may leave out what decoding filled in, or fail: then the decoded value stands in
 * as it is.
 */
export const byCodec = (jsonSchema: JsonObject, codec: Schema.ConstraintEncoder<unknown>): Write<unknown> => {
  const encode = Schema.encodeUnknownResult(codec)
  return (value, args) => {
    const plain = fromUnknown(value)
    const encoding = Result.flatMap(
      Result.try(() => encode(value)),
      (result) => result
    )
    return settled(
      jsonSchema,
      Result.isSuccess(encoding) ? completed(fromUnknown(encoding.success), plain) : plain,
      args
    )
  }
}

/** Writes back a value of another library's schema, which can't encode. */
export const asDecoded =
  (jsonSchema: JsonObject): Write<unknown> =>
  (value, args) =>
    settled(jsonSchema, completed(fromUnknown(value), args), args)

/** Arguments that a JSON Schema only checks: its defaults are filled in. */
export const asChecked =
  (jsonSchema: JsonObject): Write<JsonObject> =>
  (_value, args) =>
    withDefaults(jsonSchema, args)
