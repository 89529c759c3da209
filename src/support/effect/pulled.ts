/**
 * Streams of pulls, for what is streamed again and again, as the turns of a model are.
 *
 * `Channel.fromTransform` writes a function as the value of a property. V8 makes such a function in old memory, and keeps
 * all that it sees until the next full collection: here a request, and with it the conversation of a run that may have
 * ended long ago. The channels made here are the same but for that.
 */
import type * as Arr from "effect/Array"
import type * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Effect from "effect/Effect"
import type * as Pull from "effect/Pull"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

type Read<A, E, R> = Pull.Pull<Arr.NonEmptyReadonlyArray<A>, E, void, R>

const prototype = Object.getPrototypeOf(Channel.empty)

const failing = (cause: Cause.Cause<never>) => Effect.succeed(Effect.failCause(cause))

/** False if Effect keeps what a channel does elsewhere than where it is put here. */
const isKnown = ((): boolean => {
  const transform = () => Effect.never
  const channel: typeof Channel.empty = Object.assign(Object.create(prototype), { transform })
  return Channel.toTransform(channel) === transform
})()

/** Makes a stream of the pull that `open` gives when the stream is begun; its scope is closed when the stream is left. */
export const fromPull = <A, E, R, R2>(
  open: (scope: Scope.Scope) => Effect.Effect<Read<A, E, R>, never, R2>
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

/** Makes a stream of the pull of another. */
export const transformPull = <A, E, R, B, E2, R2>(
  stream: Stream.Stream<A, E, R>,
  f: (pull: Read<A, E, R>) => Read<B, E2, R2>
): Stream.Stream<B, Pull.ExcludeDone<E2>, R | R2> =>
  fromPull((scope) => Effect.map(Channel.toPullScoped(stream.channel, scope), f))

/** The key of what is said of a stream by {@link plain}. */
const mark = Symbol("effect-deepagents/plain")

/** Says of the stream of a turn, not of what is made of it, that it fails with a model's failures alone. */
export const plain = <A, E, R>(turn: Stream.Stream<A, E, R>): Stream.Stream<A, E, R> =>
  Object.assign(turn, { [mark]: true })

/** Reports whether the stream of a turn is known to fail with a model's failures alone. */
export const isPlain = (turn: object): boolean => mark in turn
