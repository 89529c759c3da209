/** Token counts and stop reasons, both ways. */
import type * as AiResponse from "effect/ai/Response"
import type { TurnStop } from "../../../../core/Message.ts"
import * as Usage from "../../../../core/Usage.ts"
import { countOf } from "../../../internal/wire/read.ts"

/** Reads the usage that the provider counted; `undefined` if it counted nothing. */
export const toUsage = ({ inputTokens, outputTokens }: AiResponse.Usage): Usage.Usage | undefined => {
  const [cacheRead, cacheWrite, input, uncached] = [
    inputTokens.cacheRead,
    inputTokens.cacheWrite,
    inputTokens.total,
    inputTokens.uncached
  ].map(countOf)
  const [reasoning, text, output] = [outputTokens.reasoning, outputTokens.text, outputTokens.total].map(countOf)
  const counts = [input, uncached, cacheRead, cacheWrite, output, text, reasoning]
  if (counts.every((count) => count === undefined)) return undefined
  return Usage.make({
    inputTokens: input ?? (uncached ?? 0) + (cacheRead ?? 0) + (cacheWrite ?? 0),
    outputTokens: output ?? (text ?? 0) + (reasoning ?? 0),
    cacheReadTokens: cacheRead ?? 0,
    cacheWriteTokens: cacheWrite ?? 0,
    reasoningTokens: reasoning ?? 0
  })
}

/** Counts of ours, as `effect/ai` tells them; it counts in whole tokens. */
export const fromUsage = (usage: Usage.Usage | undefined): AiResponse.FinishPartEncoded["usage"] => {
  if (usage === undefined) return { inputTokens: {}, outputTokens: {} }
  const [input, cacheRead, cacheWrite] = [usage.inputTokens, usage.cacheReadTokens, usage.cacheWriteTokens].map(
    Math.round
  )
  const [output, reasoning] = [usage.outputTokens, usage.reasoningTokens].map(Math.round)
  const part = (whole: number | undefined, ...others: ReadonlyArray<number | undefined>) =>
    Math.max(
      0,
      others.reduce<number>((rest, other) => rest - (other ?? 0), whole ?? 0)
    )
  return {
    inputTokens: { total: input, uncached: part(input, cacheRead, cacheWrite), cacheRead, cacheWrite },
    outputTokens: { total: output, text: part(output, reasoning), reasoning }
  }
}

/** Finds the stop reason, unless the calls of the turn decide it. An errored turn arrives with its own error. */
export const stopOf = (reason: AiResponse.FinishReason | undefined, refused: boolean): TurnStop | undefined => {
  if (refused) return "refusal"
  if (reason === "content-filter") return "contentFilter"
  return reason === "length" || reason === "pause" ? reason : undefined
}

const finishReasons: { readonly [Stop in TurnStop]: AiResponse.FinishReason } = {
  stop: "stop",
  toolCalls: "tool-calls",
  length: "length",
  contentFilter: "content-filter",
  refusal: "content-filter",
  pause: "pause",
  interrupted: "other"
}

/** A stop reason of ours, as `effect/ai` tells it. */
export const fromStop = (stop: TurnStop): AiResponse.FinishReason => finishReasons[stop]
