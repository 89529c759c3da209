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
 * The first use of a provider loads its module and SDK. Keys are read from `Config`. Facts of a model (window, vision,
 * prices, levels of thinking) come from a catalogue. The first turn of an unlisted model lists the assumptions in a
 * `Warning`.
 */
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { ChatModel, type ModelRequest, type Service } from "../core/ChatModel.ts"
import type { JsonObject } from "../core/Json.ts"
import type { ModelError } from "../core/ModelError.ts"
import { TaggedError } from "../support/effect/taggedError.ts"
import { defined } from "../support/json/defined.ts"
import { valueAt } from "../support/json/valueAt.ts"
import { brief } from "../support/text/issues.ts"
import { didYouMean, normaliseName } from "../support/text/names.ts"
import { profileOf } from "./internal/anthropic/models.ts"
import { factsOf as bedrockFacts } from "./internal/bedrock/models.ts"
import type { Catalogue } from "./internal/facts/catalogue.ts"
import type { ModelFacts } from "./internal/facts/facts.ts"
import { ModelCatalogue } from "./internal/facts/reference.ts"
import { findModel } from "./internal/openai/models.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import { factsAt, gemini, type Server, servers, variableOf } from "./internal/servers/servers.ts"
import * as shapes from "./internal/shapes.ts"
import type { ThinkingLevel } from "./internal/turn/thinking.ts"
import { keyFrom, nameVariables } from "./internal/wire/keys.ts"
import type { Overrides } from "./internal/wire/overrides.ts"
import { makeWarner, warned } from "./internal/wire/warned.ts"

interface ModelOptions extends Overrides {
  /** How much the model thinks before it answers. Each model uses its nearest level. */
  readonly thinking?: ThinkingLevel | undefined
  /** Address of the API. By default that of the provider, or of a variable such as `OLLAMA_BASE_URL`. */
  readonly baseURL?: string | undefined
  /** By default read from the provider's variable. */
  readonly apiKey?: Redacted.Redacted | undefined
}

/** A provider of models, which `resolve` finds by its name. */
export interface Provider<out E = ModelError | Config.ConfigError, out R = never> {
  /** The text before the colon of a model's name. */
  readonly name: string
  /** The environment variable of its key. */
  readonly key?: string | undefined
  /** The model that a new user starts with. */
  readonly firstModel?: string | undefined
  /** The address that lists the models of a key. */
  readonly modelsURL?: string | undefined
  /** Makes the layer of a model. `resolve` applies the facts among `options` even if the layer ignores them. */
  readonly layer: (model: string, options: ModelOptions) => Layer.Layer<ChatModel, E, R>
}

/** The text before the first colon names no known provider. `known` lists them. */
export class UnknownProvider extends TaggedError<UnknownProvider>()("UnknownProvider", {
  spec: Schema.String,
  known: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return `"${this.spec}" names no known provider.${didYouMean(this.spec.split(":")[0] ?? "", this.known)} Write it as provider:model, with one of ${this.known.join(", ")}; or give your own in \`providers\``
  }
}

const anthropic: Provider = {
  name: "anthropic",
  key: "ANTHROPIC_API_KEY",
  firstModel: "claude-sonnet-5-5",
  modelsURL: "https://api.anthropic.com/v1/models?limit=1000",
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
  firstModel: "gpt-6-sol",
  modelsURL: "https://api.openai.com/v1/models",
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
  firstModel: "gemini-3.1-pro-preview",
  modelsURL: "https://generativelanguage.googleapis.com/v1beta/models?pageSize=1000",
  layer: (model, options) =>
    Layer.unwrap(
      Effect.gen(function* () {
        const GeminiChatModel = yield* Effect.promise(() => import("./GeminiChatModel.ts"))
        const apiKey = options.apiKey ?? (yield* keyFrom("GEMINI_API_KEY", { provider: "google", model }))
        return GeminiChatModel.layer({ model, ...options, apiKey })
      })
    )
}

