/** Reads the events of OpenAI's Responses API into the parts of a turn. */
import type { JsonObject } from "../../../core/Json.ts"
import { ModelError } from "../../../core/ModelError.ts"
import { isTooDeep, tooDeep } from "../schema/nesting.ts"
import type { Sink, TurnDecoder } from "../turn/decodeTurn.ts"
import { badResponse, type Origin, providerError } from "../wire/errors.ts"
import { objectOf, objectsOf, placeOf, stringOf } from "../wire/read.ts"
import { failureOf } from "./failure.ts"
import { toolFor } from "./hosted.ts"
import { makeSlots, type Slot } from "./responsesSlots.ts"
import { type DecodeContext, parting, reasoningKey, reasoningText, turnOf } from "./responsesTurn.ts"

/** Events that say nothing which the others do not say. */
const silent =
  /^response\.(?:created|in_progress|queued|content_part\.|output_text\.annotation\.|reasoning_summary_part\.done|reasoning_summary_text\.done|reasoning_text\.done|refusal\.done|compaction|[a-z_]+_call(?:_[a-z]+)?\.|mcp_list_tools\.|audio\.)|^keepalive$/

/** Makes the decoder of one turn. */
export const makeResponsesDecoder = (context: DecodeContext): TurnDecoder<unknown> => {
  const { hosted, names, origin } = context
  const slots = makeSlots()
  let done = false

  const callId = (item: JsonObject): string => stringOf(item["call_id"]) ?? stringOf(item["id"]) ?? ""

  /** Says that a call begins, once its item is known. */
  const start = (slot: Slot, sink: Sink): void => {
    const type = stringOf(slot.item["type"])
    if (slot.started || type === undefined) return
    const id = callId(slot.item)
    const own = hosted?.get(type)
    if (own !== undefined) {
      slot.started = true
      return sink.emit({ _tag: "ToolCallStart", id, name: own })
    }
    if (!type.endsWith("_call")) return
    slot.started = true
    if (type === "function_call") {
      sink.emit({ _tag: "ToolCallStart", id, name: names.own(stringOf(slot.item["name"]) ?? "") })
    } else sink.emit({ _tag: "ToolCallStart", id, name: type.replace(/_call$/, ""), providerExecuted: true })
  }

  const add = (slot: Slot, key: number, delta: string): void => {
    slot.texts.set(key, (slot.texts.get(key) ?? "") + delta)
  }

  /** Gives the end of the whole text that was not streamed: servers leave deltas out. */
  const rest = (slot: Slot, key: number, whole: string | undefined): string => {
    const before = slot.texts.get(key) ?? ""
    return whole !== undefined && whole.startsWith(before) ? whole.slice(before.length) : ""
  }

  /** The phase of the message that was said last, once one was. */
  let spoken: { readonly phase: string | undefined } | undefined

  const say = (slot: Slot, key: number, delta: string, sink: Sink): void => {
    const phase = stringOf(slot.item["phase"])
    const isParted = spoken !== undefined && spoken.phase !== phase
    spoken = { phase }
    add(slot, key, delta)
    sink.emit({ _tag: "TextDelta", text: isParted ? parting + delta : delta })
  }

  const text = (event: JsonObject, delta: string | undefined, sink: Sink): void => {
    if (delta === undefined || delta === "") return
    say(slots.of(event), placeOf(event["content_index"]) ?? 0, delta, sink)
  }

  /** Emits the parts that a server sends only at the end. */
  const catchUp = (slot: Slot, sink: Sink): void => {
    start(slot, sink)
    if (slot.texts.size > 0) return
    const { item } = slot
    const type = item["type"]
    if (type === "message") {
      for (const [key, part] of objectsOf(item["content"]).entries()) {
        const whole = stringOf(part["text"]) ?? stringOf(part["refusal"]) ?? ""
        if (whole !== "") say(slot, key, whole, sink)
      }
    } else if (type === "function_call") args(slot, stringOf(item["arguments"]), sink)
    else if (type === "reasoning") {
      const whole = reasoningText(slot)
      if (whole !== "") sink.emit({ _tag: "ReasoningDelta", text: whole })
    }
  }

  const reason = (event: JsonObject, delta: string | undefined, sink: Sink): void => {
    if (delta === undefined || delta === "") return
    add(slots.of(event), reasoningKey, delta)
    sink.emit({ _tag: "ReasoningDelta", text: delta })
  }

  const args = (slot: Slot, delta: string | undefined, sink: Sink): void => {
    if (delta === undefined || delta === "") return
    add(slot, 0, delta)
    sink.emit({ _tag: "ToolCallDelta", id: callId(slot.item), delta })
  }

  /** Rejects an item that waits for the client if the agent has no tool for it, since nothing could answer it. */
  const unasked = (type: string): ModelError | undefined => {
    const isAsked = hosted?.has(type) === true || type === "mcp_approval_request"
    return isAsked && hosted?.get(type) === undefined ? waitsInVain(origin, type) : undefined
  }

  const finish = (response: JsonObject, sink: Sink): void => {
    done = true
    // The last word: Azure gives the encrypted reasoning only here, some servers give items only here.
    slots.conclude(objectsOf(response["output"]))
    for (const slot of slots.all()) catchUp(slot, sink)
    sink.emit({ _tag: "TurnDone", message: turnOf(slots.all(), response, context) })
  }

  const take = (event: unknown, sink: Sink): ModelError | undefined => {
    if (done) return undefined
    const it = objectOf(event)
    if (it === undefined) return badResponse(origin, "an event of the stream is not a JSON object")
    if (isTooDeep(it)) return badResponse(origin, tooDeep)
    const type = stringOf(it["type"]) ?? ""
    const delta = stringOf(it["delta"])
    switch (type) {
      case "response.output_item.added":
      case "response.output_item.done": {
        const slot = slots.of(it)
        slots.learn(slot, objectOf(it["item"]) ?? {})
        start(slot, sink)
        return unasked(stringOf(slot.item["type"]) ?? "")
      }
      case "response.output_text.delta":
      case "response.refusal.delta":
        text(it, delta, sink)
        return undefined
      case "response.output_text.done":
        text(it, rest(slots.of(it), placeOf(it["content_index"]) ?? 0, stringOf(it["text"])), sink)
        return undefined
      case "response.reasoning_summary_part.added":
        if (slots.of(it).texts.has(reasoningKey)) reason(it, "\n\n", sink)
        return undefined
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        reason(it, delta, sink)
        return undefined
      case "response.function_call_arguments.delta":
        args(slots.of(it), delta, sink)
        return undefined
      case "response.function_call_arguments.done": {
        const slot = slots.of(it)
        args(slot, rest(slot, 0, stringOf(it["arguments"])), sink)
        return undefined
      }
      case "response.completed":
      case "response.incomplete":
        finish(objectOf(it["response"]) ?? {}, sink)
        return undefined
      case "response.failed":
      case "response.cancelled":
        return failed(origin, objectOf(it["response"])?.["error"])
      case "error":
        return failed(origin, objectOf(it["error"]) ?? it)
      default:
        if (!silent.test(type)) sink.unknown(type === "" ? "an event without a type" : type)
        return undefined
    }
  }

  return {
    take,
    isWhole: () => done,
    end: () => (done ? undefined : badResponse(origin, "the stream ended before response.completed"))
  }
}

const waitsInVain = ({ model, provider }: Origin, type: string): ModelError =>
  new ModelError({
    provider,
    model,
    reason: { _tag: "Unsupported" },
    detail: `a tool of OpenAI's waits for the client (${type}), and nobody answers it: give the agent a tool named ${toolFor(type)}${type === "mcp_approval_request" ? ' (OpenAiChatModel.mcpApproval), or set require_approval of the server to "never"' : ""}`
  })

const failed = (origin: Origin, error: unknown): ModelError =>
  objectOf(error) === undefined
    ? badResponse(origin, "the response failed and does not say why")
    : providerError(origin, failureOf(error))
