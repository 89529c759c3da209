/** Reads the events of OpenAI's Responses API into the parts of a turn. */
import type { JsonObject } from "../../../core/Json.ts"
import { ModelError } from "../../../core/ModelError.ts"
import type { Sink, TurnDecoder } from "../turn/decodeTurn.ts"
import { badResponse, type Origin, providerError, toldBy } from "../wire/errors.ts"
import { objectOf, objectsOf, placeOf, stringOf } from "../wire/read.ts"
import { tokenOf } from "./background.ts"
import { failureOf } from "./failure.ts"
import { makeSlots, type Slot } from "./responsesSlots.ts"
import { type DecodeContext, finishTurn, parting, reasoningKey, reasoningText } from "./responsesTurn.ts"

/** Events that repeat others. */
const silent =
  /^response\.(?:in_progress|queued|content_part\.|output_text\.annotation\.|reasoning_summary_part\.done|reasoning_summary_text\.done|reasoning_text\.done|refusal\.done|compaction|[a-z_]+_call(?:_[a-z]+)?\.|mcp_list_tools\.|audio\.)|^keepalive$/

/** Handles the events of one type. */
type Handler = (event: JsonObject) => ModelError | undefined | void

const callId = (item: JsonObject): string => stringOf(item["call_id"]) ?? stringOf(item["id"]) ?? ""

