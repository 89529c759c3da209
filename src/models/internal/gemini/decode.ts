/** Reads the events of Gemini's own API into the parts of a turn. */
import type { Block, Citation } from "../../../core/Content.ts"
import type { Json, JsonObject } from "../../../core/Json.ts"
import type { TurnStop } from "../../../core/Message.ts"
import { ModelError } from "../../../core/ModelError.ts"
import * as Sources from "../../../core/Sources.ts"
import * as Usage from "../../../core/Usage.ts"
import { defined } from "../../../support/json/defined.ts"
import type { PriceUsage } from "../facts/facts.ts"
import { type Call, layoutIn, makeAssembler, type Speech } from "../turn/assembler.ts"
import type { Sink, TurnDecoder } from "../turn/decodeTurn.ts"
import type { ToolNames } from "../turn/toolNames.ts"
import { badResponse, type Origin, toldBy } from "../wire/errors.ts"
import { countOf, listOf, objectOf, objectsOf, placeOf, stringOf } from "../wire/read.ts"
import { errorOf } from "./client.ts"
import { makePartialArgs, type PartialArgs } from "./partialArgs.ts"
import { dataKey } from "./request.ts"

/** Facts that a turn is read with. */
export interface DecodeContext {
  readonly origin: Origin
  readonly names: ToolNames
  readonly restore: ((answer: Json) => Json) | undefined
  readonly makeId: () => string
  readonly price: PriceUsage
}

interface BlockData {
  signature: string | undefined
}

/** Data of a call. `partial`: its arguments come in parts. */
interface CallData {
  readonly data: JsonObject
  readonly partial: PartialArgs | undefined
  problem: string | undefined
}

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

