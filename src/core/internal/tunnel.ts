import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"

/**
 * A middleware's own failure on its way out. What is wrapped around it only knows `ModelError` or `ToolError`, so the
 * failure goes by as a defect of this shape and becomes a failure again at the edge of the run.
 */
const tunnelId = "~effect-deepagents/tunnel"

export const tunnel = (error: unknown): unknown => ({ [tunnelId]: error })

export const isTunnel = (defect: unknown): defect is { readonly [tunnelId]: unknown } =>
  Predicate.hasProperty(defect, tunnelId)

const find = (cause: Cause.Cause<unknown>): { readonly [tunnelId]: unknown } | undefined => {
  for (const reason of cause.reasons) if (Cause.isDieReason(reason) && isTunnel(reason.defect)) return reason.defect
  return undefined
}

/** Whether a cause is a middleware's failure going by. */
export const isTunnelled = (cause: Cause.Cause<unknown>): boolean => find(cause) !== undefined

/** Makes tunnelled failures failures again. */
export const surface = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, unknown, R> =>
  Effect.catchCause(effect, (cause) => {
    const found = find(cause)
    return found === undefined ? Effect.failCause(cause) : Effect.fail(found[tunnelId])
  })
