/**
 * Models that answer small questions with probabilities: layers of Effect's `DecisionModel`.
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Decision, DecisionModel } from "effect/ai"
 * import * as DecisionModels from "effect-deepagents/models/DecisionModels"
 *
 * const Ticket = Decision.make({
 *   input: Schema.String,
 *   decisions: { isUrgent: Decision.probability({ instructions: "The message is time-sensitive" }) }
 * })
 *
 * const isUrgent = DecisionModel.decide(Ticket, { input: "The shop is down" }).pipe(
 *   Effect.map(({ answers }) => answers.isUrgent.probability > 0.8),
 *   Effect.provide(DecisionModels.layerSystemOne({ baseURL: "http://localhost:8080/v1", model: "kev-4b" }))
 * )
 * ```
 *
 * Two wire formats have similar paths. The layer chooses the format, never the address. No package is needed.
 */
import * as DecisionModel from "effect/ai/DecisionModel"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ChatModel } from "../core/ChatModel.ts"
import type { JsonObject } from "../core/Json.ts"
import type { ModelError } from "../core/ModelError.ts"
import { makeOpenAiFormat } from "../support/decisions/openAi.ts"
import { makeSystemOneFormat } from "../support/decisions/systemOne.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import { makeFromChat } from "./internal/decisions/chat.ts"
import { type Connection, makeServer } from "./internal/decisions/server.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"
import { keyFrom } from "./internal/wire/keys.ts"

const refuseOpenAi = makeEffectCheck("openai", shapes.decisionModelsLayerOpenAi)
const refuseSystemOne = makeEffectCheck("systemone", shapes.decisionModelsLayerSystemOne)
const refuseChatModel = makeLayerCheck("DecisionModels.layerChatModel", shapes.decisionModelsLayerChatModel)

/** The connection to a server of decisions. */
export interface Options extends Connection {}

/**
 * Decisions by OpenAI's Decisions API (`POST /decisions`), or by another server with this format. Images of the input
 * are sent along. Building the layer fails with `Authentication` without a key.
 */
export const layerOpenAi = (
  options: Options & {
    /** The address of the API, its version included. Default: OpenAI's, with the key of `OPENAI_API_KEY`. */
    readonly baseURL?: string | undefined
  }
): Layer.Layer<DecisionModel.DecisionModel, ModelError> =>
  Layer.effect(
    DecisionModel.DecisionModel,
    Effect.gen(function* () {
      const refused = refuseOpenAi(options)
      if (refused !== undefined) return yield* refused
      const { baseURL, model } = options
      const apiKey =
        options.apiKey ??
        (baseURL === undefined ? yield* keyFrom("OPENAI_API_KEY", { provider: "openai", model }) : undefined)
      return yield* makeServer({ ...options, apiKey }, makeOpenAiFormat(baseURL))
    })
  )

/**
 * Decisions by a server with the System One API (`POST /systemone`): TypeSafe, llama.cpp, vLLM and others. It takes no
 * images.
 */
export const layerSystemOne = (
  options: Options & {
    /** The address of the API, its version included: `http://localhost:8080/v1`. */
    readonly baseURL: string
  }
): Layer.Layer<DecisionModel.DecisionModel, ModelError> =>
  Layer.effect(
    DecisionModel.DecisionModel,
    Effect.suspend(() => refuseSystemOne(options) ?? makeServer(options, makeSystemOneFormat(options.baseURL)))
  )

/**
 * Decisions by the chat model of the context: one turn with an answer in a schema, all decisions at once. Probabilities
 * come from the tokens of the answer if `logprobs` asks for them and the provider returns them. Else they are what the
 * model says, and the response is marked: `metadata.effectDeepagents.calibrated` is `false`. It takes no images.
 */
export const layerChatModel = (options?: {
  /** The provider's parameters that return logprobs: `{ logprobs: true, top_logprobs: 5 }`. Default: none. */
  readonly logprobs?: JsonObject | undefined
  /** The probability of a chosen option without logprobs. The other options share the rest. Default: 0.9. */
  readonly certainty?: number | undefined
}): Layer.Layer<DecisionModel.DecisionModel, never, ChatModel> =>
  refuseChatModel(options) ?? Layer.effect(DecisionModel.DecisionModel, makeFromChat(options ?? {}))
