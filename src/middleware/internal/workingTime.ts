/** Time that a run works: what passes while people are waited for does not count. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Run } from "../../core/Run.ts"

/** The time on the clock, in milliseconds, less what a call (or the run) spent waiting so far. */
export const now = (run: Run, callId?: string): Effect.Effect<number> =>
  Effect.zipWith(Clock.currentTimeMillis, run.waited(callId), (time, waited) => time - waited)

/** While somebody is waited for, no time passes: no more often is looked whether that is over, and no end is later by more. */
const often = 10

/** Ends when the time by {@link now} has come. */
export const until = Effect.fnUntraced(function* (run: Run, time: number, callId?: string) {
  let left = time - (yield* now(run, callId))
  while (left > 0) {
    yield* Effect.sleep(left)
    const then = time - (yield* now(run, callId))
    left = then === left ? Math.max(left, often) : then
  }
})
