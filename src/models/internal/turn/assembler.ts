/** Assembles one turn: emits the parts that a decoder feeds to it, and builds the message at the end. */
import { identity } from "effect/Function"
import * as Result from "effect/Result"
import type { Block } from "../../../core/Content.ts"
import type { Json, JsonObject } from "../../../core/Json.ts"
import * as Message from "../../../core/Message.ts"
import type { MalformedToolCall, ToolCall } from "../../../core/ToolCall.ts"
import type { Usage } from "../../../core/Usage.ts"
import type { Sink } from "./decodeTurn.ts"
import { layoutOf, type Place } from "./layout.ts"
import { restored } from "./restore.ts"
import { makeCallReader } from "./toolCalls.ts"

/** Text or reasoning. `data` is what its decoder keeps with it. */
export interface Speech<out Data = unknown> {
  readonly _tag: "speech"
  readonly kind: "text" | "reasoning"
  text: string
  readonly data: Data
}

/** A tool call. Its arguments are `raw`, as far as they are streamed. `isHosted`: the provider runs it. */
export interface Call<out Data = unknown> {
  readonly _tag: "call"
  readonly id: string
  name: string
  isHosted: boolean
  raw: string
  isStarted: boolean
  isClosed: boolean
  readonly data: Data
}

/** A finished block, such as an image, or a part that goes back to the provider verbatim. */
type Whole = { readonly _tag: "block"; readonly block: Block } | { readonly _tag: "own"; readonly part: JsonObject }

export type Piece<Said = unknown, Called = unknown> = Speech<Said> | Call<Called> | Whole

/** The order of a turn. A malformed call has a word of its own. */
export type Order = ReadonlyArray<Place | "malformed">

/** `cut`: the turn ended inside the arguments. `problem`: the provider could not use the arguments. */
interface CallFacts {
  readonly cut?: boolean
  readonly problem?: string | undefined
  readonly providerData?: JsonObject | undefined
}

/** Facts that a message is built with. */
export interface TurnEnd<Said, Called> {
  /** The provider's reason to stop, if it decides. Else the calls do. */
  readonly stop?: Message.TurnStop | undefined
  /** The reason of a turn without calls; `stop` by default. */
  readonly silent?: Message.TurnStop | undefined
  readonly model: string | undefined
  readonly usage: Usage | undefined
  /** The block of a text, or none. */
  readonly blockOf: (speech: Speech<Said>) => Block | undefined
  /** Facts of a call; `undefined` drops it. */
  readonly callOf?: ((call: Call<Called>) => CallFacts | undefined) | undefined
  /** The part that sends a hosted call back. */
  readonly partOf?: ((call: Call<Called>) => JsonObject | undefined) | undefined
  /** The text of a call that the provider could not read, if it reported one. */
  readonly unread?: string | undefined
  readonly restore?: ((answer: Json) => Json) | undefined
  readonly restoreCall?: ((call: ToolCall) => ToolCall) | undefined
  readonly providerData: (order: Order) => JsonObject | undefined
}

/** Converts an order to a layout. `undefined` for the usual order. */
export const layoutIn = (order: Order): ReadonlyArray<Place> | undefined =>
  layoutOf(order.map((place) => (place === "malformed" ? "call" : place)))

/** Blank text and reasoning without data are never sent back, so they have no place. */
const hasPlace = (block: Block): boolean => {
  if (block.type === "text") return block.text.trim() !== ""
  return block.type !== "reasoning" || block.providerData !== undefined
}

