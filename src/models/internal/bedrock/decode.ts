/** Reads the events of Bedrock's Converse API into the parts of a turn. */
import * as Base64 from "effect/encoding/Base64"
import { identity } from "effect/Function"
import * as Result from "effect/Result"
import * as Content from "../../../core/Content.ts"
import { fromUnknown, type JsonObject } from "../../../core/Json.ts"
import * as Message from "../../../core/Message.ts"
import type { ModelError } from "../../../core/ModelError.ts"
import type { MalformedToolCall } from "../../../core/ToolCall.ts"
import * as Usage from "../../../core/Usage.ts"
import { defined } from "../../../support/json/defined.ts"
import { isTooDeep, tooDeep } from "../schema/nesting.ts"
import { cited } from "../turn/citations.ts"
import type { Sink, TurnDecoder } from "../turn/decodeTurn.ts"
import { layoutOf, type Place } from "../turn/layout.ts"
import { sortCalls, type StreamedCall } from "../turn/toolCalls.ts"
import type { ToolNames } from "../turn/toolNames.ts"
import { badResponse, type Origin } from "../wire/errors.ts"
import { countOf, objectOf, objectsOf, parse, placeOf, stringOf } from "../wire/read.ts"
import { dataKey } from "./request.ts"

/** Facts that a turn is read with. */
export interface DecodeContext {
  readonly origin: Origin
  readonly names: ToolNames
  readonly makeId: () => string
  /** Puts a cost on usage that the prices of the model alone don't tell. */
  readonly cost: ((usage: Usage.Usage) => Usage.Usage) | undefined
}

type Piece =
  | { readonly _tag: "text"; text: string; readonly citations: Array<JsonObject> }
  | { readonly _tag: "reasoning"; text: string; signature: string; redacted: string }
  | { readonly _tag: "call"; readonly id: string; readonly name: string; raw: string; over: boolean }
  /** A tool call that Bedrock ran, or its result. */
  | { readonly _tag: "own"; readonly kind: "toolUse" | "toolResult"; readonly start: JsonObject; raw: string }

const serverTool = "server_tool_use"

const stops: { readonly [reason: string]: Message.TurnStop } = {
  max_tokens: "length",
  model_context_window_exceeded: "length",
  guardrail_intervened: "contentFilter",
  content_filtered: "contentFilter"
}

/** The model wrote a call that the API could not read. */
const misspelt = new Set(["malformed_tool_use", "malformed_model_output"])

const usageOf = (usage: JsonObject): Usage.Usage => {
  const count = (name: string): number => countOf(usage[name]) ?? 0
  const cacheReadTokens = count("cacheReadInputTokens")
  const cacheWriteTokens = count("cacheWriteInputTokens")
  // Bedrock counts cached tokens apart. Usage counts all input.
  return Usage.make({
    inputTokens: count("inputTokens") + cacheReadTokens + cacheWriteTokens,
    outputTokens: count("outputTokens"),
    cacheReadTokens,
    cacheWriteTokens
  })
}

/** Converts a citation to the common form. */
const citationOf = (citation: JsonObject): JsonObject => {
  const location = objectOf(citation["location"]) ?? {}
  const page = objectOf(location["documentPage"])
  const character = objectOf(location["documentChar"])
  return defined({
    url: stringOf(objectOf(location["web"])?.["url"]),
    title: stringOf(citation["title"]),
    source: stringOf(citation["source"]),
    cited_text:
      objectsOf(citation["sourceContent"])
        .map(({ text }) => stringOf(text) ?? "")
        .join("") || undefined,
    document_index: placeOf((page ?? character)?.["documentIndex"]),
    start_page_number: placeOf(page?.["start"]),
    end_page_number: placeOf(page?.["end"]),
    start_char_index: placeOf(character?.["start"]),
    end_char_index: placeOf(character?.["end"])
  })
}

