/**
 * A model's request to run a tool.
 */
import * as Schema from "effect/Schema"
import { isObject, type Json, JsonObject } from "./Json.ts"

/**
 * A tool call whose arguments parsed as a JSON object. `id` pairs it with its tool message; ids come from the provider
 * where it gives one.
 */
export const ToolCall = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  arguments: JsonObject,
  providerData: Schema.optionalKey(JsonObject)
})
export type ToolCall = typeof ToolCall.Type

/**
 * A tool call that could not be parsed: kept raw, never dropped, never executed, answered so that the model can repair
 * it. `raw` is the text as the model wrote it.
 */
export const MalformedToolCall = Schema.Struct({
  id: Schema.String,
  name: Schema.optionalKey(Schema.String),
  raw: Schema.String,
  problem: Schema.String
})
export type MalformedToolCall = typeof MalformedToolCall.Type

const render = (value: Json): string => {
  if (typeof value === "string") return value
  if (Array.isArray(value)) return `[${value.map(render).join(", ")}]`
  if (isObject(value)) return `{${describeArguments(value)}}`
  return String(value)
}

/**
 * Arguments as one line for a person: keys in order, strings unquoted, `""` when there are none. For approval prompts
 * and logs; it is not parseable.
 */
export const describeArguments = (value: JsonObject): string =>
  Object.keys(value)
    .sort()
    .map((key) => `${key}: ${render(value[key] ?? null)}`)
    .join(", ")
