/** Retries after writes of another runner, while the storage is unavailable, and after a closed connection. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { AgentError } from "../../core/AgentError.ts"
import type { SessionError } from "../../core/SessionError.ts"

/** Seven seconds: by then a runner that lost the thread has stopped. */
const briefly = Schedule.exponential("1 second").pipe(Schedule.upTo({ times: 3 }))

/** Retries without an end. */
const patiently = Schedule.min([Schedule.exponential("200 millis"), Schedule.spaced("1 minute")])

const problemOf = (error: unknown): SessionError["reason"]["_tag"] | undefined =>
  error instanceof AgentError && error.reason._tag === "Thread" ? error.reason.error.reason._tag : undefined

/** Resumes after a write of a runner that had lost the thread, and did not know it. */
const retryConflicts = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.retry(effect, { schedule: briefly, while: (error) => problemOf(error) === "Conflict" })

/** Half a minute of retries. */
const cutOffs = 120

/**
 * Retries after an interruption from outside: a closed connection, or a thread that moved to another runner. A process that
 * shuts down (`isOver`) does not retry.
 */
export const retryCut = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  isOver: Effect.Effect<boolean>,
  left = cutOffs
): Effect.Effect<A, E, R> =>
  Effect.catchCauseIf(effect, Cause.hasInterruptsOnly, (cause) =>
    Effect.flatMap(isOver, (over) =>
      over || left === 0
        ? Effect.failCause(cause)
        : Effect.delay(
            Effect.suspend(() => retryCut(effect, isOver, left - 1)),
            "250 millis"
          )
    )
  )

const pauseOfStreams = "100 millis"

/** Continues the stream of a thread that moves to another runner, which ends its stream. */
export const uncutStream = <A, E, R>(
  stream: Stream.Stream<A, E, R>,
  isOver: Effect.Effect<boolean>
): Stream.Stream<A, E, R> =>
  Stream.catchCauseIf(stream, Cause.hasInterruptsOnly, (cause) =>
    Stream.unwrap(
      Effect.flatMap(isOver, (over) =>
        over
          ? Effect.succeed(Stream.failCause(cause))
          : Effect.as(Effect.sleep(pauseOfStreams), uncutStream(stream, isOver))
      )
    )
  )

/** Retries while the storage is unavailable. */
export const retryUnavailable = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  isAway: (error: E) => boolean
): Effect.Effect<A, E, R> => Effect.retry(effect, { schedule: patiently, while: isAway })

/** Retries an effect with a final answer, which neither an unavailable storage nor a conflict with another runner is. */
export const retryUntilFinal = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  retryUnavailable(retryConflicts(effect), (error) => problemOf(error) === "Unavailable")

/** Reports whether another runner or a lost connection ended a run. */
const isCut = (cause: Cause.Cause<unknown>): boolean => {
  const problem = problemOf(Cause.squash(cause))
  return Cause.hasInterruptsOnly(cause) || problem === "Conflict" || problem === "Unavailable"
}

/**
 * Like {@link retryUntilFinal}, for a thread that may move to another runner. Then this runner never answers, because an entity
 * would answer with the interruption. `isMine` reports whether this runner has the thread.
 */
export const whileOwned = <A, E, R>(effect: Effect.Effect<A, E, R>, isMine: () => boolean): Effect.Effect<A, E, R> => {
  const isElsewhere = Effect.sync(() => !isMine())
  return retryUntilFinal(
    Effect.catchCauseIf(
      retryCut(effect, isElsewhere),
      (cause) => !isMine() && isCut(cause),
      () => Effect.never
    )
  )
}
