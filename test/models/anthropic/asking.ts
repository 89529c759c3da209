/** Asks a model for one turn, as the loop does. */
import { Effect, type Layer, Redacted, type Scope, Stream } from "effect"
import { ChatModel, Message, type ModelError } from "effect-deepagents"
import * as AnthropicChatModel from "effect-deepagents/models/AnthropicChatModel"
import type { Server } from "../servers/anthropic.ts"

export const key = "sk-ant-canary-0123456789"

export const request = (more?: Partial<ChatModel.ModelRequest>): ChatModel.ModelRequest => ({
  messages: [Message.human("Hello")],
  systemPrompt: "You are an agent.",
  tools: [],
  toolChoice: "auto",
  parameters: {},
  cacheHints: [],
  purpose: "turn",
  ...more
})

export const tool = (name: string): ChatModel.ToolDefinition => ({
  name,
  description: `Does ${name}.`,
  parameters: { type: "object", properties: { of: { type: "string" } } },
  annotations: {}
})

/** Claude on a test server. */
export const claude = (server: Server, options?: Partial<AnthropicChatModel.Options>) =>
  AnthropicChatModel.layer({ model: "claude-opus-5-5", apiKey: Redacted.make(key), baseURL: server.url, ...options })

/** The parts of one turn, each time that it is run. */
export const turn = <E>(
  layer: Layer.Layer<ChatModel.ChatModel, E>,
  asked: ChatModel.ModelRequest = request()
): Effect.Effect<Array<ChatModel.TurnPart>, ModelError.ModelError | E, Scope.Scope> =>
  Effect.gen(function* () {
    const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
    return yield* Stream.runCollect(session.nextTurn(asked))
  }).pipe(Effect.provide(layer))

/** The message that a turn ended with. */
export const message = (parts: ReadonlyArray<ChatModel.TurnPart>): Message.AiMessage => {
  const last = parts.at(-1)
  if (last?._tag !== "TurnDone") throw new Error("the turn is not done")
  return last.message
}

/** What a turn ended with. */
export const askToEnd = (
  layer: Layer.Layer<ChatModel.ChatModel, ModelError.ModelError>,
  asked?: ChatModel.ModelRequest
) => Effect.map(turn(layer, asked), message)

/** The failure of a turn. */
export const failure = (
  layer: Layer.Layer<ChatModel.ChatModel, ModelError.ModelError>,
  asked?: ChatModel.ModelRequest
) => Effect.flip(turn(layer, asked))
