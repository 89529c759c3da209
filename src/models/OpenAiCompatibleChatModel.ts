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
 * The package `openai` must be installed. Reasoning is read wherever servers put it: fields of their own, and
 * `<think>…</think>` in the text. What a model can do is not known here: images and the native JSON-schema mode are
 * used when the options say so.
 */
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ChatModel } from "../core/ChatModel.ts"
import { type Configured, fromConfigured } from "../core/Configured.ts"
import type { JsonObject } from "../core/Json.ts"
import type { ModelError } from "../core/ModelError.ts"
import { normaliseName } from "../support/names.ts"
import { makeChatDecoder } from "./internal/openai/chatDecode.ts"
import { makeChatWriter } from "./internal/openai/chatRequest.ts"
import { type Connection, makeClient, targetOf } from "./internal/openai/client.ts"
import { findModel } from "./internal/openai/models.ts"
import type { Parameters, ReasoningEffort } from "./internal/openai/parameters.ts"
import { makeSessions } from "./internal/openai/session.ts"
import { jsonOf } from "./internal/openai/settings.ts"
import type { Overrides } from "./internal/overrides.ts"
import { thinkTags } from "./internal/thinkTags.ts"

/**
 * Connection and parameters of a model. Only parameters that are set are sent; those of a request win over them, and a
 * `null` there takes one out. Unless the model is one of OpenAI's, its window and prices are unknown by default, it
 * does not see, and `structuredOutput` is `"tool"`; say `"native"` for a server that holds an answer to a schema.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends Connection, Overrides, Parameters {
  /** The model's id, as the server knows it. */
  readonly model: string
  /** Name of the server in messages and errors; `"openai-compatible"` by default. */
  readonly provider?: string | undefined
  readonly reasoningEffort?: ReasoningEffort | undefined
  /** Texts at which the model stops. */
  readonly stop?: ReadonlyArray<string> | undefined
  /** Has the server keep the completion. */
  readonly store?: boolean | undefined
  /**
   * `auto` (the default) takes `<think>…</think>` at the beginning of an answer as reasoning; `prefilled` is for a chat
   * template that writes the opening tag itself; `off` leaves the text alone.
   */
  readonly thinkTags?: "auto" | "prefilled" | "off" | undefined
  /** Parameters of the API or the server that have no option here, by its names: `{ top_k: 20 }`. */
  readonly parameters?: JsonObject | undefined
}

const tags = { auto: thinkTags, prefilled: { ...thinkTags, inside: true }, off: undefined }

/** Recognises Google's servers, whose models read less of JSON Schema. */
const isGoogle = ({ baseURL = "", provider = "" }: Options): boolean =>
  normaliseName(provider) === "gemini" || /^https:\/\/[^/]*\.googleapis\.com\//.test(baseURL)

const make = Effect.fnUntraced(function* (options: Options) {
  const { model, parameters = {} } = options
  const target = targetOf(options)
  const isOpenAi = target !== "other"
  const provider = options.provider ?? (isOpenAi ? target : "openai-compatible")
  const known = findModel(model)
  const client = yield* makeClient(options, "chat", provider, model)
  const settings = {
    provider,
    model,
    parameters: [jsonOf(options), parameters],
    schemas: isGoogle(options) ? ("gemini" as const) : ("openai" as const),
    maxTokensField: isOpenAi ? ("max_completion_tokens" as const) : ("max_tokens" as const)
  }
  return ChatModel.of({
    modelId: model,
    provider,
    supportsVision: options.supportsVision ?? known?.vision ?? isOpenAi,
    contextWindowTokens: options.contextWindowTokens ?? known?.contextWindowTokens,
    structuredOutput: options.structuredOutput ?? (isOpenAi ? "native" : "tool"),
    prices: options.prices ?? (isOpenAi ? known?.prices : undefined),
    makeSession: makeSessions(client, {
      provider,
      model,
      makeWriter: () => makeChatWriter(settings),
      send: (body) => (sdk, signal) => sdk.chat.completions.create(body, { signal }),
      makeDecoder: (context) => makeChatDecoder({ ...context, thinkTags: tags[options.thinkTags ?? "auto"] })
    })
  })
})

/**
 * A model with these options. No key is sent to a `baseURL` unless `apiKey` is given. Building it fails with a
 * `ModelError`: `Authentication` where a key is needed and not found, `Unsupported` where the package `openai` is not
 * installed.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<ChatModel, ModelError> => Layer.effect(ChatModel, make(options))

/**
 * As {@link layer}, with options of which any may be a `Config`: `apiKey: Config.Redacted("OPENROUTER_API_KEY")`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (options: Configured<Options>): Layer.Layer<ChatModel, ModelError | Config.ConfigError> =>
  Layer.effect(ChatModel, Effect.flatMap(fromConfigured<Options>(options), make))
