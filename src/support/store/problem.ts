/** Failures of the servers that stores stand on. */
import * as Effect from "effect/Effect"

/** A failure in words for a person. */
export interface Problem {
  readonly problem: string
  readonly cause?: unknown
}

const patience = "20 seconds"

/**
 * Fails an operation that takes longer than 20 seconds, also in a finalizer. Clients keep commands while they have no
 * connection: a run would wait until the server is back.
 */
export const failLate = <A, E>(operation: Effect.Effect<A, E>): Effect.Effect<A, E | Problem> =>
  Effect.timeoutOrElse(Effect.interruptible(operation), {
    duration: patience,
    orElse: () => Effect.fail<Problem>({ problem: `it did not answer within ${patience}` })
  })
