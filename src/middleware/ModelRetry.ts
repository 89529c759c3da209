/**
 * Ask the model again when a call failed for a passing reason: rate limits, overload, time-outs, broken connections.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { ModelRetry, ModelTimeout } from "effect-deepagents/middleware"
 *
 * const agent = Agent.make({
 *   name: "patient",
 *   prompt: "You answer questions.",
 *   middleware: [ModelRetry.make(), ModelTimeout.make({ idle: "1 minute" })]
 * })
 * ```
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import * as Middleware from "../core/Middleware.ts"
import type { ModelError } from "../core/ModelError.ts"
import { timeOf, timeProblem } from "./internal/limits.ts"
import { reissue } from "./internal/reissue.ts"

/** The name of this middleware: one of yours with it takes its place in a deep agent. */
const name = "ModelRetry"

const patience = Schedule.exponential("500 millis").pipe(Schedule.jittered, Schedule.upTo({ times: 4 }))

type Policy<E, R> = Schedule.Schedule<unknown, ModelError, E, R>

type Step<E, R> = (now: number, error: ModelError) => Pull.Pull<readonly [unknown, Duration.Duration], E, unknown, R>

/**
 * Sends a request that failed once more, unchanged, after a wait. Only what `ModelError.isRetryable` says may pass is
 * retried; every other failure and any interruption goes through at once. Each retry is told by a `Warning` event
 * (`model-retry`); if parts of the failed turn went out, `TurnRestarted` comes before the new ones. A turn in which the
 * provider itself ran a tool is not retried.
 *
 * `schedule` says how long to wait and how often; by default 500 ms, doubling, with jitter, for five tries in all. What
 * it fails with and needs appears in the agent's type. A provider's `retryAfter` is waited for in full.
 *
 * No wait ends later than `within` (2 minutes) after the first failure: where the schedule or the provider asks for
 * more, the call fails at once with the provider's error.
 */
export const make = <S extends Policy<unknown, unknown> = Policy<never, never>>(options?: {
  readonly schedule?: S | undefined
  readonly within?: Duration.Input | undefined
}): Middleware.Middleware<Schedule.Error<S>, Schedule.Env<S>> => {
  type E = Schedule.Error<S>
  type R = Schedule.Env<S>
  // A schedule is one of its own error and needs; `S` is the default when there is none.
  const schedule = (options?.schedule ?? patience) as Policy<E, R>
  const within = Duration.toMillis(timeOf(options?.within ?? "2 minutes"))
  return Middleware.make<E, R>({
    name,
    check: () => timeProblem(name, { within: options?.within }),
    wrapModelCall: (request, next, run) =>
      reissue(
        Effect.sync(() => {
          let begun: { readonly at: number; readonly step: Step<E, R> } | undefined
          const again = (error: ModelError) =>
            Effect.gen(function* () {
              if (!error.isRetryable) return yield* Effect.fail(error)
              const now = yield* Clock.currentTimeMillis
              begun ??= { at: now, step: yield* Schedule.toStep(schedule) }
              const [, delay] = yield* Pull.catchDone(begun.step(now, error), () => Effect.fail(error))
              const wait = Math.ceil(
                Math.max(Duration.toMillis(delay), Duration.toMillis(error.retryAfter ?? Duration.zero))
              )
              if (now + wait > begun.at + within) return yield* Effect.fail(error)
              yield* run.warn(
                "model-retry",
                `${error.message}; asking again in ${Duration.format(Duration.millis(wait))}`
              )
              yield* Effect.sleep(wait)
              return { turn: next(request), reason: error.message }
            })
          return { turn: next(request), again }
        })
      )
  })
}
