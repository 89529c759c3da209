/** The layer of a model that answers in batches, for each provider with batches. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { KeyValueStore } from "effect/persistence/KeyValueStore"
import type * as Scope from "effect/Scope"
import { ChatModel, type Service } from "../../../core/ChatModel.ts"
import type { ModelError } from "../../../core/ModelError.ts"
import { makeEffectCheck } from "../refuse.ts"
import type { Batching } from "./batches.ts"

/** Makes the `layerBatch` of a provider. `make` makes its model. */
export const makeLayerBatch = <Options extends Batching>(
  provider: string,
  shape: string,
  make: (
    own: Omit<Options, keyof Batching>,
    batching: Batching
  ) => Effect.Effect<Service, ModelError, KeyValueStore | Scope.Scope>
) => {
  const refuse = makeEffectCheck(provider, shape)
  return (options: Options): Layer.Layer<ChatModel, ModelError, KeyValueStore> =>
    Layer.effect(
      ChatModel,
      Effect.gen(function* () {
        const refused = refuse(options)
        if (refused !== undefined) return yield* refused
        const { interval, limit, window, ...own } = options
        return yield* make(own, { interval, limit, window })
      })
    )
}
