/**
 * Choose a model by its name: `"anthropic:claude-…"`, `"openai:gpt-…"`, `"ollama:llama3:8b"`, `"llama:/path.gguf"`.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { ChatModels } from "effect-deepagents/models"
 *
 * const helper = Agent.make({ name: "helper", prompt: "You help." })
 *
 * const answer = Agent.run(helper, "What is Effect?").pipe(
 *   Effect.provide(ChatModels.resolve("anthropic:claude-opus-5-5"))
 * )
 * ```
 *
 * A provider's module, and its SDK, is loaded when a model of it is asked for. Keys are read from `Config`. Facts of a
 * model (window, vision, prices, levels of thinking) come from tables; of one that is in none the first turn says, as a
 * `Warning`, what was assumed.
 */
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { ChatModel, type Service } from "../core/ChatModel.ts"
import type { ModelError } from "../core/ModelError.ts"
import { defined } from "../support/json/defined.ts"
import { normaliseName } from "../support/text/names.ts"
import { profileOf } from "./internal/anthropic/models.ts"
import { factsOf as bedrockFacts } from "./internal/bedrock/models.ts"
import { findModel } from "./internal/openai/models.ts"
import { gemini } from "./internal/servers/cloud.ts"
import type { ModelFacts, Server } from "./internal/servers/Server.ts"
import { factsAt, servers } from "./internal/servers/servers.ts"
import type { ThinkingLevel } from "./internal/turn/thinking.ts"
import { keyFrom } from "./internal/wire/keys.ts"
import type { Overrides } from "./internal/wire/overrides.ts"
import { makeWarner, warned } from "./internal/wire/warned.ts"
import { parametersOf, type ProviderProfile, withParameters } from "./ProviderProfile.ts"

/**
 * Settings of a model that win over what is known of it. `thinking` is how much it thinks before it answers, in the words
 * of every provider: each model takes what is nearest.
 */
export interface ModelOptions extends Overrides {
  readonly thinking?: ThinkingLevel | undefined
  /** Address of the API; the variables of a provider (`OLLAMA_BASE_URL` and the like) by default. */
  readonly baseURL?: string | undefined
  /** The variable of the provider by default. */
  readonly apiKey?: Redacted.Redacted | undefined
}

/**
 * A provider: the name before the colon, and the layer of each of its models. What `options` say of facts holds
 * whatever the layer does with them. `key` is the variable that its key is read from, if it needs one.
 */
export interface Provider<out E = ModelError | Config.ConfigError, out R = never> {
  readonly name: string
  readonly key?: string | undefined
  readonly layer: (model: string, options: ModelOptions) => Layer.Layer<ChatModel, E, R>
}

/** The text before the first colon names no provider that is known here; `known` lists those that are. */
export class UnknownProvider extends Schema.TaggedError<UnknownProvider>()("UnknownProvider", {
  spec: Schema.String,
  known: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return `"${this.spec}" names no known provider. Write it as provider:model, with one of ${this.known.join(", ")}; or give your own in \`providers\``
  }
}

const anthropic: Provider = {
  name: "anthropic",
  key: "ANTHROPIC_API_KEY",
  layer: (model, options) =>
    Layer.unwrap(
      Effect.map(
        Effect.promise(() => import("./AnthropicChatModel.ts")),
        (AnthropicChatModel) => AnthropicChatModel.layerConfig({ model, ...options })
      )
    )
}

const bedrock: Provider = {
  name: "bedrock",
  layer: (model, { apiKey, ...options }) =>
    Layer.unwrap(
      Effect.gen(function* () {
        const own = { model, bearerToken: apiKey, ...options }
        if (/anthropic\./.test(model)) return (yield* Effect.promise(() => import("./BedrockChatModel.ts"))).layer(own)
        return (yield* Effect.promise(() => import("./BedrockConverseChatModel.ts"))).layer(own)
      })
    )
}

