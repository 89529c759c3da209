/** Spans of the operations of services. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type * as Tracer from "effect/Tracer"

/** Spans have no stack trace: it would cost more than everything else. */
const captureStackTrace = false

/** Puts an operation in a span. */
export const span =
  (name: string, attributes: { readonly [key: string]: unknown } = {}) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withSpan(effect, name, { attributes, captureStackTrace })

/** Puts a brief operation in a span if a tracer is present: a span takes two microseconds. */
export const briefSpan =
  (name: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber(({ cache: { tracer } }) => (tracer === undefined ? effect : span(name)(effect)))

/** Puts a stream in a span. */
export const streamSpan =
  (name: string) =>
  <A, E, R>(stream: Stream.Stream<A, E, R>): Stream.Stream<A, E, R> =>
    Stream.withSpan(stream, name, { captureStackTrace })

/** The spans of operations whose parts have none. */
const whole = new WeakSet<Tracer.AnySpan>()

/** Runs `inside` within a whole-operation span, else `outside`. */
const inWhole = <A, E, R>(inside: Effect.Effect<A, E, R>, outside: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.withFiber(({ cache: { span } }) => (span !== undefined && whole.has(span) ? inside : outside))

const mark = Effect.withFiber<void>(({ cache: { span } }) => {
  if (span !== undefined) whole.add(span)
  return Effect.void
})

/** Puts an operation with all its parts in one span: inner services add none. */
export const wholeSpan =
  (name: string, path?: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    inWhole(effect, span(name, path === undefined ? {} : { path })(Effect.andThen(mark, effect)))

/** Puts a stream with all its parts in one span. */
export const wholeStreamSpan =
  (name: string) =>
  <A, E, R>(stream: Stream.Stream<A, E, R>): Stream.Stream<A, E, R> =>
    Stream.unwrap(
      inWhole(Effect.succeed(stream), Effect.succeed(streamSpan(name)(Stream.unwrap(Effect.as(mark, stream)))))
    )
