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
 * A provider's module, and its SDK, is loaded when a model of it is asked for. Keys are read from `Config`.
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { ChatModel } from "../core/ChatModel.ts"
import type { ModelError } from "../core/ModelError.ts"
import { normaliseName } from "../support/names.ts"
import { keyFrom } from "./internal/keys.ts"
import { parametersOf, type ProviderProfile, withParameters } from "./ProviderProfile.ts"

/**
 * A provider: the name before the colon, and the layer of each of its models.
 *
 * @category models
 * @since 0.1.0
 */
export interface Provider<out E = ModelError | Config.ConfigError, out R = never> {
  readonly name: string
  readonly layer: (model: string) => Layer.Layer<ChatModel, E, R>
}

/**
 * The text before the first colon names no provider that is known here; `known` lists those that are.
 *
 * @category errors
 * @since 0.1.0
 */
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
  layer: (model) =>
    Layer.unwrap(
      Effect.map(
        Effect.promise(() => import("./AnthropicChatModel.ts")),
        (AnthropicChatModel) => AnthropicChatModel.layerConfig({ model })
      )
    )
}

const bedrock: Provider = {
  name: "bedrock",
  layer: (model) =>
    Layer.unwrap(
      Effect.map(
        Effect.promise(() => import("./BedrockChatModel.ts")),
        (BedrockChatModel) => BedrockChatModel.layer({ model })
      )
    )
}

const openai: Provider = {
  name: "openai",
  layer: (model) =>
    Layer.unwrap(
      Effect.gen(function* () {
        const OpenAiChatModel = yield* Effect.promise(() => import("./OpenAiChatModel.ts"))
        const moved = yield* Config.option(Config.String("OPENAI_BASE_URL"))
        // The key goes to the server that was named beside it, as with OpenAI's own SDK.
        const elsewhere = Option.isNone(moved)
          ? {}
          : { baseURL: moved.value, apiKey: yield* keyFrom("OPENAI_API_KEY", { provider: "openai", model }) }
        return OpenAiChatModel.layer({ model, ...elsewhere })
      })
    )
}

const llama: Provider = {
  name: "llama",
  layer: (model) =>
    Layer.unwrap(
      Effect.map(
        Effect.promise(() => import("./LlamaChatModel.ts")),
        (LlamaChatModel) => LlamaChatModel.layer({ model })
      )
    )
}

/** A server that speaks Chat Completions. Where `key` names a variable, it must be there. */
const compatible = (name: string, baseURL: string, key?: string): Provider => ({
  name,
  layer: (model) =>
    Layer.unwrap(
      Effect.gen(function* () {
        const OpenAiCompatibleChatModel = yield* Effect.promise(() => import("./OpenAiCompatibleChatModel.ts"))
        // A local server may be elsewhere than by default: OLLAMA_BASE_URL and the like.
        const moved = yield* Config.option(Config.String(`${name.toUpperCase().replaceAll("-", "_")}_BASE_URL`))
        return OpenAiCompatibleChatModel.layer({
          model,
          provider: name,
          baseURL: Option.getOrElse(moved, () => baseURL),
          apiKey: key === undefined ? undefined : yield* keyFrom(key, { provider: name, model })
        })
      })
    )
})

/**
 * The providers that need no words of yours.
 *
 * @category constants
 * @since 0.1.0
 */
export const providers: ReadonlyArray<Provider> = [
  anthropic,
  bedrock,
  openai,
  llama,
  compatible("ollama", "http://localhost:11434/v1"),
  compatible("lm-studio", "http://localhost:1234/v1"),
  compatible("llama-server", "http://localhost:8080/v1"),
  compatible("vllm", "http://localhost:8000/v1"),
  compatible("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
  compatible("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
  compatible("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
  compatible("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
  compatible("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
  compatible("xai", "https://api.x.ai/v1", "XAI_API_KEY"),
  compatible("gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY")
]

/**
 * A layer of the model that `spec` names: `provider:model`, cut at the first colon, so that a model's own colons stay.
 * Providers are found whatever their case, `-` and `_`. `providers` come before the built-in ones; `profiles` are
 * parameters by provider and model, under those of a request.
 *
 * @category combinators
 * @since 0.1.0
 */
export const resolve = <const Own extends ReadonlyArray<Provider<unknown, unknown>> = ReadonlyArray<Provider<never>>>(
  spec: string,
  options?: { readonly providers?: Own | undefined; readonly profiles?: ReadonlyArray<ProviderProfile> | undefined }
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
  return withParameters(found.layer(model), parametersOf(options?.profiles ?? [], found.name, model))
}

type ErrorOf<P> = P extends Provider<infer E, infer _R> ? E : never
type ServicesOf<P> = P extends Provider<infer _E, infer R> ? R : never
