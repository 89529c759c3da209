/** Ids and retries of writes to a thread. */
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

/** The number of ids of one millisecond. */
const room = 0x1000

/**
 * Gives entries ids that no other entry has: each is greater than all before it, and the first than the leaf that they
 * go behind, whatever the clock says. A store sees by that that they are new. They are random whatever `IdGenerator`
 * says, since they must differ from those of runs in other processes (UUID, version 7, with a counter).
 */
export const idsBehind = (
  leaf: string | null
): ((entries: ReadonlyArray<Entry>, at: number) => ReadonlyArray<NewEntry>) => {
  const [, high = "", low = "", count = ""] = beginning.exec(leaf ?? "") ?? []
  let time = high === "" ? -1 : Number.parseInt(high + low, 16)
  let place = high === "" ? 0 : Number.parseInt(count, 16)
  return (entries, at) => {
    const end = makeId().slice(18)
    return entries.map((entry) => {
      if (time < at) {
        time = at
        place = 0
      } else if (++place === room) {
        time++
        place = 0
      }
      const digits = time.toString(16).padStart(12, "0").slice(-12)
      const rest = place.toString(16).padStart(3, "0")
      return { id: `${digits.slice(0, 8)}-${digits.slice(8)}-7${rest}${end}`, entry }
    })
  }
}