const openai: Provider = {
  name: "openai",
  key: "OPENAI_API_KEY",
  layer: (model, options) =>
    Layer.unwrap(
      Effect.gen(function* () {
        const OpenAiChatModel = yield* Effect.promise(() => import("./OpenAiChatModel.ts"))
        const baseURL = options.baseURL ?? Option.getOrUndefined(yield* Config.option(Config.String("OPENAI_BASE_URL")))
        // The key goes to the server that was named beside it, as with OpenAI's own SDK.
        const apiKey =
          options.apiKey ??
          (baseURL === undefined ? undefined : yield* keyFrom("OPENAI_API_KEY", { provider: "openai", model }))
        return OpenAiChatModel.layer({ model, ...options, baseURL, apiKey })
      })
    )
}

const llama: Provider = {
  name: "llama",
  layer: (model, { contextWindowTokens, structuredOutput, thinking }) =>
    Layer.unwrap(
      Effect.map(
        Effect.promise(() => import("./local/LlamaChatModel.ts")),
        (LlamaChatModel) =>
          LlamaChatModel.layer({ model, contextSize: contextWindowTokens, structuredOutput, thinking })
      )
    )
}

const ollama: Provider = {
  name: "ollama",
  layer: (model, options) =>
    Layer.unwrap(
      Effect.gen(function* () {
        const OllamaChatModel = yield* Effect.promise(() => import("./OllamaChatModel.ts"))
        const baseURL = options.baseURL ?? Option.getOrUndefined(yield* Config.option(Config.String("OLLAMA_BASE_URL")))
        const key = yield* Config.option(Config.Redacted("OLLAMA_API_KEY"))
        return OllamaChatModel.layer({
          model,
          ...options,
          baseURL,
          apiKey: options.apiKey ?? Option.getOrUndefined(key)
        })
      })
    )
}

const google: Provider = {
  name: "google",
  key: "GEMINI_API_KEY",
  layer: (model, options) =>
    Layer.unwrap(
      Effect.gen(function* () {
        const GeminiChatModel = yield* Effect.promise(() => import("./GeminiChatModel.ts"))
        const apiKey = options.apiKey ?? (yield* keyFrom("GEMINI_API_KEY", { provider: "google", model }))
        return GeminiChatModel.layer({ model, ...options, apiKey })
      })
    )
}

/** A server that speaks Chat Completions. Where it has a variable for its key, that must be there. */
const compatible = ({ baseURL, key, name }: Server): Provider => ({
  name,
  key,
  layer: (model, options) =>
    Layer.unwrap(
      Effect.gen(function* () {
        const OpenAiCompatibleChatModel = yield* Effect.promise(() => import("./OpenAiCompatibleChatModel.ts"))
        // A local server may be elsewhere than by default: VLLM_BASE_URL and the like.
        const moved = yield* Config.option(Config.String(`${name.toUpperCase().replaceAll("-", "_")}_BASE_URL`))
        return OpenAiCompatibleChatModel.layer({
          model,
          ...options,
          provider: name,
          baseURL: options.baseURL ?? Option.getOrElse(moved, () => baseURL),
          apiKey: options.apiKey ?? (key === undefined ? undefined : yield* keyFrom(key, { provider: name, model }))
        })
      })
    )
})

/** The providers that need no words of yours. */
export const providers: ReadonlyArray<Provider> = [
  anthropic,
  bedrock,
  openai,
  llama,
  ollama,
  google,
  ...servers.map(compatible)
]

/** The facts in the tables of a model of a built-in provider; `undefined` where it is in none. */
const tables: { readonly [provider: string]: (model: string) => Partial<ModelFacts> | undefined } = {
  anthropic: (model) => (profileOf(model).rates === undefined ? undefined : {}),
  bedrock: bedrockFacts,
  openai: findModel,
  google: (model) => factsAt(gemini, model),
  ...Object.fromEntries(servers.map((server) => [server.name, (model: string) => factsAt(server, model)]))
}

