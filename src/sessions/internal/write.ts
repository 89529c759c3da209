/**
 * Ids and retries of writes to a thread.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { Entry } from "../../core/Journal.ts"
import { makeId } from "../../core/Message.ts"
import type { SessionError } from "../../core/SessionError.ts"
import type { NewEntry } from "../../core/SessionStore.ts"

const isUnavailable = ({ reason }: SessionError): boolean => reason._tag === "Unavailable"

/** About three seconds in all, with the first wait. */
const briefly = Schedule.exponential("100 millis").pipe(Schedule.upTo({ times: 5 }))

/** Tries an operation again while the store is `Unavailable`, for about three seconds. */
export const persistent = <A>(effect: Effect.Effect<A, SessionError>): Effect.Effect<A, SessionError> =>
  // Mostly there is nothing to try again, and so no schedule.
  Effect.catchIf(effect, isUnavailable, () =>
    Effect.retry(Effect.delay(effect, "50 millis"), { schedule: briefly, while: isUnavailable })
  )

/** The time of an id that was made here, and its place among those of the same millisecond. */
const beginning = /^([\da-f]{8})-([\da-f]{4})-7([\da-f]{3})-/u

/** An id that is greater than the last one, whatever the clock says. */
const idBehind = (last: string, at: number): string => {
  const [, high = "", low = "", count = ""] = beginning.exec(last) ?? []
  const before = high === "" ? -1 : Number.parseInt(high + low, 16)
  const place = before < at ? 0 : Number.parseInt(count, 16) + 1
  const time = Math.max(before, at) + (place >> 12)
  const digits = time.toString(16).padStart(12, "0").slice(-12)
  const rest = (place & 0xfff).toString(16).padStart(3, "0")
  return `${digits.slice(0, 8)}-${digits.slice(8)}-7${rest}${makeId().slice(18)}`
}

/**
 * Gives entries ids that no other entry has: each is greater than the one before it, and the first than the leaf that
 * they go behind. A store sees by that that they are new. They are random whatever `IdGenerator` says, since they must
 * differ from those of runs in other processes (UUID, version 7, with a counter).
 */
export const withIds = (entries: ReadonlyArray<Entry>, at: number, leaf: string | null): ReadonlyArray<NewEntry> => {
  let last = leaf ?? ""
  return entries.map((entry) => {
    last = idBehind(last, at)
    return { id: last, entry }
  })
}
