/** Sends the request of a failed turn again. */
import * as Arr from "effect/Array"
import * as Channel from "effect/Channel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { TurnPart } from "../../core/ChatModel.ts"
import type { AiMessage } from "../../core/Message.ts"
import { isModelError, type ModelError } from "../../core/ModelError.ts"

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

/**
 * Streams a turn, and when it fails the one that `again` gives. Each is closed before the next begins. If parts of a
 * failed turn went out, `TurnRestarted` comes before the new ones; a turn in which the provider ran a tool has had its
 * effect, so its failure stands. Arrays of parts pass as they are. `ask` is run with the first pull.
 */
export const reissue = <E, R>(
  ask: Effect.Effect<Asked<E, R>, ModelError | E, R>
): Stream.Stream<TurnPart, ModelError | E, R> =>
  // One channel for what would be several around each turn: a model that waits for its time holds them all.
  Stream.fromChannel(
    Channel.fromTransform((_, scope) =>
      Effect.sync(() => {
        type Parts = Arr.NonEmptyReadonlyArray<TurnPart>
        type Read = Pull.Pull<Parts, ModelError | E, void, R>
        let shown = false
        let acted = false
        const start = ({ again, done, turn }: Asked<E, R>): Read => {
          const own = Scope.forkUnsafe(scope)
          const watch = (parts: Parts) => {
            for (const part of parts) {
              shown = part._tag !== "TurnRestarted"
              if (part._tag === "ToolCallStart" && part.providerExecuted === true) acted = true
              else if (part._tag === "TurnDone") done?.(part.message)
            }
            return parts
          }
          const next = (error: ModelError): Read =>
            Effect.gen(function* () {
              yield* Scope.close(own, Exit.fail(error))
              if (acted) return yield* Effect.fail(error)
              const { reason, turn } = yield* again(error)
              read = start({ turn, again, done })
              if (!shown) return yield* read
              shown = false
              return Arr.of<TurnPart>({ _tag: "TurnRestarted", reason })
            })
          return Effect.flatMap(Channel.toPullScoped(turn.channel, own), (pull) => {
            read = Effect.catchIf(Effect.map(pull, watch), isModelError, next)
            return read
          })
        }
        let read: Read = Effect.flatMap(ask, start)
        return Effect.suspend(() => read)
      })
    )
  )
