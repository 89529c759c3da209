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
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import { timeOf, timeProblem } from "./internal/limits.ts"
import { reissue } from "./internal/reissue.ts"
import * as shapes from "./internal/shapes.ts"

const name = "ModelRetry"

const patience = Schedule.exponential("500 millis").pipe(
  Schedule.jittered,
  Schedule.upTo({ times: 4 }),
  Schedule.setInputType<ModelError>(),
  Schedule.while(({ attempt, input }) => Effect.succeed(!input.isRefused || attempt <= 2))
)

type Policy<E, R> = Schedule.Schedule<unknown, ModelError, E, R>

type Step<E, R> = (now: number, error: ModelError) => Pull.Pull<readonly [unknown, Duration.Duration], E, unknown, R>

/** The failure of the last try, with the number of tries. */
const describeTries = (error: ModelError, tries: number, millis: number): ModelError => {
  if (tries === 1) return error
  const minutes = Math.round(millis / 60_000)
  const time = minutes > 1 ? `${minutes} minutes` : `${Math.max(1, Math.round(millis / 1_000))} s`
  const prefix = error.detail === undefined ? "" : `${error.detail}; `
  return error.withDetail(`${prefix}tried ${tries} times in ${time}`)
}

const refuseMake = makeMiddlewareCheck(name, shapes.modelRetryMake)

/**
 * Repeats a failed request unchanged after a wait, if `ModelError.isRetryable` allows it. Every other failure and any
 * interruption passes through. Each retry is a `Warning` event (`model-retry`, with the time of the next try and its number), followed by `TurnRestarted` if parts of
 * the failed turn were emitted. A turn in which the provider ran a tool is not retried.
 *
 * `schedule` sets the waits and their number: by default 500 ms, doubling, with jitter, for five tries in all, or three
 * if nothing listens at an address of this machine. Its failures and requirements appear in the agent's type. A provider's `retryAfter` is respected in full.
 *
 * No wait ends later than `within` (2 minutes) after the first failure. If the schedule or the provider demands more,
 * the call fails at once with the provider's error. After several tries, the error says how many there were.
 */
export const make = <S extends Policy<unknown, unknown> = Policy<never, never>>(options?: {
  /** The waits and their number. Default: 500 ms, doubling, with jitter, for five tries in all. */
  readonly schedule?: S | undefined
  /** The latest end of a wait, counted from the first failure. Default: 2 minutes. */
  readonly within?: Duration.Input | undefined
}): Middleware.Middleware<Schedule.Error<S>, Schedule.Env<S>> => {
  const refused = refuseMake(options)
  if (refused !== undefined) return refused
  type E = Schedule.Error<S>
  type R = Schedule.Env<S>
  // A schedule has its own failures and requirements. Without one, `S` is the default.
  const schedule = (options?.schedule ?? patience) as Policy<E, R>
  const within = Duration.toMillis(timeOf(options?.within ?? "2 minutes"))
  return Middleware.make<E, R>({
    name,
    check: () => timeProblem(name, { within: options?.within }),
    wrapModelCall: (request, next, run) =>
      reissue(
        Effect.sync(() => {
          let begun: { readonly at: number; readonly step: Step<E, R> } | undefined
          let tries = 1
          const nextAttempt = (error: ModelError) =>
            Effect.gen(function* () {
              if (!error.isRetryable) return yield* Effect.fail(error)
              const now = yield* Clock.currentTimeMillis
              begun ??= { at: now, step: yield* Schedule.toStep(schedule) }
              const finalError = describeTries(error, tries, now - begun.at)
              const [, delay] = yield* Pull.catchDone(begun.step(now, error), () => Effect.fail(finalError))
              const wait = Math.ceil(
                Math.max(Duration.toMillis(delay), Duration.toMillis(error.retryAfter ?? Duration.zero))
              )
              if (now + wait > begun.at + within) return yield* Effect.fail(finalError)
              tries++
              yield* run.warn(
                "model-retry",
                `${error.message}; asking again in ${Duration.format(Duration.seconds(Math.max(1, Math.round(wait / 1_000))))}`,
                { until: now + wait, attempt: tries, reason: error.reason._tag }
              )
              yield* Effect.sleep(wait)
              return { turn: next(request), reason: error.message }
            })
          return { turn: next(request), nextAttempt }
        })
      )
  })
}
