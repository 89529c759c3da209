import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { AgentError } from "../../core/AgentError.ts"
import type { SessionError } from "../../core/SessionError.ts"

/** Seven seconds in all: by then a runner that lost the thread knows it, and has stopped. */
const briefly = Schedule.exponential("1 second").pipe(Schedule.upTo({ times: 3 }))

/** For as long as it takes. */
const patiently = Schedule.min([Schedule.exponential("200 millis"), Schedule.spaced("1 minute")])

const problemOf = (error: unknown): SessionError["reason"]["_tag"] | undefined =>
  error instanceof AgentError && error.reason._tag === "Thread" ? error.reason.error.reason._tag : undefined

/** Goes on from what the thread has come to when somebody else wrote to it: a runner that lost it and did not know. */
const fenced = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.retry(effect, { schedule: briefly, while: (error) => problemOf(error) === "Conflict" })

/** Half a minute in all. */
const cutOffs = 120

/**
 * Tries again what was interrupted, and nobody interrupted this: a connection that is closed under it ends so, and so does
 * what was asked of a thread that moves to another runner. As the answer of an input it would stand for good. (A workflow
 * is suspended by an interruption: this is for entities and their clients.)
 */
export const uncut = <A, E, R>(effect: Effect.Effect<A, E, R>, left = cutOffs): Effect.Effect<A, E, R> =>
  Effect.catchCauseIf(
    effect,
    (cause) => left > 0 && Cause.hasInterruptsOnly(cause),
    () =>
      Effect.delay(
        Effect.suspend(() => uncut(effect, left - 1)),
        "250 millis"
      )
  )

/** Tries again while the storage is not there. */
export const untilThere = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  isAway: (error: E) => boolean
): Effect.Effect<A, E, R> => Effect.retry(effect, { schedule: patiently, while: isAway })

/**
 * For what is answered once and for all: that the storage is not there is no answer, and what another runner has now is
 * answered by that one. `mine` says whether this runner still has the thread.
 */
export const owned = <A, E, R>(effect: Effect.Effect<A, E, R>, mine: () => boolean): Effect.Effect<A, E, R> => {
  const isElsewhere = (error: E) => !mine() && (problemOf(error) === "Conflict" || problemOf(error) === "Unavailable")
  return Effect.catchIf(
    untilThere(
      fenced(Effect.catchIf(effect, isElsewhere, () => Effect.never)),
      (error) => problemOf(error) === "Unavailable"
    ),
    isElsewhere,
    () => Effect.never
  )
}
