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
  // A schedule is made after a first failure only.
  Effect.catchIf(effect, isUnavailable, () =>
    Effect.retry(Effect.delay(effect, "50 millis"), { schedule: briefly, while: isUnavailable })
  )

/** The time and the counter of an id. */
const beginning = /^([\da-f]{8})-([\da-f]{4})-7([\da-f]{3})-/u

/** The number of ids of one millisecond. */
const room = 0x1000

/**
 * Gives entries unique ids (UUID version 7 with a counter). Each is greater than earlier ids and than the leaf,
 * whatever the clock says, so that a store recognises new ids. They are random also with another `IdGenerator`.
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
