/** Puts the items of OpenAI's Responses API together to the message of a turn. */
import * as Content from "../../../core/Content.ts"
import type { Json, JsonObject } from "../../../core/Json.ts"
import * as Message from "../../../core/Message.ts"
import type { ToolCall } from "../../../core/ToolCall.ts"
import * as Usage from "../../../core/Usage.ts"
import { defined } from "../../../support/json/defined.ts"
import { cited } from "../turn/citations.ts"
import { sortCalls, type StreamedCall } from "../turn/toolCalls.ts"
import type { ToolNames } from "../turn/toolNames.ts"
import type { Origin } from "../wire/errors.ts"
import { countOf, objectOf, objectsOf, stringOf } from "../wire/read.ts"
import { hostedArguments, type HostedCalls } from "./hosted.ts"
import { isReasoning } from "./models.ts"
import type { Slot } from "./responsesSlots.ts"
import { restored } from "./restore.ts"

/** Context of the decoder of a turn. */
export interface DecodeContext {
  readonly origin: Origin
  readonly names: ToolNames
  readonly restore: ((answer: Json) => Json) | undefined
  readonly restoreCall?: ((call: ToolCall) => ToolCall) | undefined
  readonly hosted?: HostedCalls | undefined
  readonly makeId: () => string
}

/** Under which key the text of a reasoning item is. */
export const reasoningKey = 0

/** Separates the model's commentary from its answer. */
export const parting = "\n\n"

const usageOf = (response: JsonObject): Usage.Usage | undefined => {
  const usage = objectOf(response["usage"])
  if (usage === undefined) return undefined
  const input = objectOf(usage["input_tokens_details"])
  const output = objectOf(usage["output_tokens_details"])
  return Usage.make({
    inputTokens: countOf(usage["input_tokens"]) ?? 0,
    outputTokens: countOf(usage["output_tokens"]) ?? 0,
    cacheReadTokens: countOf(input?.["cached_tokens"]) ?? 0,
    cacheWriteTokens: countOf(input?.["cache_write_tokens"]) ?? 0,
    reasoningTokens: countOf(output?.["reasoning_tokens"]) ?? 0
  })
}

/** All of the reasoning that an item shows. */
export const reasoningText = (slot: Slot): string => {
  const streamed = slot.texts.get(reasoningKey)
  if (streamed !== undefined) return streamed
  const said = [...objectsOf(slot.item["summary"]), ...objectsOf(slot.item["content"])]
  return said.flatMap((part) => stringOf(part["text"]) ?? []).join("\n\n")
}

/** The message of a turn that ended in good order. */
export const turnOf = (
  slots: ReadonlyArray<Slot>,
  response: JsonObject,
  { hosted, makeId, names, origin, restore, restoreCall }: DecodeContext
): Message.AiMessage => {
  const own = (data: JsonObject) => ({ providerData: { [origin.provider]: data } })
  const incomplete = stringOf(objectOf(response["incomplete_details"])?.["reason"])
  const status = stringOf(response["status"])
  const isCut = status === "incomplete" || incomplete !== undefined
  const content: Array<Content.Block> = []
  const calls: Array<StreamedCall> = []
  const items: Array<JsonObject> = []
  let refused = false
  let before: string | undefined
  for (const [index, slot] of slots.entries()) {
    const { item, texts } = slot
    const id = stringOf(item["id"])
    const place = defined({ index, id })
    const type = stringOf(item["type"])
    if (type === "reasoning") {
      content.push(Content.reasoning(reasoningText(slot), { [origin.provider]: { index, item: withoutStatus(item) } }))
    } else if (type === "function_call") {
      const raw = stringOf(item["arguments"]) ?? ""
      calls.push({
        id: stringOf(item["call_id"]) ?? id ?? makeId(),
        name: names.own(stringOf(item["name"]) ?? ""),
        raw: raw === "" ? (texts.get(0) ?? "") : raw,
        cut: isCut && item["status"] !== "completed",
        ...own(defined({ ...place, namespace: stringOf(item["namespace"]), caller: objectOf(item["caller"]) }))
      })
    } else if (type !== undefined && hosted?.get(type) !== undefined) {
      calls.push({
        id: stringOf(item["call_id"]) ?? id ?? makeId(),
        name: hosted.get(type) ?? "",
        raw: hostedArguments(type, item),
        cut: false,
        ...own(defined({ index, hosted: item }))
      })
    } else if (type === "message" || (type === undefined && texts.size > 0)) {
      const parts = objectsOf(item["content"])
      const phase = stringOf(item["phase"])
      const places = new Set([...parts.keys(), ...texts.keys()])
      for (const at of [...places].sort((left, right) => left - right)) {
        const part = parts[at]
        const refusal = part?.["type"] === "refusal"
        refused ||= refusal
        const value = texts.get(at) ?? stringOf(part?.["text"]) ?? stringOf(part?.["refusal"]) ?? ""
        const annotations = objectsOf(part?.["annotations"])
        const logprobs = objectsOf(part?.["logprobs"])
        if (value === "") continue
        const parted = content.some((block) => block.type === "text") && before !== phase ? true : undefined
        before = phase
        const data = defined({
          ...place,
          phase,
          parted,
          annotations: annotations.length === 0 ? undefined : annotations,
          logprobs: logprobs.length === 0 ? undefined : logprobs
        })
        const text = parted === undefined ? value : parting + value
        content.push({ ...Content.text(text), ...cited(annotations, text, text.length - value.length), ...own(data) })
      }
    } else if (type === "image_generation_call" && stringOf(item["result"])) {
      // Kept once, as an image. Without storage a generated image can't be sent back.
      const mimeType = `image/${stringOf(item["output_format"]) ?? "png"}`
      content.push({ ...Content.image({ base64: stringOf(item["result"]) ?? "", mimeType }), ...own(place) })
    } else if (type !== undefined) items.push({ index, item })
  }
  const sorted = sortCalls(calls, restoreCall)
  const raw = [status ?? (isCut ? "incomplete" : "completed"), ...(incomplete === undefined ? [] : [incomplete])].join(
    "."
  )
  const stopReason: Message.TurnStop = isCut
    ? incomplete === "content_filter"
      ? "contentFilter"
      : "length"
    : sorted.toolCalls.length + sorted.malformedToolCalls.length > 0
      ? "toolCalls"
      : refused
        ? "refusal"
        : "stop"
  return Message.ai(restored(content, stopReason, restore), {
    id: makeId(),
    ...sorted,
    stopReason,
    model: stringOf(response["model"]) ?? origin.model,
    usage: usageOf(response),
    ...own(
      defined({
        model: origin.model,
        stopReason: raw,
        id: stringOf(response["id"]),
        items: items.length === 0 ? undefined : items,
        // A deployment, or a fine-tune, has a name that says nothing.
        reasons: !isReasoning(origin.model) && isReasoning(stringOf(response["model"]) ?? "") ? true : undefined
      })
    )
  })
}

/** A status is said of an item, never to one. */
const withoutStatus = ({ status: _, ...item }: JsonObject): JsonObject => item
