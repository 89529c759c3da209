/** Reads a stream of the AI SDK into the parts of a turn. */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Block, Citation } from "../../../../core/Content.ts"
import { fromUnknown, type Json, type JsonObject } from "../../../../core/Json.ts"
import type { TurnStop } from "../../../../core/Message.ts"
import { ModelError } from "../../../../core/ModelError.ts"
import { union } from "../../../../core/sourceList.ts"
import * as Sources from "../../../../core/Sources.ts"
import * as Usage from "../../../../core/Usage.ts"
import { defined } from "../../../../support/json/defined.ts"
import { cut } from "../../../../support/text/text.ts"
import { isTooDeep, tooDeep } from "../../../internal/schema/nesting.ts"
import { type Assembler, type Call, layoutIn, makeAssembler, type Speech } from "../../../internal/turn/assembler.ts"
import type { Sink, TurnDecoder } from "../../../internal/turn/decodeTurn.ts"
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

/** Data of a text or a thought. */
interface BlockData {
  metadata: JsonObject
  citations: ReadonlyArray<Citation>
}

/** Data of a call. */
interface CallData {
  metadata: JsonObject
}

type Turn = Assembler<BlockData, CallData>

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

const sourceOf = (part: JsonObject | undefined): Sources.CitedSource | undefined => {
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
    const knownCounts = counts.filter((count) => count !== undefined)
    return knownCounts.length === 0 ? undefined : knownCounts.reduce((total, count) => total + count, 0)
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

const stopOf = ({ raw, unified }: Finish): TurnStop | undefined => {
  if (unified === "length") return "length"
  if (unified === "content-filter") return raw === "refusal" ? "refusal" : "contentFilter"
  return raw === "pause_turn" ? "pause" : undefined
}

const parse = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Json))

const inputOf = (input: unknown): string => stringOf(input) ?? JSON.stringify(fromUnknown(input ?? {}))

/** Builds the message of a complete turn. */
const finishTurn = (
  turn: Turn,
  sources: ReadonlyArray<Sources.CitedSource>,
  finish: Finish,
  response: JsonObject,
  { origin, restore }: DecodeContext
): void => {
  const { pieces } = turn
  const key = dataKey(origin.provider)
  const stop = stopOf(finish)
  const calls = pieces.filter((piece) => piece._tag === "call").filter(({ isHosted }) => !isHosted)
  const answered = new Set(
    pieces.flatMap((piece) => (piece._tag === "own" ? [stringOf(piece.part["toolCallId"])] : []))
  )
  // An open call of the provider can continue only in the same turn.
  const goesOn = stop === "pause" || calls.length > 0
  const lastText = pieces.findLast((piece) => piece._tag === "speech" && piece.kind === "text")

  const blockOf = (speech: Speech<BlockData>): Block | undefined => {
    const { data, kind, text } = speech
    const { citations, metadata } = data
    const isPlain = isEmpty(metadata)
    if (text === "" && isPlain) return undefined
    const own = { providerData: { [key]: optionsOf(metadata) } }
    // Signed reasoning goes back as it came or not at all.
    if (kind === "reasoning") return { type: "reasoning", text, ...(isPlain || text.isWellFormed() ? own : {}) }
    const all = [...citations, ...(speech === lastText ? uncited(sources, pieces) : [])]
    return { type: "text", text, ...(all.length === 0 ? {} : { citations: all }), ...(isPlain ? {} : own) }
  }

  turn.finish({
    stop,
    model: stringOf(response["model"]) ?? origin.model,
    usage: finish.usage === undefined ? undefined : usageOf(finish.usage),
    blockOf,
    callOf: (call) => ({
      cut: call === calls.at(-1) && stop === "length",
      providerData: isEmpty(call.data.metadata) ? undefined : { [key]: optionsOf(call.data.metadata) }
    }),
    partOf: ({ data, id: toolCallId, name: toolName, raw }) => {
      if (!goesOn && !answered.has(toolCallId)) return undefined
      const input = Result.getOrElse(parse(raw), () => ({}))
      return { type: "tool-call", toolCallId, toolName, input, ...optionsOf(data.metadata) }
    },
    restore,
    providerData: (order) => ({
      [key]: defined({
        ...response,
        finishReason: finish.raw ?? finish.unified,
        layout: layoutIn(order),
        container: stringOf(objectOf(objectOf(finish.metadata["anthropic"])?.["container"])?.["id"])
      })
    })
  })
}

