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
import type { Service, TurnPart } from "../core/ChatModel.ts"
import * as Middleware from "../core/Middleware.ts"
import { ModelError } from "../core/ModelError.ts"
import { isContent } from "./internal/content.ts"
import { timeOf, timeProblem } from "./internal/limits.ts"
import { askedOf } from "./internal/openModel.ts"

/**
 * The name of this middleware: one of yours with it takes its place in a deep agent.
 *
 * @category constants
 * @since 0.1.0
 */
export const name = "ModelTimeout"

const timedOut = ({ modelId, provider }: Service, detail: string): ModelError =>
  new ModelError({ provider, model: modelId, reason: { _tag: "Timeout" }, detail })

/**
 * Fails a model call with the reason `Timeout`, which `ModelRetry` (put it outside) retries, and interrupts the stream:
 * after `idle` (120 s) of waiting for a next part, or after `total` (60 min) from the beginning of the call. Time in
 * which the reader of the parts is busy is not idle. `first` is the time from the beginning of the call until a first
 * piece of a text, a thought or a tool call (a `Warning` is none), for models that think long and then speak fast, or
 * the other way; without it, `idle` holds there too. `"Infinity"` sets no limit.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options?: {
  readonly first?: Duration.Input | undefined
  readonly idle?: Duration.Input | undefined
  readonly total?: Duration.Input | undefined
}): Middleware.Middleware => {
  const idle = timeOf(options?.idle ?? "120 seconds")
  const total = timeOf(options?.total ?? "60 minutes")
  const first = options?.first === undefined ? undefined : timeOf(options.first)
  const silent = `it said nothing for ${Duration.format(idle)}`
  const slow = first === undefined ? silent : `it had not begun to answer after ${Duration.format(first)}`
  const endless = `the turn was not complete after ${Duration.format(total)}`
  return Middleware.make({
    name,
    check: () => timeProblem(name, { first: options?.first, idle: options?.idle, total: options?.total }),
    wrapModelCall: (request, next, run) => {
      const model = askedOf(request, run)
      return limited(
        next(request),
        {
          first: first === undefined ? undefined : Duration.toMillis(first),
          idle: Duration.toMillis(idle),
          total: Duration.toMillis(total)
        },
        {
          slow: () => timedOut(model, slow),
          silent: () => timedOut(model, silent),
          endless: () => timedOut(model, endless)
        }
      )
    }
  })
}

/**
 * Two fibers for a whole turn. One pulls, on demand and never ahead of the reader, so that it can be interrupted
 * without its reader; parts are handed over as they are, and without going through the scheduler. The other sleeps
 * until the earliest moment at which a limit can have passed, looks, and sleeps on, so a part costs it nothing.
 */
const limited = (
  turn: Stream.Stream<TurnPart, ModelError>,
  limits: { readonly first: number | undefined; readonly idle: number; readonly total: number },
  errors: { readonly [Limit in "slow" | "silent" | "endless"]: () => ModelError }
): Stream.Stream<TurnPart, ModelError> =>
  // Unwrapped, what opens the turn is part of its first pull, and so of its time.
  Stream.transformPull(Stream.unwrap(Effect.succeed(turn)), (pull, scope) =>
    Effect.gen(function* () {
      type Parts = Effect.Success<typeof pull>
      type Failure = Effect.Error<typeof pull>
      const clock = yield* Clock.Clock
      const begun = clock.currentTimeMillisUnsafe()
      const { first, idle, total } = limits
      const end = begun + total
      let hasBegun = first === undefined
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
          hasBegun ||= parts?.some(isContent) === true
          if (parts !== undefined) give(Exit.succeed(parts))
        })
      const puller = yield* demanded().pipe(
        Effect.andThen(Effect.forever(Effect.flatMap(pull, demanded), { disableYield: true })),
        Effect.forkIn(scope, { startImmediately: true })
      )
      const watchdog = yield* Effect.gen(function* () {
        for (;;) {
          const now = clock.currentTimeMillisUnsafe()
          const isWaiting = !hasBegun && first !== undefined
          const silence = isWaiting ? begun + first : answer === undefined ? now + idle : since + idle
          if (now >= Math.min(silence, end)) {
            expired = Exit.fail(now >= end ? errors.endless() : isWaiting ? errors.slow() : errors.silent())
            return puller.interruptUnsafe()
          }
          // The limit of gaps may be the shorter one, and holds as soon as there is content.
          const look = isWaiting ? Math.min(silence, now + idle) : silence
          yield* Effect.sleep(Math.min(look, end) - now)
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
