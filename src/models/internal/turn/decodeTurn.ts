/** Runs a provider's decoder over its events: parts as they come, the failure behind the parts that came before it. */
import * as Array from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import * as Stream from "effect/Stream"
import type { TurnPart } from "../../../core/ChatModel.ts"
import type { ModelError } from "../../../core/ModelError.ts"

/** Output of a decoder while it reads. */
export interface Sink {
  readonly emit: (part: TurnPart) => void
  /** An event of a type that the decoder does not know; it goes on without it. */
  readonly unknown: (type: string) => void
}

/**
 * The decoder of one turn, in plain JavaScript. `take` and `end` say what is wrong with the turn, if anything is;
 * nothing is read after that. `end` is called when the events ended in good order. `isWhole` says that the end marker
 * was seen: a server that then holds the connection, or drops it, does no harm.
 */
export interface TurnDecoder<Event> {
  readonly take: (event: Event) => ModelError | undefined | void
  readonly end: () => ModelError | undefined
  readonly isWhole?: (() => boolean) | undefined
}

/** Time that a server may take to close behind the end marker. Waiting lets the connection be used again. */
const grace = "1 second"

/**
 * Decodes a turn. It logs unknown types of events at debug level, each once. `reportedEvents` remembers them for as
 * long as its owner lives.
 */
export const decodeTurn = <Event, R>(
  events: Stream.Stream<Event, ModelError, R>,
  makeDecoder: (sink: Sink) => TurnDecoder<Event>,
  reportedEvents: Set<string>
): Stream.Stream<TurnPart, ModelError, R> =>
  Stream.transformPull(events, (pull) =>
    Effect.sync(() => {
      let parts: Array<TurnPart> = []
      let fresh: Array<string> = []
      let failure: ModelError | undefined
      let over = false
      const sink: Sink = {
        emit: (part) => void parts.push(part),
        unknown: (type) => {
          if (reportedEvents.has(type)) return
          reportedEvents.add(type)
          fresh.push(type)
        }
      }
      const decoder = makeDecoder(sink)
      type Next = Pull.Pull<Array.NonEmptyReadonlyArray<TurnPart>, ModelError, void, R>

      const deliver = (): Next => {
        const batch = parts
        parts = []
        const next: Next = Array.isReadonlyArrayNonEmpty(batch) ? Effect.succeed(batch) : nextParts
        if (fresh.length === 0) return next
        const types = fresh.join(", ")
        fresh = []
        return Effect.andThen(Effect.logDebug(`unknown events in a model's stream were ignored: ${types}`), next)
      }
      const patient = Effect.suspend(() =>
        decoder.isWhole?.() === true ? Effect.catch(Effect.timeout(pull, grace), () => Cause.done()) : pull
      )
      const more = Effect.flatMap(patient, (batch) => {
        for (const event of batch) {
          failure = decoder.take(event) ?? undefined
          if (failure !== undefined) break
        }
        return deliver()
      })
      const nextParts: Next = Effect.suspend((): Next => {
        if (failure !== undefined) return Effect.fail(failure)
        if (over) return Cause.done()
        return Pull.catchDone(more, () => {
          over = true
          failure = decoder.end()
          return deliver()
        })
      })
      return nextParts
    })
  )
