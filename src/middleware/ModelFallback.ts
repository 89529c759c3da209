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
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import { defined } from "../support/json/defined.ts"
import { makeOpenings } from "./internal/openModel.ts"
import { type Attempt, reissue } from "./internal/reissue.ts"
import * as shapes from "./internal/shapes.ts"

const name = "ModelFallback"

const describe = (failure: unknown): string =>
  isModelError(failure) ? failure.message : `a fallback model could not be opened: ${String(failure)}`

/** Summarises failures in one: the last, but preferably a retryable one, so that an outer retry applies. */
const summarise = <E>(failures: ReadonlyArray<ModelError | E>, last: ModelError | E): ModelError | E => {
  if (failures.length === 1) return last
  const spokesman = failures.findLast((failure) => isModelError(failure) && failure.isRetryable) ?? last
  if (!isModelError(spokesman)) return spokesman
  const summary = failures.map((failure, index) => `(${index + 1}) ${describe(failure)}`).join(" ")
  const { model, provider, reason, requestId, status } = spokesman
  const detail = `no model answered: ${summary}`
  return new ModelError(defined({ provider, reason, detail, cause: spokesman, model, status, requestId }))
}

const refuseMake = makeMiddlewareCheck(name, shapes.modelFallbackMake)

/**
 * Sends a failed request to the next model unchanged: first the run's own model, with which every call starts, then the
 * models of `layers` in order. A `Warning` event (`model-fallback`) reports it, and `TurnRestarted` if parts of the
 * failed turn were emitted. A turn in which the provider ran a tool is not repeated.
 *
 * By default every `ModelError` moves on, also errors that a retry can't fix: a rejected key, a used-up quota, a
 * history that does not fit. The exception is `ContentFiltered`: a refused request goes to another provider only if
 * `when` allows it.
 *
 * A layer is built, and its session opened, at its first use in a run, and closed at the end of the run. The layers'
 * failures and requirements appear in the agent's type. A layer that can't be built is skipped. When no model answers,
 * the call fails with the last failure, or the last retryable one, so that an outer `ModelRetry` starts over. Its
 * `detail` lists the failure of each model.
 *
 * Middleware inside of this one sees those calls like any other.
 */
export const make = <const Layers extends ReadonlyArray<Layer.Layer<ChatModel.ChatModel, unknown, unknown>>>(
  layers: Layers,
  options?: {
    /** Tells whether a failure moves on to the next model. Default: every failure but `ContentFiltered`. */
    readonly when?: ((error: ModelError) => boolean) | undefined
  }
): Middleware.Middleware<Layer.Error<Layers[number]>, Layer.Services<Layers[number]>> => {
  const refused = refuseMake(options)
  if (refused !== undefined) return refused
  type E = Layer.Error<Layers[number]>
  type R = Layer.Services<Layers[number]>
  const when = options?.when ?? ((error) => error.reason._tag !== "ContentFiltered")
  const openingsOf = makeOpenings(layers)
  return Middleware.make<E, R>({
    name,
    wrapModelCall: (request, next, run) =>
      reissue(
        Effect.sync(() => {
          const failures: Array<ModelError | E> = []
          const nextAttempt = (failure: ModelError | E): Effect.Effect<Attempt, ModelError | E, R> =>
            Effect.suspend(() => {
              const opening = openingsOf(run)[failures.length]
              failures.push(failure)
              if (opening === undefined || (isModelError(failure) && !when(failure))) {
                return Effect.fail(summarise(failures, failure))
              }
              return Effect.matchEffect(opening, {
                onFailure: nextAttempt,
                onSuccess: ({ name, session }) => {
                  const reason = `${describe(failure)}; now asking ${name}`
                  return Effect.as(run.warn("model-fallback", reason), { turn: next({ ...request, session }), reason })
                }
              })
            })
          return { turn: next(request), nextAttempt }
        })
      )
  })
}
