/** Assembles one turn of an `effect/ai` model: parts of a stream in, a message out. */
import type * as AiResponse from "effect/ai/Response"
import * as DateTime from "effect/DateTime"
import * as Result from "effect/Result"
import type { TurnPart } from "../../../../core/ChatModel.ts"
import { isObject, type JsonObject } from "../../../../core/Json.ts"
import * as Message from "../../../../core/Message.ts"
import type { ModelError } from "../../../../core/ModelError.ts"
import { defined } from "../../../../support/json/defined.ts"
import { isTooDeep } from "../../../internal/schema/nesting.ts"
import { addBlock, addCall, type Sorted, sorted, toCall } from "./decode.ts"
import { type Origin, streamedError } from "./errors.ts"
import { hosted, layoutOf } from "./layout.ts"
import { mediaBlock } from "./media.ts"
import { type Fields, isEmpty, provider } from "./metadata.ts"
import { isRefusal, makeSpeeches, putSpeech } from "./speech.ts"
import { toStop, toUsage } from "./usage.ts"

/** Anything that an `effect/ai` model may stream. */
export type Part = Exclude<AiResponse.AnyPart, AiResponse.TextPart | AiResponse.ReasoningPart>

/** One turn in the making. */
export interface Reply {
  /** Takes a part in, adds what can be shown of it to `out`, and gives the failure if it is one. */
  readonly take: (part: Part, out: Array<TurnPart>) => ModelError | undefined
  /** Reports whether the provider said that it is done. */
  readonly isFinished: () => boolean
  /** Reports whether a call was begun and is not complete. */
  readonly isWriting: () => boolean
  /** Takes in that the provider could not make sense of a call. */
  readonly reject: (toolName: string, problem: string) => void
  /** The message. Calls that were begun and never completed are taken as far as they were written. */
  readonly message: () => Message.AiMessage
}

/** A call of which the arguments are being written. */
interface Writing {
  readonly name: string
  raw: string
}

/** A call as far as it was written: its arguments may be cut, or no JSON. */
const finishCall = (id: string, { name, raw }: Writing): ReturnType<typeof toCall> => {
  const parsed = Result.try((): unknown => JSON.parse(raw === "" ? "{}" : raw))
  if (Result.isFailure(parsed)) return { malformed: { id, name, raw, problem: "the arguments are not valid JSON" } }
  return isObject(parsed.success)
    ? toCall({ id, name, params: parsed.success, options: {} })
    : { malformed: { id, name, raw, problem: "the arguments are not a JSON object" } }
}

const sourceOf = (part: AiResponse.DocumentSourcePart | AiResponse.UrlSourcePart): JsonObject => ({
  type: part.sourceType,
  id: part.id,
  title: part.title,
  ...(part.sourceType === "url" ? { url: part.url.href } : { mediaType: part.mediaType }),
  ...(isEmpty(part.metadata) ? {} : { metadata: part.metadata })
})

const responseOf = ({ id, metadata, timestamp }: AiResponse.ResponseMetadataPart): Fields =>
  defined({
    id,
    timestamp: timestamp === undefined ? undefined : DateTime.formatIso(timestamp),
    metadata: isEmpty(metadata) ? undefined : metadata
  })

const finishOf = (part: AiResponse.FinishPart): Fields => ({
  finishReason: part.reason,
  ...(isEmpty(part.metadata) ? {} : { finish: part.metadata })
})