const compatible = ({ baseURL, firstModel, key, name }: Server): Provider => ({
  name,
  key,
  firstModel,
  modelsURL: `${baseURL}/models`,
  layer: (model, options) =>
    Layer.unwrap(
      Effect.gen(function* () {
        const OpenAiCompatibleChatModel = yield* Effect.promise(() => import("./OpenAiCompatibleChatModel.ts"))
        // A local server may have another address: VLLM_BASE_URL and the like.
        const configured = yield* Config.option(Config.String(variableOf(name, "BASE_URL")))
        // A local server needs no key, unless whoever runs it guards it.
        const optional = Config.option(Config.Redacted(variableOf(name, "API_KEY"))).pipe(
          Config.map(Option.getOrUndefined)
        )
        return OpenAiCompatibleChatModel.layer({
          model,
          ...options,
          provider: name,
          baseURL: options.baseURL ?? Option.getOrElse(configured, () => baseURL),
          apiKey:
            options.apiKey ?? (key === undefined ? yield* optional : yield* keyFrom(key, { provider: name, model }))
        })
      })
    )
})

/** The built-in providers, in the order in which the program looks for their keys. */
export const providers: ReadonlyArray<Provider> = [
  anthropic,
  openai,
  google,
  ...servers.map(compatible),
  bedrock,
  ollama,
  llama
]

/** Finds the catalogued facts about a model of a built-in provider. */
const catalogues: {
  readonly [provider: string]: (model: string, catalogue: Catalogue) => Partial<ModelFacts> | undefined
} = {
  anthropic: (model, catalogue) => profileOf(model, catalogue).facts,
  bedrock: bedrockFacts,
  openai: findModel,
  google: (model, catalogue) => factsAt(gemini, model, catalogue),
  ...Object.fromEntries(
    servers.map((server) => [server.name, (model: string, catalogue: Catalogue) => factsAt(server, model, catalogue)])
  )
}

/** Providers without a variable for an address, or for a key beside {@link Provider.key}. */
const withoutVariables: ReadonlySet<string> = new Set(["bedrock", "google", "llama"])

/** The variables that a model is made from, where no option is in their place. */
const variablesOf = ({ key, name }: Pick<Provider, "key" | "name">, { apiKey, baseURL }: ModelOptions) => {
  const usual = (setting: "API_KEY" | "BASE_URL") =>
    withoutVariables.has(name) ? undefined : variableOf(name, setting)
  return {
    key: apiKey === undefined ? (key ?? usual("API_KEY")) : undefined,
    address: baseURL === undefined ? usual("BASE_URL") : undefined
  }
}

/** Describes the assumptions about a model that the catalogue does not list, unless the caller gave its facts. */
const describeAssumptions = (
  provider: string,
  model: Service,
  given: Overrides,
  catalogue: Catalogue
): string | undefined => {
  const find = valueAt(catalogues, provider)
  const isGiven = given.contextWindowTokens !== undefined && given.supportsVision !== undefined
  if (find === undefined || isGiven || find(model.modelId, catalogue) !== undefined) return undefined
  const window = model.contextWindowTokens
  const facts = [
    window === undefined ? "a context window of unknown size" : `a context window of ${window} tokens`,
    model.supportsVision ? "it reads images" : "it reads no images",
    ...(model.prices === undefined ? ["its prices are unknown"] : [])
  ]
  return `${provider}:${model.modelId} is not in the tables of models (of ${catalogue.asOf}). Assumed: ${facts.join("; ")}. Correct this by the options contextWindowTokens, supportsVision and prices.`
}

const noticeDays = 30

/** Describes the end of a model, from 30 days before it. */
const describeRetirement = (
  provider: string,
  { modelId }: Service,
  now: number,
  catalogue: Catalogue
): string | undefined => {
  const { retiresOn, successor } = valueAt(catalogues, provider)?.(modelId, catalogue) ?? {}
  const day = retiresOn === undefined ? NaN : Date.parse(retiresOn)
  if (!(day - now < noticeDays * 86_400_000)) return undefined
  const instead = successor === undefined ? "" : ` Its provider names ${successor} in its place.`
  return `${provider}:${modelId} ${day < now ? "was" : "is"} taken away by its provider on ${retiresOn}.${instead}`
}

/** Applies the caller's facts to a model. Its first turn warns about assumptions, and about the model's end. */
const applyFacts = (provider: string, model: Service, overrides: Overrides, catalogue: Catalogue): Service => {
  const { contextWindowTokens, prices, structuredOutput, supportsVision } = overrides
  const own: Service = { ...model, ...defined({ contextWindowTokens, prices, structuredOutput, supportsVision }) }
  const assumed = describeAssumptions(provider, own, overrides, catalogue)
  const warn = makeWarner("model-facts", (text) => text)
  const makeSession = Effect.gen(function* () {
    const session = yield* own.makeSession
    // Of a model outside the catalogue, no end is known.
    const notice = assumed ?? describeRetirement(provider, own, yield* Clock.currentTimeMillis, catalogue)
    if (notice === undefined) return session
    const { nextTurn } = session
    return { nextTurn: (request: ModelRequest) => Stream.suspend(() => warned(warn([notice]), nextTurn(request))) }
  })
  return { ...own, makeSession }
}

