/**
 * Models of Skeleton, by its own API (https://example.com/docs: name the page here).
 *
 * ```ts
 * import { Redacted } from "effect"
 * import * as SkeletonChatModel from "effect-deepagents/models/SkeletonChatModel"
 *
 * const model = SkeletonChatModel.layer({ model: "large", apiKey: Redacted.make("…") })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { ChatModel } from "../../src/core/ChatModel.ts"
import { makeAsk } from "./provider/ask.ts"

/** Options of a model. */
export interface Options {
  /** The id of the model, as the provider lists it. */
  readonly model: string
  /** The key of the account. */
  readonly apiKey: Redacted.Redacted
  /** The address of the server (default `https://api.example.com`). */
  readonly baseURL?: string | undefined
  /** The context window of the model, in tokens. Without it, nothing is summarised in time. */
  readonly contextWindowTokens?: number | undefined
  /** Sends the requests (default: `fetch` of the platform). */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** A model with these options. A request that fails, fails its turn. */
export const layer = (options: Options): Layer.Layer<ChatModel> =>
  Layer.sync(ChatModel, () => {
    const ask = makeAsk(options)
    return ChatModel.of({
      modelId: options.model,
      provider: "skeleton",
      supportsVision: false,
      contextWindowTokens: options.contextWindowTokens,
      structuredOutput: "tool",
      makeSession: Effect.succeed({
        nextTurn: (request) => Stream.unwrap(Effect.map(ask(request), Stream.fromIterable))
      })
    })
  })
