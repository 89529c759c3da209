/** Builds the message of a turn from the items of OpenAI's Responses API. */
import * as Content from "../../../core/Content.ts"
import type { Json, JsonObject } from "../../../core/Json.ts"
import type { ToolCall } from "../../../core/ToolCall.ts"
import * as Usage from "../../../core/Usage.ts"
import { defined } from "../../../support/json/defined.ts"
import type { PriceUsage } from "../facts/facts.ts"
import { type Assembler, makeAssembler } from "../turn/assembler.ts"
import { cited } from "../turn/citations.ts"
import type { Sink } from "../turn/decodeTurn.ts"
import type { ToolNames } from "../turn/toolNames.ts"
import type { Origin } from "../wire/errors.ts"
import { countOf, objectOf, objectsOf, stringOf } from "../wire/read.ts"
import { hostedArguments, type HostedCalls } from "./hosted.ts"
import { isReasoning } from "./models.ts"
import type { Slot } from "./responsesSlots.ts"

/** Context of the decoder of a turn. */
export interface DecodeContext {
  readonly origin: Origin
  readonly names: ToolNames
  readonly restore: ((answer: Json) => Json) | undefined
  readonly restoreCall?: ((call: ToolCall) => ToolCall) | undefined
  readonly hosted?: HostedCalls | undefined
  readonly price: PriceUsage
  readonly isBackground?: boolean | undefined
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
    reasoningTokens: countOf(output?.["reasoning_tokens"]) ?? 0,
    // OpenRouter tells it.
    ...defined({ cost: countOf(usage["cost"]) })
  })
}

/** Reports whether an item is a paid search. Opening a page, or looking for a text in it, costs nothing. */
const isSearch = ({ item }: Slot): boolean =>
  item["type"] === "web_search_call" && (stringOf(objectOf(item["action"])?.["type"]) ?? "search") === "search"

/** The usage of a response, at the price of its tier and its searches. */
const pricedUsage = (slots: ReadonlyArray<Slot>, response: JsonObject, { price }: DecodeContext) => {
  const usage = usageOf(response)
  const searches = slots.filter(isSearch).length
  return usage === undefined ? undefined : price(usage, { tier: stringOf(response["service_tier"]), searches })
}

/** All of the reasoning that an item shows. */
export const reasoningText = (slot: Slot): string => {
  const streamed = slot.texts.get(reasoningKey)
  if (streamed !== undefined) return streamed
  const parts = [...objectsOf(slot.item["summary"]), ...objectsOf(slot.item["content"])]
  return parts.flatMap((part) => stringOf(part["text"]) ?? []).join("\n\n")
}

/** Data of a call: the facts of its end. */
interface CallData {
  readonly cut: boolean
  readonly providerData: JsonObject
}

/** A turn while its items are read. */
interface Draft {
  readonly context: DecodeContext
  readonly assembler: Assembler<undefined, CallData>
  readonly isCut: boolean
  /** Items that go back verbatim. */
  readonly items: Array<JsonObject>
  refused: boolean
  /** The phase of the last text. */
  spoken?: { readonly phase: string | undefined }
}

const own = ({ origin }: DecodeContext, data: JsonObject): JsonObject => ({ [origin.provider]: data })

type ItemReader = (draft: Draft, slot: Slot, index: number) => void

const readReasoning: ItemReader = ({ assembler, context }, slot, index) => {
  const data = own(context, { index, item: withoutStatus(slot.item) })
  assembler.add({ _tag: "block", block: Content.reasoning(reasoningText(slot), data) })
}

const addCall = ({ assembler, context }: Draft, item: JsonObject, name: string, raw: string, data: CallData): void => {
  const id = stringOf(item["call_id"]) ?? stringOf(item["id"]) ?? context.makeId()
  const call = assembler.addCall({ id, name, data })
  call.raw = raw
}

const readCall: ItemReader = (draft, { item, texts }, index) => {
  const { context, isCut } = draft
  const raw = stringOf(item["arguments"]) || (texts.get(0) ?? "")
  addCall(draft, item, context.names.own(stringOf(item["name"]) ?? ""), raw, {
    cut: isCut && item["status"] !== "completed",
    providerData: own(
      context,
      defined({
        index,
        id: stringOf(item["id"]),
        namespace: stringOf(item["namespace"]),
        caller: objectOf(item["caller"]),
        async: item["async"] === true ? true : undefined
      })
    )
  })
}

