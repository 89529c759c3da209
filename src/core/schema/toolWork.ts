/** Runs the functions of a tool: the work of a call, and the question whether a call needs a decision. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"

/** The second argument of `execute`. */
export interface CallContext {
  /** Aborted when the run is interrupted, or the call takes too long. */
  readonly signal: AbortSignal
}

const nameOf = (value: unknown): string =>
  Effect.isEffect(value)
    ? "an Effect"
    : Predicate.isPromiseLike(value)
      ? "a promise"
      : value === null
        ? "null"
        : Array.isArray(value)
          ? "an array"
          : typeof value

/** Ends a call whose tool broke its type, with a message for its author. An unread promise must not end the process. */
export const dieOfType = (what: string, tool: string, value: unknown, wanted: string): Effect.Effect<never> => {
  if (Predicate.isPromiseLike(value)) value.then(undefined, () => undefined)
  return Effect.die(new TypeError(`${what} of the tool "${tool}" gave ${nameOf(value)}, not ${wanted}`))
}

/** The reason of an aborted signal costs nothing to make: without one, `abort()` makes an exception with a stack trace. */
const reason = "the run was interrupted"

const awaitPromise = (
  tool: string,
  promise: PromiseLike<unknown>,
  abort: () => void
): Effect.Effect<unknown, unknown> =>
  Effect.callback<unknown, unknown>((resume) => {
    promise.then(
      (value) =>
        resume(
          Effect.isEffect(value)
            ? dieOfType("execute", tool, value, "a value; return the Effect itself, from a function without async")
            : Effect.succeed(value)
        ),
      (cause) => resume(Effect.fail(cause))
    )
    return Effect.sync(abort)
  })

/**
 * Runs `execute`, which gives an effect, a promise or a value. A promise that rejects fails; a function that throws is a
 * defect. The signal is made only for work that looks at it. A function of one parameter gets none: what it gets lives as
 * long as the call.
 */
export const perform = <A>(
  tool: string,
  execute: (args: A, context: CallContext) => unknown,
  args: A
): Effect.Effect<unknown, unknown> =>
  Effect.suspend(() => {
    let controller: AbortController | undefined
    let isOver = false
    const abort = () => {
      isOver = true
      controller?.abort(reason)
    }
    const context: CallContext | undefined =
      execute.length === 1
        ? undefined
        : {
            get signal() {
              controller ??= new AbortController()
              // Work goes on after its call was interrupted, and may look at the signal only then.
              if (isOver) controller.abort(reason)
              return controller.signal
            }
          }
    // A function of one parameter does not read it.
    const work = execute(args, context as CallContext)
    if (Effect.isEffect(work)) {
      const effect = work as Effect.Effect<unknown, unknown>
      return context === undefined ? effect : Effect.onInterrupt(effect, () => Effect.sync(abort))
    }
    return Predicate.isPromiseLike(work) ? awaitPromise(tool, work, abort) : Effect.succeed(work)
  })

/** Asks a tool whether a call needs a decision. Every answer but a clear `false` means that it does. */
export const needsDecision = <A>(tool: string, need: (args: A) => unknown, args: A): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    const answer: unknown = need(args)
    return Effect.isEffect(answer)
      ? (answer as Effect.Effect<unknown>)
      : typeof answer === "boolean"
        ? Effect.succeed(answer)
        : dieOfType("needsApproval", tool, answer, "a boolean or an Effect")
  }).pipe(
    Effect.map((answer) => answer !== false),
    Effect.catchCauseIf(
      (cause) => !Cause.hasInterrupts(cause),
      (cause) =>
        Effect.as(
          Effect.logError(`needsApproval of the tool "${tool}" failed, so its call is asked about`, cause),
          true
        )
    )
  )
