/** Plays the turns of test scripts. */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { ModelRequest, TurnPart } from "../../core/ChatModel.ts"
import * as Content from "../../core/Content.ts"
import { type JsonObject, stringify } from "../../core/Json.ts"
import * as Message from "../../core/Message.ts"
import * as ModelError from "../../core/ModelError.ts"
import * as Usage from "../../core/Usage.ts"

/** One turn of the model: the text of an answer, a turn of `TestChatModel`, or a function of the request. */
export type Turn =
  | string
  | {
      readonly _tag: "Answer"
      readonly text: string | ReadonlyArray<string>
      readonly calls: ReadonlyArray<Call>
      readonly options: AnswerOptions
    }
  | { readonly _tag: "Message"; readonly message: Message.AiMessage; readonly options: Chunking }
  | {
      readonly _tag: "Parts"
      readonly parts: ReadonlyArray<TurnPart>
      readonly end: "end" | "hang" | ModelError.ModelError | ModelError.Reason
      readonly options: Pacing
    }
  | ((request: ModelRequest) => Turn | Effect.Effect<Turn>)

/** Delays by the `Clock`: before the first part, and between parts. */
export interface Pacing {
  /** The time before the first part, by the `Clock`. Default: none. */
  readonly delay?: Duration.Input | undefined
  /** The time between parts, by the `Clock`. Default: none. */
  readonly chunkDelay?: Duration.Input | undefined
}

/** The size of deltas. */
export interface Chunking extends Pacing {
  /** The most characters of a delta. Default: one delta for each text and call. */
  readonly chunkSize?: number | undefined
}

/**
 * Options of an answer. `stopReason` defaults to `toolCalls` with calls, else to `stop`. Missing counts of `usage` are
 * zero; without it, the turn has no usage.
 */
export interface AnswerOptions extends Chunking {
  /** Reasoning before the text. Default: none. */
  readonly reasoning?: string | undefined
  /** The reason that the turn ended. Default: `toolCalls` with calls, else `stop`. */
  readonly stopReason?: Message.TurnStop | undefined
  /** The tokens of the turn; missing counts are zero. Default: no usage. */
  readonly usage?: Partial<Usage.Usage> | undefined
  /** Data that the provider needs back unchanged. Default: none. */
  readonly providerData?: JsonObject | undefined
}

/** A well-formed call. */
export interface GoodCall {
  readonly name: string
  readonly arguments?: JsonObject | undefined
  readonly id?: string | undefined
  readonly providerExecuted?: boolean | undefined
}

/** A malformed call: `raw` is the model's text. */
export interface BadCall {
  readonly raw: string
  readonly name?: string | undefined
  readonly id?: string | undefined
  readonly problem?: string | undefined
}

/**
 * A call in a turn. `id` defaults to `call-1`, `call-2` … over the whole script. A call with `providerExecuted` is only
 * streamed, and is not in the message. A call with `raw` is malformed.
 */
export type Call = GoodCall | BadCall

type WithId<C> = C & { readonly id: string }

const isBad = (call: WithId<Call>): call is WithId<BadCall> => "raw" in call

const isGood = (call: WithId<Call>): call is WithId<GoodCall> => !isBad(call)

/** Properties of the model that a turn contains. */
export interface Origin {
  readonly modelId: string
  readonly provider: string
  readonly messageId: () => string
  readonly callId: () => string
}

/** Splits by code points: half of a surrogate pair is not text. */
const splitText = (text: string, size: number | undefined): ReadonlyArray<string> => {
  if (text === "") return []
  if (size === undefined) return [text]
  const points = Array.from(text)
  const pieces: Array<string> = []
  for (let start = 0; start < points.length; start += Math.max(1, size)) {
    pieces.push(points.slice(start, start + Math.max(1, size)).join(""))
  }
  return pieces
}

const callParts = (id: string, name: string, raw: string, size: number | undefined): ReadonlyArray<TurnPart> => [
  { _tag: "ToolCallStart", id, name },
  ...splitText(raw, size).map((delta): TurnPart => ({ _tag: "ToolCallDelta", id, delta }))
]

const blockParts = (block: Content.Block, pieces: (text: string) => ReadonlyArray<string>, size: number | undefined) =>
  block.type === "text"
    ? pieces(block.text).map((text): TurnPart => ({ _tag: "TextDelta", text }))
    : block.type === "reasoning"
      ? splitText(block.text, size).map((text): TurnPart => ({ _tag: "ReasoningDelta", text }))
      : []

