/**
 * Token counts of an answer: the beginning says what was read, the end what was written, and what is said later counts.
 */
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { make, type Usage } from "../../../core/Usage.ts"
import { countOf } from "../read.ts"

export interface Counts {
  input: number
  output: number
  cacheRead: number
  cacheWrite: number
  reasoning: number
}

/** Takes the counts that are there. */
export const count = (counts: Counts, usage: JsonObject): void => {
  const take = (key: keyof Counts, value: Json | undefined): void => {
    counts[key] = countOf(value) ?? counts[key]
  }
  take("input", usage["input_tokens"])
  take("output", usage["output_tokens"])
  take("cacheRead", usage["cache_read_input_tokens"])
  take("cacheWrite", usage["cache_creation_input_tokens"])
  const details = usage["output_tokens_details"]
  if (isObject(details)) take("reasoning", details["thinking_tokens"])
}

/** The counts as usage. Anthropic counts cached input apart; usage counts everything that was read. */
export const usageOf = (counts: Counts): Usage =>
  make({
    inputTokens: counts.input + counts.cacheRead + counts.cacheWrite,
    outputTokens: counts.output,
    cacheReadTokens: counts.cacheRead,
    cacheWriteTokens: counts.cacheWrite,
    reasoningTokens: counts.reasoning
  })

/** Nothing counted yet. */
export const noCounts = (): Counts => ({ input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 })