/** Makes the assembler of one turn. */
export const makeAssembler = <Said = undefined, Called = undefined>(sink: Sink, makeId: () => string) => {
  const pieces: Array<Piece<Said, Called>> = []
  let last: Speech<Said> | undefined

  /** Begins a text. */
  const speak = (kind: Speech["kind"], data: Said): Speech<Said> => {
    const speech: Speech<Said> = { _tag: "speech", kind, text: "", data }
    pieces.push(speech)
    last = speech
    return speech
  }

  const say = (speech: Speech<Said>, text: string): void => {
    if (text === "") return
    speech.text += text
    sink.emit({ _tag: speech.kind === "text" ? "TextDelta" : "ReasoningDelta", text })
  }

  /** Adds a call without reporting its start. */
  const addCall = (
    fields: Pick<Call<Called>, "id" | "name" | "data"> & { readonly isHosted?: boolean }
  ): Call<Called> => {
    const { data, id, isHosted = false, name } = fields
    const call: Call<Called> = { _tag: "call", id, name, isHosted, raw: "", isStarted: false, isClosed: false, data }
    pieces.push(call)
    return call
  }

  /** Reports the start of a call, once, and its arguments so far. */
  const start = (call: Call<Called>, name = call.name): void => {
    if (call.isStarted) return
    call.isStarted = true
    const { id, isHosted, raw } = call
    sink.emit(
      isHosted ? { _tag: "ToolCallStart", id, name, providerExecuted: true } : { _tag: "ToolCallStart", id, name }
    )
    if (raw !== "") sink.emit({ _tag: "ToolCallDelta", id, delta: raw })
  }

  /** Adds arguments. */
  const write = (call: Call<Called>, delta: string): void => {
    if (delta === "") return
    call.raw += delta
    if (call.isStarted) sink.emit({ _tag: "ToolCallDelta", id: call.id, delta })
  }

  /** Builds the message and emits it. */
  const finish = (ending: TurnEnd<Said, Called>): void => {
    const { blockOf, callOf, model, partOf, providerData, restore, restoreCall = identity, unread, usage } = ending
    const content: Array<Block> = []
    const toolCalls: Array<ToolCall> = []
    const malformedToolCalls: Array<MalformedToolCall> = []
    const order: Array<Place | "malformed"> = []
    const readCall = makeCallReader()
    const add = (block: Block | undefined): void => {
      if (block === undefined) return
      content.push(block)
      if (hasPlace(block)) order.push("content")
    }
    const answer = (call: Call<Called>): void => {
      const facts = callOf === undefined ? {} : callOf(call)
      if (facts === undefined) return
      const { id, name, raw } = call
      const { cut = false, problem, providerData } = facts
      const one =
        problem === undefined
          ? readCall({ id, name, raw, cut, providerData })
          : Result.fail<MalformedToolCall>({ id, name, raw, problem })
      if (one === undefined) return
      if (Result.isSuccess(one)) toolCalls.push(restoreCall(one.success))
      else malformedToolCalls.push(one.failure)
      order.push(Result.isSuccess(one) ? "call" : "malformed")
    }
    for (const piece of pieces) {
      if (piece._tag === "own") order.push(piece.part)
      else if (piece._tag === "block") add(piece.block)
      else if (piece._tag === "speech") add(blockOf(piece))
      else if (!piece.isHosted) answer(piece)
      else {
        const part = partOf?.(piece)
        if (part !== undefined) order.push(part)
      }
    }
    // An unread call without a text may be the malformed one.
    if (unread !== undefined && (unread !== "" || malformedToolCalls.length === 0)) {
      const problem = "the call could not be read: write it again, with arguments that are JSON"
      malformedToolCalls.push({ id: makeId(), raw: unread, problem })
    }
    const isCalling = toolCalls.length + malformedToolCalls.length > 0
    const stopReason = ending.stop ?? (isCalling ? "toolCalls" : (ending.silent ?? "stop"))
    const message = Message.ai(restored(content, stopReason, restore), {
      id: makeId(),
      toolCalls,
      malformedToolCalls,
      stopReason,
      model,
      usage,
      providerData: providerData(order)
    })
    sink.emit({ _tag: "TurnDone", message })
  }

  return {
    pieces,
    speak,
    say,
    /** Continues the last text of the turn if it is of this kind, else begins one. */
    continue: (kind: Speech["kind"], text: string, data: Said): void => {
      if (text !== "") say(last?.kind === kind ? last : speak(kind, data), text)
    },
    addCall,
    start,
    write,
    /** Adds a whole call, or begins one. */
    call: (fields: Parameters<typeof addCall>[0], raw = ""): Call<Called> => {
      const call = addCall(fields)
      start(call)
      write(call, raw)
      return call
    },
    add: (piece: Whole): void => void pieces.push(piece),
    finish
  }
}

export type Assembler<Said, Called> = ReturnType<typeof makeAssembler<Said, Called>>
