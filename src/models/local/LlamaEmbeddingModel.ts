/**
 * Texts as vectors, by a model on this machine: the `EmbeddingModel` of `effect/ai`. Needs the package
 * `node-llama-cpp`.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { EmbeddingModel } from "effect/ai"
 * import * as LlamaEmbeddingModel from "effect-deepagents/models/local/LlamaEmbeddingModel"
 *
 * const vector = Effect.gen(function* () {
 *   const model = yield* EmbeddingModel.EmbeddingModel
 *   return (yield* model.embed("What is Effect?")).vector
 * }).pipe(Effect.provide(LlamaEmbeddingModel.layer({ model: "models/bge-small-en.gguf" })))
 * ```
 */
import * as AiError from "effect/ai/AiError"
import * as EmbeddingModel from "effect/ai/EmbeddingModel"
import type * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type ConfigOptions, fromConfigured } from "../../core/configured.ts"
import type { ModelError } from "../../core/ModelError.ts"
import { makeEffectCheck } from "../internal/refuse.ts"
import * as shapes from "../internal/shapes.ts"
import { load, nameOf, type Source } from "./internal/engine.ts"
import { loadError } from "./internal/errors.ts"

/**
 * Options of a layer. Only `model` is needed. `contextSize` is the longest text in tokens: what the model was made
 * for, but at most 8,192, by default. A longer text fails with `InvalidRequestError`.
 */
export interface Options extends Source {
  /** The longest text, in tokens. Default: the context of the model, up to a limit. */
  readonly contextSize?: number | undefined
}

const contextLimit = 8192

/** A vector of length 1: then a product is a cosine. */
const normalized = (vector: ReadonlyArray<number>): Array<number> => {
  const length = Math.hypot(...vector)
  return length === 0 ? vector.slice() : vector.map((value) => value / length)
}

const failure = (reason: AiError.AiErrorReason): AiError.AiError =>
  AiError.make({ module: "LlamaEmbeddingModel", method: "embedMany", reason })
const refuse = makeEffectCheck("llama", shapes.llamaEmbeddingModelLayer)

const make = Effect.fn("LlamaEmbeddingModel.make")(function* (options: Options) {
  const refused = refuse(options)
  if (refused !== undefined) return yield* refused
  const origin = { provider: "llama", model: nameOf(options.model) }
  const { model, threads } = yield* load(origin, options)
  const contextSize = options.contextSize ?? Math.min(contextLimit, model.trainContextSize)
  const context = yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: (createSignal) => model.createEmbeddingContext({ contextSize, threads, createSignal }),
      catch: loadError(origin, "model")
    }),
    (resource) => Effect.promise(() => resource.dispose()),
    { interruptible: true }
  )

  const embed = (
    input: string
  ): Effect.Effect<{ readonly vector: Array<number>; readonly tokens: number }, AiError.AiError> =>
    Effect.suspend(() => {
      const tokens = context.calculateInputLength(input)
      if (tokens > contextSize) {
        const description = `a text has ${tokens} tokens, the context ${contextSize}: cut it, or raise contextSize`
        return Effect.fail(failure(new AiError.InvalidRequestError({ description })))
      }
      return Effect.tryPromise({
        try: () => context.getEmbeddingFor(input),
        catch: (cause) => failure(new AiError.UnknownError({ description: String(cause) }))
      }).pipe(Effect.map(({ vector }) => ({ vector: normalized(vector), tokens })))
    })

  const service = yield* EmbeddingModel.make({
    embedMany: ({ inputs }) =>
      Effect.map(Effect.forEach(inputs, embed), (results) => ({
        results: results.map((result) => result.vector),
        usage: { inputTokens: results.reduce((sum, result) => sum + result.tokens, 0) }
      }))
  })
  return Context.make(EmbeddingModel.EmbeddingModel, service).pipe(
    Context.add(EmbeddingModel.Dimensions, model.embeddingVectorSize)
  )
})

/** A layer of the model, with the dimensions of its vectors, which are of length 1. Released with its scope. */
export const layer = (
  options: Options
): Layer.Layer<EmbeddingModel.EmbeddingModel | EmbeddingModel.Dimensions, ModelError> =>
  Layer.effectContext(make(options))

/** The same, with any option read from `Config`. */
export const layerConfig = (
  options: ConfigOptions<Options>
): Layer.Layer<EmbeddingModel.EmbeddingModel | EmbeddingModel.Dimensions, ModelError | Config.ConfigError> =>
  Layer.effectContext(Effect.flatMap(fromConfigured<Options>(options), make))