/** Sources of the whole turn that no text of it cites. */
const uncited = (sources: ReadonlyArray<Sources.CitedSource>, pieces: Turn["pieces"]): ReadonlyArray<Citation> => {
  const cited = new Set(
    pieces.flatMap((piece) => (piece._tag === "speech" ? piece.data.citations.map(({ source }) => source.key) : []))
  )
  return union([], sources)
    .filter(({ key }) => !cited.has(key))
    .map((source) => ({ source }))
}

const resultPart = (part: JsonObject): JsonObject =>
  defined({
    type: "tool-result",
    toolCallId: stringOf(part["toolCallId"]) ?? "",
    toolName: stringOf(part["toolName"]) ?? "",
    result: fromUnknown(part["result"]),
    isError: part["isError"] === true ? true : undefined,
    ...optionsOf(metadataOf(part))
  })

/** Handles the parts of one type. */
type Handler = (part: JsonObject) => ModelError | undefined | void

/** Collects the texts and thoughts of a turn. */
const makeSpeeches = (turn: Turn) => {
  const speeches = new Map<string, Speech<BlockData>>()
  const keyOf = (kind: Speech["kind"], part: JsonObject): string => `${kind} ${stringOf(part["id"]) ?? ""}`

  const begin = (kind: Speech["kind"], part: JsonObject): Speech<BlockData> => {
    const speech = turn.speak(kind, { metadata: metadataOf(part), citations: [] })
    speeches.set(keyOf(kind, part), speech)
    return speech
  }

  const open = (kind: Speech["kind"], part: JsonObject): Speech<BlockData> => {
    const speech = speeches.get(keyOf(kind, part))
    if (speech === undefined) return begin(kind, part)
    speech.data.metadata = mergeMetadata(speech.data.metadata, metadataOf(part))
    return speech
  }

  const close = (kind: Speech["kind"], part: JsonObject): void => {
    const { data, text } = open(kind, part)
    data.citations = objectsOf(part["citations"]).slice(0, mostCitations).flatMap(citationOf(text))
    speeches.delete(keyOf(kind, part))
  }

  return { begin, open, close }
}

/** Collects the calls of a turn. */
const makeCalls = (turn: Turn, { makeId, names }: DecodeContext) => {
  const calls = new Map<string, Call<CallData>>()

  const begin = (wireId: string | undefined, part: JsonObject): Call<CallData> => {
    const name = stringOf(part["toolName"]) ?? ""
    const isHosted = part["providerExecuted"] === true
    const data = { metadata: metadataOf(part) }
    const call = turn.addCall({ id: wireId || makeId(), name: isHosted ? name : names.own(name), isHosted, data })
    // Some providers tell only with the whole call that they run it.
    if (isHosted || names.has(name)) turn.start(call)
    calls.set(wireId ?? "", call)
    return call
  }

  return {
    begin,
    /** The call that is being written under an id. */
    open: (id: string | undefined): Call<CallData> | undefined => {
      const call = calls.get(id ?? "")
      return call === undefined || call.isClosed ? undefined : call
    },
    complete: (call: Call<CallData>, part: JsonObject): void => {
      const raw = inputOf(part["input"])
      if (part["providerExecuted"] === true && !call.isHosted) {
        call.isHosted = true
        call.name = stringOf(part["toolName"]) ?? call.name
      }
      turn.start(call)
      if (call.raw === "") turn.write(call, raw)
      call.raw = raw
      call.data.metadata = mergeMetadata(call.data.metadata, metadataOf(part))
      call.isClosed = true
    }
  }
}

