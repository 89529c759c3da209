/**
 * Any language model of the AI SDK as the model of an agent, so that each of its provider packages works.
 *
 * ```ts
 * import { mistral } from "@ai-sdk/mistral"
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import * as AiSdkChatModel from "effect-deepagents/models/bridges/AiSdkChatModel"
 *
 * const helper = Agent.make({ name: "helper", prompt: "You help." })
 *
 * const answer = Agent.run(helper, "What is Effect?").pipe(
 *   Effect.provide(AiSdkChatModel.layer(mistral("mistral-large-latest")))
 * )
 * ```
 */
import type { LanguageModelV3, LanguageModelV4 } from "@ai-sdk/provider"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import { ChatModel } from "../../core/ChatModel.ts"
import { ModelError } from "../../core/ModelError.ts"
import { revealed, secretsIn } from "../../support/store/redacted.ts"
import { baseModel, pricing, profileOf } from "../internal/anthropic/models.ts"
import type { Catalogue } from "../internal/facts/catalogue.ts"
import { ModelCatalogue } from "../internal/facts/reference.ts"
import { findModel } from "../internal/openai/models.ts"
import { makeEffectCheck } from "../internal/refuse.ts"
import { factsAt, serverOf } from "../internal/servers/servers.ts"
import * as shapes from "../internal/shapes.ts"
import { timeoutOf } from "../internal/wire/guardedFetch.ts"
import type { Overrides } from "../internal/wire/overrides.ts"
import { type ProviderTool, type Settings, settingsOf } from "./internal/aiSdk/call.ts"
import { vendorOf } from "./internal/aiSdk/media.ts"
import { makeSdkSessions } from "./internal/aiSdk/session.ts"

/**
 * Settings of a model. All are optional. A request's `parameters` are settings too, and win over those of the layer.
 *
 * Window and prices default to the catalogue of `ChatModels.resolve`. `supportsVision` is `true` by default: a model
 * without vision rejects a request with an image. `structuredOutput` is `"native"` by default for capable models of
 * OpenAI, Anthropic and Google, else `"tool"`.
 */
export interface Options extends Settings, Overrides {
  /** Tools of the provider, by the names under which the model calls them. Default: none. */
  readonly providerTools?: { readonly [name: string]: ProviderTool } | undefined
  /** Headers of each request, in packages that use HTTP. Default: none. */
  readonly headers?: { readonly [name: string]: string | Redacted.Redacted } | undefined
  /** The longest wait for the first and for each next part. Default: 10 minutes. */
  readonly timeout?: Duration.Input | undefined
}

interface Facts extends Overrides {
  readonly schemas: "openai" | "anthropic"
}

const factsOf = ({ modelId, provider }: Pick<LanguageModelV4, "modelId" | "provider">, catalogue: Catalogue): Facts => {
  const name = baseModel(modelId.slice(modelId.lastIndexOf("/") + 1))
  if (name.startsWith("claude-")) {
    const profile = profileOf(name, catalogue)
    return { ...profile, prices: pricing(profile, "5m")?.prices, schemas: "anthropic" }
  }
  const vendor = vendorOf(provider)
  const isOpenAi = vendor === "openai" || vendor === "azure"
  const server = serverOf(vendor === "google" ? "gemini" : vendor, undefined)
  const facts = isOpenAi
    ? findModel(modelId, catalogue)
    : server === undefined
      ? undefined
      : factsAt(server, modelId, catalogue)
  if (facts === undefined) return { schemas: "openai" }
  const isNative = isOpenAi || (vendor === "google" && server?.ways.native?.test(modelId) === true)
  return {
    contextWindowTokens: facts.contextWindowTokens,
    prices: facts.prices,
    supportsVision: facts.vision,
    structuredOutput: isNative ? "native" : "tool",
    schemas: "openai"
  }
}

const refuse = makeEffectCheck("AiSdkChatModel", shapes.aiSdkChatModelLayer)

/**
 * Makes a model from a language model of the AI SDK (specification V3 or V4). Only the package of that model is needed.
 * Building the layer fails with `Unsupported` for another specification.
 *
 * It carries text, reasoning, tool calls, images, files, sources, provider-run tools, usage, stop reasons, errors with
 * `retryAfter`, and warnings. A provider's own data goes back to it in the original order. Data of other providers does
 * not.
 */
export const layer = (
  model: LanguageModelV3 | LanguageModelV4,
  options: Options = {}
): Layer.Layer<ChatModel, ModelError> =>
  Layer.effect(
    ChatModel,
    Effect.gen(function* () {
      const refused = refuse(options)
      if (refused !== undefined) return yield* refused
      const { modelId, provider } = model
      const version: string = model.specificationVersion
      if (version !== "v3" && version !== "v4") {
        return yield* new ModelError({
          provider,
          model: modelId,
          reason: { _tag: "Unsupported" },
          detail: `a model of the AI SDK's specification v3 or v4 is needed, not ${version}: update the package that it is from`
        })
      }
      const { headers = {}, providerTools = {} } = options
      const facts = factsOf(model, yield* ModelCatalogue)
      return ChatModel.of({
        modelId,
        provider,
        supportsVision: options.supportsVision ?? facts.supportsVision ?? true,
        contextWindowTokens: options.contextWindowTokens ?? facts.contextWindowTokens,
        structuredOutput: options.structuredOutput ?? facts.structuredOutput ?? "tool",
        prices: options.prices ?? facts.prices,
        makeSession: makeSdkSessions(model, {
          settings: settingsOf(options),
          providerTools,
          headers: revealed(headers),
          secrets: secretsIn(Object.values(headers)),
          idle: timeoutOf(options.timeout),
          schemas: facts.schemas
        })
      })
    })
  )
