/**
 * Fails a model call when the model is silent, or takes too long for one turn.
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
import type * as Arr from "effect/Array"
import type * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { Service, TurnPart } from "../core/ChatModel.ts"
import * as Middleware from "../core/Middleware.ts"
import { ModelError } from "../core/ModelError.ts"
import type { Run } from "../core/Run.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import * as Attached from "../support/effect/attached.ts"
import { fromPull, plain } from "../support/effect/pulled.ts"
import { isContent } from "./internal/content.ts"
import { timeOf, timeProblem } from "./internal/limits.ts"
import { askedOf } from "./internal/openModel.ts"
import * as shapes from "./internal/shapes.ts"

const name = "ModelTimeout"

const timedOut = ({ modelId, provider }: Service, detail: string): ModelError =>
  new ModelError({ provider, model: modelId, reason: { _tag: "Timeout" }, detail })

const refuseMake = makeMiddlewareCheck(name, shapes.modelTimeoutMake)

/**
 * Fails a model call with the reason `Timeout` and interrupts its stream. `ModelRetry` outside of it retries such
 * calls. The limits are `idle` (120 s) without a new part, and `total` (60 min) from the start of the call. Time in
 * which the consumer of the parts is busy is not idle. `first` limits the time until the first content (text, reasoning
 * or a tool call), for models that think long and then stream fast, or the reverse; by default `idle` applies.
 * `"Infinity"` sets no limit.
 */
export const make = (options?: {
  /** The time until the first content (text, reasoning or a tool call). Default: `idle` applies. */
  readonly first?: Duration.Input | undefined
  /** The longest time without a new part; `"Infinity"` sets no limit. Default: 120 seconds. */
  readonly idle?: Duration.Input | undefined
  /** The longest time of a call; `"Infinity"` sets no limit. Default: 60 minutes. */
  readonly total?: Duration.Input | undefined
}): Middleware.Middleware => {
  const refused = refuseMake(options)
  if (refused !== undefined) return refused
  const idle = timeOf(options?.idle ?? "120 seconds")
  const total = timeOf(options?.total ?? "60 minutes")
  const first = options?.first === undefined ? undefined : timeOf(options.first)
  const silent = `it said nothing for ${Duration.format(idle)}`
  const slow = first === undefined ? silent : `it had not begun to answer after ${Duration.format(first)}`
  const endless = `the turn was not complete after ${Duration.format(total)}`
  const limits: Limits = {
    first: first === undefined ? undefined : Duration.toMillis(first),
    idle: Duration.toMillis(idle),
    total: Duration.toMillis(total),
    slow,
    silent,
    endless
  }
  const watches = Attached.make<Run, Watch>()
  const watchOf = (run: Run): Watch => {
    const existing = watches.get(run)
    if (existing !== undefined) return existing
    const watch = makeWatch(run.scope, Math.min(limits.first ?? Infinity, limits.idle, limits.total))
    watches.set(run, watch)
    return watch
  }
  return Middleware.make({
    name,
    check: () => timeProblem(name, { first: options?.first, idle: options?.idle, total: options?.total }),
    wrapModelCall: (request, next, run) => limited(next(request), limits, watchOf(run), askedOf(request, run))
  })
}

/** The limits of a turn in milliseconds, and the error text of each. */
interface Limits {
  readonly first: number | undefined
  readonly idle: number
  readonly total: number
  readonly slow: string
  readonly silent: string
  readonly endless: string
}

type TurnStream = Stream.Stream<TurnPart, ModelError>
type Parts = Arr.NonEmptyReadonlyArray<TurnPart>
type Failure = ModelError | Cause.Done
type NextParts = Effect.Effect<Parts, Failure>
type PullLoop = Effect.Effect<never, Failure>

/** A running turn: its puller, its end, and both waiting sides. */
interface Turn {
  readonly limits: Limits
  readonly model: Service
  begun: number
  hasBegun: boolean
  /** The time since which its reader waits. */
  since: number
  puller: Fiber.Fiber<never, Failure> | undefined
  /** Pulls once more. */
  next: PullLoop | undefined
  expired: Exit.Exit<never, ModelError> | undefined
  end: Exit.Exit<never, Failure> | undefined
  /** Parts that arrived and were not read. */
  parts: Parts | undefined
  /** Wakes the waiting reader with its next effect. */
  answer: ((next: NextParts) => void) | undefined
  /** Wakes the waiting puller with its next effect. */
  demand: ((next: PullLoop) => void) | undefined
}

/** The running turns of a run. */
interface Watch {
  turns: ReadonlyArray<Turn>
  /** Ends without turns to watch. */
  readonly watching: Effect.Effect<void>
  readonly scope: Scope.Scope
  isAwake: boolean
}

const leave = (watch: Watch, turn: Turn): void => {
  watch.turns = watch.turns.filter((one) => one !== turn)
}

