/**
 * Give up on a model that has gone silent, or that takes too long for one turn.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { ModelRetry, ModelTimeout } from "effect-deepagents/middleware"
 *
 * const agent = Agent.make({
 *   name: "brisk",
 *   prompt: "You answer questions.",
 *   middleware: [ModelRetry.make(), ModelTimeout.make({ idle: "30 seconds", total: "10 minutes" })]
 * })
 * ```
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import type { TurnPart } from "../core/ChatModel.ts"
import * as Middleware from "../core/Middleware.ts"
import { ModelError } from "../core/ModelError.ts"
import type { Run } from "../core/Run.ts"
import { timeOf, timeProblem } from "./internal/limits.ts"

/**
 * The name of this middleware: one of yours with it takes its place in a deep agent.
 *
 * @category constants
 * @since 0.1.0
 */
export const name = "ModelTimeout"

const timedOut = (run: Run, detail: string): ModelError =>
  new ModelError({ provider: run.model.provider, model: run.model.modelId, reason: { _tag: "Timeout" }, detail })

/**
 * Fails a model call with the reason `Timeout`, which `ModelRetry` (put it outside) retries, and interrupts the stream:
 * after `idle` (120 s) of waiting for a next part, the first one included, or after `total` (60 min) from the beginning
 * of the call. Time in which the reader of the parts is busy is not idle. `"Infinity"` sets no limit.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options?: {
  readonly idle?: Duration.Input | undefined
  readonly total?: Duration.Input | undefined
}): Middleware.Middleware => {
  const idle = timeOf(options?.idle ?? "120 seconds")
  const total = timeOf(options?.total ?? "60 minutes")
  const silent = `it said nothing for ${Duration.format(idle)}`
  const endless = `the turn was not complete after ${Duration.format(total)}`
  return Middleware.make({
    name,
    check: () => timeProblem(name, { idle: options?.idle, total: options?.total }),
    wrapModelCall: (request, next, run) =>
      limited(next(request), Duration.toMillis(idle), Duration.toMillis(total), {
        silent: () => timedOut(run, silent),
        endless: () => timedOut(run, endless)
      })
  })
}

/**
 * Two fibers for a whole turn. One pulls, on demand and never ahead of the reader, so that it can be interrupted
 * without its reader; parts are handed over as they are, and without going through the scheduler. The other sleeps
 * until the earliest moment at which a limit can have passed, looks, and sleeps on, so a part costs it nothing.
 */
const limited = (
  turn: Stream.Stream<TurnPart, ModelError>,
  idle: number,
  total: number,
  errors: { readonly silent: () => ModelError; readonly endless: () => ModelError }
): Stream.Stream<TurnPart, ModelError> =>
  // Unwrapped, what opens the turn is part of its first pull, and so of its time.
  Stream.transformPull(Stream.unwrap(Effect.succeed(turn)), (pull, scope) =>
    Effect.gen(function* () {
      type Parts = Effect.Success<typeof pull>
      type Failure = Effect.Error<typeof pull>
      const clock = yield* Clock.Clock
      const end = clock.currentTimeMillisUnsafe() + total
      let since = 0
      let expired: Exit.Exit<never, ModelError> | undefined
      let over: Exit.Exit<never, Failure> | undefined
      let answer: ((exit: Exit.Exit<Parts, Failure>) => void) | undefined
      let demand = (): void => undefined

      const give = (exit: Exit.Exit<Parts, Failure>): void => {
        const waiting = answer
        answer = undefined
        waiting?.(exit)
      }
      const demanded = (parts?: Parts) =>
        Effect.callback<void>((resume) => {
          demand = () => resume(Effect.void)
          if (parts !== undefined) give(Exit.succeed(parts))
        })
      const puller = yield* demanded().pipe(
        Effect.andThen(Effect.forever(Effect.flatMap(pull, demanded), { disableYield: true })),
        Effect.forkIn(scope, { startImmediately: true })
      )
      const watchdog = yield* Effect.gen(function* () {
        for (;;) {
          const now = clock.currentTimeMillisUnsafe()
          const silence = answer === undefined ? now + idle : since + idle
          if (now >= Math.min(silence, end)) {
            expired = Exit.fail(now >= end ? errors.endless() : errors.silent())
            return puller.interruptUnsafe()
          }
          yield* Effect.sleep(Math.min(silence, end) - now)
        }
      }).pipe(Effect.forkIn(scope))
      puller.addObserver((exit) => {
        over = expired ?? exit
        watchdog.interruptUnsafe()
        give(over)
      })

      const stop = Fiber.interrupt(puller)
      return Effect.callback<Parts, Failure>((resume) => {
        if (over !== undefined) return resume(over)
        since = clock.currentTimeMillisUnsafe()
        answer = resume
        demand()
        return stop
      })
    })
  )
