/** Reads the parts of a stream of the AI SDK into those of a turn. */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Block, Citation } from "../../../../core/Content.ts"
import { fromUnknown, type Json, type JsonObject } from "../../../../core/Json.ts"
import * as Message from "../../../../core/Message.ts"
import { ModelError } from "../../../../core/ModelError.ts"
import { union } from "../../../../core/sourceList.ts"
import * as Sources from "../../../../core/Sources.ts"
import * as Usage from "../../../../core/Usage.ts"
import { defined } from "../../../../support/json/defined.ts"
import { cut } from "../../../../support/text/text.ts"
import { restored } from "../../../internal/openai/restore.ts"
import { isTooDeep, tooDeep } from "../../../internal/schema/nesting.ts"
import type { Sink, TurnDecoder } from "../../../internal/turn/decodeTurn.ts"
import { layoutOf, type Place } from "../../../internal/turn/layout.ts"
import { sortCalls } from "../../../internal/turn/toolCalls.ts"
import type { ToolNames } from "../../../internal/turn/toolNames.ts"
import { badResponse, type Origin, providerError } from "../../../internal/wire/errors.ts"
import { countOf, numberOf, objectOf, objectsOf, stringOf } from "../../../internal/wire/read.ts"
import { isEmpty, mergeMetadata } from "../effectAi/metadata.ts"
import { streamedError } from "./errors.ts"
import { fileBlock } from "./media.ts"
import { dataKey } from "./prompt.ts"

/** Facts that a turn is read with. */
export interface DecodeContext {
  readonly origin: Origin
  readonly names: ToolNames
  /** Reverts the adaptation of the schema in an answer. */
  readonly restore: ((answer: Json) => Json) | undefined
  readonly makeId: () => string
  /** Says the provider's own warnings. */
  readonly warn: (warnings: ReadonlyArray<string>, sink: Sink) => void
}

/** A text or thought as far as it was said. */
interface Said {
  readonly _tag: "said"
  readonly kind: "text" | "reasoning"
  text: string
  metadata: JsonObject
  citations: ReadonlyArray<Citation>
}

/** A call as far as it was written. */
interface Call {
  readonly _tag: "call"
  readonly id: string
  readonly name: string
  readonly isHosted: boolean
  raw: string
  metadata: JsonObject
  isDone: boolean
}

type Piece =
  | Said
  | Call
  | { readonly _tag: "block"; readonly block: Block }
  | { readonly _tag: "own"; readonly part: JsonObject }

interface Finish {
  readonly unified: string
  readonly raw: string | undefined
  readonly usage: JsonObject | undefined
  readonly metadata: JsonObject
}

/** Characters of one turn: a stream without an end fills the memory. */
const longest = 64 * 1024 * 1024

const jsonOf = (value: unknown): JsonObject => objectOf(fromUnknown(value)) ?? {}

/** The metadata of a part, an object for each provider that has something to say. */
const metadataOf = (part: JsonObject): JsonObject =>
  part["providerMetadata"] === undefined ? {} : jsonOf(part["providerMetadata"])

const optionsOf = (metadata: JsonObject) => (isEmpty(metadata) ? {} : { options: metadata })

const sourceOf = (part: JsonObject | undefined): Sources.Cited | undefined => {
  const title = stringOf(part?.["title"])
  const url = stringOf(part?.["url"])
  if (url !== undefined && url !== "") return Sources.make({ url, title })
  const key = stringOf(part?.["filename"]) ?? title ?? stringOf(part?.["id"])
  return key === undefined || key === "" ? undefined : Sources.make({ key, title })
}

const citationOf =
  (text: string) =>
  (wire: JsonObject): ReadonlyArray<Citation> => {
    const source = sourceOf(objectOf(wire["source"]))
    if (source === undefined) return []
    const [start, end] = [numberOf(wire["startIndex"]), numberOf(wire["endIndex"])]
    const isInside = start !== undefined && end !== undefined && start >= 0 && start < end && end <= text.length
    const quote = stringOf(wire["citedText"])
    return [
      {
        source,
        ...(isInside ? { start, end } : {}),
        ...(quote === undefined ? {} : { quote: cut(quote, 1_000) })
      }
    ]
  }

