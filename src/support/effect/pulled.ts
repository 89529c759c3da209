/**
 * Streams of pulls, without garbage in old memory.
 *
 * `Channel.fromTransform` writes a function as a property, which V8 puts into old memory with everything it refers to:
 * the request of a turn, until the next full collection. These channels leave 0.25 kB a round to that collection instead
 * of 2.7 (`test/core/loop/garbage.test.ts`). They don't make a round faster (0.92 to 1.0 of A10, A100 and C, 2026-11-28).
 */
import type * as Arr from "effect/Array"
import type * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Effect from "effect/Effect"
import type * as Pull from "effect/Pull"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

type ReadNext<A, E, R> = Pull.Pull<Arr.NonEmptyReadonlyArray<A>, E, void, R>

const prototype = Object.getPrototypeOf(Channel.empty)

const failing = (cause: Cause.Cause<never>) => Effect.succeed(Effect.failCause(cause))

/** False if a version of Effect stores the transform of a channel in another property. */
const isKnown = ((): boolean => {
  const transform = () => Effect.never
  const channel: typeof Channel.empty = Object.assign(Object.create(prototype), { transform })
  return Channel.toTransform(channel) === transform
})()

/** Makes a stream that opens a pull when it begins. The scope closes when the stream ends. */
export const fromPull = <A, E, R, R2>(
  open: (scope: Scope.Scope) => Effect.Effect<ReadNext<A, E, R>, never, R2>
): Stream.Stream<A, Pull.ExcludeDone<E>, R | R2> => {
  if (!isKnown) return Stream.fromChannel(Channel.fromTransform((_, scope) => open(scope)))
  const transform = (_: unknown, scope: Scope.Scope) => Effect.catchCause(open(scope), failing)
  const channel: Channel.Channel<
    Arr.NonEmptyReadonlyArray<A>,
    Pull.ExcludeDone<E>,
    void,
    unknown,
    unknown,
    unknown,
    R | R2
  > = Object.assign(Object.create(prototype), { transform })
  return Stream.fromChannel(channel)
}

/** Transforms the pull of a stream. */
export const transformPull = <A, E, R, B, E2, R2>(
  stream: Stream.Stream<A, E, R>,
  f: (pull: ReadNext<A, E, R>) => ReadNext<B, E2, R2>
): Stream.Stream<B, Pull.ExcludeDone<E2>, R | R2> =>
  fromPull((scope) => Effect.map(Channel.toPullScoped(stream.channel, scope), f))

/** The key of the mark of {@link plain}. */
const mark = Symbol("effect-deepagents/plain")

/** Marks the stream of a turn, but not streams made of it: it fails with a model's failures alone. */
export const plain = <A, E, R>(turn: Stream.Stream<A, E, R>): Stream.Stream<A, E, R> =>
  Object.assign(turn, { [mark]: true })

/** Reports whether {@link plain} marked the stream. */
export const isPlain = (turn: object): boolean => mark in turn
