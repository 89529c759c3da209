/** The time that a request may take, over all of its steps. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

/** Starts the clock of a request. Its result is the time left, at every moment that it is asked for. */
export const startDeadline = (millis: number): Effect.Effect<Effect.Effect<Duration.Duration>> =>
  Effect.map(Clock.currentTimeMillis, (begin) =>
    Effect.map(Clock.currentTimeMillis, (now) => Duration.millis(Math.max(0, millis - (now - begin))))
  )
