/** JSON values of any depth: their limit, and their texts. */
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"

/**
 * The most arrays and objects nested in each other (512). A parser takes a hundred thousand; encoders and decoders
 * would run out of stack.
 */
export const maxDepth = 512

/** Tells whether more than {@link maxDepth} arrays and objects lie in each other. */
export const isTooDeep = (value: Schema.Json): boolean => isDeeper(value, maxDepth)

const isDeeper = (value: Schema.Json, left: number): boolean =>
  typeof value === "object" &&
  value !== null &&
  (left === 0 || Object.values(value).some((item) => isDeeper(item, left - 1)))

const isTree = (value: Schema.Json): value is Schema.JsonObject => Predicate.isObject(value)

/** Writes without recursion: a value may lie deeper than there is stack. */
const write = (value: Schema.Json, keysOf: (object: Schema.JsonObject) => ReadonlyArray<string>): string => {
  let text = ""
  const todo: Array<{ readonly text: string } | { readonly value: Schema.Json }> = [{ value }]
  for (let part = todo.pop(); part !== undefined; part = todo.pop()) {
    if ("text" in part) text += part.text
    else if (Array.isArray(part.value)) {
      todo.push({ text: "]" })
      for (let index = part.value.length - 1; index >= 0; index--) {
        todo.push({ value: part.value[index] ?? null }, { text: index === 0 ? "" : "," })
      }
      text += "["
    } else if (isTree(part.value)) {
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
export const stringify = (value: Schema.Json): string => write(value, Object.keys)

/**
 * Renders a value with the keys of every object in order, so that two equal values give the same text whatever order
 * their keys came in. It tells `1` from `"1"` and `null` from `"null"`.
 */
export const canonical = (value: Schema.Json): string => write(value, (object) => Object.keys(object).sort())
