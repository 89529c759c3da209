/** Reads the events of Gemini's own API into the parts of a turn. */
import type { Block, Citation } from "../../../core/Content.ts"
import type { Json, JsonObject } from "../../../core/Json.ts"
import * as Message from "../../../core/Message.ts"
import { ModelError } from "../../../core/ModelError.ts"
import * as Sources from "../../../core/Sources.ts"
import type { MalformedToolCall } from "../../../core/ToolCall.ts"
import * as Usage from "../../../core/Usage.ts"
import { defined } from "../../../support/json/defined.ts"
import { restored } from "../openai/restore.ts"
import { isTooDeep, tooDeep } from "../schema/nesting.ts"
import type { Sink, TurnDecoder } from "../turn/decodeTurn.ts"
import { layoutOf, type Place } from "../turn/layout.ts"
import { sortCalls, type StreamedCall } from "../turn/toolCalls.ts"
import type { ToolNames } from "../turn/toolNames.ts"
import { badResponse, type Origin, toldBy } from "../wire/errors.ts"
import { countOf, listOf, objectOf, objectsOf, placeOf, stringOf } from "../wire/read.ts"
import { errorOf } from "./client.ts"
import { dataKey } from "./request.ts"

/** Facts that a turn is read with. */
export interface DecodeContext {
  readonly origin: Origin
  readonly names: ToolNames
  readonly restore: ((answer: Json) => Json) | undefined
  readonly makeId: () => string
}

type Piece =
  | { readonly _tag: "said"; readonly kind: "text" | "reasoning"; text: string; signature: string | undefined }
  | { readonly _tag: "call"; readonly call: StreamedCall }
  | { readonly _tag: "image"; readonly block: Block }
  | { readonly _tag: "own"; readonly part: JsonObject }

const filters = new Set([
  "SAFETY",
  "RECITATION",
  "LANGUAGE",
  "BLOCKLIST",
  "PROHIBITED_CONTENT",
  "SPII",
  "IMAGE_SAFETY",
  "IMAGE_PROHIBITED_CONTENT",
  "IMAGE_RECITATION",
  "MODEL_ARMOR"
])

