/**
 * Any server that speaks the Chat Completions API: OpenRouter, vLLM, Ollama, LM Studio, llama-server, DeepSeek, Groq …
 *
 * ```ts
 * import * as OpenAiCompatibleChatModel from "effect-deepagents/models/OpenAiCompatibleChatModel"
 *
 * const local = OpenAiCompatibleChatModel.layer({
 *   model: "qwen3:8b",
 *   baseURL: "http://localhost:11434/v1",
 *   contextWindowTokens: 32_768
 * })
 * ```
 *
 * Install the package `openai`. The layer reads reasoning from the fields that servers use for it, and from
 * `<think>…</think>` in the text. It sends images and uses the native JSON-schema mode only if the options allow it.
 */
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ChatModel } from "../core/ChatModel.ts"
import { type ConfigOptions, fromConfigured } from "../core/configured.ts"
import type { JsonObject } from "../core/Json.ts"
import type { ModelError } from "../core/ModelError.ts"
import type { Catalogue } from "./internal/facts/catalogue.ts"
import { pricingOf } from "./internal/facts/facts.ts"
import { ModelCatalogue } from "./internal/facts/reference.ts"
import { makeChatDecoder } from "./internal/openai/chatDecode.ts"
import { makeChatWriter } from "./internal/openai/chatRequest.ts"
import { type Connection, makeClient, targetOf } from "./internal/openai/client.ts"
import { findModel } from "./internal/openai/models.ts"
import type { Parameters, ReasoningEffort } from "./internal/openai/parameters.ts"
import { makeApiSessions } from "./internal/openai/session.ts"
import { jsonOf } from "./internal/openai/settings.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import { factsAt, plain, serverOf, type Ways } from "./internal/servers/servers.ts"
import * as shapes from "./internal/shapes.ts"
import { makeEfforts, type ThinkingLevel } from "./internal/turn/thinking.ts"
import type { ThinkTags } from "./internal/turn/thinkTags.ts"
import type { Overrides } from "./internal/wire/overrides.ts"

/**
 * Connection and parameters of a model. Only set parameters are sent. Parameters of a request win, and `null` removes
 * one. For a model of another maker than OpenAI, window and prices are unknown by default, `supportsVision` is false,
 * and `structuredOutput` is `"tool"`. Set `"native"` if the server enforces schemas.
 */
export interface Options extends Connection, Overrides, Parameters {
  /** The model's id, as the server knows it. */
  readonly model: string
  /** Name of the server in messages and errors; `"openai-compatible"` by default. */
  readonly provider?: string | undefined
  /** The amount of reasoning. Default: the model's own. */
  readonly reasoningEffort?: ReasoningEffort | undefined
  /** Amount of thinking before an answer, in the words of every provider; `reasoningEffort` wins over it. */
  readonly thinking?: ThinkingLevel | undefined
  /** Texts at which the model stops. */
  readonly stop?: ReadonlyArray<string> | undefined
  /** Has the server keep the completion. */
  readonly store?: boolean | undefined
  /**
   * `auto` (the default) takes `<think>…</think>` at the beginning of an answer as reasoning; `prefilled` is for a chat
   * template that writes the opening tag itself; `off` leaves the text alone.
   */
  readonly thinkTags?: "auto" | "prefilled" | "off" | undefined
  /** Holds arguments to the schemas of their tools, for servers that have a strict mode. */
  readonly strictTools?: boolean | undefined
  /**
   * Marks the prompt for Claude's cache, as gateways hand it on: without marks they cache nothing of Claude's. Default: true
   * for Claude at OpenRouter and LiteLLM.
   */
  readonly cacheMarks?: boolean | undefined
  /** Parameters of the API or the server that have no option here, by its names: `{ top_k: 20 }`. */
  readonly parameters?: JsonObject | undefined
}

const tagsOf = ({ tag }: Ways, { thinkTags: how = "auto" }: Options): ThinkTags | undefined =>
  how === "off" ? undefined : { open: `<${tag}>`, close: `</${tag}>`, inside: how === "prefilled" }

/** OpenAI's reasoning models refuse the name for the limit of an answer that everybody else knows. */
const openAi: Ways = { ...plain, maxTokens: "max_completion_tokens" }
const refuse = makeEffectCheck("openai-compatible", shapes.openAiCompatibleChatModelLayer)

/** Finds the ways of a server and the facts of a model. */
const lookUp = ({ baseURL, model, provider }: Options, isOpenAi: boolean, catalogue: Catalogue) => {
  const server = isOpenAi ? undefined : serverOf(provider, baseURL)
  const facts = server === undefined ? findModel(model, catalogue) : factsAt(server, model, catalogue)
  return {
    ways: server?.ways ?? (isOpenAi ? openAi : plain),
    efforts: facts?.efforts,
    priced: isOpenAi || server !== undefined ? facts : undefined,
    assumed: facts ?? server?.assumed
  }
}

/** The facts of a model. Options win over known ones. */
const factsOf = (options: Options, isOpenAi: boolean, catalogue: Catalogue) => {
  const { assumed, efforts, priced, ways } = lookUp(options, isOpenAi, catalogue)
  const isNative = isOpenAi || ways.native?.test(options.model) === true
  return {
    ways,
    efforts,
    supportsVision: options.supportsVision ?? assumed?.vision ?? isOpenAi,
    contextWindowTokens: options.contextWindowTokens ?? assumed?.contextWindowTokens,
    structuredOutput: options.structuredOutput ?? (isNative ? "native" : "tool"),
    prices: options.prices ?? priced?.prices,
    price: pricingOf(priced, options.prices)
  } as const
}

const make = Effect.fnUntraced(function* (options: Options) {
  const refused = refuse(options)
  if (refused !== undefined) return yield* refused
  const { model, parameters = {} } = options
  const target = targetOf(options)
  const isOpenAi = target !== "other"
  const provider = options.provider ?? (isOpenAi ? target : "openai-compatible")
  const { efforts, price, ways, ...facts } = factsOf(options, isOpenAi, yield* ModelCatalogue)
  const client = yield* makeClient(options, "chat", provider, model)
  const tried = makeEfforts(efforts)
  const settings = {
    provider,
    model,
    parameters: [jsonOf(options), parameters],
    ways: { ...ways, audio: ways.audio && (!isOpenAi || model.includes("audio")) },
    get efforts() {
      return tried.taken()
    },
    strictTools: options.strictTools,
    isMarked: options.cacheMarks ?? ways.cacheMarks?.test(model)
  }
  return ChatModel.of({
    modelId: model,
    provider,
    ...facts,
    reportsCost: ways.reportsCost,
    makeSession: makeApiSessions(client, {
      provider,
      model,
      makeWriter: () => makeChatWriter(settings),
      path: "/chat/completions",
      price,
      efforts: tried,
      makeDecoder: (context, sink) => makeChatDecoder({ ...context, thinkTags: tagsOf(ways, options) }, sink)
    })
  })
})

/**
 * Makes the layer of a model. A `baseURL` gets no key unless `apiKey` is set. Building it fails with a `ModelError`:
 * `Authentication` if a required key is missing, `Unsupported` without the package `openai`.
 */
export const layer = (options: Options): Layer.Layer<ChatModel, ModelError> => Layer.effect(ChatModel, make(options))

/** As {@link layer}, with options of which any may be a `Config`: `apiKey: Config.Redacted("OPENROUTER_API_KEY")`. */
export const layerConfig = (options: ConfigOptions<Options>): Layer.Layer<ChatModel, ModelError | Config.ConfigError> =>
  Layer.effect(ChatModel, Effect.flatMap(fromConfigured<Options>(options), make))
