/** Spans of the operations of services. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type * as Tracer from "effect/Tracer"

/** There is no stack trace in a span: that would cost more than all the rest. */
const captureStackTrace = false

/** Puts an operation in a span. */
export const span =
  (name: string, attributes: { readonly [key: string]: unknown } = {}) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withSpan(effect, name, { attributes, captureStackTrace })

/** Puts an operation in a span if somebody traces: for one of a few microseconds, of which a span takes two. */
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

/** Does one thing in an operation that has a span for all its parts, and another outside of any. */
const inWhole = <A, E, R>(inside: Effect.Effect<A, E, R>, outside: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.withFiber(({ cache: { span } }) => (span !== undefined && whole.has(span) ? inside : outside))

const mark = Effect.withFiber<void>(({ cache: { span } }) => {
  if (span !== undefined) whole.add(span)
  return Effect.void
})

/** Puts an operation in a span, with all its parts: the services behind it put on none of their own. */
export const wholeSpan =
  (name: string, path?: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    inWhole(effect, span(name, path === undefined ? {} : { path })(Effect.andThen(mark, effect)))

/** Puts a stream in a span, with all its parts. */
export const wholeStreamSpan =
  (name: string) =>
  <A, E, R>(stream: Stream.Stream<A, E, R>): Stream.Stream<A, E, R> =>
    Stream.unwrap(
      inWhole(Effect.succeed(stream), Effect.succeed(streamSpan(name)(Stream.unwrap(Effect.as(mark, stream)))))
    )
