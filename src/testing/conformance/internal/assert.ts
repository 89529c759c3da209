/** Assertions of checks. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { TaggedError } from "../../../support/effect/taggedError.ts"

/** A subject broke a rule. */
export class NotConformant extends TaggedError<NotConformant>()("NotConformant", {
  rule: Schema.String,
  found: Schema.String
}) {
  override get message(): string {
    return `${this.rule}; found ${this.found}`
  }
}

/** One check, for any test runner with a live clock. With `absent`, it does nothing, for that reason. */
export interface Check<out E, out R> {
  readonly name: string
  readonly absent?: string | undefined
  readonly run: Effect.Effect<void, E | NotConformant, R>
}

/** A missing ability. */
export interface Absent {
  readonly _tag: "Absent"
  readonly reason: string
}

/** Marks an ability as missing, for a reason. */
export const absent = (reason: string): Absent => ({ _tag: "Absent", reason })

export const isAbsent = (value: unknown): value is Absent =>
  typeof value === "object" && value !== null && "_tag" in value && value._tag === "Absent"

/** Makes a check that needs an ability. */
export const makeCheck = <A, E, R>(
  name: string,
  ability: A | Absent,
  run: (ability: A) => Effect.Effect<void, E | NotConformant, R>
): Check<E, Exclude<R, Scope.Scope>> =>
  isAbsent(ability) ? { name, absent: ability.reason, run: Effect.void } : { name, run: Effect.scoped(run(ability)) }

const render = (actual: unknown): string =>
  (
    JSON.stringify(actual, (_, value: unknown) =>
      value instanceof Uint8Array ? `${value.length} bytes ${String(value.subarray(0, 20))}` : value
    ) ?? "nothing"
  ).slice(0, 600)

/** Fails with the rule and the actual value. */
export const failCheck = (rule: string, actual: unknown): Effect.Effect<never, NotConformant> =>
  Effect.fail(new NotConformant({ rule, found: typeof actual === "string" ? actual.slice(0, 600) : render(actual) }))

/** Fails with the rule unless it holds. */
export const assert = (holds: boolean, rule: string, actual: unknown): Effect.Effect<void, NotConformant> =>
  holds ? Effect.void : Effect.fail(new NotConformant({ rule, found: render(actual) }))

/** Sorts the keys of data, and converts bytes to numbers. */
const sortKeys = (value: unknown): unknown => {
  if (value instanceof Uint8Array) return Array.from(value)
  if (Array.isArray(value)) return value.map(sortKeys)
  if (typeof value !== "object" || value === null) return value
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined)
  return entries.sort(([left], [right]) => (left < right ? -1 : 1)).map(([key, inner]) => [key, sortKeys(inner)])
}

/** Fails with the rule unless both values are equal data. */
export const expect = (actual: unknown, expected: unknown, rule: string): Effect.Effect<void, NotConformant> =>
  assert(
    JSON.stringify(sortKeys(actual)) === JSON.stringify(sortKeys(expected)),
    `${rule}: it is ${render(expected)}`,
    actual
  )

/** Returns the reason of a failure, which must have one of these tags. */
export const fails = <A, R, X extends { readonly _tag: string }, T extends X["_tag"]>(
  operation: Effect.Effect<A, { readonly reason: X; readonly message: string }, R>,
  rule: string,
  ...tags: ReadonlyArray<T>
): Effect.Effect<Extract<X, { readonly _tag: T }>, NotConformant, R> => {
  const isWanted = (reason: X): reason is Extract<X, { readonly _tag: T }> => tags.some((tag) => tag === reason._tag)
  const expected = `${rule} fails with ${tags.join(" or ")}`
  return Effect.matchEffect(operation, {
    onFailure: ({ message, reason }) =>
      isWanted(reason) ? Effect.succeed(reason) : failCheck(expected, `${reason._tag} (${message})`),
    onSuccess: (value) => failCheck(expected, render(value))
  })
}

/** Runs an effect, which must end within a time. */
export const assertWithin = <A, E, R>(
  milliseconds: number,
  rule: string,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | NotConformant, R> =>
  Effect.gen(function* () {
    const began = yield* Clock.currentTimeMillis
    const value = yield* effect
    const took = (yield* Clock.currentTimeMillis) - began
    yield* assert(took <= milliseconds, `${rule} ends within ${milliseconds} ms`, `${took} ms`)
    return value
  })
