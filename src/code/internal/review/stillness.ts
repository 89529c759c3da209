/** Tells when a script has come to rest: calls of it are held back, nothing computes, and no other call is at work. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { Door } from "../host.ts"

/** How often a script at which nothing is at work is looked at before it counts as still. */
const patience = 50

export interface Stillness extends Pick<Door<never>, "onEnd" | "onResult"> {
  /** Runs work that a script waits for. */
  readonly count: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Holds a call back while the effect runs. */
  readonly hold: <A, E, R>(wait: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Waits until nothing but held calls is left, and gives the failure of the script if it has one. */
  readonly wait: Effect.Effect<ScriptFailure>
}

type ScriptFailure = Parameters<NonNullable<Door<never>["onResult"]>>[0]

export const make = (): Stillness => {
  let active = 0
  let heldCount = 0
  /** True from the result of the script until its thread is free. */
  let isEnding = false
  let failure: ScriptFailure
  let woken = Deferred.makeUnsafe<void>()
  const wake = Effect.suspend(() => Deferred.succeed(woken, undefined))
  const isStill = (): boolean => active === 0 && heldCount > 0 && !isEnding
  const wait = Effect.gen(function* () {
    while (true) {
      woken = Deferred.makeUnsafe()
      let left = patience
      while (left > 0 && isStill()) {
        left--
        yield* Effect.yieldNow
      }
      if (isStill()) return failure
      yield* Deferred.await(woken)
    }
  })
  return {
    count: (work) =>
      Effect.suspend(() => {
        active++
        return Effect.onExit(work, () => {
          active--
          return wake
        })
      }),
    hold: (work) =>
      Effect.suspend(() => {
        heldCount++
        return Effect.andThen(
          wake,
          Effect.onExit(work, () => {
            heldCount--
            return Effect.void
          })
        )
      }),
    onResult: (error) => {
      isEnding = true
      failure = error
    },
    onEnd: Effect.suspend(() => {
      isEnding = false
      return Effect.asVoid(wake)
    }),
    wait
  }
}
