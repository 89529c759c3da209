/** Reads the events of Bedrock's Converse API into the parts of a turn. */
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import * as Content from "../../../core/Content.ts"
import { fromUnknown, type JsonObject } from "../../../core/Json.ts"
import type * as Message from "../../../core/Message.ts"
import type { ModelError } from "../../../core/ModelError.ts"
import * as Usage from "../../../core/Usage.ts"
import { defined } from "../../../support/json/defined.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import { isTooDeep, tooDeep } from "../schema/nesting.ts"
import { type Call, layoutIn, makeAssembler, type Speech } from "../turn/assembler.ts"
import { cited } from "../turn/citations.ts"
import type { Sink, TurnDecoder } from "../turn/decodeTurn.ts"
import type { ToolNames } from "../turn/toolNames.ts"
import { badResponse, type Origin } from "../wire/errors.ts"
import { countOf, objectOf, objectsOf, parse, placeOf, stringOf } from "../wire/read.ts"
import { dataKey } from "./request.ts"

/** Facts that a turn is read with. */
export interface DecodeContext {
  readonly origin: Origin
  readonly names: ToolNames
  readonly makeId: () => string
}

/** Data of a text or a thought. A citation and a signature come in pieces behind it. */
interface BlockData {
  readonly citations: Array<JsonObject>
  signature: string
  redacted: string
}

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

/** The part that sends a tool call of Bedrock's own back. */
const hostedPart = ({ data, raw }: Call<JsonObject>): JsonObject => {
  const input = Result.getOrElse(parse(raw), () => ({}))
  return { toolUse: { ...data, input: fromUnknown(input) } }
}

const blockOf =
  (model: string) =>
  ({ data, kind, text }: Speech<BlockData>): Content.Block => {
    if (kind === "text") return { ...Content.text(text), ...cited(data.citations, text) }
    const { redacted, signature } = data
    return Content.reasoning(text, {
      [dataKey]: defined({ model, signature: signature || undefined, redacted: redacted || undefined })
    })
  }

/** Makes the decoder of one turn. */
export const makeDecoder = ({ makeId, names, origin }: DecodeContext, sink: Sink): TurnDecoder<unknown> => {
  const turn = makeAssembler<BlockData, JsonObject>(sink, makeId)
  const speeches = new Map<number, Speech<BlockData>>()
  const calls = new Map<number, Call<JsonObject>>()
  const results = new Map<number, Array<JsonObject>>()
  let stop: string | undefined
  let usage: JsonObject | undefined

  const speechAt = (index: number, kind: Speech["kind"]): Speech<BlockData> => {
    const open = speeches.get(index)
    if (open?.kind === kind) return open
    const speech = turn.speak(kind, { citations: [], signature: "", redacted: "" })
    speeches.set(index, speech)
    return speech
  }

  const begin = (index: number, start: JsonObject): void => {
    const use = objectOf(start["toolUse"])
    const result = objectOf(start["toolResult"])
    if (result !== undefined) {
      const content: Array<JsonObject> = []
      results.set(index, content)
      turn.add({ _tag: "own", part: { toolResult: { ...result, content } } })
    }
    if (use === undefined) return
    const id = stringOf(use["toolUseId"]) || makeId()
    const name = stringOf(use["name"]) ?? ""
    const isHosted = use["type"] === serverTool
    calls.set(index, turn.call({ id, name: isHosted ? name : names.own(name), isHosted, data: use }))
  }

  const think = (index: number, delta: JsonObject): void => {
    const speech = speechAt(index, "reasoning")
    turn.say(speech, stringOf(delta["text"]) ?? "")
    speech.data.signature += stringOf(delta["signature"]) ?? ""
    const redacted: unknown = delta["redactedContent"]
    if (redacted instanceof Uint8Array) speech.data.redacted += Base64.encode(redacted)
  }

  const grow = (index: number, delta: JsonObject): void => {
    const text = stringOf(delta["text"])
    const input = stringOf(objectOf(delta["toolUse"])?.["input"])
    const reasoning = objectOf(delta["reasoningContent"])
    const citation = objectOf(delta["citation"])
    const result = results.get(index)
    const call = calls.get(index)
    if (text !== undefined) turn.say(speechAt(index, "text"), text)
    else if (reasoning !== undefined) think(index, reasoning)
    else if (citation !== undefined) speechAt(index, "text").data.citations.push(citationOf(citation))
    else if (result !== undefined) result.push(...objectsOf(fromUnknown(delta["toolResult"])))
    else if (input === undefined) sink.unknown(`contentBlockDelta: ${Object.keys(delta).join(", ")}`)
    else if (call === undefined) sink.unknown("a call without a beginning")
    else turn.write(call, input)
  }

  type Handler = (event: JsonObject, index: number) => void

  const handlers = new Map<string, Handler>([
    ["messageStart", () => undefined],
    ["contentBlockStart", ({ start }, index) => begin(index, objectOf(start) ?? {})],
    ["contentBlockDelta", ({ delta }, index) => grow(index, objectOf(delta) ?? {})],
    [
      "contentBlockStop",
      (_, index) => {
        const call = calls.get(index)
        if (call !== undefined) call.isClosed = true
      }
    ],
    ["messageStop", ({ stopReason }) => void (stop = stringOf(stopReason) ?? "")],
    ["metadata", (event) => void (usage = objectOf(event["usage"]) ?? usage)]
  ])

  const take = (event: unknown): ModelError | undefined => {
    const it = objectOf(event)
    if (it === undefined) return badResponse(origin, "an event of the stream is not an object")
    if (isTooDeep(it)) return badResponse(origin, tooDeep)
    const type = Object.keys(it).find((key) => handlers.has(key)) ?? ""
    const fields = objectOf(it[type]) ?? {}
    const handle = handlers.get(type)
    if (handle === undefined) sink.unknown(Object.keys(it).join(", "))
    else handle(fields, placeOf(fields["contentBlockIndex"]) ?? 0)
    return undefined
  }

  const end = (): ModelError | undefined => {
    if (stop === undefined) return badResponse(origin, "the stream ended before a stop reason")
    const { model } = origin
    const reason = stop
    turn.finish({
      stop: valueAt(stops, reason),
      model,
      usage: usage === undefined ? undefined : usageOf(usage),
      blockOf: blockOf(model),
      callOf: ({ isClosed }) => ({ cut: valueAt(stops, reason) === "length" && !isClosed }),
      partOf: hostedPart,
      unread: misspelt.has(reason) ? "" : undefined,
      providerData: (order) => ({ [dataKey]: defined({ model, stopReason: reason, layout: layoutIn(order) }) })
    })
    return undefined
  }

  return { take, end, isWhole: () => stop !== undefined && usage !== undefined }
}
