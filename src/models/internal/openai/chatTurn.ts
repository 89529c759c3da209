/** Puts the pieces of a streamed chat completion together to the message of a turn. */
import * as Content from "../../../core/Content.ts"
import type { JsonObject } from "../../../core/Json.ts"
import * as Message from "../../../core/Message.ts"
import * as Usage from "../../../core/Usage.ts"
import { defined } from "../../../support/json/defined.ts"
import { cited } from "../turn/citations.ts"
import { sortCalls } from "../turn/toolCalls.ts"
import { countOf, objectOf } from "../wire/read.ts"
import type { DecodeContext } from "./responsesTurn.ts"
import { restored } from "./restore.ts"

/** A run of text or of reasoning. `field` is the source field of the reasoning. */
export interface Run {
  readonly kind: "text" | "reasoning"
  text: string
  readonly field: string | undefined
}

/** A call while it is streamed. `given` is the server's own id, empty when it gave none. */
export interface CallSlot {
  readonly index: number | undefined
  readonly given: string
  readonly id: string
  name: string
  raw: string
  started: boolean
  /** Data that has to come back with the call, as Google's signatures of thoughts. */
  extra: JsonObject | undefined
}

/** Everything received in a turn. */
export interface ChatTurn {
  readonly runs: ReadonlyArray<Run>
  readonly calls: ReadonlyArray<CallSlot>
  readonly details: ReadonlyArray<JsonObject>
  /** Citations, with offsets in the whole text. */
  readonly annotations: ReadonlyArray<JsonObject>
  finish: string | undefined
  usage: JsonObject | undefined
  id: string | undefined
  model: string | undefined
  refused: boolean
  /** Token probabilities, if requested. */
  readonly logprobs: Array<JsonObject>
  /** Data that has to come back with the message. */
  extra: JsonObject | undefined
}

const lengths = new Set(["length", "max_tokens", "model_length", "max_output_tokens"])

const filters = new Set(["content_filter", "sensitive", "safety", "guardrail_intervened"])

/** Servers say `stop` for a turn with calls, and `tool_calls` for one without. */
const stopReasonOf = (turn: ChatTurn): Message.TurnStop => {
  const finish = (turn.finish ?? "").toLowerCase()
  if (lengths.has(finish)) return "length"
  if (filters.has(finish)) return "contentFilter"
  if (turn.calls.length > 0) return "toolCalls"
  return turn.refused || finish === "refusal" ? "refusal" : "stop"
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
  const spent = countOf(usage["cost_in_usd_ticks"])
  return Usage.make(
    defined({
      inputTokens,
      outputTokens: completion + unsaid,
      cacheReadTokens,
      cacheWriteTokens: countOf(input?.["cache_write_tokens"]) ?? 0,
      reasoningTokens: reasoning === 0 ? unsaid : reasoning,
      cost: countOf(usage["cost"]) ?? (spent === undefined ? undefined : spent / ticks)
    })
  )
}

/** Drops calls that the server repeated under the same id with the same arguments. */
const distinct = (calls: ReadonlyArray<CallSlot>): ReadonlyArray<CallSlot> => {
  const told = new Set<string>()
  return calls.filter(({ given, name, raw }) => {
    const said = JSON.stringify([given, name, raw.trim()])
    const isRepeated = given !== "" && told.has(said)
    told.add(said)
    return !isRepeated
  })
}

/** The message of a turn that ended in good order. */
export const turnOf = (
  turn: ChatTurn,
  { makeId, names, origin, restore, restoreCall }: DecodeContext
): Message.AiMessage => {
  const own = (data: JsonObject) => ({ [origin.provider]: data })
  const stopReason = stopReasonOf(turn)
  let details = turn.details
  const texts = turn.runs.filter(({ kind }) => kind === "text")
  // Places of a text in pieces can't be told apart: the last one gets the sources.
  const citing = turn.annotations.length === 0 ? undefined : texts.at(-1)
  const content = turn.runs.map((run): Content.Block => {
    const { field, kind, text } = run
    if (kind === "text") {
      if (run !== citing) return Content.text(text)
      return { ...Content.text(text), ...cited(turn.annotations, texts.length === 1 ? text : "") }
    }
    const data = defined({ field, details: details.length === 0 ? undefined : [...details] })
    details = []
    return Object.keys(data).length === 0 ? Content.reasoning(text) : Content.reasoning(text, own(data))
  })
  // Reasoning that is only for the server's eyes.
  const sealed = details.length === 0 ? [] : [Content.reasoning("", own({ details: [...details] }))]
  const calls = distinct(turn.calls)
  const last = calls.length - 1
  const sorted = sortCalls(
    calls.map(({ extra, id, name, raw }, index) => ({
      id,
      name: names.own(name),
      raw,
      cut: stopReason === "length" && index === last,
      providerData: extra === undefined ? undefined : own({ extra })
    })),
    restoreCall
  )
  return Message.ai(restored([...sealed, ...content], stopReason, restore), {
    id: makeId(),
    ...sorted,
    stopReason,
    model: turn.model ?? origin.model,
    usage: turn.usage === undefined ? undefined : usageOf(turn.usage),
    providerData: own(
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