const usageOf = (usage: JsonObject): Usage.Usage | undefined => {
  const input = objectOf(usage["inputTokens"]) ?? {}
  const output = objectOf(usage["outputTokens"]) ?? {}
  const sum = (counts: ReadonlyArray<number | undefined>) => {
    const known = counts.filter((count) => count !== undefined)
    return known.length === 0 ? undefined : known.reduce((total, count) => total + count, 0)
  }
  const cacheReadTokens = countOf(input["cacheRead"])
  const cacheWriteTokens = countOf(input["cacheWrite"])
  const reasoningTokens = countOf(output["reasoning"])
  const inputTokens = countOf(input["total"]) ?? sum([countOf(input["noCache"]), cacheReadTokens, cacheWriteTokens])
  const outputTokens = countOf(output["total"]) ?? sum([countOf(output["text"]), reasoningTokens])
  if (inputTokens === undefined && outputTokens === undefined) return undefined
  const cost = countOf(objectOf(usage["raw"])?.["cost"])
  return Usage.make(defined({ inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens, cost }))
}

const stopOf = ({ raw, unified }: Finish, called: boolean): Message.TurnStop => {
  if (unified === "length") return "length"
  if (unified === "content-filter") return raw === "refusal" ? "refusal" : "contentFilter"
  if (raw === "pause_turn") return "pause"
  return called ? "toolCalls" : "stop"
}

const parse = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Json))

const inputOf = (input: unknown): string => stringOf(input) ?? JSON.stringify(fromUnknown(input ?? {}))

/** The message of a turn that ended in good order. */
const messageOf = (
  pieces: ReadonlyArray<Piece>,
  sources: ReadonlyArray<Sources.Cited>,
  finish: Finish,
  response: JsonObject,
  { makeId, names, origin, restore }: DecodeContext
): Message.AiMessage => {
  const key = dataKey(origin.provider)
  const calls = pieces.filter((piece) => piece._tag === "call").filter(({ isHosted }) => !isHosted)
  const stopReason = stopOf(finish, calls.length > 0)
  const last = calls.at(-1)
  const sorted = sortCalls(
    calls.map((call) => ({
      id: call.id,
      name: names.own(call.name),
      raw: call.raw,
      cut: call === last && stopReason === "length",
      providerData: isEmpty(call.metadata) ? undefined : { [key]: optionsOf(call.metadata) }
    }))
  )
  const kept = new Set([...sorted.toolCalls, ...sorted.malformedToolCalls].map(({ id }) => id))
  const answered = new Set(
    pieces.flatMap((piece) => (piece._tag === "own" ? [stringOf(piece.part["toolCallId"])] : []))
  )
  // An open call of the provider can continue only in the same turn.
  const goesOn = stopReason === "pause" || calls.length > 0
  const lastText = pieces.findLast((piece) => piece._tag === "said" && piece.kind === "text")
  const content: Array<Block> = []
  const places: Array<Place> = []
  const say = (block: Block): void => {
    content.push(block)
    // Blank text is never sent back, so it has no place.
    if (block.type !== "text" || block.text.trim() !== "") places.push("content")
  }
  for (const piece of pieces) {
    switch (piece._tag) {
      case "said": {
        const { citations, kind, metadata, text } = piece
        if (text === "" && isEmpty(metadata)) break
        const data = { [key]: optionsOf(metadata) }
        if (kind === "reasoning") {
          // Signed reasoning goes back as it came or not at all.
          const isSound = text.isWellFormed() || isEmpty(metadata)
          say(isSound ? { type: "reasoning", text, providerData: data } : { type: "reasoning", text })
          break
        }
        const cited = piece === lastText ? uncited(sources, pieces) : []
        const all = [...citations, ...cited]
        say({
          type: "text",
          text,
          ...(all.length === 0 ? {} : { citations: all }),
          ...(isEmpty(metadata) ? {} : { providerData: data })
        })
        break
      }
      case "block":
        say(piece.block)
        break
      case "own":
        places.push(piece.part)
        break
      case "call":
        if (!piece.isHosted) {
          if (kept.delete(piece.id)) places.push("call")
        } else if (goesOn || answered.has(piece.id)) {
          const input = Result.getOrElse(parse(piece.raw), () => ({}))
          const { id: toolCallId, metadata, name: toolName } = piece
          places.push({ type: "tool-call", toolCallId, toolName, input, ...optionsOf(metadata) })
        }
    }
  }
  const data = defined({
    ...response,
    finishReason: finish.raw ?? finish.unified,
    layout: layoutOf(places),
    container: stringOf(objectOf(objectOf(finish.metadata["anthropic"])?.["container"])?.["id"])
  })
  return Message.ai(restored(content, stopReason, restore), {
    id: makeId(),
    ...sorted,
    stopReason,
    model: stringOf(response["model"]) ?? origin.model,
    usage: finish.usage === undefined ? undefined : usageOf(finish.usage),
    providerData: { [key]: data }
  })
}

