/** Reads the stream of an `effect/ai` model into a turn. */
import type * as AiError from "effect/ai/AiError"
import type * as AiResponse from "effect/ai/Response"
import * as Cause from "effect/Cause"
import * as DateTime from "effect/DateTime"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { TurnPart } from "../../../../core/ChatModel.ts"
import type { Block } from "../../../../core/Content.ts"
import { isObject, type JsonObject } from "../../../../core/Json.ts"
import { ModelError } from "../../../../core/ModelError.ts"
import { defined } from "../../../../support/json/defined.ts"
import { deepest, isTooDeep } from "../../../internal/schema/nesting.ts"
import { type Call, layoutIn, makeAssembler, type Speech } from "../../../internal/turn/assembler.ts"
import { decodeTurn, type Sink, type TurnDecoder } from "../../../internal/turn/decodeTurn.ts"
import { reasoningBlock } from "./decode.ts"
import { malformedKey } from "./encode.ts"
import { type Origin, streamedError, toModelError } from "./errors.ts"
import { hostedPart } from "./layout.ts"
import { mediaBlock } from "./media.ts"
import { type Fields, isEmpty, mergeMetadata, type Metadata, provider, providerDataOf } from "./metadata.ts"
import { stopOf, toUsage } from "./usage.ts"

/** Anything that an `effect/ai` model may stream. */
export type Part = Exclude<AiResponse.AnyPart, AiResponse.TextPart | AiResponse.ReasoningPart>

/** Words of a provider that could not make sense of a call, with which it ends the whole stream. */
interface Rejection {
  readonly type: "rejection"
  readonly toolName: string
  readonly problem: string
}

interface BlockData {
  metadata: Metadata
}

interface CallData {
  options: Metadata
  /** The reason why the arguments are unusable. */
  problem?: string
  /** The part that sends a hosted call back. */
  part?: JsonObject
}

type SpeechPart = Extract<Part, { readonly type: `${"text" | "reasoning"}-${"start" | "delta" | "end"}` }>

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

/** Reports whether a provider calls a text the refusal of an answer. */
const isRefusal = (metadata: Metadata): boolean =>
  Object.values(metadata).some((own) => isObject(own) && typeof own["refusal"] === "string" && own["refusal"] !== "")

/** Arguments as text. A model may imitate the form in which it is shown its own malformed arguments. */
const rawOf = (params: unknown): string => {
  const raw = isObject(params) && Object.keys(params).length === 1 ? params[malformedKey] : params
  return typeof raw === "string" ? raw : (JSON.stringify(params) ?? "")
}

const blockOf = ({ data, kind, text }: Speech<BlockData>): Block | undefined => {
  const { metadata } = data
  if (text === "" && isEmpty(metadata)) return undefined
  return kind === "text" ? { type: "text", text, ...providerDataOf(metadata) } : reasoningBlock(text, metadata)
}

/** The decoder of one turn. `isWriting`: a call was begun and is not complete. */
interface Reply extends TurnDecoder<Part | Rejection> {
  readonly isWriting: () => boolean
  /** Ends the turn with its calls as far as they were written. */
  readonly abandon: () => void
}

