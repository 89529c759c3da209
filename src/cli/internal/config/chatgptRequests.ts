/** Writes requests as OpenAI takes them from a ChatGPT plan. */
import * as Redacted from "effect/Redacted"
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"

/** Parameters that OpenAI refuses with a plan. */
const refused = new Set([
  "background",
  "conversation",
  "max_output_tokens",
  "max_tool_calls",
  "metadata",
  "moderation",
  "multi_agent",
  "previous_response_id",
  "prompt",
  "prompt_cache_retention",
  "safety_identifier",
  "temperature",
  "top_logprobs",
  "top_p",
  "truncation",
  "user"
])

const listOf = (value: Json | undefined): ReadonlyArray<Json> => (Array.isArray(value) ? value : [])

/** Reports whether the program runs a tool itself. */
const isOwn = (tool: Json): boolean => isObject(tool) && (tool["type"] === "function" || tool["type"] === "custom")

const toItem = (item: Json): Json =>
  isObject(item) && item["role"] === "system" ? { ...item, role: "developer" } : item

/** Drops refused parameters, moves the program's tools into the input, and gives system messages the role `developer`. */
export const toPlanBody = (body: JsonObject): JsonObject => {
  const { input, tools, ...rest } = body
  const own = listOf(tools).filter(isOwn)
  const others = listOf(tools).filter((tool) => !isOwn(tool))
  return {
    ...Object.fromEntries(Object.entries(rest).filter(([name]) => !refused.has(name))),
    ...(others.length === 0 ? {} : { tools: others }),
    input: [
      ...(own.length === 0 ? [] : [{ type: "additional_tools", role: "developer", tools: own }]),
      ...listOf(input).map(toItem)
    ],
    store: false,
    stream: true
  }
}

/** Sends requests to OpenAI alone, with the token of now. */
export const planFetch =
  (api: string, tokenOf: () => Redacted.Redacted): typeof globalThis.fetch =>
  (_address, init) => {
    const text = init?.body
    const parsed: unknown = typeof text === "string" ? JSON.parse(text) : undefined
    const headers = new Headers(init?.headers)
    headers.set("authorization", `Bearer ${Redacted.value(tokenOf())}`)
    const body = isObject(parsed) ? JSON.stringify(toPlanBody(parsed)) : (text ?? null)
    return globalThis.fetch(`${api}/responses`, { ...init, body, headers, redirect: "error" })
  }
