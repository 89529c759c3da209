/** Reports events. `report…` functions act at once; {@link settleReaders} and {@link emit} are effects that wait. */
import * as Effect from "effect/Effect"
import type { AgentEvent } from "../AgentEvent.ts"
import * as Hub from "./hub.ts"
import type { From, Origin } from "./live.ts"

type Fields<E> = E extends AgentEvent ? Omit<E, "seq" | "runId" | "path" | "at"> : never

// The fields come last: V8 adds to an object that begins as a copy far slower.
const stamp = (origin: Origin, fields: Fields<AgentEvent>): AgentEvent => ({
  seq: origin.hub.seq++,
  runId: origin.runId,
  path: origin.path,
  at: origin.clock.currentTimeMillisUnsafe(),
  ...fields
})

/** Reports an event at once, without waiting for readers. */
export const report = ({ origin }: From, fields: Fields<AgentEvent>): void => {
  if (origin.hub.isWatched) Hub.offer(origin.hub, stamp(origin, fields))
}

/** Reports a piece of streamed text. It is the most frequent event, so one literal makes it. */
export const reportDelta = ({ origin }: From, tag: "TextDelta" | "ReasoningDelta", text: string, at: number): void => {
  const { hub, path, runId } = origin
  if (hub.isWatched) Hub.offer(hub, { _tag: tag, text, seq: hub.seq++, runId, path, at })
}

/** Reports the end of a run. Late readers of the outermost run get this event alone. */
export const reportEnd = (origin: Origin, fields: Fields<AgentEvent>): void => {
  const event = stamp(origin, fields)
  if (origin.path.length === 1) origin.hub.last = event
  if (origin.hub.isWatched) Hub.offer(origin.hub, event)
}

/** Waits for slow readers, unless the run winds up. */
export const settleReaders = ({ origin }: From): Effect.Effect<void> =>
  origin.hub.isWatched && !origin.ending ? Hub.wait(origin.hub) : Effect.void

/** Reports an event when it is run, and waits for slow readers. A run that nobody watches pays nothing. */
export const emit = (from: From, fields: Fields<AgentEvent>): Effect.Effect<void> =>
  from.origin.hub.isWatched
    ? Effect.suspend(() => {
        report(from, fields)
        return settleReaders(from)
      })
    : Effect.void