/** Expires a turn that is over its limit. Returns the time of the next check. */
const look = (watch: Watch, turn: Turn, now: number): number => {
  const { answer, begun, hasBegun, limits, model, since } = turn
  const { endless, first, idle, silent, slow, total } = limits
  const end = begun + total
  const isBeginning = !hasBegun && first !== undefined
  const silence = isBeginning ? begun + first : answer === undefined ? now + idle : since + idle
  if (now >= Math.min(silence, end)) {
    turn.expired = Exit.fail(timedOut(model, now >= end ? endless : isBeginning ? slow : silent))
    leave(watch, turn)
    turn.puller?.interruptUnsafe()
    return Infinity
  }
  // The limit of gaps may be shorter, and applies from the first content on.
  return Math.min(isBeginning ? Math.min(silence, now + idle) : silence, end)
}

/**
 * One fiber watches the turns of a run. It sleeps until the earliest possible expiry, so a part or a turn costs it
 * nothing. `most` limits each sleep, so that new turns are checked early enough.
 */
const makeWatch = (scope: Scope.Scope, most: number): Watch => {
  const asleep = (clock: Clock.Clock): Effect.Effect<void> => {
    if (watch.turns.length === 0) {
      watch.isAwake = false
      return Effect.void
    }
    const now = clock.currentTimeMillisUnsafe()
    let until = now + most
    for (const turn of watch.turns) until = Math.min(until, look(watch, turn, now))
    return Effect.flatMap(clock.sleep(Duration.millis(Math.max(0, until - now))), () => asleep(clock))
  }
  const watch: Watch = {
    turns: [],
    scope,
    isAwake: false,
    watching: Effect.flatMap(Clock.Clock, asleep)
  }
  return watch
}

/** Starts the watch. */
const awake = (watch: Watch): Effect.Effect<unknown> => {
  watch.isAwake = true
  return Effect.forkIn(watch.watching, watch.scope, { startImmediately: true })
}

/** Wakes the waiting reader. */
const tell = (turn: Turn, read: NextParts): void => {
  const { answer } = turn
  turn.answer = undefined
  answer?.(read)
}

/** Pulls a turn on demand. */
const pulled = (turn: Turn, { channel }: TurnStream, scope: Scope.Scope, read: NextParts): PullLoop =>
  Effect.flatMap(Channel.toPullScoped(channel, scope), (pull) => {
    const demanded = Effect.callback<never, Failure>((resume) => {
      turn.demand = resume
      tell(turn, read)
    })
    turn.next = Effect.flatMap(pull, (parts) => {
      turn.hasBegun ||= parts.some(isContent)
      turn.parts = parts
      return demanded
    })
    return turn.next
  })

/**
 * Reads the available parts or the end. Otherwise it requests parts and waits. Interrupting the reader interrupts the
 * puller.
 */
const readOf = (turn: Turn, clock: Clock.Clock): NextParts => {
  const interrupted = Effect.suspend(() => (turn.puller === undefined ? Effect.void : Fiber.interrupt(turn.puller)))
  const answered = Effect.callback<Parts, Failure>((resume) => {
    const { demand, next } = turn
    turn.since = clock.currentTimeMillisUnsafe()
    turn.answer = resume
    turn.demand = undefined
    if (next !== undefined) demand?.(next)
    return interrupted
  })
  return Effect.suspend(() => {
    const { end, parts } = turn
    turn.parts = undefined
    return parts === undefined ? (end ?? answered) : Effect.succeed(parts)
  })
}

/**
 * Pulls a turn in a fiber of its own, on demand and never ahead of the reader. The fiber can be interrupted without its
 * reader, and its children live as long as it does. Parts pass unchanged and without the scheduler. Opening the turn is
 * part of its first pull, and of its time.
 */
const limited = (opened: TurnStream, limits: Limits, watch: Watch, model: Service): TurnStream =>
  plain(
    fromPull((scope) => {
      const begin: NextParts = Effect.withFiber((reader) => {
        const clock = reader.getRef(Clock.Clock)
        const turn: Turn = {
          limits,
          model,
          begun: clock.currentTimeMillisUnsafe(),
          hasBegun: limits.first === undefined,
          since: 0,
          puller: undefined,
          next: undefined,
          expired: undefined,
          end: undefined,
          parts: undefined,
          answer: undefined,
          demand: undefined
        }
        read = readOf(turn, clock)
        watch.turns = watch.turns.concat(turn)
        const pulling = Effect.forkIn(pulled(turn, opened, scope, read), scope, { startImmediately: true })
        const forked = Effect.flatMap(pulling, (fiber) => {
          turn.puller = fiber
          fiber.addObserver((exit) => {
            leave(watch, turn)
            turn.end = turn.expired ?? exit
            tell(turn, read)
          })
          return read
        })
        return watch.isAwake ? forked : Effect.andThen(awake(watch), forked)
      })
      let read: NextParts = begin
      return Effect.succeed(Effect.suspend(() => read))
    })
  )