interface Profile {
  readonly provider: string
  /** One exact model. Without it, all models of the provider. */
  readonly model?: string | undefined
  /** Parameters by their names in the provider's API, as in `ModelRequest.parameters`. */
  readonly parameters: JsonObject
}

/** Options of {@link resolve}. The facts among them win over the catalogue. */
export interface Options<Own = ReadonlyArray<Provider>> extends ModelOptions {
  /** Your own providers. They win over the built-in ones. */
  readonly providers?: Own | undefined
  /** Parameters for a provider, or for one model of it. Parameters of a request win over them. */
  readonly profiles?: ReadonlyArray<Profile> | undefined
}

/** Merges the parameters of the profiles that fit a model: first its provider's, then its own. */
const mergeParameters = (profiles: ReadonlyArray<Profile>, provider: string, model: string): JsonObject => {
  const fitting = profiles.filter((profile) => normaliseName(profile.provider) === normaliseName(provider))
  const general = fitting.filter((profile) => profile.model === undefined)
  const exact = fitting.filter((profile) => profile.model === model)
  return Object.assign({}, ...[...general, ...exact].map((profile) => profile.parameters))
}

/** Adds default parameters to every request. */
const addParameters = (model: Service, parameters: JsonObject): Service =>
  Object.keys(parameters).length === 0
    ? model
    : {
        ...model,
        makeSession: Effect.map(model.makeSession, ({ nextTurn }) => ({
          nextTurn: (request) => nextTurn({ ...request, parameters: { ...parameters, ...request.parameters } })
        }))
      }

const refuseResolve = makeEffectCheck("ChatModels.resolve", shapes.chatModelsResolve)

/**
 * Makes the layer of the model that `spec` names as `provider:model`. The first colon separates them, so a model's name
 * may contain colons. The provider's case, `-` and `_` don't matter.
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
  const refused = refuseResolve(options)
  if (refused !== undefined) return Layer.effectContext(refused)
  // E and R are unions over all providers.
  const own = (options?.providers ?? []) as ReadonlyArray<Provider<E, R>>
  const all: ReadonlyArray<Provider<E, R>> = [...own, ...providers]
  if (typeof spec !== "string") {
    return Layer.unwrap(Effect.fail(new UnknownProvider({ spec: brief(spec), known: all.map(({ name }) => name) })))
  }
  const colon = spec.indexOf(":")
  const name = colon < 0 ? spec : spec.slice(0, colon)
  const model = colon < 0 ? "" : spec.slice(colon + 1)
  const namedProvider = all.find((provider) => normaliseName(provider.name) === normaliseName(name))
  if (namedProvider === undefined || model === "") {
    return Layer.unwrap(Effect.fail(new UnknownProvider({ spec, known: all.map((provider) => provider.name) })))
  }
  const { profiles = [], providers: _, ...modelOptions } = options ?? {}
  const isBuiltIn = providers.some((provider) => provider === namedProvider)
  const { thinking } = modelOptions
  // Your own provider gets the level as a parameter.
  const parameters = {
    ...(isBuiltIn || thinking === undefined ? {} : { thinking }),
    ...mergeParameters(profiles, namedProvider.name, model)
  }
  return Layer.effect(
    ChatModel,
    Effect.gen(function* () {
      const context = yield* Layer.build(namedProvider.layer(model, modelOptions))
      const catalogue = yield* ModelCatalogue
      const settled = applyFacts(
        isBuiltIn ? namedProvider.name : "",
        isBuiltIn
          ? nameVariables(Context.get(context, ChatModel), variablesOf(namedProvider, modelOptions))
          : Context.get(context, ChatModel),
        modelOptions,
        catalogue
      )
      return ChatModel.of(addParameters(settled, parameters))
    })
  )
}

type ErrorOf<P> = P extends Provider<infer E, infer _R> ? E : never
type ServicesOf<P> = P extends Provider<infer _E, infer R> ? R : never
