/** A model's request to run a tool. */
import * as Schema from "effect/Schema"
import { cutMiddle } from "../support/text/text.ts"
import { escaped } from "../support/text/untrusted.ts"
import { isObject, type Json, JsonObject } from "./Json.ts"

/**
 * A tool call whose arguments parsed as a JSON object. `id` pairs it with its tool message; the provider makes it, if
 * it can.
 */
export const ToolCall = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  arguments: JsonObject,
  providerData: Schema.optionalKey(JsonObject)
})
export interface ToolCall extends Schema.Schema.Type<typeof ToolCall> {}

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
export interface MalformedToolCall extends Schema.Schema.Type<typeof MalformedToolCall> {}

/** Limits of shown arguments: the length of a value, the number of entries, the depth. */
const limits = { value: 300, entries: 30, depth: 6 } as const

/** Words that could be taken for the next argument stand in quotes. */
const ambiguous = /^$|^\s|\s$|, |: |[[\]{}"]/

const renderText = (text: string): string => {
  const whole = escaped(cutMiddle(text, limits.value, (left) => ` […${left} more…] `))
  return ambiguous.test(text) ? `"${whole.replaceAll('"', '\\"')}"` : whole
}

const listParts = (parts: ReadonlyArray<string>, more: number): string =>
  [...parts, ...(more > 0 ? [`…${more} more`] : [])].join(", ")

const render = (value: Json, depth: number): string => {
  if (typeof value === "string") return renderText(value)
  if (typeof value !== "object" || value === null) return String(value)
  if (depth >= limits.depth) return "…"
  if (isObject(value)) return `{${entries(value, depth + 1)}}`
  const items = value.slice(0, limits.entries).map((item) => render(item, depth + 1))
  return `[${listParts(items, value.length - items.length)}]`
}

const entries = (value: JsonObject, depth: number): string => {
  const parts = Object.keys(value)
    .sort()
    .map((key) => `${renderText(key)}: ${render(value[key] ?? null, depth)}`)
  const isLong = (part: string): boolean => part.length > limits.value / 3
  const ordered = [...parts.filter((part) => !isLong(part)), ...parts.filter(isLong)]
  const firstParts = ordered.slice(0, limits.entries)
  return listParts(firstParts, ordered.length - firstParts.length)
}

/**
 * Describes arguments in one line for a person; `""` for none. For approval prompts and logs; it can't be parsed back.
 *
 * Keys are sorted, short values first, so that a long text does not hide a path. Long texts show head and tail. Control
 * characters are escaped (`\
 * `, `\\u{001b}`), and ambiguous texts are quoted. Whoever decides on a call with hidden parts should look at its
 * arguments.
 */
export const describeArguments = (value: JsonObject): string => entries(value, 0)
