/** Sends the request of a failed turn again. */
import type * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { TurnPart } from "../../core/ChatModel.ts"
import type { ModelError } from "../../core/ModelError.ts"

/** Another go at a turn, and why there is one. */
export interface Again {
  readonly turn: Stream.Stream<TurnPart, ModelError>
  readonly reason: string
}

/**
 * Streams a turn, and when it fails the one that `again` gives (which fails when there is to be none). Each is closed
 * before the next begins. If parts of a failed turn went out, `TurnRestarted` comes before the new ones; a turn in
 * which the provider ran a tool has had its effect, so its failure stands. Arrays of parts pass as they are.
 */
export const reissue = <E, R>(
  first: Stream.Stream<TurnPart, ModelError>,
  again: (error: ModelError) => Effect.Effect<Again, ModelError | E, R>
): Stream.Stream<TurnPart, ModelError | E, R> =>
  Stream.suspend(() => {
    let shown = false
    let acted = false
    const watch = (parts: Arr.NonEmptyReadonlyArray<TurnPart>) => {
      for (const part of parts) {
        shown = part._tag !== "TurnRestarted"
        if (part._tag === "ToolCallStart" && part.providerExecuted === true) acted = true
      }
      return parts
    }
    const attempt = (turn: Stream.Stream<TurnPart, ModelError>): Stream.Stream<TurnPart, ModelError | E, R> =>
      Stream.catch(Stream.mapArray(turn, watch), (error) =>
        acted ? Stream.fail(error) : Stream.unwrap(Effect.map(again(error), restart))
      )
    const restart = ({ turn, reason }: Again): Stream.Stream<TurnPart, ModelError | E, R> => {
      if (!shown) return attempt(turn)
      shown = false
      return Stream.concat(Stream.succeed<TurnPart>({ _tag: "TurnRestarted", reason }), attempt(turn))
    }
    return attempt(first)
  })
