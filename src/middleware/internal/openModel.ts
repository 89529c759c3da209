/** Opens another model than the run's own, for middleware. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as ChatModel from "../../core/ChatModel.ts"
import type { ModelError } from "../../core/ModelError.ts"
import type { Run } from "../../core/Run.ts"

/** A model beside the run's own. `window` is in tokens. */
export interface Opened {
  readonly name: string
  readonly window: number | undefined
  readonly session: ChatModel.ModelSession
}

/** Opens a model for as long as the run is under way; one that can't be opened is closed at once. */
export const openModel = <E, R>(
  layer: Layer.Layer<ChatModel.ChatModel, E, R>,
  run: Run
): Effect.Effect<Opened, E | ModelError, R> =>
  Effect.gen(function* () {
    const scope = yield* Scope.fork(run.scope)
    const opened = Effect.gen(function* () {
      const model = Context.get(yield* Layer.buildWithScope(layer, scope), ChatModel.ChatModel)
      const session = yield* Scope.provide(ChatModel.open(model), scope)
      return { name: `${model.provider}/${model.modelId}`, window: model.contextWindowTokens, session }
    })
    return yield* Effect.onError(opened, (cause) => Scope.close(scope, Exit.failCause(cause)))
  })
