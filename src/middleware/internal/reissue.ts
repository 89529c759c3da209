/** Repeats the request of a failed turn. */
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

/** A further attempt at a turn, and its reason. */
export interface Attempt {
  readonly turn: Stream.Stream<TurnPart, ModelError>
  readonly reason: string
}

/** A requested turn, and the reactions to its end. */
export interface ReissuedTurn<E, R> {
  readonly turn: Attempt["turn"]
  /** Makes the next attempt after a failure; fails if there must be none. */
  readonly nextAttempt: (error: ModelError) => Effect.Effect<Attempt, ModelError | E, R>
  /** Receives the message of the complete turn. */
  readonly onDone?: ((message: AiMessage) => void) | undefined
}

type Parts = Arr.NonEmptyReadonlyArray<TurnPart>
type NextParts<R> = Pull.Pull<Parts, ModelError, void, R>

/** The state of a pulled turn. */
interface PulledTurn<R> {
  readonly scope: Scope.Scope
  read: NextParts<R>
  isShown: boolean
  hasActed: boolean
}

/** Outer middleware only knows a model's failures. Other failures pass as defects. */
const keepModelErrors = <A, E, R>(work: Effect.Effect<A, ModelError | E, R>): Effect.Effect<A, ModelError, R> =>
  Effect.catch(work, (error) => (isModelError(error) ? Effect.fail(error) : Effect.die(tunnel(error))))

/** Streams a turn in a scope of its own until it fails. */
const begin = <E, R>(pulled: PulledTurn<R>, { nextAttempt, onDone, turn }: ReissuedTurn<E, R>): NextParts<R> => {
  const own = Scope.forkUnsafe(pulled.scope)
  const watch = (parts: Parts): Parts => {
    for (const part of parts) {
      // Nobody sees that a turn was accepted.
      if (part._tag !== "TurnAccepted") pulled.isShown = part._tag !== "TurnRestarted"
      if (part._tag === "ToolCallStart" && part.providerExecuted === true) pulled.hasActed = true
      else if (part._tag === "TurnDone") onDone?.(part.message)
    }
    return parts
  }
  const failed = (cause: Cause.Cause<ModelError | Cause.Done>): NextParts<R> =>
    Pull.isDoneCause(cause)
      ? Effect.failCause(cause)
      : Effect.catchIf(Effect.failCause(cause), isModelError, (error) =>
          Effect.gen(function* () {
            yield* Scope.close(own, Exit.fail(error))
            if (pulled.hasActed) return yield* Effect.fail(error)
            const { reason, turn } = yield* keepModelErrors(nextAttempt(error))
            pulled.read = begin(pulled, { turn, nextAttempt, onDone })
            if (!pulled.isShown) return yield* pulled.read
            pulled.isShown = false
            return Arr.of<TurnPart>({ _tag: "TurnRestarted", reason })
          })
        )
  return Effect.flatMap(Channel.toPullScoped(turn.channel, own), (pull) => {
    pulled.read = Effect.catchCause(Effect.map(pull, watch), failed)
    return pulled.read
  })
}

/**
 * Streams a turn, and after a failure the attempt that `nextAttempt` makes. Each attempt is closed before the next
 * starts. If parts of a failed turn were emitted, `TurnRestarted` precedes the new ones. If the provider ran a tool in
 * a turn, its failure stands. Arrays of parts pass unchanged. `ask` runs with the first pull. Failures of `ask` and
 * `nextAttempt` other than a model's pass as defects until the run restores them.
 */
export const reissue = <E, R>(
  ask: Effect.Effect<ReissuedTurn<E, R>, ModelError | E, R>
): Stream.Stream<TurnPart, ModelError, R> =>
  // One channel instead of several around each turn: a waiting model holds them all.
  plain(
    fromPull((scope) => {
      const pulled: PulledTurn<R> = {
        scope,
        read: Effect.flatMap(keepModelErrors(ask), (reissued) => begin(pulled, reissued)),
        isShown: false,
        hasActed: false
      }
      return Effect.succeed(Effect.suspend(() => pulled.read))
    })
  )
