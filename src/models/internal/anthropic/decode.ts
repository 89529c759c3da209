/**
 * The events of a streamed answer of the Messages API, as parts of a turn. The whole message is said at `message_stop`
 * and not before: an answer that breaks off never looks like one.
 */
import { isObject, type JsonObject } from "../../../core/Json.ts"
import type { ModelError } from "../../../core/ModelError.ts"
import type { PriceUsage } from "../facts/facts.ts"
import { type Call, makeAssembler, type Speech } from "../turn/assembler.ts"
import type { Sink, TurnDecoder } from "../turn/decodeTurn.ts"
import type { ToolNames } from "../turn/toolNames.ts"
import { placeOf } from "../wire/read.ts"
import { isVerbatim } from "./layout.ts"
import { type CallData, finishTurn, objectOf, type BlockData, text } from "./message.ts"
import { count, noCounts, usageOf } from "./usage.ts"

/** A fault of an answer: it breaks the protocol, or it is the provider's own error. */
export type Fault =
  | { readonly _tag: "Protocol"; readonly problem: string }
  | { readonly _tag: "Provider"; readonly type: string; readonly message: string }

/** The context of a decoder: the names of the tools, prices, ids, and the way to report a fault. */
export interface Reading {
  readonly names: ToolNames
  readonly priced: PriceUsage
  readonly makeId: () => string
  readonly fail: (fault: Fault) => ModelError
}

const broken = (problem: string): Fault => ({ _tag: "Protocol", problem })

type Block = Speech<BlockData> | Call<CallData>

/** Makes a decoder for one answer. Events and blocks of types that are not known say nothing. */
export const makeDecoder = ({ fail, makeId, names, priced }: Reading, sink: Sink): TurnDecoder<unknown> => {
  const turn = makeAssembler<BlockData, CallData>(sink, makeId)
  /** Blocks by their index; `undefined` stands for one of an unknown type. */
  const blocks = new Map<number, Block | undefined>()
  const counts = noCounts()
  let answer: JsonObject | undefined
  let stop: JsonObject = {}
  let filtered = false
  let isDone = false

  const call = (start: JsonObject, isHosted: boolean): Call<CallData> => {
    const wireName = text(start["name"])
    const name = isHosted ? wireName : names.own(wireName)
    const id = text(start["id"]) || (isHosted ? "" : makeId())
    return turn.addCall({ id, name, isHosted, data: { start } })
  }

  const startCall = (start: JsonObject, isHosted: boolean): Call<CallData> => {
    const begun = call(start, isHosted)
    turn.start(begun)
    return begun
  }

  const openers = new Map<string, (start: JsonObject) => Block>([
    ["text", () => turn.speak("text", { citations: [], signature: "" })],
    ["thinking", () => turn.speak("reasoning", { citations: [], signature: "" })],
    [
      "redacted_thinking",
      ({ data }) => turn.speak("reasoning", { citations: [], signature: "", redacted: text(data) })
    ],
    ["tool_use", (start) => startCall(start, false)],
    ["server_tool_use", (start) => startCall(start, true)],
    ["mcp_tool_use", (start) => startCall(start, true)]
  ])

  const begin = (index: number, start: JsonObject): void => {
    const type = text(start["type"])
    const open = openers.get(type)?.(start) ?? (isVerbatim(start) ? call(start, true) : undefined)
    blocks.set(index, open)
    if (open === undefined) sink.unknown(`content_block:${type}`)
    // A block may begin with what others stream.
    if (open?._tag === "speech") grow(open, start)
  }

  const grow = (block: Block, delta: JsonObject): void => {
    if (block._tag === "call") {
      for (const key of block.isHosted ? verbatimTexts : []) {
        const { start } = block.data
        const more = text(delta[key])
        if (more !== "") block.data.start = { ...start, [key]: text(start[key]) + more }
      }
      return turn.write(block, text(delta["partial_json"]))
    }
    if (isObject(delta["citation"])) block.data.citations.push(delta["citation"])
    block.data.signature += text(delta["signature"])
    turn.say(block, text(delta[block.kind === "text" ? "text" : "thinking"]))
  }

  const close = (block: Block): void => {
    if (block._tag !== "call") return
    const input = objectOf(block.data.start["input"])
    // The input with which a block began.
    if (block.raw === "" && Object.keys(input).length > 0) turn.write(block, JSON.stringify(input))
    block.isClosed = true
  }

  const finish = (): Fault | undefined => {
    if (answer === undefined) return broken("the answer ended without a beginning")
    if (typeof stop["stop_reason"] !== "string") return broken("the answer ended without a stop reason")
    isDone = true
    finishTurn(turn, { start: answer, stop, usage: priced(usageOf(counts), counts), filtered })
    return undefined
  }

  type Handler = (event: JsonObject, index: number) => Fault | undefined | void

  const handlers = new Map<string, Handler>([
    [
      "message_start",
      ({ message }) => {
        answer = objectOf(message)
        count(counts, objectOf(answer["usage"]))
      }
    ],
    [
      "content_block_start",
      (event, index) => {
        if (blocks.has(index) || index < 0) return broken(`content block ${index} began twice or has no index`)
        return begin(index, objectOf(event["content_block"]))
      }
    ],
    [
      "content_block_delta",
      ({ delta }, index) => {
        if (!blocks.has(index)) return broken(`a delta came for content block ${index}, which had not begun`)
        const block = blocks.get(index)
        return block === undefined ? undefined : grow(block, objectOf(delta))
      }
    ],
    [
      "content_block_stop",
      (_, index) => {
        const block = blocks.get(index)
        if (block !== undefined) close(block)
      }
    ],
    [
      "message_delta",
      (event) => {
        const delta = objectOf(event["delta"])
        if (typeof delta["stop_reason"] === "string") stop = delta
        count(counts, objectOf(event["usage"]))
      }
    ],
    ["message_stop", finish],
    [
      "error",
      (event) => {
        const error = objectOf(event["error"])
        return { _tag: "Provider", type: text(error["type"]), message: text(error["message"]) }
      }
    ],
    ["ping", () => undefined]
  ])

  const take = (event: unknown): ModelError | undefined | void => {
    if (isDone) return undefined
    if (!isObject(event) || typeof event["type"] !== "string") {
      return fail(broken("an event is not a JSON object with a type"))
    }
    if (event["amazon-bedrock-guardrailAction"] === "INTERVENED") filtered = true
    const handle = handlers.get(event["type"])
    if (handle === undefined) sink.unknown(event["type"])
    const fault = handle?.(event, placeOf(event["index"]) ?? -1)
    return fault === undefined ? undefined : fail(fault)
  }

  return {
    take,
    end: () => (isDone ? undefined : fail(broken("the stream ended before the turn was complete")))
  }
}

/** Texts of a block that goes back verbatim: they come in one piece, or in several. */
const verbatimTexts = ["content", "encrypted_content"]
