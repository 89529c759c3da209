/**
 * One span for one operation of a service: the services behind it put on none of their own.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Tracer from "effect/Tracer"

/** The spans that were put on here. */
const own = new WeakSet<Tracer.AnySpan>()

/** Chooses by whether an operation is a part of another one that has a span. */
const unlessPart = <A, E, R>(part: Effect.Effect<A, E, R>, whole: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.withFiber(({ cache: { span } }) => (span !== undefined && own.has(span) ? part : whole))

/** Runs an operation in a span. */
export const operation = <A, E>(
  name: string,
  path: string | undefined,
  effect: Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  unlessPart(
    effect,
    Effect.useSpan(name, path === undefined ? {} : { attributes: { path } }, (span) => {
      own.add(span)
      return Effect.provideService(effect, Tracer.ParentSpan, span)
    })
  )

/** Runs a stream in a span. */
export const stream = <A, E>(name: string, whole: Stream.Stream<A, E>): Stream.Stream<A, E> =>
  Stream.unwrap(
    unlessPart(
      Effect.succeed(whole),
      Effect.map(Effect.makeSpanScoped(name), (span) => {
        own.add(span)
        return Stream.provideService(whole, Tracer.ParentSpan, span)
      })
    )
  )