const stopOf = (finish: string): TurnStop | undefined => {
  if (finish === "MAX_TOKENS") return "length"
  return filters.has(finish) ? "contentFilter" : undefined
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

const sourceOf = (chunk: JsonObject): Sources.CitedSource | undefined => {
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
  const cited = new Set<Sources.CitedSource>()
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

/** Counts the paid searches of a turn. Models before Gemini 3 pay for the turn, later ones for each search. */
const searchesIn = (grounding: JsonObject, model: string): number => {
  const { length } = listOf(grounding["webSearchQueries"])
  return /gemini-[12]\D/.test(model) ? Math.min(length, 1) : length
}

/** The proof of the thoughts behind a picture. */
const proofOf = (part: JsonObject): Pick<Block, "providerData"> => {
  const own = defined({
    signature: stringOf(part["thoughtSignature"]),
    thought: part["thought"] === true ? true : undefined
  })
  return Object.keys(own).length === 0 ? {} : { providerData: { [dataKey]: own } }
}

/** Makes the decoder of one turn. */
export const makeDecoder = (
  { makeId, names, origin, price, restore }: DecodeContext,
  sink: Sink
): TurnDecoder<unknown> => {
  const turn = makeAssembler<BlockData, CallData>(sink, makeId)
  let finish: string | undefined
  let finishMessage: string | undefined
  let usage: JsonObject | undefined
  let grounding: JsonObject = {}
  let response: JsonObject = {}
  const logprobs: Array<JsonObject> = []

  const say = (part: JsonObject, text: string): void => {
    const kind = part["thought"] === true ? "reasoning" : "text"
    const signature = stringOf(part["thoughtSignature"])
    const last = turn.pieces.at(-1)
    if (last?._tag === "speech" && last.kind === kind && last.data.signature === undefined) {
      turn.say(last, text)
      last.data.signature = signature
    } else if (text !== "") turn.say(turn.speak(kind, { signature }), text)
    // A signature of the thoughts before the previous part.
    else if (signature !== undefined) turn.add({ _tag: "own", part: { text: "", thoughtSignature: signature } })
  }

  /** The call whose arguments still come. */
  let open: Call<CallData> | undefined

  const close = (call: Call<CallData>, partial: PartialArgs): void => {
    open = undefined
    call.isClosed = true
    turn.write(call, JSON.stringify(partial.value()))
  }

  const begin = (part: JsonObject, called: JsonObject): Call<CallData> => {
    const ownId = stringOf(called["id"]) || undefined
    const partial = called["willContinue"] === true || "partialArgs" in called ? makePartialArgs() : undefined
    const data = defined({ id: ownId, signature: stringOf(part["thoughtSignature"]) })
    const name = names.own(stringOf(called["name"]) ?? "")
    const call = turn.call(
      { id: ownId ?? makeId(), name, data: { data, partial, problem: undefined } },
      partial === undefined ? JSON.stringify(called["args"] ?? {}) : ""
    )
    call.isClosed = partial === undefined
    return call
  }

  const addCall = (part: JsonObject, called: JsonObject): void => {
    const isNew = stringOf(called["name"]) !== undefined || open === undefined
    const call = isNew || open === undefined ? begin(part, called) : open
    const { partial } = call.data
    if (partial === undefined) return
    open = call
    const badPath = partial.add(called["partialArgs"])
    if (badPath !== undefined) call.data.problem ??= `the arguments have a part at ${badPath}, which can't be put there`
    if (called["willContinue"] !== true) close(call, partial)
  }

  const addPart = (part: JsonObject): void => {
    const text = stringOf(part["text"])
    const called = objectOf(part["functionCall"])
    const inline = objectOf(part["inlineData"])
    if (called !== undefined) addCall(part, called)
    else if (inline !== undefined) {
      const [mimeType, data] = [stringOf(inline["mimeType"]) ?? "", stringOf(inline["data"]) ?? ""]
      const type = mimeType.startsWith("image/") ? "image" : "file"
      const block: Block = { type, source: { kind: "base64", data, mimeType }, ...proofOf(part) }
      if (data !== "") turn.add({ _tag: "block", block })
    } else if (text !== undefined) say(part, text)
    else {
      // Code that Google ran, and its result.
      turn.add({ _tag: "own", part })
      if ("executableCode" in part) {
        sink.emit({ _tag: "ToolCallStart", id: makeId(), name: "code_execution", providerExecuted: true })
      }
    }
  }

  const addCandidate = (candidate: JsonObject): void => {
    for (const part of objectsOf(objectOf(candidate["content"])?.["parts"])) addPart(part)
    finish = stringOf(candidate["finishReason"]) ?? finish
    finishMessage = stringOf(candidate["finishMessage"]) ?? finishMessage
    grounding = { ...grounding, ...objectOf(candidate["groundingMetadata"]) }
    logprobs.push(...logprobsOf(objectOf(candidate["logprobsResult"])))
  }

  const failureIn = (event: unknown, chunk: JsonObject): ModelError | undefined => {
    if (objectOf(chunk["error"]) !== undefined) return errorOf(origin, chunk)
    if (Array.isArray(event)) return badResponse(origin, "an event of the stream is a list")
    const blocked = stringOf(objectOf(chunk["promptFeedback"])?.["blockReason"])
    if (blocked === undefined) return undefined
    const { model, provider } = origin
    const detail = `the request was blocked: ${toldBy(origin, blocked)}`
    return new ModelError({ provider, model, reason: { _tag: "ContentFiltered" }, detail })
  }

  const take = (event: unknown): ModelError | undefined => {
    // An error in the place of a stream is in a list.
    const chunk = objectOf(Array.isArray(event) ? event[0] : event)
    if (chunk === undefined) return badResponse(origin, "an event of the stream is not a JSON object")
    const failure = failureIn(event, chunk)
    if (failure !== undefined) return failure
    const candidate = objectsOf(chunk["candidates"])[0]
    if (candidate !== undefined) addCandidate(candidate)
    usage = objectOf(chunk["usageMetadata"]) ?? usage
    response = defined({
      id: stringOf(chunk["responseId"]) ?? response["id"],
      model: stringOf(chunk["modelVersion"]) ?? response["model"]
    })
    if (candidate === undefined && !("usageMetadata" in chunk)) sink.unknown("an event without candidates")
    return undefined
  }

  const end = (): ModelError | undefined => {
    if (finish === undefined) return badResponse(origin, "the stream ended before a finishReason")
    const finishReason = finish
    const lastText = turn.pieces.findLast((piece) => piece._tag === "speech" && piece.kind === "text")
    const own = (data: JsonObject) => (Object.keys(data).length === 0 ? {} : { providerData: { [dataKey]: data } })
    const blockOf = (speech: Speech<BlockData>): Block => {
      const { data, kind, text } = speech
      const providerData = own(defined({ signature: data.signature }))
      if (kind === "reasoning") return { type: "reasoning", text, ...providerData }
      const citations = citationsOf(grounding, text, speech === lastText)
      return { type: "text", text, ...(citations.length === 0 ? {} : { citations }), ...providerData }
    }
    turn.finish({
      stop: stopOf(finishReason),
      model: stringOf(response["model"]) ?? origin.model,
      usage: usage === undefined ? undefined : price(usageOf(usage), { searches: searchesIn(grounding, origin.model) }),
      blockOf,
      callOf: ({ data: { data, problem }, isClosed }) => ({ ...own(data), cut: !isClosed, problem }),
      unread: misspelt.has(finishReason) ? toldBy(origin, finishMessage ?? "") : undefined,
      restore,
      providerData: (order) => ({
        [dataKey]: defined({
          ...response,
          finishReason,
          layout: layoutIn(order),
          logprobs: logprobs.length === 0 ? undefined : logprobs
        })
      })
    })
    return undefined
  }

  return { take, end, isWhole: () => finish !== undefined && usage !== undefined }
}