const readHosted =
  (name: string): ItemReader =>
  (draft, { item }, index) =>
    addCall(draft, item, name, hostedArguments(item), {
      cut: false,
      providerData: own(draft.context, { index, hosted: item })
    })

const readMessage: ItemReader = (draft, { item, texts }, index) => {
  const parts = objectsOf(item["content"])
  const phase = stringOf(item["phase"])
  const places = new Set([...parts.keys(), ...texts.keys()])
  for (const at of [...places].sort((left, right) => left - right)) {
    const part = parts[at]
    draft.refused ||= part?.["type"] === "refusal"
    const value = texts.get(at) ?? stringOf(part?.["text"]) ?? stringOf(part?.["refusal"]) ?? ""
    if (value === "") continue
    const annotations = objectsOf(part?.["annotations"])
    const logprobs = objectsOf(part?.["logprobs"])
    const parted = draft.spoken !== undefined && draft.spoken.phase !== phase ? true : undefined
    draft.spoken = { phase }
    const data = defined({
      index,
      id: stringOf(item["id"]),
      phase,
      parted,
      annotations: annotations.length === 0 ? undefined : annotations,
      logprobs: logprobs.length === 0 ? undefined : logprobs
    })
    const text = parted === undefined ? value : parting + value
    const citations = cited(annotations, text, text.length - value.length)
    const block = { ...Content.text(text), ...citations, providerData: own(draft.context, data) }
    draft.assembler.add({ _tag: "block", block })
  }
}

const readOther: ItemReader = ({ items }, { item }, index) => void items.push({ index, item })

const readImage: ItemReader = (draft, slot, index) => {
  const base64 = stringOf(slot.item["result"]) ?? ""
  if (base64 === "") return readOther(draft, slot, index)
  const mimeType = `image/${stringOf(slot.item["output_format"]) ?? "png"}`
  // The data is kept once, as an image. With the rest of the item it goes back.
  const { result: _, ...item } = slot.item
  const providerData = own(draft.context, defined({ index, id: stringOf(slot.item["id"]), item }))
  draft.assembler.add({ _tag: "block", block: { ...Content.image({ base64, mimeType }), providerData } })
}

const readers = new Map<string, ItemReader>([
  ["reasoning", readReasoning],
  ["function_call", readCall],
  ["message", readMessage],
  ["image_generation_call", readImage]
])

const readerOf = ({ item, texts }: Slot, hosted: HostedCalls | undefined): ItemReader | undefined => {
  const type = stringOf(item["type"])
  if (type === undefined) return texts.size > 0 ? readMessage : undefined
  const name = hosted?.toolOf(item)
  return readers.get(type) ?? (name === undefined ? readOther : readHosted(name))
}

/** Builds the message of a turn that ended in good order, and emits it. */
export const finishTurn = (
  slots: ReadonlyArray<Slot>,
  response: JsonObject,
  context: DecodeContext,
  sink: Sink
): void => {
  const { hosted, makeId, origin, restore, restoreCall } = context
  const incomplete = stringOf(objectOf(response["incomplete_details"])?.["reason"])
  const status = stringOf(response["status"])
  const isCut = status === "incomplete" || incomplete !== undefined
  const assembler = makeAssembler<undefined, CallData>(sink, makeId)
  const draft: Draft = { context, assembler, isCut, items: [], refused: false }
  for (const [index, slot] of slots.entries()) readerOf(slot, hosted)?.(draft, slot, index)
  const model = stringOf(response["model"])
  assembler.finish({
    stop: isCut ? (incomplete === "content_filter" ? "contentFilter" : "length") : undefined,
    silent: draft.refused ? "refusal" : "stop",
    model: model ?? origin.model,
    usage: pricedUsage(slots, response, context),
    blockOf: () => undefined,
    callOf: ({ data }) => data,
    restore,
    restoreCall,
    providerData: () =>
      own(
        context,
        defined({
          model: origin.model,
          stopReason: [status ?? (isCut ? "incomplete" : "completed"), incomplete]
            .filter((word) => word !== undefined)
            .join("."),
          id: stringOf(response["id"]),
          items: draft.items.length === 0 ? undefined : draft.items,
          // A deployment, or a fine-tune, has a name that says nothing.
          reasons: !isReasoning(origin.model) && isReasoning(model ?? "") ? true : undefined
        })
      )
  })
}

/** A status is said of an item, never to one. */
const withoutStatus = ({ status: _, ...item }: JsonObject): JsonObject => item