/** Sources of the whole turn that no text of it cites. */
const uncited = (sources: ReadonlyArray<Sources.Cited>, pieces: ReadonlyArray<Piece>): ReadonlyArray<Citation> => {
  const cited = new Set(
    pieces.flatMap((piece) => (piece._tag === "said" ? piece.citations.map(({ source }) => source.key) : []))
  )
  return union([], sources)
    .filter(({ key }) => !cited.has(key))
    .map((source) => ({ source }))
}

/** Makes the decoder of one turn. */
export const makeDecoder = (context: DecodeContext): TurnDecoder<unknown> => {
  const { makeId, names, origin } = context
  const pieces: Array<Piece> = []
  const speaking = new Map<string, Said>()
  const writing = new Map<string, Call>()
  const sources: Array<Sources.Cited> = []
  let response: JsonObject = {}
  let finish: Finish | undefined
  let size = 0

  const speech = (kind: Said["kind"], part: JsonObject): { readonly said: Said; readonly key: string } => {
    const key = `${kind} ${stringOf(part["id"]) ?? ""}`
    const open = stringOf(part["type"])?.endsWith("-start") === true ? undefined : speaking.get(key)
    const said: Said = open ?? { _tag: "said", kind, text: "", metadata: {}, citations: [] }
    if (open === undefined) {
      speaking.set(key, said)
      pieces.push(said)
    }
    said.metadata = mergeMetadata(said.metadata, metadataOf(part))
    return { said, key }
  }

  const say = (kind: Said["kind"], part: JsonObject, sink: Sink): void => {
    const text = stringOf(part["delta"]) ?? ""
    const { said } = speech(kind, part)
    if (text === "") return
    said.text += text
    size += text.length
    sink.emit(kind === "text" ? { _tag: "TextDelta", text } : { _tag: "ReasoningDelta", text })
  }

  const begin = (given: string | undefined, part: JsonObject, sink: Sink): Call => {
    const id = given === undefined || given === "" ? makeId() : given
    const name = stringOf(part["toolName"]) ?? ""
    const isHosted = part["providerExecuted"] === true
    const call: Call = { _tag: "call", id, name, isHosted, raw: "", metadata: metadataOf(part), isDone: false }
    pieces.push(call)
    writing.set(given ?? "", call)
    sink.emit({
      _tag: "ToolCallStart",
      id,
      name: isHosted ? name : names.own(name),
      ...(isHosted ? { providerExecuted: true } : {})
    })
    return call
  }

  const write = (part: JsonObject, sink: Sink): void => {
    const call = writing.get(stringOf(part["id"]) ?? "")
    const delta = stringOf(part["delta"]) ?? ""
    if (call === undefined || call.isDone || delta === "") return
    call.raw += delta
    size += delta.length
    sink.emit({ _tag: "ToolCallDelta", id: call.id, delta })
  }

  const complete = (part: JsonObject, sink: Sink): void => {
    const given = stringOf(part["toolCallId"])
    const raw = inputOf(part["input"])
    const open = writing.get(given ?? "")
    const isOpen = open !== undefined && !open.isDone
    const call = isOpen ? open : begin(given, part, sink)
    if (!isOpen || call.raw === "") {
      if (raw !== "") sink.emit({ _tag: "ToolCallDelta", id: call.id, delta: raw })
      size += raw.length
    }
    call.raw = raw
    call.metadata = mergeMetadata(call.metadata, metadataOf(part))
    call.isDone = true
  }

  const own = (part: JsonObject): void => void pieces.push({ _tag: "own", part })

  const unsupported = (detail: string): ModelError =>
    new ModelError({ provider: origin.provider, model: origin.model, reason: { _tag: "Unsupported" }, detail })

  const end = (part: JsonObject): ModelError | undefined => {
    const reason = part["finishReason"]
    const unified = stringOf(reason) ?? stringOf(objectOf(reason)?.["unified"]) ?? "other"
    const raw = stringOf(objectOf(reason)?.["raw"])
    finish = { unified, raw, usage: objectOf(part["usage"]), metadata: metadataOf(part) }
    if (unified === "error") {
      return providerError(origin, {
        type: "server_error",
        message: `the provider ended the answer with an error${raw === undefined ? "" : ` (${raw})`}`
      })
    }
    const isCut = unified === "interrupted" || (unified === "other" && raw === undefined)
    return isCut ? badResponse(origin, "the stream ended before a reason to finish") : undefined
  }

  const take = (event: unknown, sink: Sink): ModelError | undefined => {
    const part = objectOf(event)
    if (part === undefined) return badResponse(origin, "a part of the stream is not an object")
    const type = stringOf(part["type"]) ?? "a part without a type"
    switch (type) {
      case "stream-start":
        context.warn(warningsOf(part), sink)
        return undefined
      case "text-start":
      case "reasoning-start":
        speech(type === "text-start" ? "text" : "reasoning", part)
        return undefined
      case "text-delta":
      case "reasoning-delta":
        say(type === "text-delta" ? "text" : "reasoning", part, sink)
        return size > longest ? badResponse(origin, "the answer is longer than is read") : undefined
      case "text-end":
      case "reasoning-end": {
        const { key, said } = speech(type === "text-end" ? "text" : "reasoning", part)
        said.citations = objectsOf(part["citations"]).slice(0, mostCitations).flatMap(citationOf(said.text))
        speaking.delete(key)
        return undefined
      }
      case "tool-input-start":
        begin(stringOf(part["id"]), part, sink)
        return undefined
      case "tool-input-delta":
        write(part, sink)
        return size > longest ? badResponse(origin, "the answer is longer than is read") : undefined
      case "tool-input-end":
        return undefined
      case "tool-call":
        complete(part, sink)
        return undefined
      case "tool-result": {
        const { preliminary, toolCallId, toolName } = part
        if (preliminary === true) return undefined
        if (isTooDeep(part["result"])) return badResponse(origin, tooDeep)
        own(
          defined({
            type: "tool-result",
            toolCallId: stringOf(toolCallId) ?? "",
            toolName: stringOf(toolName) ?? "",
            result: fromUnknown(part["result"]),
            isError: part["isError"] === true ? true : undefined,
            ...optionsOf(metadataOf(part))
          })
        )
        return undefined
      }
      case "custom":
        own({ type: "custom", kind: stringOf(part["kind"]) ?? "", ...optionsOf(metadataOf(part)) })
        return undefined
      case "file": {
        const block = fileBlock(stringOf(part["mediaType"]) ?? "", part["data"])
        if (block !== undefined) pieces.push({ _tag: "block", block })
        return undefined
      }
      case "source": {
        const source = sourceOf(part)
        if (source !== undefined && sources.length < mostCitations) sources.push(source)
        return undefined
      }
      case "response-metadata":
        response = defined({
          ...response,
          id: stringOf(part["id"]) ?? response["id"],
          model: stringOf(part["modelId"]) ?? response["model"]
        })
        return undefined
      case "finish":
        return end(part)
      case "error":
        return streamedError(origin, part["error"])
      case "tool-approval-request":
        return unsupported(
          "the provider asks whether it may run a tool of its own; set its option so that it need not ask"
        )
      case "ping":
      case "raw":
        return undefined
      default:
        sink.unknown(type)
        return undefined
    }
  }

  return {
    take,
    end: (sink) => {
      if (finish === undefined) return badResponse(origin, "the stream ended before a reason to finish")
      sink.emit({ _tag: "TurnDone", message: messageOf(pieces, sources, finish, response, context) })
      return undefined
    },
    isWhole: () => finish !== undefined
  }
}

/** Of one turn so many sources are kept, and so many citations of one text. */
const mostCitations = 200

const warningsOf = (part: JsonObject): ReadonlyArray<string> =>
  objectsOf(part["warnings"]).flatMap((warning) => {
    const about = stringOf(warning["feature"]) ?? stringOf(warning["setting"])
    const said = stringOf(warning["details"]) ?? stringOf(warning["message"])
    return about === undefined && said === undefined
      ? []
      : [[about, said].filter((one) => one !== undefined).join(": ")]
  })
