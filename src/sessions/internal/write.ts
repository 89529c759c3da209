/**
 * Ids and retries of writes to a thread.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { makeId } from "../../core/Message.ts"
import type { SessionError } from "../../core/SessionError.ts"

/** About three seconds in all. */
const briefly = Schedule.exponential("50 millis").pipe(Schedule.upTo({ times: 6 }))

/** Tries an operation again while the store is `Unavailable`, for about three seconds. */
export const persistent = <A>(effect: Effect.Effect<A, SessionError>): Effect.Effect<A, SessionError> =>
  Effect.retry(effect, { schedule: briefly, while: (error) => error.reason._tag === "Unavailable" })

/**
 * An id that no other entry has, after those that were made before it: what comes last is kept together by stores. It
 * is random whatever `IdGenerator` says, since it must differ from those of runs in other processes (UUID, version 7).
 */
export const makeEntryId = (at: number): string => {
  const time = at.toString(16).padStart(12, "0").slice(-12)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${makeId().slice(15)}`
}