/** Finish reasons of a call that the API could not parse. The message contains its text. */
const misspelt = new Set(["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])

const stopOf = (finish: string, called: boolean): Message.TurnStop => {
  if (finish === "MAX_TOKENS") return "length"
  if (filters.has(finish)) return "contentFilter"
  return called ? "toolCalls" : "stop"
}

const usageOf = (usage: JsonObject): Usage.Usage => {
  const count = (name: string): number => countOf(usage[name]) ?? 0
  const reasoningTokens = count("thoughtsTokenCount")
  return Usage.make({
    inputTokens: count("promptTokenCount") + count("toolUsePromptTokenCount"),
    outputTokens: count("candidatesTokenCount") + reasoningTokens,
    cacheReadTokens: count("cachedContentTokenCount"),
    reasoningTokens
  })
}

const mostSources = 200

const sourceOf = (chunk: JsonObject): Sources.Cited | undefined => {
  const from = objectOf(chunk["web"]) ?? objectOf(chunk["retrievedContext"]) ?? objectOf(chunk["maps"])
  const url = stringOf(from?.["uri"])
  const title = stringOf(from?.["title"])
  const snippet = stringOf(from?.["text"])
  if (url !== undefined && url !== "") return Sources.make({ url, title, snippet })
  return title === undefined || title === "" ? undefined : Sources.make({ key: title, title, snippet })
}

/** The citations of one text. The API counts bytes of the whole answer; a passage is found by its words. */
const citationsOf = (grounding: JsonObject, text: string, isLast: boolean): ReadonlyArray<Citation> => {
  const sources = objectsOf(grounding["groundingChunks"]).slice(0, mostSources).map(sourceOf)
  const cited = new Set<Sources.Cited>()
  const citations = objectsOf(grounding["groundingSupports"])
    .slice(0, mostSources)
    .flatMap((support): ReadonlyArray<Citation> => {
      const words = stringOf(objectOf(support["segment"])?.["text"]) ?? ""
      const start = words === "" ? -1 : text.indexOf(words)
      return listOf(support["groundingChunkIndices"])
        .slice(0, mostSources)
        .flatMap((index) => {
          const source = sources[placeOf(index) ?? -1]
          if (source === undefined) return []
          cited.add(source)
          return start < 0 ? [] : [{ source, start, end: start + words.length }]
        })
    })
  const others = isLast ? sources.filter((source) => source !== undefined && !cited.has(source)) : []
  return [...citations, ...others.flatMap((source) => (source === undefined ? [] : [{ source }]))].slice(0, mostSources)
}

/** Converts token probabilities to OpenAI's form. */
const logprobsOf = (result: JsonObject | undefined): ReadonlyArray<JsonObject> => {
  const worded = ({ logProbability: logprob = null, token = null }: JsonObject): JsonObject => ({ token, logprob })
  const top = objectsOf(result?.["topCandidates"])
  return objectsOf(result?.["chosenCandidates"]).map((one, index) => ({
    ...worded(one),
    top_logprobs: objectsOf(top[index]?.["candidates"]).map(worded)
  }))
}

/** Makes the decoder of one turn. */
export const makeDecoder = ({ makeId, names, origin, restore }: DecodeContext): TurnDecoder<unknown> => {
  const pieces: Array<Piece> = []
  let finish: string | undefined
  let finishMessage: string | undefined
  let usage: JsonObject | undefined
  let grounding: JsonObject = {}
  let response: JsonObject = {}
  const logprobs: Array<JsonObject> = []

  const say = (part: JsonObject, text: string, sink: Sink): void => {
    const kind = part["thought"] === true ? "reasoning" : "text"
    const signature = stringOf(part["thoughtSignature"])
    const last = pieces.at(-1)
    if (last?._tag === "said" && last.kind === kind && last.signature === undefined) {
      last.text += text
      last.signature = signature
    } else if (text !== "") pieces.push({ _tag: "said", kind, text, signature })
    // A signature of the thoughts before the previous part.
    else if (signature !== undefined) pieces.push({ _tag: "own", part: { text: "", thoughtSignature: signature } })
    if (text !== "") sink.emit({ _tag: kind === "text" ? "TextDelta" : "ReasoningDelta", text })
  }

  const take1 = (part: JsonObject, sink: Sink): void => {
    const text = stringOf(part["text"])
    const called = objectOf(part["functionCall"])
    const inline = objectOf(part["inlineData"])
    if (called !== undefined) {
      const given = stringOf(called["id"])
      const id = given === undefined || given === "" ? makeId() : given
      const name = names.own(stringOf(called["name"]) ?? "")
      const raw = JSON.stringify(called["args"] ?? {})
      const signature = stringOf(part["thoughtSignature"])
      const data = defined({ id: given === "" ? undefined : given, signature })
      const providerData = Object.keys(data).length === 0 ? undefined : { [dataKey]: data }
      pieces.push({ _tag: "call", call: { id, name, raw, cut: false, providerData } })
      sink.emit({ _tag: "ToolCallStart", id, name })
      sink.emit({ _tag: "ToolCallDelta", id, delta: raw })
    } else if (inline !== undefined) {
      const [mimeType, data] = [stringOf(inline["mimeType"]) ?? "", stringOf(inline["data"]) ?? ""]
      const type = mimeType.startsWith("image/") ? "image" : "file"
      if (data !== "") pieces.push({ _tag: "image", block: { type, source: { kind: "base64", data, mimeType } } })
    } else if (text !== undefined) say(part, text, sink)
    else {
      // Code that Google ran, and its result.
      pieces.push({ _tag: "own", part })
      if ("executableCode" in part) {
        sink.emit({ _tag: "ToolCallStart", id: makeId(), name: "code_execution", providerExecuted: true })
      }
    }
  }

  const take = (event: unknown, sink: Sink): ModelError | undefined => {
    // An error in the place of a stream is in a list.
    const chunk = objectOf(Array.isArray(event) ? event[0] : event)
    if (chunk === undefined) return badResponse(origin, "an event of the stream is not a JSON object")
    if (objectOf(chunk["error"]) !== undefined) return errorOf(origin, chunk)
    if (Array.isArray(event)) return badResponse(origin, "an event of the stream is a list")
    if (isTooDeep(chunk)) return badResponse(origin, tooDeep)
    const blocked = stringOf(objectOf(chunk["promptFeedback"])?.["blockReason"])
    if (blocked !== undefined) {
      const { model, provider } = origin
      const detail = `the request was blocked: ${toldBy(origin, blocked)}`
      return new ModelError({ provider, model, reason: { _tag: "ContentFiltered" }, detail })
    }
    const candidate = objectsOf(chunk["candidates"])[0]
    for (const part of objectsOf(objectOf(candidate?.["content"])?.["parts"])) take1(part, sink)
    finish = stringOf(candidate?.["finishReason"]) ?? finish
    finishMessage = stringOf(candidate?.["finishMessage"]) ?? finishMessage
    grounding = { ...grounding, ...objectOf(candidate?.["groundingMetadata"]) }
    usage = objectOf(chunk["usageMetadata"]) ?? usage
    logprobs.push(...logprobsOf(objectOf(candidate?.["logprobsResult"])))
    response = defined({
      ...response,
      id: stringOf(chunk["responseId"]) ?? response["id"],
      model: stringOf(chunk["modelVersion"]) ?? response["model"]
    })
    if (candidate === undefined && !("usageMetadata" in chunk)) sink.unknown("an event without candidates")
    return undefined
  }

  const messageOf = (reason: string): Message.AiMessage => {
    const calls = pieces.flatMap((piece) => (piece._tag === "call" ? [piece.call] : []))
    const { malformedToolCalls, toolCalls } = sortCalls(calls)
    const problem = "the call could not be read: write it again, with arguments that are JSON"
    const lost: ReadonlyArray<MalformedToolCall> = misspelt.has(reason)
      ? [{ id: makeId(), raw: toldBy(origin, finishMessage ?? ""), problem }]
      : []
    const malformed = [...malformedToolCalls, ...lost]
    const kept = new Set([...toolCalls, ...malformedToolCalls].map(({ id }) => id))
    const stopReason = stopOf(reason, toolCalls.length + malformed.length > 0)
    const lastText = pieces.findLast((piece) => piece._tag === "said" && piece.kind === "text")
    const content: Array<Block> = []
    const places: Array<Place> = []
    for (const piece of pieces) {
      if (piece._tag === "own") places.push(piece.part)
      else if (piece._tag === "call") {
        if (kept.delete(piece.call.id)) places.push("call")
      } else if (piece._tag === "image") {
        content.push(piece.block)
        places.push("content")
      } else {
        const { kind, signature, text } = piece
        const own = signature === undefined ? {} : { providerData: { [dataKey]: { signature } } }
        if (kind === "reasoning") content.push({ type: "reasoning", text, ...own })
        else {
          const citations = citationsOf(grounding, text, piece === lastText)
          content.push({ type: "text", text, ...(citations.length === 0 ? {} : { citations }), ...own })
        }
        // Thoughts without a proof and blank texts are not sent back, so they have no place.
        if (kind === "text" ? text.trim() !== "" : signature !== undefined) places.push("content")
      }
    }
    const probable = logprobs.length === 0 ? undefined : logprobs
    const data = defined({ ...response, finishReason: reason, layout: layoutOf(places), logprobs: probable })
    return Message.ai(restored(content, stopReason, restore), {
      id: makeId(),
      toolCalls,
      malformedToolCalls: malformed,
      stopReason,
      model: stringOf(response["model"]) ?? origin.model,
      usage: usage === undefined ? undefined : usageOf(usage),
      providerData: { [dataKey]: data }
    })
  }

  return {
    take,
    end: (sink) => {
      if (finish === undefined) return badResponse(origin, "the stream ended before a finishReason")
      sink.emit({ _tag: "TurnDone", message: messageOf(finish) })
      return undefined
    },
    isWhole: () => finish !== undefined && usage !== undefined
  }
}
