/** Sends the request of a failed turn again. */
import * as Arr from "effect/Array"
import type * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { TurnPart } from "../../core/ChatModel.ts"
import type { AiMessage } from "../../core/Message.ts"
import { isModelError, type ModelError } from "../../core/ModelError.ts"
import { fromPull, plain } from "../../support/effect/pulled.ts"
import { tunnel } from "../../support/effect/tunnel.ts"

/** Another go at a turn, and why there is one. */
export interface Again {
  readonly turn: Stream.Stream<TurnPart, ModelError>
  readonly reason: string
}

/** A turn that is asked for, and what comes of it. */
export interface Asked<E, R> {
  readonly turn: Again["turn"]
  /** Gives another turn when one failed; fails when there is to be none. */
  readonly again: (error: ModelError) => Effect.Effect<Again, ModelError | E, R>
  /** Is told of the message of the turn. */
  readonly done?: ((message: AiMessage) => void) | undefined
}

type Parts = Arr.NonEmptyReadonlyArray<TurnPart>
type Read<R> = Pull.Pull<Parts, ModelError, void, R>

/** A turn as far as it was pulled. */
interface Pulled<R> {
  readonly scope: Scope.Scope
  read: Read<R>
  shown: boolean
  acted: boolean
}

/** What is around this knows a model's failures: the others go by. */
const known = <A, E, R>(work: Effect.Effect<A, ModelError | E, R>): Effect.Effect<A, ModelError, R> =>
  Effect.catch(work, (error) => (isModelError(error) ? Effect.fail(error) : Effect.die(tunnel(error))))

/** Streams a turn in a scope of its own, until it fails. */
const begin = <E, R>(pulled: Pulled<R>, { again, done, turn }: Asked<E, R>): Read<R> => {
  const own = Scope.forkUnsafe(pulled.scope)
  const watch = (parts: Parts): Parts => {
    for (const part of parts) {
      pulled.shown = part._tag !== "TurnRestarted"
      if (part._tag === "ToolCallStart" && part.providerExecuted === true) pulled.acted = true
      else if (part._tag === "TurnDone") done?.(part.message)
    }
    return parts
  }
  const failed = (cause: Cause.Cause<ModelError | Cause.Done>): Read<R> =>
    Pull.isDoneCause(cause)
      ? Effect.failCause(cause)
      : Effect.catchIf(Effect.failCause(cause), isModelError, (error) =>
          Effect.gen(function* () {
            yield* Scope.close(own, Exit.fail(error))
            if (pulled.acted) return yield* Effect.fail(error)
            const { reason, turn } = yield* known(again(error))
            pulled.read = begin(pulled, { turn, again, done })
            if (!pulled.shown) return yield* pulled.read
            pulled.shown = false
            return Arr.of<TurnPart>({ _tag: "TurnRestarted", reason })
          })
        )
  return Effect.flatMap(Channel.toPullScoped(turn.channel, own), (pull) => {
    pulled.read = Effect.catchCause(Effect.map(pull, watch), failed)
    return pulled.read
  })
}

/**
 * Streams a turn, and when it fails the one that `again` gives. Each is closed before the next begins. If parts of a
 * failed turn went out, `TurnRestarted` comes before the new ones; a turn in which the provider ran a tool has had its
 * effect, so its failure stands. Arrays of parts pass as they are. `ask` is run with the first pull. What `ask` and
 * `again` fail with of their own goes by as a defect, until the run makes it a failure again.
 */
export const reissue = <E, R>(
  ask: Effect.Effect<Asked<E, R>, ModelError | E, R>
): Stream.Stream<TurnPart, ModelError, R> =>
  // One channel for what would be several around each turn: a model that waits for its time holds them all.
  plain(
    fromPull((scope) => {
      const pulled: Pulled<R> = {
        scope,
        read: Effect.flatMap(known(ask), (asked) => begin(pulled, asked)),
        shown: false,
        acted: false
      }
      return Effect.succeed(Effect.suspend(() => pulled.read))
    })
  )