const messageParts = (
  message: Message.AiMessage,
  size: number | undefined,
  pieces: (text: string) => ReadonlyArray<string> = (text) => splitText(text, size)
): ReadonlyArray<TurnPart> => [
  ...message.content.flatMap((block) => blockParts(block, pieces, size)),
  ...message.toolCalls.flatMap((call) => callParts(call.id, call.name, stringify(call.arguments), size)),
  ...message.malformedToolCalls.flatMap((call) => callParts(call.id, call.name ?? "", call.raw, size)),
  { _tag: "TurnDone", message }
]

const answerParts = (turn: Extract<Turn, { readonly _tag: "Answer" }>, origin: Origin): ReadonlyArray<TurnPart> => {
  const { chunkSize, providerData, reasoning, stopReason, usage } = turn.options
  const calls = turn.calls.map((call): WithId<Call> => ({ ...call, id: call.id ?? origin.callId() }))
  const wellFormed = calls.filter(isGood)
  const text = typeof turn.text === "string" ? turn.text : turn.text.join("")
  const message = Message.ai(
    [...(reasoning === undefined ? [] : [Content.reasoning(reasoning)]), ...(text === "" ? [] : [Content.text(text)])],
    {
      id: origin.messageId(),
      model: origin.modelId,
      toolCalls: wellFormed
        .filter((call) => call.providerExecuted !== true)
        .map((call) => ({ id: call.id, name: call.name, arguments: call.arguments ?? {} })),
      malformedToolCalls: calls.filter(isBad).map((call) => ({
        id: call.id,
        raw: call.raw,
        problem: call.problem ?? "the arguments are not a JSON object",
        ...(call.name === undefined ? {} : { name: call.name })
      })),
      stopReason,
      usage: usage === undefined ? undefined : Usage.make(usage),
      providerData
    }
  )
  const hosted = wellFormed
    .filter((call) => call.providerExecuted === true)
    .flatMap(({ arguments: args, id, name }): ReadonlyArray<TurnPart> => [
      { _tag: "ToolCallStart", id, name, providerExecuted: true },
      ...splitText(JSON.stringify(args ?? {}), chunkSize).map((delta): TurnPart => ({
        _tag: "ToolCallDelta",
        id,
        delta
      }))
    ])
  const { text: rawText } = turn
  return [...hosted, ...messageParts(message, chunkSize, typeof rawText === "string" ? undefined : () => rawText)]
}

const paceParts = (parts: ReadonlyArray<TurnPart>, pacing: Pacing): Stream.Stream<TurnPart> => {
  const { chunkDelay, delay } = pacing
  const stream =
    chunkDelay === undefined
      ? Stream.fromArray(parts)
      : Stream.mapEffect(Stream.fromArray(parts), (part, index) =>
          index === 0 ? Effect.succeed(part) : Effect.as(Effect.sleep(chunkDelay), part)
        )
  return delay === undefined ? stream : Stream.unwrap(Effect.as(Effect.sleep(delay), stream))
}

const toError = (failure: ModelError.ModelError | ModelError.Reason, origin: Origin): ModelError.ModelError =>
  ModelError.isModelError(failure)
    ? failure
    : new ModelError.ModelError({ provider: origin.provider, model: origin.modelId, reason: failure })

/** Plays one turn. */
export const play = (
  turn: Turn,
  request: ModelRequest,
  origin: Origin
): Stream.Stream<TurnPart, ModelError.ModelError> => {
  if (typeof turn === "function") {
    return Stream.unwrap(
      Effect.suspend(() => {
        const next = turn(request)
        return Effect.map(Effect.isEffect(next) ? next : Effect.succeed(next), (nextTurn) =>
          play(nextTurn, request, origin)
        )
      })
    )
  }
  if (typeof turn === "string")
    return paceParts(answerParts({ _tag: "Answer", text: turn, calls: [], options: {} }, origin), {})
  switch (turn._tag) {
    case "Answer":
      return paceParts(answerParts(turn, origin), turn.options)
    case "Message":
      return paceParts(messageParts(turn.message, turn.options.chunkSize), turn.options)
    case "Parts": {
      const stream = paceParts(turn.parts, turn.options)
      if (turn.end === "end") return stream
      return Stream.concat(stream, turn.end === "hang" ? Stream.never : Stream.fail(toError(turn.end, origin)))
    }
  }
}
