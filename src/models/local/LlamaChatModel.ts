/**
 * A model on this machine, from a GGUF file, run by llama.cpp in this process. Needs the package `node-llama-cpp`.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import * as LlamaChatModel from "effect-deepagents/models/local/LlamaChatModel"
 *
 * const helper = Agent.make({ name: "helper", prompt: "You help." })
 *
 * const answer = Agent.run(helper, "What is Effect?").pipe(
 *   Effect.provide(LlamaChatModel.layer({ model: "models/qwen3-4b.gguf", contextSize: 8192 }))
 * )
 * ```
 */
import type * as Config from "effect/Config"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { LlamaContext } from "node-llama-cpp"
import { ChatModel, type Service } from "../../core/ChatModel.ts"
import { type ConfigOptions, fromConfigured } from "../../core/configured.ts"
import type { ModelError } from "../../core/ModelError.ts"
import { makeEffectCheck } from "../internal/refuse.ts"
import * as shapes from "../internal/shapes.ts"
import { makeCallWatch } from "./internal/callWatch.ts"
import { choose, type CodecChoice } from "./internal/codecs/detect.ts"
import { makeCodecTurns } from "./internal/codecTurn.ts"
import { type Engine, load, nameOf, type Source, trainedFor } from "./internal/engine.ts"
import { loadError } from "./internal/errors.ts"
import * as Lazy from "./internal/lazy.ts"
import * as Pool from "./internal/pool.ts"
import * as Prefixes from "./internal/prefixes.ts"
import { open } from "./internal/session.ts"
import type { Settings } from "./internal/settings.ts"
import { makeWrapperTurns } from "./internal/wrapperTurn.ts"

/**
 * Options of a layer. Only `model` is required.
 *
 * A request's `parameters` may contain `temperature`, `topK`, `topP`, `minP`, `seed`, `repeatPenalty`, `maxTokens` and
 * `thinking`. They win over those of the layer.
 */
export interface Options extends Source, Settings {
  /** The context, in tokens. Default: the context of the model, up to 32,768. */
  readonly contextSize?: number | undefined
  /**
   * The number of parallel turns; each needs memory for a whole context. One per agent avoids reading conversations
   * again. Default: 1.
   */
  readonly sequences?: number | undefined
  /**
   * Loads the model in the first turn, and frees it after this time without a turn. A missing file still fails the
   * layer; other problems fail the turn. Default: the model is loaded with the layer.
   */
  readonly idle?: Duration.Input | undefined
  /**
   * A folder for evaluated prompt prefixes (some kB a token), which a new process reuses. It keeps 6 prefixes a model
   * and 4 GiB. Only trusted users may write there. Default: none.
   */
  readonly cacheDirectory?: string | undefined
  /** The prompt format. Default: the chat template in the file decides. */
  readonly codec?: CodecChoice | undefined
  /**
   * `native` constrains an answer in a schema by a grammar, in an extra request without tools if the agent has tools;
   * `tool` answers by a tool call. Default: `native`.
   */
  readonly structuredOutput?: "native" | "tool" | undefined
}

const provider = "llama"

const contextLimit = 32_768

const factsOf = (options: Options, contextWindowTokens: number) => ({
  modelId: nameOf(options.model),
  provider,
  supportsVision: false,
  contextWindowTokens,
  structuredOutput: options.structuredOutput ?? "native"
})

/** The folder of beginnings, for a model as it is loaded. Without it everything works, and is read anew. */
const prefixesIn = (directory: string, { library, llama, path }: Engine, context: LlamaContext) =>
  Effect.tryPromise(async () => {
    const { contextSize, flashAttention } = context
    const terms = [await library.getModuleVersion(), llama.llamaCppRelease.release, String(llama.gpu)]
    return Prefixes.make(directory, path, [...terms, contextSize, String(flashAttention)])
  }).pipe(
    Effect.catch(({ cause }) =>
      Effect.as(Effect.logWarning(`"${directory}" can't keep the beginnings of prompts`, cause), undefined)
    )
  )

const refuse = makeEffectCheck("llama", shapes.llamaChatModelLayer)

/**
 * Loads the model and makes the service. It fails with `Unsupported` without the package or a binary for this machine,
 * with `InvalidRequest` for an invalid file, with `Transport` if a download fails.
 */
const make = Effect.fn("LlamaChatModel.make")(function* (
  options: Options
): Effect.fn.Return<Service, ModelError, Scope.Scope> {
  const refused = refuse(options)
  if (refused !== undefined) return yield* refused
  const { contextSize, idle } = options
  if (idle === undefined) return yield* loaded(options)
  const trained = yield* trainedFor({ provider, model: nameOf(options.model) }, options)
  return yield* Lazy.make(
    loaded(options),
    idle,
    factsOf(options, contextSize ?? Math.min(contextLimit, trained ?? contextLimit))
  )
})

const loaded = Effect.fnUntraced(function* (options: Options): Effect.fn.Return<Service, ModelError, Scope.Scope> {
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
    (resource) => Effect.promise(() => resource.dispose()),
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
  const restore =
    options.cacheDirectory === undefined ? undefined : yield* prefixesIn(options.cacheDirectory, engine, context)
  return {
    ...factsOf(options, context.contextSize),
    makeSession: open({
      origin,
      engine,
      context,
      pool,
      settings: options,
      callWatch: makeCallWatch(origin, template),
      restore,
      makePrepare
    })
  }
})

/** A layer of the model: loaded when the layer is built, released when its scope closes. */
export const layer = (options: Options): Layer.Layer<ChatModel, ModelError> => Layer.effect(ChatModel, make(options))

/** The same, with any option read from `Config`. */
export const layerConfig = (options: ConfigOptions<Options>): Layer.Layer<ChatModel, ModelError | Config.ConfigError> =>
  Layer.effect(ChatModel, Effect.flatMap(fromConfigured<Options>(options), make))
