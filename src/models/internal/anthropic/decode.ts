/**
 * The events of a streamed answer of the Messages API, as parts of a turn. The whole message is said at `message_stop`
 * and not before: an answer that breaks off never looks like one.
 */
import { isObject, type JsonObject } from "../../../core/Json.ts"
import type { ModelError } from "../../../core/ModelError.ts"
import type { Usage } from "../../../core/Usage.ts"
import { isTooDeep, tooDeep } from "../schema/nesting.ts"
import type { Sink, TurnDecoder } from "../turn/decodeTurn.ts"
import type { ToolNames } from "../turn/toolNames.ts"
import { placeOf } from "../wire/read.ts"
import { isVerbatim } from "./layout.ts"
import { assemble, objectOf, type Open, text } from "./message.ts"
import { count, noCounts, usageOf } from "./usage.ts"

/** A fault of an answer: it breaks the protocol, or it is the provider's own error. */
export type Fault =
  | { readonly _tag: "Protocol"; readonly problem: string }
  | { readonly _tag: "Provider"; readonly type: string; readonly message: string }

/** The context of a decoder: the names of the tools, prices, ids, and the way to report a fault. */
export interface Reading {
  readonly names: ToolNames
  readonly priced: (usage: Usage) => Usage
  readonly makeId: () => string
  readonly fail: (fault: Fault) => ModelError
}

/** Takes in the text of a block that goes back as it came: it comes in one piece, or in several. */
const join = (block: Extract<Open, { readonly kind: "verbatim" }>, delta: JsonObject): void => {
  for (const key of ["content", "encrypted_content"]) {
    const more = delta[key]
    const before = block.start[key]
    if (typeof more === "string") {
      block.start = { ...block.start, [key]: typeof before === "string" ? before + more : more }
    }
  }
}

const broken = (problem: string): Fault => ({ _tag: "Protocol", problem })

/** Makes a decoder for one answer. Events and blocks of types that are not known say nothing. */
export const makeDecoder = ({ fail, makeId, names, priced }: Reading): TurnDecoder<unknown> => {
  const blocks = new Map<number, Open>()
  const counts = noCounts()
  let answer: JsonObject | undefined
  let stop: JsonObject = {}
  let filtered = false
  let done = false

  const begin = (index: number, start: JsonObject, sink: Sink): void => {
    const type = text(start["type"])
    if (type === "text") {
      blocks.set(index, { kind: "text", text: "", citations: [] })
    } else if (type === "thinking") {
      blocks.set(index, { kind: "thinking", text: "", signature: "" })
    } else if (type === "tool_use") {
      const id = text(start["id"]) || makeId()
      const name = names.own(text(start["name"]))
      blocks.set(index, { kind: "call", start, id, name, json: "", closed: false })
      sink.emit({ _tag: "ToolCallStart", id, name })
    } else if (type === "redacted_thinking") {
      blocks.set(index, { kind: "redacted", data: text(start["data"]) })
    } else if (isVerbatim(start)) {
      blocks.set(index, { kind: "verbatim", start, json: "" })
      const isCall = type === "server_tool_use" || type === "mcp_tool_use"
      if (isCall)
        sink.emit({ _tag: "ToolCallStart", id: text(start["id"]), name: text(start["name"]), providerExecuted: true })
    } else {
      blocks.set(index, { kind: "ignored" })
      sink.unknown(`content_block:${type}`)
    }
    const open = blocks.get(index)
    // A block may begin with what others stream.
    if (open?.kind === "text" || open?.kind === "thinking") grow(open, start, sink)
  }

  const grow = (block: Open, delta: JsonObject, sink: Sink): void => {
    switch (block.kind) {
      case "text": {
        if (isObject(delta["citation"])) block.citations.push(delta["citation"])
        const more = text(delta["text"])
        block.text += more
        if (more !== "") sink.emit({ _tag: "TextDelta", text: more })
        return
      }
      case "thinking": {
        block.signature += text(delta["signature"])
        const more = text(delta["thinking"])
        block.text += more
        if (more !== "") sink.emit({ _tag: "ReasoningDelta", text: more })
        return
      }
      case "call":
      case "verbatim": {
        if (block.kind === "verbatim") join(block, delta)
        const more = text(delta["partial_json"])
        block.json += more
        const id = block.kind === "call" ? block.id : text(block.start["id"])
        if (more !== "") sink.emit({ _tag: "ToolCallDelta", id, delta: more })
        return
      }
      case "redacted":
      case "ignored":
        return
    }
  }

  /** Streams input that a block began with. */
  const inOnePiece = (block: Extract<Open, { readonly kind: "call" | "verbatim" }>, sink: Sink): void => {
    const input = objectOf(block.start["input"])
    if (block.json !== "" || Object.keys(input).length === 0) return
    const id = block.kind === "call" ? block.id : text(block.start["id"])
    sink.emit({ _tag: "ToolCallDelta", id, delta: JSON.stringify(input) })
  }

  const take = (event: JsonObject, sink: Sink): Fault | undefined => {
    const index = placeOf(event["index"]) ?? -1
    const open = blocks.get(index)
    const type = text(event["type"])
    switch (type) {
      case "message_start":
        answer = objectOf(event["message"])
        count(counts, objectOf(answer["usage"]))
        return undefined
      case "content_block_start":
        if (open !== undefined || index < 0) return broken(`content block ${index} began twice or has no index`)
        begin(index, objectOf(event["content_block"]), sink)
        return undefined
      case "content_block_delta":
        if (open === undefined) return broken(`a delta came for content block ${index}, which had not begun`)
        grow(open, objectOf(event["delta"]), sink)
        return undefined
      case "content_block_stop":
        if (open?.kind === "call" || open?.kind === "verbatim") inOnePiece(open, sink)
        if (open?.kind === "call") open.closed = true
        return undefined
      case "message_delta": {
        const delta = objectOf(event["delta"])
        if (typeof delta["stop_reason"] === "string") stop = delta
        count(counts, objectOf(event["usage"]))
        return undefined
      }
      case "message_stop": {
        if (answer === undefined) return broken("the answer ended without a beginning")
        if (typeof stop["stop_reason"] !== "string") return broken("the answer ended without a stop reason")
        done = true
        const usage = priced(usageOf(counts))
        sink.emit({
          _tag: "TurnDone",
          message: assemble({ id: makeId(), blocks, start: answer, stop, usage, filtered })
        })
        return undefined
      }
      case "error": {
        const error = objectOf(event["error"])
        return { _tag: "Provider", type: text(error["type"]), message: text(error["message"]) }
      }
      case "ping":
        return undefined
      default:
        sink.unknown(type)
        return undefined
    }
  }

  return {
    take: (event, sink) => {
      if (done) return undefined
      if (!isObject(event) || typeof event["type"] !== "string") {
        return fail(broken("an event is not a JSON object with a type"))
      }
      if (isTooDeep(event)) return fail(broken(tooDeep))
      if (event["amazon-bedrock-guardrailAction"] === "INTERVENED") filtered = true
      const fault = take(event, sink)
      return fault === undefined ? undefined : fail(fault)
    },
    end: () => (done ? undefined : fail(broken("the stream ended before the turn was complete")))
  }
}
