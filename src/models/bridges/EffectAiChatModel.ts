/**
 * Any `effect/ai` `LanguageModel` as the model of an agent, so that every provider package of that ecosystem works.
 *
 * ```ts
 * import type { LanguageModel } from "effect/ai"
 * import { Effect, Layer } from "effect"
 * import { Agent } from "effect-deepagents"
 * import * as EffectAiChatModel from "effect-deepagents/models/bridges/EffectAiChatModel"
 *
 * declare const provider: Layer.Layer<LanguageModel.LanguageModel> // OpenAiLanguageModel.layer({ model: "…" }) …
 *
 * const agent = Agent.make({ name: "greeter", prompt: "Greet whoever writes." })
 * const answer = Agent.run(agent, "I am Ada").pipe(
 *   Effect.provide(EffectAiChatModel.layer().pipe(Layer.provide(provider)))
 * )
 * ```
 */
import * as LanguageModel from "effect/ai/LanguageModel"
import * as AiModel from "effect/ai/Model"
import * as AiTool from "effect/ai/Tool"
import * as AiToolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { ChatModel, type ModelRequest, type ModelSession, type ToolDefinition } from "../../core/ChatModel.ts"
import { IdGenerator } from "../../core/IdGenerator.ts"
import type { Prices } from "../../core/Usage.ts"
import { makeLayerCheck } from "../../support/options/check.ts"
import { toolSchema } from "../internal/schema/toolSchema.ts"
import * as shapes from "../internal/shapes.ts"
import { choiceOf } from "../internal/turn/choice.ts"
import { wellFormed } from "../internal/turn/wellFormed.ts"
import { makeWarner, warned } from "../internal/wire/warned.ts"
import { toAnnotations } from "./internal/effectAi/definitions.ts"
import { makeEncoder, wire } from "./internal/effectAi/encode.ts"
import type { Origin } from "./internal/effectAi/errors.ts"
import { toTurn } from "./internal/effectAi/reply.ts"

/**
 * Facts about the model: `effect/ai` tells neither window nor vision nor prices.
 *
 * `modelId` and `provider` default to those of the `effect/ai` `Model`, if the provider's layer has one.
 * `supportsVision` is `true` by default: a provider without vision fails with `InvalidRequest` for an image.
 * `hostedTools` are tools that the provider runs (its web search …), offered beside the agent's own.
 */
export interface Options {
  /** The name of the model. Default: the name of the `effect/ai` `Model`. */
  readonly modelId?: string | undefined
  /** The name of the provider. Default: that of the `effect/ai` `Model`, if the layer has one. */
  readonly provider?: string | undefined
  /**
   * Whether the model reads images. A provider without vision fails with `InvalidRequest` for an image. Default:
   * `true`.
   */
  readonly supportsVision?: boolean | undefined
  /** The model's window in tokens. Default: unknown. */
  readonly contextWindowTokens?: number | undefined
  /** US dollars for a million tokens. Default: unknown. */
  readonly prices?: Prices | undefined
  /** Tools that the provider runs (its web search …), besides the agent's own. Default: none. */
  readonly hostedTools?: ReadonlyArray<AiTool.AnyProviderDefined> | undefined
}

/** A tool that a model is told about and that nobody calls through `effect/ai`. */
type DeclaredTool = AiTool.Tool<
  string,
  {
    readonly parameters: typeof Schema.Unknown
    readonly success: typeof Schema.Unknown
    readonly failure: typeof Schema.Never
    readonly failureMode: "error"
  }
>

const toTold = (tool: ToolDefinition): DeclaredTool =>
  AiTool.dynamic(tool.name, {
    description: wellFormed(tool.description),
    parameters: toolSchema(tool.parameters, "openai")
  }).annotateMerge(toAnnotations(tool.annotations))

/** Made anew only when the tools are others. */
const makeToolkits = (hostedTools: Options["hostedTools"] = []) => {
  // Their schemas need services of their caller, and that is the provider.
  const hosted = hostedTools as unknown as ReadonlyArray<DeclaredTool>
  let tools: ModelRequest["tools"] = []
  let toolkit = AiToolkit.make(...hosted)
  return (request: ModelRequest) => {
    if (tools !== request.tools) {
      tools = request.tools
      toolkit = AiToolkit.make(...hosted, ...tools.map(toTold))
    }
    return toolkit
  }
}

/** There, a choice without a mode lets the model answer. */
const writeChoice = (request: ModelRequest) => {
  const choice = choiceOf(request)
  return typeof choice === "object" && "oneOf" in choice ? { mode: "required" as const, ...choice } : choice
}

const makeSession = (
  model: LanguageModel.LanguageModel,
  origin: Origin,
  hostedTools: Options["hostedTools"]
): Effect.Effect<ModelSession> =>
  Effect.map(model.supportsSystemMessagesInHistory ?? Effect.succeed(false), (systemInside) => {
    const encode = makeEncoder(wire(systemInside))
    const toolkitOf = makeToolkits(hostedTools)
    // Parameters of a request have no way through `effect/ai`; the caller must know about it.
    const warn = makeWarner(
      "parameters",
      (names) => `effect/ai takes no parameters with a request. Set them on the provider's layer; ignored: ${names}`
    )

    const begin = Effect.fnUntraced(function* (request: ModelRequest) {
      const parts = model.streamText({
        prompt: encode(request.systemPrompt, request.messages),
        toolkit: toolkitOf(request),
        toolChoice: writeChoice(request),
        disableToolCallResolution: true,
        toolCallValidation: "deferred"
      })
      const turn = toTurn(parts, origin, yield* IdGenerator)
      return warned(warn(Object.keys(request.parameters)), turn)
    })

    return { nextTurn: (request) => Stream.unwrap(begin(request)) }
  })

const refuseLayer = makeLayerCheck("EffectAiChatModel.layer", shapes.effectAiChatModelLayer)

/**
 * A model that asks the `LanguageModel` in context.
 *
 * It carries tools, signed reasoning, images, files, usage, stop reasons, metadata and errors. A wrong call becomes a
 * malformed call and does not end the stream. A tool gives structured answers, since `effect/ai` has no JSON mode for
 * streams. Set parameters (temperature …) and cache hints on the provider's layer.
 */
export const layer = (options?: Options): Layer.Layer<ChatModel, never, LanguageModel.LanguageModel> =>
  refuseLayer(options) ??
  Layer.effect(
    ChatModel,
    Effect.gen(function* () {
      const model = yield* LanguageModel.LanguageModel
      const name = yield* Effect.serviceOption(AiModel.ModelName)
      const provider = yield* Effect.serviceOption(AiModel.ProviderName)
      const origin = {
        provider: options?.provider ?? Option.getOrElse(provider, () => "effect-ai"),
        model: options?.modelId ?? Option.getOrElse(name, () => "unknown")
      }
      return ChatModel.of({
        modelId: origin.model,
        provider: origin.provider,
        supportsVision: options?.supportsVision ?? true,
        contextWindowTokens: options?.contextWindowTokens,
        structuredOutput: "tool",
        prices: options?.prices,
        makeSession: makeSession(model, origin, options?.hostedTools)
      })
    })
  )
