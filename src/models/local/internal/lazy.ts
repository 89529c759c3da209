/** A model that is loaded by the first turn that needs it, and given back when no turn did for a while. */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as RcRef from "effect/RcRef"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { ModelSession, Service } from "../../../core/ChatModel.ts"
import type { ModelError } from "../../../core/ModelError.ts"

/** Makes the service of a model from what is known of it before it is loaded. */
export const make = Effect.fnUntraced(function* (
  load: Effect.Effect<Service, ModelError, Scope.Scope>,
  idle: Duration.Input,
  facts: Omit<Service, "makeSession">
): Effect.fn.Return<Service, never, Scope.Scope> {
  const serviceRef = yield* RcRef.make({ acquire: load, idleTimeToLive: idle })
  return {
    ...facts,
    makeSession: Effect.gen(function* () {
      const scope = yield* Effect.scope
      let open: { readonly service: Service; readonly session: ModelSession } | undefined
      /** The session of the model as it is loaded now: it is kept for as long as that is. */
      const sessionOf = Effect.fnUntraced(function* (service: Service) {
        if (open?.service === service) return open.session
        const session = yield* Effect.provideService(service.makeSession, Scope.Scope, scope)
        open = { service, session }
        return session
      })
      return {
        nextTurn: (request) =>
          Stream.unwrap(
            Effect.map(Effect.flatMap(RcRef.get(serviceRef), sessionOf), (session) => session.nextTurn(request))
          )
      }
    })
  }
})
