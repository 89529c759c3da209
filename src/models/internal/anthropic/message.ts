/** A finished answer of the Messages API as a message of the library. */
import * as Result from "effect/Result"
import type { Block } from "../../../core/Content.ts"
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import * as Message from "../../../core/Message.ts"
import type { MalformedToolCall, ToolCall } from "../../../core/ToolCall.ts"
import type { Usage } from "../../../core/Usage.ts"
import { defined } from "../../../support/json/defined.ts"
import { cited } from "../turn/citations.ts"
import { makeCallReader, toCall } from "../turn/toolCalls.ts"
import { stringOf } from "../wire/read.ts"
import { dataKey } from "./content.ts"
import { isPlain, isVerbatim, type Layout } from "./layout.ts"

/** A content block as far as it has come. */
export type Open =
  | { readonly kind: "text"; text: string; readonly citations: Array<JsonObject> }
  | { readonly kind: "thinking"; text: string; signature: string }
  | { readonly kind: "redacted"; readonly data: string }
  | {
      readonly kind: "call"
      readonly start: JsonObject
      readonly id: string
      readonly name: string
      json: string
      closed: boolean
    }
  | { readonly kind: "verbatim"; start: JsonObject; json: string }
  | { readonly kind: "ignored" }

/** The received parts: content blocks by index, the message's first and last fields. */
export interface Answer {
  readonly id: string
  readonly blocks: ReadonlyMap<number, Open>
  readonly start: JsonObject
  readonly stop: JsonObject
  readonly usage: Usage
  /** Reports that a filter of the platform stopped it. */
  readonly filtered: boolean
}

const stops: { readonly [raw: string]: Message.TurnStop } = {
  end_turn: "stop",
  stop_sequence: "stop",
  tool_use: "toolCalls",
  max_tokens: "length",
  model_context_window_exceeded: "length",
  refusal: "refusal",
  pause_turn: "pause"
}

/** A string, or none. */
export const text = (value: Json | undefined): string => (typeof value === "string" ? value : "")

/** An object, or an empty one. */
export const objectOf = (value: Json | undefined): JsonObject => (isObject(value) ? value : {})

/** Returns the input of a block as text: the streamed text, else its initial value. */
const inputOf = (block: { readonly json: string; readonly start: JsonObject }): string => {
  const { input } = block.start
  const began = isObject(input) && Object.keys(input).length > 0
  return block.json.trim() === "" && began ? JSON.stringify(input) : block.json
}

/** The whole message, from what came. */
export const assemble = ({ blocks, filtered, id, start, stop, usage }: Answer): Message.AiMessage => {
  const raw = text(stop["stop_reason"])
  const content: Array<Block> = []
  const toolCalls: Array<ToolCall> = []
  const malformedToolCalls: Array<MalformedToolCall> = []
  const layout: Array<Layout[number]> = []
  const read = makeCallReader()
  const say = (block: Block): void => {
    content.push(block)
    layout.push("said")
  }
  const call = (block: Extract<Open, { readonly kind: "call" }>): void => {
    const { caller } = block.start
    const byCode = isObject(caller) && caller["type"] !== "direct"
    const streamed = {
      id: block.id,
      name: block.name,
      raw: inputOf(block),
      cut: !block.closed || (stops[raw] === "length" && block === last),
      providerData: byCode ? { [dataKey]: { caller } } : undefined
    }
    const one = read(streamed)
    if (one === undefined) return
    Result.match(one, {
      onSuccess: (good) => {
        toolCalls.push(good)
        layout.push("call")
      },
      onFailure: (bad) => {
        malformedToolCalls.push(bad)
        layout.push("malformed")
      }
    })
  }
  const ordered = [...blocks].toSorted(([left], [right]) => left - right).map(([, block]) => block)
  const last = ordered.at(-1)
  for (const block of ordered) {
    // A blank between two texts belongs to the answer, but is not sent back.
    if (block.kind === "text" && block.text !== "" && block.text.trim() === "" && content.at(-1)?.type === "text") {
      content.push({ type: "text", text: block.text })
    } else if (block.kind === "text" && block.text.trim() !== "") {
      const own = block.citations.length === 0 ? {} : { providerData: { [dataKey]: { citations: block.citations } } }
      say({ type: "text", text: block.text, ...cited(block.citations, block.text), ...own })
    } else if (block.kind === "thinking" && (block.text !== "" || block.signature !== "")) {
      const own = block.signature === "" ? {} : { providerData: { [dataKey]: { signature: block.signature } } }
      say({ type: "reasoning", text: block.text, ...own })
    } else if (block.kind === "redacted") {
      say({ type: "reasoning", text: "", providerData: { [dataKey]: { redacted: block.data } } })
    } else if (block.kind === "call") call(block)
    else if (block.kind === "verbatim" && isVerbatim(block.start)) {
      const input = Result.match(toCall({ id: "", name: "verbatim", raw: inputOf(block), cut: false }), {
        onSuccess: (good) => good.arguments,
        onFailure: () => ({})
      })
      layout.push("input" in block.start ? { ...block.start, input } : block.start)
    }
  }
  const called = toolCalls.length + malformedToolCalls.length > 0
  const mapped = stops[raw] ?? "stop"
  const own = mapped === "stop" || mapped === "toolCalls" ? (called ? "toolCalls" : "stop") : mapped
  return Message.ai(content, {
    id,
    toolCalls,
    malformedToolCalls,
    stopReason: filtered ? "contentFilter" : own,
    usage,
    model: stringOf(start["model"]),
    providerData: {
      [dataKey]: defined({
        stopReason: raw,
        id: stringOf(start["id"]),
        stopSequence: stringOf(stop["stop_sequence"]),
        stopDetails: isObject(stop["stop_details"]) ? stop["stop_details"] : undefined,
        container: stringOf(objectOf(stop["container"])["id"]) ?? stringOf(objectOf(start["container"])["id"]),
        layout: isPlain(layout) ? undefined : layout
      })
    }
  })
}
