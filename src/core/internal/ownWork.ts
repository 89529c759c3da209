/**
 * The work that a tool's author wrote, checked where it is run: types say what it gives, programs without them do not.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"

/**
 * Ends a call whose tool broke its type, with a message for its author. A promise that nobody awaits must not end the
 * process.
 */
export const broken = (what: string, name: string, given: unknown, wanted: string): Effect.Effect<never> => {
  const isPromise = Predicate.isPromiseLike(given)
  if (isPromise) given.then(undefined, () => undefined)
  const hint = isPromise ? "; wrap the promise in Effect.tryPromise" : ""
  return Effect.die(new TypeError(`${what} of the tool "${name}" gave ${nameOf(given)}, not ${wanted}${hint}`))
}

const nameOf = (given: unknown): string =>
  Predicate.isPromiseLike(given)
    ? "a promise"
    : given === null
      ? "null"
      : Array.isArray(given)
        ? "an array"
        : typeof given

/** Asks a tool whether a call needs a decision. What gives no clear `false` needs one. */
export const question = <A>(name: string, need: (args: A) => unknown, args: A): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    const answer: unknown = need(args)
    return Effect.isEffect(answer)
      ? (answer as Effect.Effect<unknown>)
      : typeof answer === "boolean"
        ? Effect.succeed(answer)
        : broken("needsApproval", name, answer, "a boolean or an Effect")
  }).pipe(
    Effect.map((answer) => answer !== false),
    Effect.catchCauseIf(
      (cause) => !Cause.hasInterrupts(cause),
      (cause) =>
        Effect.as(
          Effect.logError(`needsApproval of the tool "${name}" failed, so its call is asked about`, cause),
          true
        )
    )
  )
