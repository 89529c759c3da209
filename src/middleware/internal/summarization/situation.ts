/** One request that may be too long, and its measures. */
import * as Effect from "effect/Effect"
import type * as Backend from "../../../core/Backend.ts"
import type { Message } from "../../../core/Message.ts"
import type { Run } from "../../../core/Run.ts"
import type { Limits, Size, Stretch } from "./limits.ts"
import { offload } from "./offload.ts"
import type { Offload, Record, Ref } from "./record.ts"
import type { Author } from "./summarise.ts"
import type { Meter } from "./tokens.ts"
import { leadingOf, type View, viewOf } from "./view.ts"

/** Services and hooks of a compaction. */
export interface Outside<E, R> {
  readonly author: (run: Run) => Effect.Effect<Author, unknown, R>
  readonly backend: Effect.Effect<Backend.Service | undefined, never, R>
  readonly keep: ((run: Run) => Effect.Effect<string, E, R>) | undefined
}

/** One request that is too long, and its counts: `frame` is everything but its messages. */
export interface Situation {
  readonly run: Run
  readonly history: ReadonlyArray<Message>
  readonly record: Record
  readonly view: View
  readonly meter: Meter
  readonly frame: number
  readonly ratio: number
  readonly limits: Limits
}

export const refAt = (history: ReadonlyArray<Message>, index: number): Ref => ({ id: history[index]?.id ?? "", index })

/** Finds the first foldable message. */
export const firstOf = ({ history, view }: Situation): number => Math.max(view.foldedTo + 1, leadingOf(history))

export const stretchOf = (at: Situation): Stretch => ({
  history: at.history,
  first: firstOf(at),
  tokensAt: (index) => {
    const message = at.view.messages[at.view.indexOf(index)]
    return message === undefined ? 0 : at.meter.message(message)
  }
})

/** Counts a request with this view, in real tokens. */
export const sizeOf = ({ frame, ratio }: Situation, view: View): Size => ({
  tokens: (frame + view.tokens) * ratio,
  messages: view.messages.length
})

/** The longest tail, in tokens of the meter: never more than half of the room for messages. */
export const tailSize = ({ frame, limits, ratio }: Situation, share: number): Size => ({
  tokens: share * Math.max(0, Math.min(limits.tail.tokens / ratio, (limits.trigger / ratio - frame) / 2)),
  messages: share * limits.tail.messages
})

/** The same request with another record. */
export const withRecord = (at: Situation, record: Record): Situation =>
  record === at.record ? at : { ...at, record, view: viewOf(at.history, record, at.meter) }

/** Writes the messages that are about to be hidden. A failure causes a warning, and the record gets no pointer. */
export const offloaded = Effect.fnUntraced(function* <E, R>(outside: Outside<E, R>, at: Situation, end: number) {
  const backend = yield* outside.backend
  if (backend === undefined) return undefined
  return yield* Effect.matchEffect(offload(backend, at.run, at.history, at.record.offload, end), {
    onSuccess: (result) => Effect.succeed<Offload | undefined>(result),
    onFailure: (error) =>
      Effect.as(at.run.warn("summarization-offload", `The history was not written down: ${error.message}`), undefined)
  })
})