/** Makes an empty turn. `makeId` gives the message its id, and a call that came without one. */
export const makeReply = (origin: Origin, makeId: () => string): Reply => {
  /** The pieces of the turn, in order; a text may still grow after it was put here. */
  const put: Array<(to: Sorted) => void> = []
  const speeches = makeSpeeches()
  const writing = new Map<string, Writing>()
  const shown = new Set<string>()
  const told = new Set<string>()
  const sources: Array<JsonObject> = []
  let response: Fields = {}
  let model = origin.model
  let finish: AiResponse.FinishPart | undefined
  let refused = false

  const complete = (part: AiResponse.ToolCallPart<string, unknown>, out: Array<TurnPart>): void => {
    const { id, metadata: options, name, params, providerExecuted } = part
    writing.delete(id)
    const raw = isTooDeep(params) ? "" : (JSON.stringify(params) ?? "")
    // A provider that tells a call again wants it once.
    const said = `${id} ${name} ${raw}`
    if (id !== "" && told.has(said)) return
    told.add(said)
    if (!shown.has(id)) {
      out.push({ _tag: "ToolCallStart", id, name, ...(providerExecuted ? { providerExecuted } : {}) })
      out.push({ _tag: "ToolCallDelta", id, delta: raw })
    }
    put.push((to) => {
      if (providerExecuted) to.pieces.push(hosted(part, options))
      else addCall(to, toCall({ id, name, params, options }))
    })
  }

  const take = (part: Part, out: Array<TurnPart>): ModelError | undefined => {
    switch (part.type) {
      case "text-start":
      case "text-delta":
      case "text-end":
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end": {
        const begun = speeches(part)
        if (begun !== undefined) put.push((to) => putSpeech(to, begun))
        refused ||= isRefusal(part.metadata)
        if ("delta" in part && part.delta !== "") {
          out.push({ _tag: part.type === "text-delta" ? "TextDelta" : "ReasoningDelta", text: part.delta })
        }
        return undefined
      }
      case "tool-params-start": {
        const { id, name, providerExecuted } = part
        shown.add(id)
        if (!providerExecuted) writing.set(id, { name, raw: "" })
        out.push({ _tag: "ToolCallStart", id, name, ...(providerExecuted ? { providerExecuted } : {}) })
        return undefined
      }
      case "tool-params-delta": {
        const open = writing.get(part.id)
        if (open !== undefined) open.raw += part.delta
        out.push({ _tag: "ToolCallDelta", id: part.id, delta: part.delta })
        return undefined
      }
      case "tool-call":
        complete(part, out)
        return undefined
      case "tool-result": {
        const { encodedResult: result, id, isFailure, metadata, name, preliminary, providerExecuted, type } = part
        if (!providerExecuted || preliminary) return undefined
        put.push((to) => to.pieces.push(hosted({ type, id, name, isFailure, result }, metadata)))
        return undefined
      }
      case "file": {
        const { data, mediaType, metadata: options } = part
        put.push((to) => addBlock(to, mediaBlock({ data, mediaType, options })))
        return undefined
      }
      case "source":
        sources.push(sourceOf(part))
        return undefined
      case "response-metadata":
        model = part.modelId ?? model
        response = { ...response, ...responseOf(part) }
        return undefined
      case "finish":
        finish = part
        response = { ...response, ...finishOf(part) }
        return part.reason === "error"
          ? streamedError("the provider ended the answer with an error", origin)
          : undefined
      case "error":
        return streamedError(part.error, origin)
      case "tool-params-end":
      case "tool-approval-request":
        return undefined
      default:
        // A part of a type that this version of effect/ai does not know.
        return undefined
    }
  }

  const reject = (name: string, problem: string): void => {
    if (writing.size > 0) return
    const id = makeId()
    put.push((to) => addCall(to, { malformed: { id, name, raw: "", problem } }))
  }

  const message = (): Message.AiMessage => {
    const to = sorted()
    for (const item of put) item(to)
    for (const [id, call] of writing) addCall(to, finishCall(id, call))
    const layout = layoutOf(to.pieces)
    const data = defined({
      layout,
      response: isEmpty(response) ? undefined : response,
      sources: sources.length === 0 ? undefined : sources
    })
    const called = to.toolCalls.length + to.malformedToolCalls.length > 0
    return Message.ai(to.content, {
      id: makeId(),
      model,
      toolCalls: to.toolCalls,
      malformedToolCalls: to.malformedToolCalls,
      stopReason: toStop(finish?.reason ?? "unknown", { called, refused }),
      usage: finish === undefined ? undefined : toUsage(finish.usage),
      providerData: isEmpty(data) ? undefined : { [provider]: data }
    })
  }

  return { take, isFinished: () => finish !== undefined, isWriting: () => writing.size > 0, reject, message }
}