const makeReply = (origin: Origin, makeId: () => string, sink: Sink): Reply => {
  const turn = makeAssembler<BlockData, CallData>(sink, makeId)
  const speeches = new Map<string, Speech<BlockData>>()
  const calls = new Map<string, Call<CallData>>()
  const writing = new Set<Call<CallData>>()
  const sources: Array<JsonObject> = []
  let response: Fields = {}
  let model = origin.model
  let finish: AiResponse.FinishPart | undefined
  let isOver = false
  let refused = false

  const speak = (part: SpeechPart): undefined => {
    const kind = part.type.startsWith("text") ? "text" : "reasoning"
    const key = `${kind} ${part.id}`
    const speech = speeches.get(key) ?? turn.speak(kind, { metadata: {} })
    speech.data.metadata = mergeMetadata(speech.data.metadata, part.metadata)
    refused ||= isRefusal(part.metadata)
    if ("delta" in part) turn.say(speech, part.delta)
    if (part.type === "text-end" || part.type === "reasoning-end") speeches.delete(key)
    else speeches.set(key, speech)
  }

  const begin = (id: string, name: string, isHosted: boolean): Call<CallData> => {
    const open = calls.get(id)
    if (open?.isClosed === false) return open
    const call = turn.addCall({ id, name, isHosted, data: { options: {} } })
    // A second call of one id is not shown.
    if (open === undefined || id === "") turn.start(call)
    if (!isHosted) writing.add(call)
    calls.set(id, call)
    return call
  }

  const complete = (part: AiResponse.ToolCallPart<string, unknown>): void => {
    const { id, metadata, name, params, providerExecuted } = part
    const tooDeep = isTooDeep(params)
    const raw = tooDeep ? "" : rawOf(params)
    const before = calls.get(id)
    // A provider that repeats a call means a single one.
    if (id !== "" && before?.isClosed === true && before.name === name && before.raw === raw) return
    const call = begin(id, name, providerExecuted)
    call.isHosted = providerExecuted
    if (call.raw === "") turn.write(call, raw)
    call.raw = raw
    call.name = name
    call.isClosed = true
    call.data.options = metadata
    if (tooDeep) call.data.problem = `the arguments are nested deeper than ${deepest} levels`
    if (providerExecuted) call.data.part = hostedPart(part, metadata)
    writing.delete(call)
  }

  /** Adds arguments to a call that is still open. */
  const extend = ({ delta, id }: AiResponse.ToolParamsDeltaPart): void => {
    const call = calls.get(id)
    if (call?.isClosed === false) turn.write(call, delta)
  }

  const take = (part: Part | Rejection): ModelError | undefined | void => {
    if (isSpeech(part)) return speak(part)
    switch (part.type) {
      case "tool-params-start":
        return void begin(part.id, part.name, part.providerExecuted)
      case "tool-params-delta":
        return extend(part)
      case "tool-call":
        return complete(part)
      case "tool-result": {
        const { encodedResult: result, id, isFailure, metadata, name, preliminary, providerExecuted, type } = part
        if (!providerExecuted || preliminary) return undefined
        return turn.add({ _tag: "own", part: hostedPart({ type, id, name, isFailure, result }, metadata) })
      }
      case "file": {
        const { data, mediaType, metadata: options } = part
        return turn.add({ _tag: "block", block: mediaBlock({ data, mediaType, options }) })
      }
      case "source":
        return void sources.push(sourceOf(part))
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
      case "rejection": {
        isOver = true
        const { problem, toolName: name } = part
        if (writing.size === 0) turn.addCall({ id: makeId(), name, data: { options: {}, problem } })
        return undefined
      }
      case "tool-params-end":
      case "tool-approval-request":
        return undefined
      default:
        // A part of a later version of effect/ai.
        return undefined
    }
  }

  const end = (): ModelError | undefined => {
    if (finish === undefined && !isOver) {
      const detail = "the stream ended before the turn was complete"
      return new ModelError({ ...origin, reason: { _tag: "BadResponse" }, detail })
    }
    turn.finish({
      stop: stopOf(finish?.reason, refused),
      model,
      usage: finish === undefined ? undefined : toUsage(finish.usage),
      blockOf,
      callOf: ({ data, isClosed }) => ({
        cut: finish?.reason === "length" && !isClosed,
        problem: data.problem,
        ...providerDataOf(data.options)
      }),
      partOf: ({ data }) => data.part,
      providerData: (order) => {
        const data = defined({
          layout: layoutIn(order),
          response: isEmpty(response) ? undefined : response,
          sources: sources.length === 0 ? undefined : sources
        })
        return isEmpty(data) ? undefined : { [provider]: data }
      }
    })
    return undefined
  }

  return { take, end, isWriting: () => writing.size > 0, abandon: () => void (isOver = true) }
}

const isSpeech = (part: Part | Rejection): part is SpeechPart => /^(?:text|reasoning)-/.test(part.type)

const rejected = (error: AiError.AiError): Stream.Stream<Rejection> | undefined => {
  const { reason } = error
  if (reason._tag !== "ToolParameterValidationError" && reason._tag !== "ToolNotFoundError") return undefined
  return Stream.succeed({ type: "rejection", toolName: reason.toolName, problem: reason.message })
}

/** Decodes a stream. A stream that broke never becomes a complete turn. */
export const toTurn = <R>(
  stream: Stream.Stream<Part, AiError.AiError, R>,
  origin: Origin,
  makeId: () => string
): Stream.Stream<TurnPart, ModelError, R> =>
  Stream.suspend(() => {
    let reply: Reply | undefined
    const events = Stream.catchCause(stream, (cause): Stream.Stream<Rejection, ModelError> => {
      const failure = Cause.findError(cause)
      if (Result.isSuccess(failure))
        return rejected(failure.success) ?? Stream.fail(toModelError(failure.success, origin))
      const defect = Cause.findDefect(cause)
      // Some providers parse the arguments of a call and let the parser's exception through.
      if (Result.isSuccess(defect) && defect.success instanceof SyntaxError && reply?.isWriting() === true) {
        reply.abandon()
        return Stream.empty
      }
      return Stream.failCause(failure.failure)
    })
    return decodeTurn(
      events,
      (sink) => {
        reply = makeReply(origin, makeId, sink)
        return reply
      },
      new Set()
    )
  })