/** Makes the decoder of one turn. */
export const makeDecoder = ({ cost = identity, makeId, names, origin }: DecodeContext): TurnDecoder<unknown> => {
  const pieces = new Map<number, Piece>()
  let stop: string | undefined
  let usage: JsonObject | undefined

  /** Finds the piece at an index if it has this kind. The API never changes the kind at an index. */
  const at = <Tag extends Piece["_tag"]>(
    index: number,
    tag: Tag
  ): Extract<Piece, { readonly _tag: Tag }> | undefined => {
    const piece = pieces.get(index)
    return piece?._tag === tag ? (piece as Extract<Piece, { readonly _tag: Tag }>) : undefined
  }

  const beginPiece = <P extends Piece>(index: number, piece: P): P => {
    pieces.set(index, piece)
    return piece
  }

  const takeStart = (index: number, start: JsonObject, sink: Sink): void => {
    const use = objectOf(start["toolUse"])
    const result = objectOf(start["toolResult"])
    if (result !== undefined) beginPiece(index, { _tag: "own", kind: "toolResult", start: result, raw: "" })
    if (use === undefined) return
    const id = stringOf(use["toolUseId"]) || makeId()
    const name = stringOf(use["name"]) ?? ""
    if (use["type"] === serverTool) {
      beginPiece(index, { _tag: "own", kind: "toolUse", start: use, raw: "" })
      sink.emit({ _tag: "ToolCallStart", id, name, providerExecuted: true })
    } else {
      const own = names.own(name)
      beginPiece(index, { _tag: "call", id, name: own, raw: "", over: false })
      sink.emit({ _tag: "ToolCallStart", id, name: own })
    }
  }

  const takeThought = (index: number, delta: JsonObject, sink: Sink): void => {
    const piece =
      at(index, "reasoning") ?? beginPiece(index, { _tag: "reasoning", text: "", signature: "", redacted: "" })
    const text = stringOf(delta["text"]) ?? ""
    piece.text += text
    piece.signature += stringOf(delta["signature"]) ?? ""
    const redacted: unknown = delta["redactedContent"]
    if (redacted instanceof Uint8Array) piece.redacted += Base64.encode(redacted)
    if (text !== "") sink.emit({ _tag: "ReasoningDelta", text })
  }

  const takeDelta = (index: number, delta: JsonObject, sink: Sink): void => {
    const text = stringOf(delta["text"])
    const input = stringOf(objectOf(delta["toolUse"])?.["input"])
    const thought = objectOf(delta["reasoningContent"])
    const citation = objectOf(delta["citation"])
    const own = at(index, "own")
    if (text !== undefined) {
      const piece = at(index, "text") ?? beginPiece(index, { _tag: "text", text: "", citations: [] })
      piece.text += text
      if (text !== "") sink.emit({ _tag: "TextDelta", text })
    } else if (thought !== undefined) takeThought(index, thought, sink)
    else if (citation !== undefined) {
      const piece = at(index, "text") ?? beginPiece(index, { _tag: "text", text: "", citations: [] })
      piece.citations.push(citationOf(citation))
    } else if (own !== undefined) {
      own.raw += own.kind === "toolUse" ? (input ?? "") : `${JSON.stringify(delta["toolResult"] ?? [])}\n`
    } else if (input !== undefined) {
      const call = at(index, "call")
      if (call === undefined) return sink.unknown("a call without a beginning")
      call.raw += input
      if (input !== "") sink.emit({ _tag: "ToolCallDelta", id: call.id, delta: input })
    } else sink.unknown(`contentBlockDelta: ${Object.keys(delta).join(", ")}`)
  }

  const take = (event: unknown, sink: Sink): ModelError | undefined => {
    const it = objectOf(event)
    if (it === undefined) return badResponse(origin, "an event of the stream is not an object")
    if (isTooDeep(it)) return badResponse(origin, tooDeep)
    const block =
      objectOf(it["contentBlockStart"]) ?? objectOf(it["contentBlockDelta"]) ?? objectOf(it["contentBlockStop"])
    const index = placeOf(block?.["contentBlockIndex"]) ?? 0
    if ("contentBlockStart" in it) takeStart(index, objectOf(block?.["start"]) ?? {}, sink)
    else if ("contentBlockDelta" in it) takeDelta(index, objectOf(block?.["delta"]) ?? {}, sink)
    else if ("contentBlockStop" in it) {
      const call = at(index, "call")
      if (call !== undefined) call.over = true
    } else if ("messageStop" in it) stop = stringOf(objectOf(it["messageStop"])?.["stopReason"]) ?? ""
    else if ("metadata" in it) usage = objectOf(objectOf(it["metadata"])?.["usage"]) ?? usage
    else if (!("messageStart" in it)) sink.unknown(Object.keys(it).join(", "))
    return undefined
  }

  const revivable = ({ kind, raw, start }: Extract<Piece, { readonly _tag: "own" }>): JsonObject => {
    if (kind === "toolUse") {
      const input = Result.getOrElse(parse(raw), () => ({}))
      return { toolUse: { ...start, input: fromUnknown(input) } }
    }
    const content = raw.split("\n").flatMap((line) => objectsOf(Result.getOrElse(parse(line), () => [])))
    return { toolResult: { ...start, content } }
  }

  const messageOf = (reason: string): Message.AiMessage => {
    const said = [...pieces].sort(([left], [right]) => left - right).map(([, piece]) => piece)
    const calls = said.flatMap((piece): ReadonlyArray<StreamedCall> =>
      piece._tag === "call"
        ? [{ id: piece.id, name: piece.name, raw: piece.raw, cut: stops[reason] === "length" && !piece.over }]
        : []
    )
    const { malformedToolCalls, toolCalls } = sortCalls(calls)
    const lost: ReadonlyArray<MalformedToolCall> =
      misspelt.has(reason) && malformedToolCalls.length === 0
        ? [
            {
              id: makeId(),
              raw: "",
              problem: "the call could not be read: write it again, with arguments that are JSON"
            }
          ]
        : []
    const malformed = [...malformedToolCalls, ...lost]
    const kept = new Set([...toolCalls, ...malformedToolCalls].map(({ id }) => id))
    const { model } = origin
    const content: Array<Content.Block> = []
    const places: Array<Place> = []
    for (const piece of said) {
      if (piece._tag === "own") places.push(revivable(piece))
      else if (piece._tag === "call") {
        if (kept.delete(piece.id)) places.push("call")
      } else if (piece._tag === "text") {
        content.push({ ...Content.text(piece.text), ...cited(piece.citations, piece.text) })
        if (piece.text.trim() !== "") places.push("content")
      } else {
        const data = defined({
          model,
          signature: piece.signature || undefined,
          redacted: piece.redacted || undefined
        })
        content.push(Content.reasoning(piece.text, { [dataKey]: data }))
        places.push("content")
      }
    }
    return Message.ai(content, {
      id: makeId(),
      toolCalls,
      malformedToolCalls: malformed,
      stopReason: stops[reason] ?? (toolCalls.length + malformed.length > 0 ? "toolCalls" : "stop"),
      model,
      usage: usage === undefined ? undefined : cost(usageOf(usage)),
      providerData: { [dataKey]: defined({ model, stopReason: reason, layout: layoutOf(places) }) }
    })
  }

  return {
    take,
    end: (sink) => {
      if (stop === undefined) return badResponse(origin, "the stream ended before a stop reason")
      sink.emit({ _tag: "TurnDone", message: messageOf(stop) })
      return undefined
    },
    isWhole: () => stop !== undefined && usage !== undefined
  }
}
