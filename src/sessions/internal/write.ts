/**
 * Ids and retries of writes to a thread.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { makeId } from "../../core/Message.ts"
import type { SessionError } from "../../core/SessionError.ts"

/** About three seconds in all. */
const briefly = Schedule.exponential("50 millis").pipe(Schedule.upTo({ times: 6 }))

const isUnavailable = ({ reason }: SessionError): boolean => reason._tag === "Unavailable"

/** Tries an operation again while the store is `Unavailable`, for about three seconds. */
export const persistent = <A>(effect: Effect.Effect<A, SessionError>): Effect.Effect<A, SessionError> =>
  // Mostly there is nothing to try again, and so no schedule.
  Effect.catchIf(effect, isUnavailable, (met) => {
    let failed: SessionError | undefined = met
    const again = Effect.suspend(() => {
      if (failed === undefined) return effect
      const first = failed
      failed = undefined
      return Effect.fail(first)
    })
    return Effect.retry(again, { schedule: briefly, while: isUnavailable })
  })

/** The millisecond of the last id, as its beginning, and the ids that were made in it. */
const latest = { at: Number.NaN, time: "", count: 0 }

/**
 * An id that no other entry has, after those that were made before it: a store sees that it is new. It is random
 * whatever `IdGenerator` says, since it must differ from those of runs in other processes (UUID, version 7, with a
 * counter).
 */
export const makeEntryId = (at: number): string => {
  if (at !== latest.at) {
    const time = at.toString(16).padStart(12, "0").slice(-12)
    Object.assign(latest, { at, time: `${time.slice(0, 8)}-${time.slice(8)}`, count: 0 })
  }
  const count = (0x7_000 + (latest.count++ & 0xfff)).toString(16)
  return `${latest.time}-${count}${makeId().slice(18)}`
}
