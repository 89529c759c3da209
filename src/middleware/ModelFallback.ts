/**
 * Ask another model when the first one fails: another provider, another region, a larger context window.
 *
 * ```ts
 * import { Layer } from "effect"
 * import { Agent, type ChatModel } from "effect-deepagents"
 * import { ModelFallback, ModelRetry } from "effect-deepagents/middleware"
 *
 * declare const second: Layer.Layer<ChatModel.ChatModel>
 * declare const third: Layer.Layer<ChatModel.ChatModel>
 *
 * const agent = Agent.make({
 *   name: "reliable",
 *   prompt: "You answer questions.",
 *   middleware: [ModelRetry.make(), ModelFallback.make([second, third])]
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as ChatModel from "../core/ChatModel.ts"
import * as Middleware from "../core/Middleware.ts"
import { isModelError, ModelError } from "../core/ModelError.ts"
import { defined } from "../support/json/defined.ts"
import { makeOpenings } from "./internal/openModel.ts"
import { type Again, reissue } from "./internal/reissue.ts"

/** The name of this middleware. */
const name = "ModelFallback"

const describe = (failure: unknown): string =>
  isModelError(failure) ? failure.message : `a fallback model could not be opened: ${String(failure)}`

/** One failure that speaks for all: the last, but rather one that may pass, so that an outer retry sees that it may. */
const summarise = <E>(failures: ReadonlyArray<ModelError | E>, last: ModelError | E): ModelError | E => {
  if (failures.length === 1) return last
  const spokesman = failures.findLast((failure) => isModelError(failure) && failure.isRetryable) ?? last
  if (!isModelError(spokesman)) return spokesman
  const said = failures.map((failure, index) => `(${index + 1}) ${describe(failure)}`).join(" ")
  const { model, provider, reason, requestId, status } = spokesman
  const detail = `no model answered: ${said}`
  return new ModelError(defined({ provider, reason, detail, cause: spokesman, model, status, requestId }))
}

const fallBack = <E, R>(
  layers: ReadonlyArray<Layer.Layer<ChatModel.ChatModel, E, R>>,
  when: (error: ModelError) => boolean
): Middleware.Middleware<E, R> => {
  const openingsOf = makeOpenings(layers)
  return Middleware.make<E, R>({
    name,
    wrapModelCall: (request, next, run) =>
      reissue(
        Effect.sync(() => {
          const failures: Array<ModelError | E> = []
          const again = (failure: ModelError | E): Effect.Effect<Again, ModelError | E, R> =>
            Effect.suspend(() => {
              const opening = openingsOf(run)[failures.length]
              failures.push(failure)
              if (opening === undefined || (isModelError(failure) && !when(failure))) {
                return Effect.fail(summarise(failures, failure))
              }
              return Effect.matchEffect(opening, {
                onFailure: again,
                onSuccess: ({ name, session }) => {
                  const reason = `${describe(failure)}; now asking ${name}`
                  return Effect.as(run.warn("model-fallback", reason), { turn: next({ ...request, session }), reason })
                }
              })
            })
          return { turn: next(request), again }
        })
      )
  })
}

/**
 * Sends a request that failed on to the next model, as it is: first the run's own model (every call begins with it),
 * then those of `layers` in their order. A `Warning` event (`model-fallback`) says so, and `TurnRestarted` if parts of
 * the failed turn went out. A turn in which the provider itself ran a tool is not asked for again.
 *
 * By default every `ModelError` leads on, also those that a retry does not mend: a key that was not accepted, a quota
 * that is used up, a history that does not fit are good reasons to ask somebody else. The exception is
 * `ContentFiltered`: what one provider refuses is not carried to another unless `when` says so.
 *
 * A layer is built, and its session opened, when it is first needed in a run, and closed when the run ends. What the
 * layers fail with and need appears in the agent's type; a layer that can't be built is passed over for the next one.
 * When no model answers, the call fails with the last failure, or with the last one that is retryable, so that a
 * `ModelRetry` outside begins again; the `detail` of that `ModelError` says what each model said.
 *
 * Middleware inside of this one sees those calls like any other.
 */
export const make = <const Layers extends ReadonlyArray<Layer.Layer<ChatModel.ChatModel, unknown, unknown>>>(
  layers: Layers,
  options?: { readonly when?: ((error: ModelError) => boolean) | undefined }
): Middleware.Middleware<Layer.Error<Layers[number]>, Layer.Services<Layers[number]>> =>
  fallBack(
    // Each layer's own error and needs are among those of all of them.
    layers as ReadonlyArray<
      Layer.Layer<ChatModel.ChatModel, Layer.Error<Layers[number]>, Layer.Services<Layers[number]>>
    >,
    options?.when ?? ((error) => error.reason._tag !== "ContentFiltered")
  )