/** Reports the start of a call when its item is known. */
const startCall = (slot: Slot, { hosted, names }: DecodeContext, sink: Sink): void => {
  const type = stringOf(slot.item["type"])
  if (slot.started || type === undefined) return
  const id = callId(slot.item)
  const own = hosted?.toolOf(slot.item)
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

/** Returns the end of a text that was not streamed, because servers omit deltas. */
const unstreamedEnd = (slot: Slot, key: number, whole: string | undefined): string => {
  const before = slot.texts.get(key) ?? ""
  return whole !== undefined && whole.startsWith(before) ? whole.slice(before.length) : ""
}

/** Rejects an item that waits for the client if the agent has no tool for it, since nothing could answer it. */
const rejectUnanswerable = (item: JsonObject, { hosted, origin }: DecodeContext): ModelError | undefined => {
  const tool = hosted?.toolOf(item)
  return tool === undefined || hosted?.has(tool) === true ? undefined : waitsInVain(origin, item, tool)
}

/** Makes the decoder of one turn. */
export const makeResponsesDecoder = (context: DecodeContext, sink: Sink): TurnDecoder<unknown> => {
  const { origin } = context
  const slots = makeSlots()
  let isDone = false

  const add = (slot: Slot, key: number, delta: string): void => {
    slot.texts.set(key, (slot.texts.get(key) ?? "") + delta)
  }

  /** The phase of the message that was said last, once one was. */
  let lastMessage: { readonly phase: string | undefined } | undefined

  const say = (slot: Slot, key: number, delta: string): void => {
    const phase = stringOf(slot.item["phase"])
    const isParted = lastMessage !== undefined && lastMessage.phase !== phase
    lastMessage = { phase }
    add(slot, key, delta)
    sink.emit({ _tag: "TextDelta", text: isParted ? parting + delta : delta })
  }

  const text = (event: JsonObject, delta: string | undefined): void => {
    if (delta === undefined || delta === "") return
    say(slots.of(event), placeOf(event["content_index"]) ?? 0, delta)
  }

  /** Emits the parts that a server sends only at the end. */
  const catchUp = (slot: Slot): void => {
    startCall(slot, context, sink)
    if (slot.texts.size > 0) return
    const { item } = slot
    const type = item["type"]
    if (type === "message") {
      for (const [key, part] of objectsOf(item["content"]).entries()) {
        const whole = stringOf(part["text"]) ?? stringOf(part["refusal"]) ?? ""
        if (whole !== "") say(slot, key, whole)
      }
    } else if (type === "function_call") args(slot, stringOf(item["arguments"]))
    else if (type === "reasoning") {
      const whole = reasoningText(slot)
      if (whole !== "") sink.emit({ _tag: "ReasoningDelta", text: whole })
    }
  }

  const reason = (event: JsonObject, delta: string | undefined): void => {
    if (delta === undefined || delta === "") return
    add(slots.of(event), reasoningKey, delta)
    sink.emit({ _tag: "ReasoningDelta", text: delta })
  }

  const args = (slot: Slot, delta: string | undefined): void => {
    if (delta === undefined || delta === "") return
    add(slot, 0, delta)
    sink.emit({ _tag: "ToolCallDelta", id: callId(slot.item), delta })
  }

  const finish = (response: JsonObject): ModelError | undefined => {
    isDone = true
    // The last word: Azure gives the encrypted reasoning only here, some servers give items only here.
    slots.conclude(objectsOf(response["output"]))
    for (const slot of slots.all()) {
      const refused = rejectUnanswerable(slot.item, context)
      if (refused !== undefined) return refused
      catchUp(slot)
    }
    finishTurn(slots.all(), response, context, sink)
    return undefined
  }

  const addItem: Handler = (event) => {
    const slot = slots.of(event)
    slots.learn(slot, objectOf(event["item"]) ?? {})
    const refused = rejectUnanswerable(slot.item, context)
    if (refused === undefined) startCall(slot, context, sink)
    return refused
  }

  const addText: Handler = (event) => text(event, stringOf(event["delta"]))
  const addReasoning: Handler = (event) => reason(event, stringOf(event["delta"]))
  const conclude: Handler = (event) => finish(objectOf(event["response"]) ?? {})
  const fail: Handler = (event) => failed(origin, objectOf(event["response"])?.["error"])

  const accept: Handler = (event) => {
    const id = stringOf(objectOf(event["response"])?.["id"])
    if (context.isBackground === true && id !== undefined) {
      sink.emit({ _tag: "TurnAccepted", resume: tokenOf(origin.model, id) })
    }
  }

  const handlers = new Map<string, Handler>([
    ["response.created", accept],
    ["response.output_item.added", addItem],
    ["response.output_item.done", addItem],
    ["response.output_text.delta", addText],
    ["response.refusal.delta", addText],
    [
      "response.output_text.done",
      (event) => {
        const key = placeOf(event["content_index"]) ?? 0
        text(event, unstreamedEnd(slots.of(event), key, stringOf(event["text"])))
      }
    ],
    [
      "response.reasoning_summary_part.added",
      (event) => {
        if (slots.of(event).texts.has(reasoningKey)) reason(event, "\n\n")
      }
    ],
    ["response.reasoning_summary_text.delta", addReasoning],
    ["response.reasoning_text.delta", addReasoning],
    ["response.function_call_arguments.delta", (event) => args(slots.of(event), stringOf(event["delta"]))],
    [
      "response.function_call_arguments.done",
      (event) => {
        const slot = slots.of(event)
        args(slot, unstreamedEnd(slot, 0, stringOf(event["arguments"])))
      }
    ],
    ["response.completed", conclude],
    ["response.incomplete", conclude],
    ["response.failed", fail],
    ["response.cancelled", fail],
    ["error", (event) => failed(origin, objectOf(event["error"]) ?? event)]
  ])

  const take = (input: unknown): ModelError | undefined => {
    if (isDone) return undefined
    const event = objectOf(input)
    if (event === undefined) return badResponse(origin, "an event of the stream is not a JSON object")
    const type = stringOf(event["type"]) ?? ""
    const handle = handlers.get(type)
    if (handle !== undefined) return handle(event) ?? undefined
    if (!silent.test(type)) sink.unknown(type === "" ? "an event without a type" : type)
    return undefined
  }

  return {
    take,
    isWhole: () => isDone,
    end: () => (isDone ? undefined : badResponse(origin, "the stream ended before response.completed"))
  }
}

const waitsInVain = (origin: Origin, item: JsonObject, tool: string): ModelError => {
  const type = toldBy(origin, stringOf(item["type"]) ?? "item")
  const cure = tool === "" ? "leave the server tool out" : `give the agent a tool named ${toldBy(origin, tool)}`
  const other =
    type === "mcp_approval_request"
      ? ' (OpenAiChatModel.mcpApproval), or set require_approval of the server to "never"'
      : ""
  return new ModelError({
    provider: origin.provider,
    model: origin.model,
    reason: { _tag: "Unsupported" },
    detail: `a tool of OpenAI's waits for the client (${type}), and nobody answers it: ${cure}${other}`
  })
}

const failed = (origin: Origin, error: unknown): ModelError =>
  objectOf(error) === undefined
    ? badResponse(origin, "the response failed and does not say why")
    : providerError(origin, failureOf(error))
