/** Token counts of an answer. The first event counts input, the last output, and later counts win. */
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { make, type Usage } from "../../../core/Usage.ts"
import { countOf, objectsOf } from "../wire/read.ts"

export interface Counts {
  input: number
  output: number
  cacheRead: number
  cacheWrite: number
  reasoning: number
  searches: number
  /** The speed and the place of the request. */
  names: ReadonlyArray<string>
}

/**
 * Merges the counts of an event. If some steps of an answer are not in the message (a compaction, another model), only
 * the list of steps counts all of them.
 */
export const count = (counts: Counts, usage: JsonObject): void => {
  const serverTools = usage["server_tool_use"]
  if (isObject(serverTools)) counts.searches = countOf(serverTools["web_search_requests"]) ?? counts.searches
  const names = [usage["speed"], usage["inference_geo"]].filter((one) => typeof one === "string")
  counts.names = [...new Set([...counts.names, ...names])]
  const steps = objectsOf(usage["iterations"])
  if (steps.some((step) => step["type"] !== "message")) {
    const sum = (key: string): number => steps.reduce((total, step) => total + (countOf(step[key]) ?? 0), 0)
    counts.input = sum("input_tokens")
    counts.output = sum("output_tokens")
    counts.cacheRead = sum("cache_read_input_tokens")
    counts.cacheWrite = sum("cache_creation_input_tokens")
    return
  }
  const take = (key: Exclude<keyof Counts, "names">, value: Json | undefined): void => {
    counts[key] = countOf(value) ?? counts[key]
  }
  take("input", usage["input_tokens"])
  take("output", usage["output_tokens"])
  take("cacheRead", usage["cache_read_input_tokens"])
  take("cacheWrite", usage["cache_creation_input_tokens"])
  const details = usage["output_tokens_details"]
  if (isObject(details)) take("reasoning", details["thinking_tokens"])
}

/** Converts counts to usage. Anthropic counts cached input apart; usage counts all input. */
export const usageOf = (counts: Counts): Usage =>
  make({
    inputTokens: counts.input + counts.cacheRead + counts.cacheWrite,
    outputTokens: counts.output,
    cacheReadTokens: counts.cacheRead,
    cacheWriteTokens: counts.cacheWrite,
    reasoningTokens: counts.reasoning
  })

/** Nothing counted yet. */
export const noCounts = (): Counts => ({
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  reasoning: 0,
  searches: 0,
  names: []
})
