/** The attempts at a call: their work, and their wait for a decision. */
import * as Effect from "effect/Effect"
import type { Request } from "../../Approval.ts"
import type { ToolContext } from "../../ToolContext.ts"
import type { Attempt } from "../live.ts"
import { report } from "../report.ts"

/** The key of {@link BoundAttempt}. A WeakMap would cost more than all else of an attempt. */
export const attemptKey = Symbol("effect-deepagents/attempt")

/** The attempt of a `ToolContext`; `undefined` outside of an attempt. */
export interface BoundAttempt {
  readonly [attemptKey]?: Attempt | undefined
}

/** The attempt in which a tool runs. */
export const attemptOf = (context: ToolContext["Service"] & BoundAttempt): Attempt | undefined => context[attemptKey]

/** Runs work that belongs to one attempt. While it is active, siblings that wait for a decision keep waiting. */
export const countActive = <A, E, R>(attempt: Attempt, work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    if (attempt.isOver) return Effect.die(new Error("The call that this belongs to is over."))
    attempt.active++
    return Effect.onExitPrimitive(work, () => {
      attempt.active--
      if (attempt.wake !== undefined) for (const wake of attempt.wake) wake()
      return undefined
    })
  })

/** Checks whether nothing is at work, after the ended call had time to begin something else. */
const untilStill = (attempt: Attempt): Effect.Effect<never> =>
  Effect.gen(function* () {
    const woken = (attempt.wake ??= new Set<() => void>())
    while (true) {
      yield* Effect.yieldNow
      if (attempt.active === 0) {
        attempt.isOver = true
        attempt.onStill?.(attempt.waiting ?? [])
        return yield* Effect.never
      }
      yield* Effect.callback<void>((resume) => {
        const wake = (): void => {
          woken.delete(wake)
          resume(Effect.void)
        }
        woken.add(wake)
        return Effect.sync(() => {
          woken.delete(wake)
        })
      })
    }
  })

/** Takes requests back that nobody waits for any more, though the call goes on. */
const withdraw = (attempt: Attempt, requests: ReadonlyArray<Request>): undefined => {
  attempt.waiting = attempt.waiting?.filter((one) => !requests.includes(one))
  for (const { callId, id, toolName } of requests) {
    report(attempt.live, { _tag: "ApprovalResolved", id, callId, toolName, decision: "void" })
  }
}

/**
 * Waits for a decision that ends the run: other work in the call finishes first. It never returns; the call is run
 * again when the run is resumed.
 */
export const park = (attempt: Attempt, requests: ReadonlyArray<Request>): Effect.Effect<never> =>
  Effect.suspend(() => {
    attempt.waiting = [...(attempt.waiting ?? []), ...requests]
    // A waiting call counts as work, and does no more.
    attempt.active--
    return Effect.onExitPrimitive(Effect.interruptible(untilStill(attempt)), () => {
      attempt.active++
      return attempt.isOver ? undefined : withdraw(attempt, requests)
    })
  })
