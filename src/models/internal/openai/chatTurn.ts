/** Builds the message of a streamed chat completion. */
import * as Content from "../../../core/Content.ts"
import type { JsonObject } from "../../../core/Json.ts"
import * as Usage from "../../../core/Usage.ts"
import { defined } from "../../../support/json/defined.ts"
import type { Assembler, Call, Speech } from "../turn/assembler.ts"
import { cited } from "../turn/citations.ts"
import { countOf, objectOf } from "../wire/read.ts"
import type { DecodeContext } from "./responsesTurn.ts"
import { type Sound, soundBlock } from "./sound.ts"

/** Data of a text or of reasoning: the field that it came in. */
export interface BlockData {
  readonly field: string | undefined
}

/** Data of a call. */
export interface CallData {
  /** The server's own id, empty when it gave none. */
  readonly wireId: string
  /** Data that has to come back with the call, as Google's signatures of thoughts. */
  extra: JsonObject | undefined
}

/** The rest of a turn, besides its texts and calls. */
export interface ChatTurn {
  readonly details: Array<JsonObject>
  /** Citations, with offsets in the whole text. */
  readonly annotations: Array<JsonObject>
  finish: string | undefined
  usage: JsonObject | undefined
  id: string | undefined
  model: string | undefined
  /** The tier in which the request was served. */
  tier: string | undefined
  refused: boolean
  /** Token probabilities, if requested. */
  readonly logprobs: Array<JsonObject>
  /** Data that has to come back with the message. */
  extra: JsonObject | undefined
  /** The answer as it is spoken. */
  readonly sound: Sound
}

const lengths = new Set(["length", "max_tokens", "model_length", "max_output_tokens"])

const filters = new Set(["content_filter", "sensitive", "safety", "guardrail_intervened"])

/** The server's reason to stop. `stop` and `tool_calls` say nothing: servers confuse them. */
const stopOf = (finish: string): "length" | "contentFilter" | undefined => {
  if (lengths.has(finish)) return "length"
  return filters.has(finish) ? "contentFilter" : undefined
}

/** Ten thousand million of xAI's ticks are a dollar. */
const ticks = 1e10

/**
 * The counts of an answer. Servers agree on the total alone: some count reasoning beside the completion, and some what
 * was cached beside the prompt.
 */
const usageOf = (usage: JsonObject): Usage.Usage => {
  const input = objectOf(usage["prompt_tokens_details"]) ?? objectOf(usage["prompt_token_details"])
  const output = objectOf(usage["completion_tokens_details"])
  const prompt = countOf(usage["prompt_tokens"]) ?? 0
  const completion = countOf(usage["completion_tokens"]) ?? 0
  const cacheReadTokens =
    countOf(input?.["cached_tokens"]) ??
    countOf(usage["prompt_cache_hit_tokens"]) ??
    countOf(usage["num_cached_tokens"]) ??
    countOf(usage["cached_tokens"]) ??
    0
  const inputTokens = cacheReadTokens > prompt ? prompt + cacheReadTokens : prompt
  const unsaid = Math.max(0, (countOf(usage["total_tokens"]) ?? 0) - inputTokens - completion)
  const reasoning = countOf(output?.["reasoning_tokens"]) ?? 0
  const costTicks = countOf(usage["cost_in_usd_ticks"])
  return Usage.make(
    defined({
      inputTokens,
      outputTokens: completion + unsaid,
      cacheReadTokens,
      cacheWriteTokens: countOf(input?.["cache_write_tokens"]) ?? 0,
      reasoningTokens: reasoning === 0 ? unsaid : reasoning,
      cost: countOf(usage["cost"]) ?? (costTicks === undefined ? undefined : costTicks / ticks)
    })
  )
}

/** Finds the calls that the server repeated under the same id with the same arguments. */
const repetitionsIn = (calls: ReadonlyArray<Call<CallData>>): ReadonlySet<Call> => {
  const callKeys = new Set<string>()
  const repeated = new Set<Call>()
  for (const call of calls) {
    const { data, name, raw } = call
    const callKey = JSON.stringify([data.wireId, name, raw.trim()])
    if (data.wireId !== "" && callKeys.has(callKey)) repeated.add(call)
    callKeys.add(callKey)
  }
  return repeated
}

/** Builds the message of a turn that ended in good order. */
export const finishTurn = (
  assembler: Assembler<BlockData, CallData>,
  turn: ChatTurn,
  { names, origin, price, restore, restoreCall }: DecodeContext
): void => {
  const own = (data: JsonObject) => ({ [origin.provider]: data })
  const { pieces } = assembler
  const speeches = pieces.filter((piece) => piece._tag === "speech")
  const calls = pieces.filter((piece) => piece._tag === "call")
  const texts = speeches.filter(({ kind }) => kind === "text")
  // Places of a text in pieces can't be told apart: the last one gets the sources.
  const citing = turn.annotations.length === 0 ? undefined : texts.at(-1)
  const described = turn.details.length === 0 ? undefined : speeches.find(({ kind }) => kind === "reasoning")
  if (turn.details.length > 0 && described === undefined) {
    // Reasoning that is only for the server's eyes.
    pieces.unshift({ _tag: "block", block: Content.reasoning("", own({ details: turn.details })) })
  }
  const sound = soundBlock(turn.sound, origin.provider)
  if (sound !== undefined) assembler.add({ _tag: "block", block: sound })
  const finish = (turn.finish ?? "").toLowerCase()
  const stop = stopOf(finish)
  for (const call of calls) call.name = names.own(call.name)
  const repeated = repetitionsIn(calls)
  const last = calls.findLast((call) => !repeated.has(call))

  const blockOf = (speech: Speech<BlockData>): Content.Block => {
    const { kind, text } = speech
    if (kind === "text") {
      if (speech !== citing) return Content.text(text)
      return { ...Content.text(text), ...cited(turn.annotations, texts.length === 1 ? text : "") }
    }
    const data = defined({ field: speech.data.field, details: speech === described ? turn.details : undefined })
    return Object.keys(data).length === 0 ? Content.reasoning(text) : Content.reasoning(text, own(data))
  }

  assembler.finish({
    stop,
    silent: turn.refused || finish === "refusal" ? "refusal" : "stop",
    model: turn.model ?? origin.model,
    usage: turn.usage === undefined ? undefined : price(usageOf(turn.usage), { tier: turn.tier }),
    blockOf,
    callOf: (call) =>
      repeated.has(call)
        ? undefined
        : {
            cut: stop === "length" && call === last,
            providerData: call.data.extra === undefined ? undefined : own({ extra: call.data.extra })
          },
    restore,
    restoreCall,
    providerData: () =>
      own(
        defined({
          model: origin.model,
          stopReason: turn.finish ?? "",
          id: turn.id,
          extra: turn.extra,
          logprobs: turn.logprobs.length === 0 ? undefined : turn.logprobs
        })
      )
  })
}