/** Makes the decoder of one turn. */
export const makeDecoder = (context: DecodeContext, sink: Sink): TurnDecoder<unknown> => {
  const { makeId, origin } = context
  const turn = makeAssembler<BlockData, CallData>(sink, makeId)
  const speeches = makeSpeeches(turn)
  const calls = makeCalls(turn, context)
  const sources: Array<Sources.CitedSource> = []
  let response: JsonObject = {}
  let finish: Finish | undefined
  let size = 0

  /** Limits the memory of a turn, since a stream may have no end. */
  const grow = (length: number): ModelError | undefined => {
    size += length
    return size > longest ? badResponse(origin, "the answer is longer than is read") : undefined
  }

  const say = (kind: Speech["kind"], part: JsonObject): ModelError | undefined => {
    const text = stringOf(part["delta"]) ?? ""
    turn.say(speeches.open(kind, part), text)
    return grow(text.length)
  }

  const write = (part: JsonObject): ModelError | undefined => {
    const call = calls.open(stringOf(part["id"]))
    const delta = stringOf(part["delta"]) ?? ""
    if (call === undefined) return undefined
    turn.write(call, delta)
    return grow(delta.length)
  }

  const complete: Handler = (part) => {
    const id = stringOf(part["toolCallId"])
    const call = calls.open(id) ?? calls.begin(id, part)
    const { length } = call.raw
    calls.complete(call, part)
    return length === 0 ? grow(call.raw.length) : undefined
  }

  const conclude = (part: JsonObject): ModelError | undefined => {
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

  const addResult: Handler = (part) => {
    if (part["preliminary"] === true) return undefined
    if (isTooDeep(part["result"])) return badResponse(origin, tooDeep)
    return turn.add({ _tag: "own", part: resultPart(part) })
  }

  const addFile: Handler = (part) => {
    const block = fileBlock(stringOf(part["mediaType"]) ?? "", part["data"])
    if (block !== undefined) turn.add({ _tag: "block", block })
  }

  const addSource: Handler = (part) => {
    const source = sourceOf(part)
    if (source !== undefined && sources.length < mostCitations) sources.push(source)
  }

  const describe: Handler = (part) => {
    response = defined({
      id: stringOf(part["id"]) ?? response["id"],
      model: stringOf(part["modelId"]) ?? response["model"]
    })
  }

  const rejectApproval: Handler = () =>
    new ModelError({
      provider: origin.provider,
      model: origin.model,
      reason: { _tag: "Unsupported" },
      detail: "the provider asks whether it may run a tool of its own; set its option so that it need not ask"
    })

  const ignore: Handler = () => undefined

  const handlers = new Map<string, Handler>([
    ["stream-start", (part) => context.warn(warningsOf(part), sink)],
    ["text-start", (part) => void speeches.begin("text", part)],
    ["text-delta", (part) => say("text", part)],
    ["text-end", (part) => speeches.close("text", part)],
    ["reasoning-start", (part) => void speeches.begin("reasoning", part)],
    ["reasoning-delta", (part) => say("reasoning", part)],
    ["reasoning-end", (part) => speeches.close("reasoning", part)],
    ["tool-input-start", (part) => void calls.begin(stringOf(part["id"]), part)],
    ["tool-input-delta", write],
    ["tool-input-end", ignore],
    ["tool-call", complete],
    ["tool-result", addResult],
    [
      "custom",
      (part) => {
        const kind = stringOf(part["kind"]) ?? ""
        turn.add({ _tag: "own", part: { type: "custom", kind, ...optionsOf(metadataOf(part)) } })
      }
    ],
    ["file", addFile],
    ["source", addSource],
    ["response-metadata", describe],
    ["finish", conclude],
    ["error", (part) => streamedError(origin, part["error"])],
    ["tool-approval-request", rejectApproval],
    ["ping", ignore],
    ["raw", ignore]
  ])

  const take = (event: unknown): ModelError | undefined | void => {
    const part = objectOf(event)
    if (part === undefined) return badResponse(origin, "a part of the stream is not an object")
    const type = stringOf(part["type"]) ?? "a part without a type"
    const handle = handlers.get(type)
    if (handle === undefined) return sink.unknown(type)
    return handle(part) ?? undefined
  }

  const end = (): ModelError | undefined => {
    if (finish === undefined) return badResponse(origin, "the stream ended before a reason to finish")
    finishTurn(turn, sources, finish, response, context)
    return undefined
  }

  return { take, end, isWhole: () => finish !== undefined }
}

/** Of one turn so many sources are kept, and so many citations of one text. */
const mostCitations = 200

const warningsOf = (part: JsonObject): ReadonlyArray<string> =>
  objectsOf(part["warnings"]).flatMap((warning) => {
    const about = stringOf(warning["feature"]) ?? stringOf(warning["setting"])
    const detail = stringOf(warning["details"]) ?? stringOf(warning["message"])
    return about === undefined && detail === undefined
      ? []
      : [[about, detail].filter((one) => one !== undefined).join(": ")]
  })
