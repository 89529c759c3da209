/**
 * Gemini, by Google's own API or on Vertex AI: thought signatures, server tools, sources, and what its endpoint for
 * OpenAI's clients leaves out.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import * as GeminiChatModel from "effect-deepagents/models/GeminiChatModel"
 *
 * const helper = Agent.make({ name: "helper", prompt: "You help." })
 *
 * const answer = Agent.run(helper, "What is new?").pipe(
 *   Effect.provide(
 *     GeminiChatModel.layerConfig({ model: "gemini-3.5-flash", thinking: "low", serverTools: [{ googleSearch: {} }] })
 *   )
 * )
 * ```
 *
 * No package is needed.
 */
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { ChatModel, type Service } from "../core/ChatModel.ts"
import { type ConfigOptions, fromConfigured } from "../core/configured.ts"
import type { JsonObject } from "../core/Json.ts"
import type { ModelError } from "../core/ModelError.ts"
import { defined } from "../support/json/defined.ts"
import { pricingOf } from "./internal/facts/facts.ts"
import { ModelCatalogue } from "./internal/facts/reference.ts"
import { type Connection, makeClient } from "./internal/gemini/client.ts"
import { makeDecoder } from "./internal/gemini/decode.ts"
import { isReadable, makeWriter } from "./internal/gemini/request.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import { factsAt, gemini } from "./internal/servers/servers.ts"
import * as shapes from "./internal/shapes.ts"
import { makeSessions } from "./internal/turn/session.ts"
import { makeEfforts, type ThinkingLevel } from "./internal/turn/thinking.ts"
import { makeUploads, type Uploads } from "./internal/turn/uploads.ts"
import { refuseAddress } from "./internal/wire/errors.ts"
import { makeJsonWriter } from "./internal/wire/jsonText.ts"
import { keyFrom } from "./internal/wire/keys.ts"
import type { Overrides } from "./internal/wire/overrides.ts"

/** Options of a layer. Only `model` is needed. */
export interface Options extends Connection, Overrides {
  /** The id of the model. */
  readonly model: string
  /** The API key. Default: `GEMINI_API_KEY`, unless `baseURL` or `vertex` is set. */
  readonly apiKey?: Redacted.Redacted | undefined
  /** Thinking before an answer. Default: the API's own. */
  readonly thinking?: ThinkingLevel | undefined
  /** The randomness of the answer. Default: the API's own. */
  readonly temperature?: number | undefined
  /** Samples from the likeliest tokens with this share of probability. Default: the API's own. */
  readonly topP?: number | undefined
  /** Samples from this many likeliest tokens. Default: the API's own. */
  readonly topK?: number | undefined
  /** The seed of the sampling. Default: random. */
  readonly seed?: number | undefined
  /** The most tokens that an answer may have, its thoughts included. Default: the API's own. */
  readonly maxOutputTokens?: number | undefined
  /** Texts that end the answer. Default: none. */
  readonly stop?: ReadonlyArray<string> | undefined
  /**
   * Streams the arguments of calls while they are written (Vertex AI). Default: `false`.
   */
  readonly streamArguments?: boolean | undefined
  /** Uploads large images and files once, and sends their ids; not on Vertex AI. Default: each request holds them. */
  readonly uploads?: Uploads | undefined
  /** Tools that Google runs itself: `[{ googleSearch: {} }, { codeExecution: {} }]`. Default: none. */
  readonly serverTools?: ReadonlyArray<JsonObject> | undefined
  /** Request fields without an option here, by the API's names: `{ safetySettings: [] }`. Default: none. */
  readonly parameters?: JsonObject | undefined
}

const variable = "GEMINI_API_KEY"
const refuse = makeEffectCheck("gemini", shapes.geminiChatModelLayer)

const make = Effect.fnUntraced(function* (options: Options): Effect.fn.Return<Service, ModelError> {
  const refused = refuse(options)
  if (refused !== undefined) return yield* refused
  const { model, vertex } = options
  const provider = vertex === undefined ? "gemini" : "vertex"
  const noAddress = refuseAddress({ provider, model }, options.baseURL)
  if (noAddress !== undefined) return yield* noAddress
  const isHome = vertex === undefined && options.baseURL === undefined
  const key = options.apiKey ?? (isHome ? yield* keyFrom(variable, { provider, model }) : undefined)
  const client = makeClient(options, key, { provider, model })
  const name = model.slice(model.lastIndexOf("/") + 1)
  const facts = { ...gemini.assumed, ...factsAt(gemini, name, yield* ModelCatalogue) }
  const price = pricingOf(facts, options.prices)
  const isNative = gemini.ways.native?.test(name) === true
  const { maxOutputTokens, seed, stop, temperature, thinking, topK, topP } = options
  const efforts = makeEfforts(facts.efforts ?? [])
  const parameters = defined({ maxOutputTokens, seed, stop, temperature, thinking, topK, topP })
  const streaming =
    options.streamArguments === true
      ? { toolConfig: { functionCallingConfig: { streamFunctionCallArguments: true } } }
      : {}
  const uploads = vertex === undefined ? options.uploads : undefined
  const upload =
    uploads === undefined
      ? identity
      : makeUploads({ provider, model, options: uploads, takes: isReadable, upload: client.upload })
  return {
    modelId: model,
    provider,
    supportsVision: options.supportsVision ?? facts.vision ?? true,
    contextWindowTokens: options.contextWindowTokens ?? facts.contextWindowTokens,
    structuredOutput: options.structuredOutput ?? (isNative ? "native" : "tool"),
    prices: options.prices ?? facts.prices,
    makeSession: upload(
      makeSessions(
        { provider, model },
        Effect.sync(() => {
          const writeJson = makeJsonWriter()
          const write = makeWriter({
            model,
            parameters: [parameters, streaming, options.parameters ?? {}],
            serverTools: options.serverTools ?? [],
            get efforts() {
              return efforts.taken()
            }
          })
          return (request, makeId) =>
            Effect.map(Effect.fromResult(write(request)), ({ body, names, restore, ...written }) => {
              const origin = client.originOf(body)
              const context = { origin, names, restore, makeId, price }
              return {
                ...written,
                events: Stream.unwrap(client.stream(origin, writeJson(body))),
                makeDecoder: (sink) => makeDecoder(context, sink)
              }
            })
        }),
        efforts
      )
    )
  }
})

/**
 * Makes the layer of a model. Building it fails with `Authentication` if there is no key. Request failures fail the
 * turn.
 */
export const layer = (options: Options): Layer.Layer<ChatModel, ModelError> => Layer.effect(ChatModel, make(options))

/** As {@link layer}, with options of which any may be a `Config`. */
export const layerConfig = (options: ConfigOptions<Options>): Layer.Layer<ChatModel, ModelError | Config.ConfigError> =>
  Layer.effect(ChatModel, Effect.flatMap(fromConfigured<Options>(options), make))
