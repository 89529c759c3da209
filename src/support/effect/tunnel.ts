/** Carries a middleware's own failure past the outer middleware. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"

/**
 * The shape of a middleware's own failure in transit. Outer middleware only knows `ModelError` or `ToolError`, so the
 * failure passes as a defect of this shape and becomes a failure again at the edge of the run.
 */
const tunnelId = "~effect-deepagents/tunnel"

export const tunnel = (error: unknown): unknown => ({ [tunnelId]: error })

/** A defect may be anything, including an object that throws on access. */
const carried = (defect: unknown): { readonly error: unknown } | undefined =>
  Result.getOrElse(
    Result.try(() => (Predicate.hasProperty(defect, tunnelId) ? { error: defect[tunnelId] } : undefined)),
    () => undefined
  )

/** Returns the failure that a cause carries, if there is one. */
export const tunnelled = (cause: Cause.Cause<unknown>): { readonly error: unknown } | undefined => {
  for (const reason of cause.reasons) {
    const error = Cause.isDieReason(reason) ? carried(reason.defect) : undefined
    if (error !== undefined) return error
  }
  return undefined
}

/** Restores carried failures. */
export const surface = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, unknown, R> =>
  Effect.catchCause(effect, (cause) => {
    const failure = tunnelled(cause)
    return failure === undefined ? Effect.failCause(cause) : Effect.fail(failure.error)
  })
