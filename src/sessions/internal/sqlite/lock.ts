/** Waits for the lock of an SQLite file. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { SqlError } from "effect/sql/SqlError"
import { isLocked } from "./errors.ts"

const waiting = Schedule.spaced("2 millis").pipe(Schedule.jittered, Schedule.upTo({ duration: "10 seconds" }))

/**
 * Runs `attempt` again while another process or thread has the lock of the file, for up to ten seconds. The fiber sleeps
 * between attempts: SQLite's own wait would stop the whole process.
 *
 * The sleep uses the machine's clock also where the program has a test clock, because the owner of the lock does.
 */
export const retryWhileLocked = <A>(attempt: Effect.Effect<A, SqlError>): Effect.Effect<A, SqlError> =>
  Effect.retry(attempt, { schedule: waiting, while: isLocked }).pipe(
    Effect.provideService(Clock.Clock, Clock.Clock.defaultValue())
  )
