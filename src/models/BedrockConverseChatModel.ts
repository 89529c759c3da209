/**
 * Any chat model on Amazon Bedrock, by its Converse API, as a `ChatModel`: Nova, Llama, Mistral, gpt-oss, DeepSeek, Qwen,
 * Claude. For Claude, `BedrockChatModel` knows more (Anthropic's own server tools, betas).
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import * as BedrockConverseChatModel from "effect-deepagents/models/BedrockConverseChatModel"
 *
 * const helper = Agent.make({ name: "helper", prompt: "You help." })
 *
 * const answer = Agent.run(helper, "What is Effect?").pipe(
 *   Effect.provide(BedrockConverseChatModel.layer({ model: "us.amazon.nova-pro-v1:0", region: "us-east-1" }))
 * )
 * ```
 *
 * The package `@aws-sdk/client-bedrock-runtime` is needed.
 */
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ChatModel, type Service } from "../core/ChatModel.ts"
import { type ConfigOptions, fromConfigured } from "../core/configured.ts"
import type { JsonObject } from "../core/Json.ts"
import type { ModelError } from "../core/ModelError.ts"
import { defined } from "../support/json/defined.ts"
import { secretsOf } from "./internal/anthropic/connection.ts"
import { saidIn } from "./internal/anthropic/session.ts"
import { type Connection, makeClient } from "./internal/bedrock/client.ts"
import { makeDecoder } from "./internal/bedrock/decode.ts"
import { factsOf, familyOf, pricesOf } from "./internal/bedrock/models.ts"
import { makeWriter } from "./internal/bedrock/request.ts"
import { ModelCatalogue } from "./internal/facts/reference.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"
import { makeSessions } from "./internal/turn/session.ts"
import type { ThinkingLevel } from "./internal/turn/thinking.ts"
import type { Origin } from "./internal/wire/errors.ts"
import type { Overrides } from "./internal/wire/overrides.ts"

/**
 * Options of a layer. Only `model` is required. An answer in a schema comes by a tool call, unless `structuredOutput`
 * is `native`.
 */
export interface Options extends Connection, Overrides {
  /** A model id (`amazon.nova-pro-v1:0`), a cross-region inference profile (`us.meta.…`, `global.…`) or its ARN. */
  readonly model: string
  /** Thinking before an answer. Default: the model's own. */
  readonly thinking?: ThinkingLevel | undefined
  /** The randomness of the answer. Default: the model's own. */
  readonly temperature?: number | undefined
  /** Samples from the likeliest tokens with this share of probability. Default: the model's own. */
  readonly topP?: number | undefined
  /** The most tokens that an answer may have. */
  readonly maxOutputTokens?: number | undefined
  /** Texts that end the answer. Default: none. */
  readonly stop?: ReadonlyArray<string> | undefined
  /** Cache points for models that accept them (Claude, Nova); `off` turns them off. Default: five minutes. */
  readonly cache?:
    | "off"
    | {
        /** The lifetime of the cache. */
        readonly ttl: "5m" | "1h"
      }
    | undefined
  /** Tools that AWS runs: `[{ systemTool: { name: "nova_grounding" } }]`. Default: none. */
  readonly serverTools?: ReadonlyArray<JsonObject> | undefined
  /**
   * Request fields without an option here (`guardrailConfig` …). Unknown fields go to the model itself
   * (`additionalModelRequestFields`). Default: none.
   */
  readonly parameters?: JsonObject | undefined
}

const provider = "bedrock"
const refuse = makeEffectCheck("bedrock", shapes.bedrockConverseChatModelLayer)

const make = Effect.fnUntraced(function* (options: Options): Effect.fn.Return<Service, ModelError> {
  const refused = refuse(options)
  if (refused !== undefined) return yield* refused
  const { maxOutputTokens, model, stop, temperature, thinking, topP } = options
  const secrets = secretsOf(options, [
    options.bearerToken,
    options.credentials?.secretAccessKey,
    options.credentials?.sessionToken
  ])
  const ask = yield* makeClient(options, { provider, model, secrets })
  const facts = factsOf(model, yield* ModelCatalogue)
  const cache = options.cache ?? { ttl: "5m" }
  const parameters = defined({ maxOutputTokens, stop, temperature, thinking, topP })
  return {
    modelId: model,
    provider,
    supportsVision: options.supportsVision ?? facts?.vision ?? false,
    contextWindowTokens: options.contextWindowTokens ?? facts?.contextWindowTokens,
    structuredOutput: options.structuredOutput ?? "tool",
    prices: options.prices ?? pricesOf(model, cache === "off" ? "5m" : cache.ttl) ?? facts?.prices,
    makeSession: makeSessions(
      { provider, model },
      Effect.sync(() => {
        const write = makeWriter({
          model,
          family: familyOf(model),
          efforts: facts?.efforts,
          parameters: [parameters, options.parameters ?? {}],
          serverTools: options.serverTools ?? [],
          cache
        })
        return (request, makeId) =>
          Effect.map(Effect.fromResult(write(request)), ({ body, names, ...written }) => {
            const collectTexts = () => saidIn(request)
            const origin: Origin = { provider, model, secrets, said: collectTexts }
            return {
              ...written,
              events: ask(body, collectTexts),
              makeDecoder: (sink) => makeDecoder({ origin, names, makeId }, sink)
            }
          })
      })
    )
  }
})

/**
 * Makes the layer of a model. Building it fails with `Unsupported` if the SDK is not installed. Missing credentials, a
 * missing region and other request failures fail the turn.
 */
export const layer = (options: Options): Layer.Layer<ChatModel, ModelError> => Layer.effect(ChatModel, make(options))

/** As {@link layer}, with options of which any may be a `Config`. */
export const layerConfig = (options: ConfigOptions<Options>): Layer.Layer<ChatModel, ModelError | Config.ConfigError> =>
  Layer.effect(ChatModel, Effect.flatMap(fromConfigured<Options>(options), make))