/** Assumptions about a model that no table knows, in words; nothing where all that matters was said. */
const assumedOf = (provider: string, model: Service, given: Overrides): string | undefined => {
  const known = Object.hasOwn(tables, provider) ? tables[provider] : undefined
  const isSaid = given.contextWindowTokens !== undefined && given.supportsVision !== undefined
  if (known === undefined || isSaid || known(model.modelId) !== undefined) return undefined
  const window = model.contextWindowTokens
  const facts = [
    window === undefined ? "a context window of unknown size" : `a context window of ${window} tokens`,
    model.supportsVision ? "images are sent to it" : "no images are sent to it",
    ...(model.prices === undefined ? ["its prices are unknown"] : [])
  ]
  return `${provider}:${model.modelId} is not in the tables of models. Assumed: ${facts.join("; ")}. Say otherwise with contextWindowTokens, supportsVision and prices.`
}

/** A model with the facts that a caller gave, whose first turn says what was assumed of it. */
const settled = (provider: string, model: Service, given: Overrides): Service => {
  const { contextWindowTokens, prices, structuredOutput, supportsVision } = given
  const own: Service = { ...model, ...defined({ contextWindowTokens, prices, structuredOutput, supportsVision }) }
  const assumed = assumedOf(provider, own, given)
  if (assumed === undefined) return own
  const warn = makeWarner("model-facts", (text) => text)
  return {
    ...own,
    makeSession: Effect.map(own.makeSession, ({ nextTurn }) => ({
      nextTurn: (request) => Stream.suspend(() => warned(warn([assumed]), nextTurn(request)))
    }))
  }
}

/** Settings of {@link resolve}: those of the model, providers of one's own, and parameters by provider and model. */
export interface Options<Own = ReadonlyArray<Provider>> extends ModelOptions {
  readonly providers?: Own | undefined
  readonly profiles?: ReadonlyArray<ProviderProfile> | undefined
}

/**
 * A layer of the model that `spec` names: `provider:model`, cut at the first colon, so that a model's own colons stay.
 * Providers are found whatever their case, `-` and `_`. `providers` come before the built-in ones; `profiles` are
 * parameters by provider and model, under those of a request. The other options win over what is known of the model.
 */
export const resolve = <const Own extends ReadonlyArray<Provider<unknown, unknown>> = ReadonlyArray<Provider<never>>>(
  spec: string,
  options?: Options<Own>
): Layer.Layer<
  ChatModel,
  UnknownProvider | ModelError | Config.ConfigError | ErrorOf<Own[number]>,
  ServicesOf<Own[number]>
> => {
  type E = ModelError | Config.ConfigError | ErrorOf<Own[number]>
  type R = ServicesOf<Own[number]>
  // Each provider's own error and needs are among those of all of them.
  const own = (options?.providers ?? []) as ReadonlyArray<Provider<E, R>>
  const all: ReadonlyArray<Provider<E, R>> = [...own, ...providers]
  const colon = spec.indexOf(":")
  const name = colon < 0 ? spec : spec.slice(0, colon)
  const model = colon < 0 ? "" : spec.slice(colon + 1)
  const found = all.find((provider) => normaliseName(provider.name) === normaliseName(name))
  if (found === undefined || model === "") {
    return Layer.unwrap(Effect.fail(new UnknownProvider({ spec, known: all.map((provider) => provider.name) })))
  }
  const { profiles = [], providers: _, ...given } = options ?? {}
  const isBuiltIn = providers.some((provider) => provider === found)
  const { thinking } = given
  // A provider of one's own takes the level as every model does: as a parameter.
  const parameters = {
    ...(isBuiltIn || thinking === undefined ? {} : { thinking }),
    ...parametersOf(profiles, found.name, model)
  }
  const layer = Layer.effect(
    ChatModel,
    Effect.map(Layer.build(found.layer(model, given)), (context) =>
      ChatModel.of(settled(isBuiltIn ? found.name : "", Context.get(context, ChatModel), given))
    )
  )
  return withParameters(layer, parameters)
}

type ErrorOf<P> = P extends Provider<infer E, infer _R> ? E : never
type ServicesOf<P> = P extends Provider<infer _E, infer R> ? R : never
