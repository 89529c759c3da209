/** Opens another model than the run's own, for middleware. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as ChatModel from "../../core/ChatModel.ts"
import type { ModelError } from "../../core/ModelError.ts"
import type { Run } from "../../core/Run.ts"
import * as Attached from "../../support/effect/attached.ts"

/** Formats a model's name for people. */
export const nameOf = ({ modelId, provider }: Pick<ChatModel.Service, "modelId" | "provider">): string =>
  `${provider}/${modelId}`

/** The model of a run, for messages about it. */
export const modelOf = ({ model }: Run): ChatModel.Service => model ?? ChatModel.absent

/** The model of a request. */
export const askedOf = (request: ChatModel.ModelRequest, run: Run): ChatModel.Service =>
  request.session?.model ?? modelOf(run)

/** A model beside the run's own. `window` is in tokens. */
export interface OpenModel {
  readonly name: string
  readonly window: number | undefined
  readonly model: ChatModel.Service
  readonly session: ChatModel.ModelSession
}

/** Opens a model for the rest of the run. A model that fails to open is closed at once. */
export const openModel = <E, R>(
  layer: Layer.Layer<ChatModel.ChatModel, E, R>,
  run: Run
): Effect.Effect<OpenModel, E | ModelError, R> =>
  Effect.gen(function* () {
    const scope = yield* Scope.fork(run.scope)
    const opened = Effect.gen(function* () {
      const model = Context.get(yield* Layer.buildWithScope(layer, scope), ChatModel.ChatModel)
      const session = yield* Scope.provide(ChatModel.open(model), scope)
      return { name: nameOf(model), window: model.contextWindowTokens, model, session }
    })
    return yield* Effect.onError(opened, (cause) => Scope.close(scope, Exit.failCause(cause)))
  })

/** Opens a model at its first use, and keeps it open until the run ends. A failed model is closed. */
export type ModelOpening<E, R> = Effect.Effect<OpenModel, E | ModelError, R>

const openOnce = <E, R>(layer: Layer.Layer<ChatModel.ChatModel, E, R>, run: Run): ModelOpening<E, R> => {
  const turns = Semaphore.makeUnsafe(1)
  let opened: OpenModel | undefined
  const open = Effect.gen(function* () {
    opened ??= yield* openModel(layer, run)
    return opened
  })
  return turns.withPermit(open)
}

/** Makes the openings of each run, in the order of the layers. */
export const makeOpenings = <L extends ReadonlyArray<Layer.Layer<ChatModel.ChatModel, unknown, unknown>>>(
  modelLayers: L
) => {
  type E = Layer.Error<L[number]>
  type R = Layer.Services<L[number]>
  // Each layer's failures and requirements are in the union of all.
  const layers = modelLayers as ReadonlyArray<Layer.Layer<ChatModel.ChatModel, E, R>>
  const openings = Attached.make<Run, ReadonlyArray<ModelOpening<E, R>>>()
  return (run: Run): ReadonlyArray<ModelOpening<E, R>> => {
    const runOpenings = openings.get(run) ?? layers.map((layer) => openOnce(layer, run))
    openings.set(run, runOpenings)
    return runOpenings
  }
}
