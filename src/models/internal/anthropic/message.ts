/** A finished answer of the Messages API as a message of the library. */
import * as Result from "effect/Result"
import type { Block } from "../../../core/Content.ts"
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import type { TurnStop } from "../../../core/Message.ts"
import type { Usage } from "../../../core/Usage.ts"
import { defined } from "../../../support/json/defined.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import type { Assembler, Call, Order, Speech } from "../turn/assembler.ts"
import { cited } from "../turn/citations.ts"
import { toCall } from "../turn/toolCalls.ts"
import { stringOf } from "../wire/read.ts"
import { dataKey } from "./content.ts"
import { isPlain, isVerbatim, type Layout } from "./layout.ts"

/** Data of a text or a thought. */
export interface BlockData {
  readonly citations: Array<JsonObject>
  signature: string
  readonly redacted?: string
}

/** Data of a call: the block with which it began. A hosted call, or the result of one, goes back verbatim. */
export interface CallData {
  start: JsonObject
}

/** The first and the last fields of an answer. */
export interface Answer {
  readonly start: JsonObject
  readonly stop: JsonObject
  readonly usage: Usage
  /** Reports that a filter of the platform stopped it. */
  readonly filtered: boolean
}

const stops: { readonly [raw: string]: TurnStop } = {
  end_turn: "stop",
  stop_sequence: "stop",
  tool_use: "toolCalls",
  max_tokens: "length",
  model_context_window_exceeded: "length",
  refusal: "refusal",
  pause_turn: "pause"
}

const isEmpty = (data: JsonObject): boolean => Object.keys(data).length === 0

/** A string, or none. */
export const text = (value: Json | undefined): string => (typeof value === "string" ? value : "")

/** An object, or an empty one. */
export const objectOf = (value: Json | undefined): JsonObject => (isObject(value) ? value : {})

/** Returns the input of a call as text: the streamed text, else its initial value. */
const inputOf = ({ data, raw }: Call<CallData>): string => {
  const { input } = data.start
  const began = isObject(input) && Object.keys(input).length > 0
  return raw.trim() === "" && began ? JSON.stringify(input) : raw
}

const own = (data: JsonObject) => (isEmpty(data) ? {} : { providerData: { [dataKey]: data } })

const blockOf = ({ data, kind, text }: Speech<BlockData>): Block | undefined => {
  const { citations, redacted, signature } = data
  if (kind === "reasoning") {
    if (text === "" && signature === "" && redacted === undefined) return undefined
    return { type: "reasoning", text, ...own(defined({ signature: signature || undefined, redacted })) }
  }
  // A blank was streamed, so it stays in the message. It is not sent back.
  if (text.trim() === "") return text === "" ? undefined : { type: "text", text }
  return { type: "text", text, ...cited(citations, text), ...(citations.length === 0 ? {} : own({ citations })) }
}

const verbatimPart = (call: Call<CallData>): JsonObject => {
  const { start } = call.data
  if (!("input" in start)) return start
  const input = Result.match(toCall({ id: "", name: "verbatim", raw: inputOf(call), cut: false }), {
    onSuccess: (good) => good.arguments,
    onFailure: () => ({})
  })
  return { ...start, input }
}

const wordOf = (place: Order[number]): Layout[number] | undefined => {
  if (typeof place === "string") return place === "content" ? "said" : place
  return isVerbatim(place) ? place : undefined
}

/** Builds the whole message and emits it. */
export const finishTurn = (turn: Assembler<BlockData, CallData>, { filtered, start, stop, usage }: Answer): void => {
  const raw = text(stop["stop_reason"])
  const mapped = valueAt(stops, raw)
  const last = turn.pieces.at(-1)
  turn.finish({
    stop: filtered ? "contentFilter" : mapped === "toolCalls" || mapped === "stop" ? undefined : mapped,
    model: stringOf(start["model"]),
    usage,
    blockOf,
    callOf: (call) => {
      call.raw = inputOf(call)
      const { caller } = call.data.start
      return {
        cut: !call.isClosed || (mapped === "length" && call === last),
        ...own(isObject(caller) && caller["type"] !== "direct" ? { caller } : {})
      }
    },
    partOf: verbatimPart,
    providerData: (order) => {
      const layout = order.map(wordOf).filter((word) => word !== undefined)
      return {
        [dataKey]: defined({
          stopReason: raw,
          id: stringOf(start["id"]),
          stopSequence: stringOf(stop["stop_sequence"]),
          stopDetails: isObject(stop["stop_details"]) ? stop["stop_details"] : undefined,
          container: stringOf(objectOf(stop["container"])["id"]) ?? stringOf(objectOf(start["container"])["id"]),
          layout: isPlain(layout) ? undefined : layout
        })
      }
    }
  })
}
