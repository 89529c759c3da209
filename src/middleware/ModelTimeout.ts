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
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Service, TurnPart } from "../core/ChatModel.ts"
import * as Middleware from "../core/Middleware.ts"
import { ModelError } from "../core/ModelError.ts"
import type { Run } from "../core/Run.ts"
import * as Attached from "../support/attached.ts"
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
  const limits: Limits = {
    first: first === undefined ? undefined : Duration.toMillis(first),
    idle: Duration.toMillis(idle),
    total: Duration.toMillis(total)
  }
  const most = Math.min(limits.first ?? Infinity, limits.idle, limits.total)
  const watches = Attached.make<Run, Watch>()
  const watchOf = (run: Run): Watch => {
    const known = watches.get(run)
    if (known !== undefined) return known
    const made = makeWatch(run.scope, most)
    watches.set(run, made)
    return made
  }
  return Middleware.make({
    name,
    check: () => timeProblem(name, { first: options?.first, idle: options?.idle, total: options?.total }),
    wrapModelCall: (request, next, run) => {
      const model = askedOf(request, run)
      return limited(next(request), limits, watchOf(run), {
        slow: () => timedOut(model, slow),
        silent: () => timedOut(model, silent),
        endless: () => timedOut(model, endless)
      })
    }
  })
}

/** The limits of a turn, in milliseconds. */
interface Limits {
  readonly first: number | undefined
  readonly idle: number
  readonly total: number
}

/** The turns of a run that are under way: each gives up if it must, and says when to look at it again. */
interface Watch {
  readonly turns: Set<(now: number) => number>
  /** Ends when there is no turn to look at. */
  readonly watching: Effect.Effect<void>
  readonly scope: Scope.Scope
  isAwake: boolean
}

/**
 * One fiber looks after the turns of a run: it sleeps until the earliest moment at which a limit can have passed, looks,
 * and sleeps on, so a part and a turn cost it nothing. `most` is how long it may sleep at a time: a turn that begins
 * meanwhile is looked at early enough.
 */
const makeWatch = (scope: Scope.Scope, most: number): Watch => {
  const turns: Watch["turns"] = new Set()
  const watch: Watch = {
    turns,
    scope,
    isAwake: false,
    watching: Effect.gen(function* () {
      const clock = yield* Clock.Clock
      while (turns.size > 0) {
        const now = clock.currentTimeMillisUnsafe()
        let until = now + most
        for (const look of turns) until = Math.min(until, look(now))
        yield* Effect.sleep(Math.max(0, until - now))
      }
      watch.isAwake = false
    })
  }
  return watch
}

/** Has somebody look after the turns. */
const awake = (watch: Watch): Effect.Effect<unknown> => {
  if (watch.isAwake) return Effect.void
  watch.isAwake = true
  return Effect.forkIn(watch.watching, watch.scope)
}

/**
 * A turn that is pulled in a fiber of its own, on demand and never ahead of the reader, so that it can be interrupted
 * without its reader, and what it forks lives as long as it does. Parts are handed over as they are, and without going
 * through the scheduler.
 */
const limited = (
  turn: Stream.Stream<TurnPart, ModelError>,
  { first, idle, total }: Limits,
  watch: Watch,
  errors: { readonly [Limit in "slow" | "silent" | "endless"]: () => ModelError }
): Stream.Stream<TurnPart, ModelError> =>
  // Unwrapped, what opens the turn is part of its first pull, and so of its time.
  Stream.transformPull(Stream.unwrap(Effect.succeed(turn)), (pull, scope) =>
    Effect.withFiber((reader) => {
      type Parts = Effect.Success<typeof pull>
      type Failure = Effect.Error<typeof pull>
      const clock = reader.getRef(Clock.Clock)
      const begun = clock.currentTimeMillisUnsafe()
      const end = begun + total
      let hasBegun = first === undefined
      let since = 0
      let puller: Fiber.Fiber<never, Failure> | undefined
      let expired: Exit.Exit<never, ModelError> | undefined
      let over: Exit.Exit<never, Failure> | undefined
      let answer: ((exit: Exit.Exit<Parts, Failure>) => void) | undefined
      let demand = (): void => undefined

      const look = (now: number): number => {
        const isBeginning = !hasBegun && first !== undefined
        const silence = isBeginning ? begun + first : answer === undefined ? now + idle : since + idle
        if (now >= Math.min(silence, end)) {
          expired = Exit.fail(now >= end ? errors.endless() : isBeginning ? errors.slow() : errors.silent())
          watch.turns.delete(look)
          puller?.interruptUnsafe()
          return Infinity
        }
        // The limit of gaps may be the shorter one, and holds as soon as there is content.
        return Math.min(isBeginning ? Math.min(silence, now + idle) : silence, end)
      }
      const give = (exit: Exit.Exit<Parts, Failure>): void => {
        const waiting = answer
        answer = undefined
        waiting?.(exit)
      }
      const demanded = (parts: Parts) =>
        Effect.callback<void>((resume) => {
          demand = () => resume(Effect.void)
          hasBegun ||= parts.some(isContent)
          give(Exit.succeed(parts))
        })
      const pulling = Effect.forkIn(Effect.forever(Effect.flatMap(pull, demanded), { disableYield: true }), scope, {
        startImmediately: true
      })
      const begin = Effect.suspend(() => {
        let first: Exit.Exit<Parts, Failure> | undefined
        since = clock.currentTimeMillisUnsafe()
        answer = (exit) => (first = exit)
        watch.turns.add(look)
        return Effect.flatMap(Effect.andThen(awake(watch), pulling), (fiber) => {
          puller = fiber
          fiber.addObserver((exit) => {
            watch.turns.delete(look)
            over = expired ?? exit
            give(over)
          })
          return (
            first ??
            Effect.callback<Parts, Failure>((resume) => {
              answer = resume
              return Fiber.interrupt(fiber)
            })
          )
        })
      })
      const goOn = (fiber: Fiber.Fiber<never, Failure>) =>
        Effect.callback<Parts, Failure>((resume) => {
          if (over !== undefined) return resume(over)
          since = clock.currentTimeMillisUnsafe()
          answer = resume
          demand()
          return Fiber.interrupt(fiber)
        })

      return Effect.succeed(Effect.suspend(() => (puller === undefined ? begin : goOn(puller))))
    })
  )
