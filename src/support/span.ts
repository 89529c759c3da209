/**
 * Spans of the operations of services.
 */
import * as Effect from "effect/Effect"

/** Puts an operation in a span. There is no stack trace in it: that would cost more than all the rest. */
export const span =
  (name: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withSpan(effect, name, { captureStackTrace: false })
