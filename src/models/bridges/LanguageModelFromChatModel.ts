/**
 * A model of ours as an `effect/ai` `LanguageModel`, for `Chat`, `generateObject` and everything else that is built on
 * one.
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { LanguageModel } from "effect/ai"
 * import type { ChatModel } from "effect-deepagents"
 * import * as LanguageModelFromChatModel from "effect-deepagents/models/bridges/LanguageModelFromChatModel"
 *
 * declare const model: Layer.Layer<ChatModel.ChatModel>
 *
 * const answer = LanguageModel.generateText({ prompt: "Say hello" }).pipe(
 *   Effect.map((response) => response.text),
 *   Effect.provide(LanguageModelFromChatModel.layer.pipe(Layer.provide(model)))
 * )
 * ```
 */
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as AiResponse from "effect/ai/Response"
import * as AiTelemetry from "effect/ai/Telemetry"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { ChatModel, open, type Service, type TurnPart } from "../../core/ChatModel.ts"
import type { AiMessage } from "../../core/Message.ts"
import { toAiError } from "./internal/effectAi/errors.ts"
import { type BridgeRequest, toRequest } from "./internal/effectAi/request.ts"
import { makeStreamEncoder, toParts } from "./internal/effectAi/respond.ts"

type ProviderOptions = LanguageModel.ProviderOptions

const describeRequest = (options: ProviderOptions, { modelId, provider }: Service): void =>
  AiTelemetry.addGenAIAnnotations(options.span, {
    provider: { name: provider },
    operation: { name: "chat" },
    request: { model: modelId }
  })

const describeResponse = (options: ProviderOptions, { id, model, stopReason, usage }: AiMessage): void =>
  AiTelemetry.addGenAIAnnotations(options.span, {
    response: { id, model, finishReasons: [stopReason] },
    usage: { inputTokens: usage?.inputTokens, outputTokens: usage?.outputTokens }
  })

/** A call that `effect/ai` would end the whole stream on; unless it was asked to let such calls pass. */
const undeclared = (options: ProviderOptions, method: string, message: AiMessage) => {
  if (options.toolCallValidation === "deferred") return undefined
  const toolNames = options.tools.map((tool): string => tool.name)
  const called = [...message.toolCalls, ...message.malformedToolCalls].map((call) => call.name ?? "unknown")
  const toolName = called.find((name) => !toolNames.includes(name))
  if (toolName === undefined) return undefined
  const reason = new AiError.ToolNotFoundError({ toolName, availableTools: toolNames })
  return AiError.make({ module: "LanguageModelFromChatModel", method, reason })
}

const begin = (model: Service, options: ProviderOptions, method: string) =>
  Effect.gen(function* () {
    describeRequest(options, model)
    const exchange = yield* toRequest(options, model, method)
    const session = yield* Effect.mapError(open(model), toAiError(method))
    return { exchange, turn: Stream.mapError(session.nextTurn(exchange.request), toAiError(method)) }
  })

const finish = (options: ProviderOptions, method: string, exchange: BridgeRequest, answer: AiMessage) =>
  Effect.suspend(() => {
    const message = exchange.answered(answer)
    describeResponse(options, message)
    const error = undeclared(options, method, message)
    return error === undefined ? Effect.succeed(message) : Effect.fail(error)
  })

const generateText = (model: Service) =>
  Effect.fnUntraced(function* (options: ProviderOptions) {
    const { exchange, turn } = yield* begin(model, options, "generateText")
    let message: AiMessage | undefined
    yield* Stream.runForEachArray(turn, (parts) =>
      Effect.sync(() => {
        const last = parts.at(-1)
        if (last?._tag === "TurnDone") message = last.message
      })
    )
    // The session fails when a turn ends without its last part.
    return message === undefined ? [] : toParts(yield* finish(options, "generateText", exchange, message))
  }, Effect.scoped)

const restarted = AiError.make({
  module: "LanguageModelFromChatModel",
  method: "streamText",
  reason: new AiError.InvalidOutputError({
    description: "the model was asked again after a part of its answer had been streamed"
  })
})

const streamText = (model: Service) => (options: ProviderOptions) =>
  Stream.unwrap(
    Effect.map(begin(model, options, "streamText"), ({ exchange, turn }) => {
      const encode = makeStreamEncoder()
      const complete = (part: TurnPart): Effect.Effect<TurnPart, AiError.AiError> =>
        part._tag === "TurnDone"
          ? Effect.map(finish(options, "streamText", exchange, part.message), (message) => ({ ...part, message }))
          : Effect.succeed(part)
      const parts = Stream.mapEffect(turn, (part) =>
        Effect.flatMap(complete(part), (whole) => {
          const encoded = encode(whole)
          return encoded === undefined ? Effect.fail(restarted) : Effect.succeed(encoded)
        })
      )
      return Stream.flattenIterable(parts)
    })
  ) satisfies Stream.Stream<AiResponse.StreamPartEncoded, AiError.AiError>

/**
 * An `effect/ai` model that asks the model of ours in context. Each request is a session of its own.
 *
 * `generateObject` uses the model's JSON mode where it has one, else a tool that takes the object. Tools that only a
 * certain provider can run are refused. A call that does not decode is the toolkit's to tell the model: with
 * `failureMode: "return"` it does.
 */
export const layer: Layer.Layer<LanguageModel.LanguageModel, never, ChatModel> = Layer.effect(
  LanguageModel.LanguageModel,
  Effect.flatMap(ChatModel, (model) =>
    LanguageModel.make({
      generateText: generateText(model),
      streamText: streamText(model),
      supportsSystemMessagesInHistory: Effect.succeed(true)
    })
  )
)
