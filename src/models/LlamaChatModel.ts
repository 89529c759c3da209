/**
 * A model on this machine, from a GGUF file, run by llama.cpp in this process. Needs the package `node-llama-cpp`.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import * as LlamaChatModel from "effect-deepagents/models/LlamaChatModel"
 *
 * const helper = Agent.make({ name: "helper", prompt: "You help." })
 *
 * const answer = Agent.run(helper, "What is Effect?").pipe(
 *   Effect.provide(LlamaChatModel.layer({ model: "models/qwen3-4b.gguf", contextSize: 8192 }))
 * )
 * ```
 */
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { ChatModel, type Service } from "../core/ChatModel.ts"
import { type Configured, fromConfigured } from "../core/Configured.ts"
import type { ModelError } from "../core/ModelError.ts"
import { choose, type CodecChoice } from "./internal/llama/codecs/detect.ts"
import { makeCodecTurns } from "./internal/llama/codecTurn.ts"
import { load, nameOf, type Source } from "./internal/llama/engine.ts"
import { loadError } from "./internal/llama/errors.ts"
import * as Pool from "./internal/llama/pool.ts"
import { open } from "./internal/llama/session.ts"
import type { Settings } from "./internal/llama/settings.ts"
import { makeWrapperTurns } from "./internal/llama/wrapperTurn.ts"

/**
 * Options of a layer. Only `model` is needed.
 *
 * - `contextSize`: how many tokens the model sees at once; by default as many as it was made for and memory allows, at
 *   most 32,768
 * - `sequences`: how many turns are generated at the same time, each with memory for a whole context; 1 by default.
 *   Others wait. With as many as agents that take turns, none has to read its conversation again
 * - `structuredOutput`: an answer in a schema is held to it by a grammar (`native`, the default: an agent with tools is
 *   asked for it once more, without them), or comes by a call of a tool
 * - `codec`: how the model is spoken to. By default the chat template in its file decides
 *
 * A request's `parameters` may hold `temperature`, `topK`, `topP`, `minP`, `seed`, `repeatPenalty`, `maxTokens` and
 * `thinking`, over those of the layer.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends Source, Settings {
  readonly contextSize?: number | undefined
  readonly sequences?: number | undefined
  readonly codec?: CodecChoice | undefined
  readonly structuredOutput?: "native" | "tool" | undefined
}

const provider = "llama"

const contextLimit = 32_768

/**
 * Loads the model and makes the service. Fails with `Unsupported` when the package or a binary for this machine is not
 * there, with `InvalidRequest` when the file is not one, with `Transport` when a download fails.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fn("LlamaChatModel.make")(function* (
  options: Options
): Effect.fn.Return<Service, ModelError, Scope.Scope> {
  const origin = { provider, model: nameOf(options.model) }
  const engine = yield* load(origin, options)
  const { library, model, threads } = engine
  const template = model.fileInfo.metadata.tokenizer?.chat_template ?? ""
  const codec = choose(options.codec ?? "auto", template)
  const context = yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: (createSignal) =>
        model.createContext({
          contextSize: options.contextSize ?? { max: Math.min(contextLimit, model.trainContextSize) },
          sequences: options.sequences ?? 1,
          threads,
          createSignal
        }),
      catch: loadError(origin, "model")
    }),
    (held) => Effect.promise(() => held.dispose()),
    { interruptible: true }
  )
  const pool = Pool.make(context)
  yield* Effect.addFinalizer(() => Effect.promise(() => pool.close()))
  // Trying templates takes a second of computing: once a model, and only if it is needed.
  const wrapper = codec === undefined ? library.resolveChatWrapper(model, { warningLogs: false }) : undefined
  const makePrepare = () =>
    codec !== undefined
      ? makeCodecTurns(engine, codec, template)
      : makeWrapperTurns(engine, wrapper ?? new library.GeneralChatWrapper())
  return {
    modelId: origin.model,
    provider,
    supportsVision: false,
    contextWindowTokens: context.contextSize,
    structuredOutput: options.structuredOutput ?? "native",
    makeSession: open({ origin, engine, context, pool, settings: options, makePrepare })
  }
})

/**
 * A layer of the model: loaded when the layer is built, released when its scope closes.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<ChatModel, ModelError> => Layer.effect(ChatModel, make(options))

/**
 * The same, with any option read from `Config`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (options: Configured<Options>): Layer.Layer<ChatModel, ModelError | Config.ConfigError> =>
  Layer.effect(ChatModel, Effect.flatMap(fromConfigured<Options>(options), make))
