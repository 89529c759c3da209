/** Measures a run's working time, without the time spent waiting for people. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Run } from "../../core/Run.ts"

/** The clock's time in milliseconds, minus the time that a call (or the run) spent waiting so far. */
export const workingNow = (run: Run, callId?: string): Effect.Effect<number> =>
  Effect.zipWith(Clock.currentTimeMillis, run.waited(callId), (time, waited) => time - waited)

/** The shortest sleep (milliseconds) while the run waits for somebody. */
const often = 10

/** Ends at the time by {@link workingNow}. */
export const until = Effect.fnUntraced(function* (run: Run, time: number, callId?: string) {
  let remaining = time - (yield* workingNow(run, callId))
  while (remaining > 0) {
    yield* Effect.sleep(remaining)
    const then = time - (yield* workingNow(run, callId))
    remaining = then === remaining ? Math.max(remaining, often) : then
  }
})
