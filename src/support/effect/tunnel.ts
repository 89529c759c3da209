/** Carries a middleware's own failure past those that are wrapped around it. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"

/**
 * A middleware's own failure on its way out. What is wrapped around it only knows `ModelError` or `ToolError`, so the
 * failure goes by as a defect of this shape and becomes a failure again at the edge of the run.
 */
const tunnelId = "~effect-deepagents/tunnel"

export const tunnel = (error: unknown): unknown => ({ [tunnelId]: error })

/** A defect may be anything, also what can't be looked at. */
const carried = (defect: unknown): { readonly error: unknown } | undefined =>
  Result.getOrElse(
    Result.try(() => (Predicate.hasProperty(defect, tunnelId) ? { error: defect[tunnelId] } : undefined)),
    () => undefined
  )

/** The failure that a cause carries by, if it carries one. */
export const tunnelled = (cause: Cause.Cause<unknown>): { readonly error: unknown } | undefined => {
  for (const reason of cause.reasons) {
    const error = Cause.isDieReason(reason) ? carried(reason.defect) : undefined
    if (error !== undefined) return error
  }
  return undefined
}

/** Makes tunnelled failures failures again. */
export const surface = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, unknown, R> =>
  Effect.catchCause(effect, (cause) => {
    const found = tunnelled(cause)
    return found === undefined ? Effect.failCause(cause) : Effect.fail(found.error)
  })
