/**
 * Retries of a runner and a client: after another writer's entries, while the storage is away, when a connection was
 * closed.
 */
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

/** Resumes what the thread has come to when somebody else wrote to it: a runner that lost it and did not know. */
const fenced = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.retry(effect, { schedule: briefly, while: (error) => problemOf(error) === "Conflict" })

/** Half a minute in all. */
const cutOffs = 120

/**
 * Tries again what was interrupted, and nobody interrupted this: a connection that is closed under it ends so, and so
 * does what was asked of a thread that moves to another runner. As the answer of an input it would be final. Whoever is
 * interrupted or shuts down (`isOver`) tries nothing again.
 */
export const uncut = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  isOver: Effect.Effect<boolean>,
  left = cutOffs
): Effect.Effect<A, E, R> =>
  Effect.catchCauseIf(effect, Cause.hasInterruptsOnly, (cause) =>
    Effect.flatMap(isOver, (over) =>
      over || left === 0
        ? Effect.failCause(cause)
        : Effect.delay(
            Effect.suspend(() => uncut(effect, isOver, left - 1)),
            "250 millis"
          )
    )
  )

/** Tries again while the storage is not there. */
export const untilThere = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  isAway: (error: E) => boolean
): Effect.Effect<A, E, R> => Effect.retry(effect, { schedule: patiently, while: isAway })

/**
 * For what is answered once and for all: that the storage is not there is no answer, and neither is a conflict with
 * whoever had the thread meanwhile.
 */
export const lasting = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  untilThere(fenced(effect), (error) => problemOf(error) === "Unavailable")

/** True if a run was ended by another runner's writes, or by a connection. */
const isCut = (cause: Cause.Cause<unknown>): boolean => {
  const problem = problemOf(Cause.squash(cause))
  return Cause.hasInterruptsOnly(cause) || problem === "Conflict" || problem === "Unavailable"
}

/**
 * Like {@link lasting}, for a thread that can move to another runner: that one answers then, and this one never does.
 * `isMine` says whether this runner still has the thread. (A workflow is suspended by an interruption; an entity would
 * answer with it.)
 */
export const owned = <A, E, R>(effect: Effect.Effect<A, E, R>, isMine: () => boolean): Effect.Effect<A, E, R> => {
  const isElsewhere = Effect.sync(() => !isMine())
  return lasting(
    Effect.catchCauseIf(
      uncut(effect, isElsewhere),
      (cause) => !isMine() && isCut(cause),
      () => Effect.never
    )
  )
}
