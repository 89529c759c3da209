/** Asking a model over the wire, and looking at what came. */
import { Cause, Deferred, Effect, Exit, Fiber, type Layer, Redacted, Stream } from "effect"
import { ChatModel, type Message, type ModelError } from "effect-deepagents"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import * as OpenAiCompatibleChatModel from "effect-deepagents/models/OpenAiCompatibleChatModel"
import type { Server } from "../servers/openai.ts"

export const key = "sk-canary-key-0123456789"

/** A model of the Responses API at this server. */
export const responses = (server: Server, options: Partial<OpenAiChatModel.Options> = {}) =>
  OpenAiChatModel.layer({ model: "gpt-5", baseURL: server.url, apiKey: Redacted.make(key), ...options })

/** A model of a compatible server. */
export const compatible = (server: Server, options: Partial<OpenAiCompatibleChatModel.Options> = {}) =>
  OpenAiCompatibleChatModel.layer({
    model: "served-model",
    baseURL: server.url,
    apiKey: Redacted.make(key),
    ...options
  })

/** A request with nothing in it but these messages. */
export const request = (
  messages: ReadonlyArray<Message.Message>,
  over: Partial<ChatModel.ModelRequest> = {}
): ChatModel.ModelRequest => ({
  messages,
  systemPrompt: "",
  tools: [],
  toolChoice: "auto",
  parameters: {},
  cacheHints: [],
  purpose: "turn",
  ...over
})

/** The parts that came, and the failure that ended them, if one did. */
export interface Outcome {
  readonly parts: ReadonlyArray<ChatModel.TurnPart>
  readonly message: Message.AiMessage | undefined
  readonly error: ModelError.ModelError | undefined
}

type Model = Layer.Layer<ChatModel.ChatModel, unknown>

/** Asks each request in one session. */
export const askAll = Effect.fnUntraced(function* (model: Model, requests: ReadonlyArray<ChatModel.ModelRequest>) {
  return yield* Effect.gen(function* () {
    const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
    const outcomes: Array<Outcome> = []
    for (const one of requests) {
      const parts: Array<ChatModel.TurnPart> = []
      const exit = yield* Effect.exit(
        Stream.runForEach(session.nextTurn(one), (part) => Effect.sync(() => void parts.push(part)))
      )
      const last = parts.at(-1)
      outcomes.push({
        parts,
        message: last?._tag === "TurnDone" ? last.message : undefined,
        error: Exit.isFailure(exit) ? (Cause.squash(exit.cause) as ModelError.ModelError) : undefined
      })
    }
    return outcomes
  }).pipe(Effect.scoped, Effect.provide(model))
})

/** Asks one request. */
export const ask = (model: Model, one: ChatModel.ModelRequest): Effect.Effect<Outcome, unknown> =>
  Effect.map(askAll(model, [one]), ([outcome]) => outcome!)

/** Begins a request, interrupts it when the first part came (or the server has it), and says how long the close took. */
export const leave = Effect.fnUntraced(function* (model: Model, server: Server, one: ChatModel.ModelRequest) {
  const before = server.seen.length
  const begun = yield* Deferred.make<void>()
  const fiber = yield* Effect.forkChild(
    Effect.gen(function* () {
      const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
      yield* Stream.runForEach(session.nextTurn(one), () => Deferred.succeed(begun, undefined))
    }).pipe(Effect.scoped, Effect.provide(model))
  )
  yield* Effect.race(Deferred.await(begun), Effect.sleep("300 millis"))
  while (server.seen.length === before) yield* Effect.sleep("5 millis")
  const left = Date.now()
  yield* Fiber.interrupt(fiber)
  const interrupted = Date.now() - left
  const closed = yield* Deferred.await(server.seen.at(-1)!.closed).pipe(Effect.timeout("20 seconds"))
  return { interrupted, closed: closed - left }
})

/** All text that was streamed. */
export const streamed = (outcome: Outcome, tag: "TextDelta" | "ReasoningDelta"): string =>
  outcome.parts.map((part) => (part._tag === tag && "text" in part ? part.text : "")).join("")
