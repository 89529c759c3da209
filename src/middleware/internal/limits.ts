/**
 * Checks the numbers and times in a middleware's options. `NaN` compares as neither more nor less than anything, so it
 * would limit nothing: the middleware's `check` rejects it.
 */
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"

type Numbers = { readonly [name: string]: number | undefined }
type Times = { readonly [name: string]: Duration.Input | undefined }

const first = <A>(
  options: { readonly [name: string]: A | undefined },
  problem: (name: string, value: A) => string | undefined
): string | undefined => {
  for (const [name, value] of Object.entries(options)) {
    const result = value === undefined ? undefined : problem(name, value)
    if (result !== undefined) return result
  }
  return undefined
}

/** Finds a problem of amounts: each is a number of at least 0 (`Infinity` is no limit). */
export const amountProblem = (owner: string, options: Numbers): string | undefined =>
  first(options, (name, value) =>
    typeof value === "number" && value >= 0
      ? undefined
      : `${owner}: \`${name}\` must be a number of at least 0, not ${value}`
  )

/** Finds a problem of counts: each is a whole number of at least `least`, or `Infinity`. */
export const countProblem = (owner: string, options: Numbers, least = 0): string | undefined =>
  first(options, (name, value) =>
    (Number.isInteger(value) || value === Infinity) && value >= least
      ? undefined
      : `${owner}: \`${name}\` must be a whole number of at least ${least}, not ${value}`
  )

const isTime = (value: Duration.Input): boolean =>
  !(typeof value === "number" && Number.isNaN(value)) &&
  Option.match(Duration.fromInput(value), { onNone: () => false, onSome: (time) => !Duration.isNegative(time) })

/** Finds a problem of times. */
export const timeProblem = (owner: string, options: Times): string | undefined =>
  first(options, (name, value) =>
    isTime(value)
      ? undefined
      : `${owner}: \`${name}\` must be a duration of at least 0, not ${typeof value === "object" ? "a negative one" : value}`
  )

/** Parses a time. A rejected time becomes `Infinity`, since no run uses it. */
export const timeOf = (value: Duration.Input): Duration.Duration =>
  Option.getOrElse(Duration.fromInput(value), () => Duration.infinity)
