/** Assertions of checks: a failure names the rule that does not hold. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** A rule that the subject of a check broke. */
export class NotConformant extends Schema.TaggedError<NotConformant>()("NotConformant", {
  rule: Schema.String,
  found: Schema.String
}) {
  override get message(): string {
    return `${this.rule}; found ${this.found}`
  }
}

/** An ability that a subject lacks, and why. */
export interface Absent {
  readonly _tag: "Absent"
  readonly reason: string
}

/** Says why a subject lacks an ability. */
export const absent = (reason: string): Absent => ({ _tag: "Absent", reason })

const render = (found: unknown): string =>
  (
    JSON.stringify(found, (_, value: unknown) =>
      value instanceof Uint8Array ? `${value.length} bytes ${String(value.subarray(0, 20))}` : value
    ) ?? "nothing"
  ).slice(0, 600)

/** Fails with the rule and the actual value. */
export const broken = (rule: string, found: unknown): Effect.Effect<never, NotConformant> =>
  Effect.fail(new NotConformant({ rule, found: typeof found === "string" ? found.slice(0, 600) : render(found) }))

/** Fails with the rule unless it holds. */
export const assert = (holds: boolean, rule: string, found: unknown): Effect.Effect<void, NotConformant> =>
  holds ? Effect.void : Effect.fail(new NotConformant({ rule, found: render(found) }))

/** Data with its keys in order, and bytes as numbers. */
const ordered = (value: unknown): unknown => {
  if (value instanceof Uint8Array) return Array.from(value)
  if (Array.isArray(value)) return value.map(ordered)
  if (typeof value !== "object" || value === null) return value
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined)
  return entries.sort(([left], [right]) => (left < right ? -1 : 1)).map(([key, inner]) => [key, ordered(inner)])
}

/** Fails with the rule unless both are the same data. */
export const same = (found: unknown, expected: unknown, rule: string): Effect.Effect<void, NotConformant> =>
  assert(
    JSON.stringify(ordered(found)) === JSON.stringify(ordered(expected)),
    `${rule}: it is ${render(expected)}`,
    found
  )

/** Returns the reason of an operation's failure, which must have one of these tags. */
export const fails = <A, R, X extends { readonly _tag: string }, T extends X["_tag"]>(
  operation: Effect.Effect<A, { readonly reason: X; readonly message: string }, R>,
  rule: string,
  ...tags: ReadonlyArray<T>
): Effect.Effect<Extract<X, { readonly _tag: T }>, NotConformant, R> => {
  const isWanted = (reason: X): reason is Extract<X, { readonly _tag: T }> => tags.some((tag) => tag === reason._tag)
  const expected = `${rule} fails with ${tags.join(" or ")}`
  return Effect.matchEffect(operation, {
    onFailure: ({ message, reason }) =>
      isWanted(reason) ? Effect.succeed(reason) : broken(expected, `${reason._tag} (${message})`),
    onSuccess: (value) => broken(expected, render(value))
  })
}

/** Runs to its end, which must come within so many milliseconds. */
export const within = <A, E, R>(
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
