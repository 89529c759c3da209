/** JSON values as they travel in tool arguments, events and session entries. */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

/** Any JSON value. */
export type Json = Schema.Json

/** A JSON object: what a tool call's arguments are. */
export type JsonObject = Schema.JsonObject

/** Schema of {@link Json}. */
export const Json: Schema.Codec<Json> = Schema.Json

/** Schema of {@link JsonObject}. */
export const JsonObject: Schema.Codec<JsonObject> = Schema.JsonObject

/** Tells whether a value is a JSON object and not an array or null. */
export const isObject = (value: unknown): value is JsonObject => Predicate.isObject(value) && !Array.isArray(value)

/**
 * The number of arrays and objects (512) that may lie in each other in what a model or a tool says. A parser takes a
 * hundred thousand; encoders and decoders would run out of stack.
 */
export const maxDepth = 512

/** Tells whether more than {@link maxDepth} arrays and objects lie in each other. */
export const isTooDeep = (value: Json): boolean => isDeeper(value, maxDepth)

const isDeeper = (value: Json, left: number): boolean =>
  typeof value === "object" &&
  value !== null &&
  (left === 0 || Object.values(value).some((item) => isDeeper(item, left - 1)))

/** Writes without recursion: a value may lie deeper than there is stack. */
const write = (value: Json, keysOf: (object: JsonObject) => ReadonlyArray<string>): string => {
  let text = ""
  const todo: Array<{ readonly text: string } | { readonly value: Json }> = [{ value }]
  for (let part = todo.pop(); part !== undefined; part = todo.pop()) {
    if ("text" in part) text += part.text
    else if (Array.isArray(part.value)) {
      todo.push({ text: "]" })
      for (let index = part.value.length - 1; index >= 0; index--) {
        todo.push({ value: part.value[index] ?? null }, { text: index === 0 ? "" : "," })
      }
      text += "["
    } else if (isObject(part.value)) {
      const object = part.value
      const keys = keysOf(object)
      todo.push({ text: "}" })
      for (let index = keys.length - 1; index >= 0; index--) {
        const key = keys[index] ?? ""
        todo.push({ value: object[key] ?? null }, { text: `${index === 0 ? "" : ","}${JSON.stringify(key)}:` })
      }
      text += "{"
    } else text += JSON.stringify(part.value)
  }
  return text
}

/** Renders a value as `JSON.stringify` does, however deep it is. */
export const stringify = (value: Json): string => write(value, Object.keys)

/**
 * Renders a value with the keys of every object in order, so that two equal values give the same text whatever order
 * their keys came in. It tells `1` from `"1"` and `null` from `"null"`.
 */
export const canonical = (value: Json): string => write(value, (object) => Object.keys(object).sort())

/**
 * Any value as JSON, as `JSON.stringify` has it: a number that is none is `null`, a date its text, `undefined` and
 * functions are left out. What that can't write is said in words: big integers, bytes, errors, what lies in itself, and
 * what lies deeper than {@link maxDepth}. It is a copy: what is changed later is not changed in it. It never fails.
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
  if (above.length >= maxDepth) return "[too deep]"
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
