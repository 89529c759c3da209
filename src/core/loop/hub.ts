/** Brings the events of a tree of runs to their readers, with back-pressure. */
import * as Array from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Pull from "effect/Pull"
import type { AgentEvent } from "../AgentEvent.ts"

/** The number of events that a reader may be behind before the run waits for it. */
const capacity = 64

type NextEvents = Pull.Pull<Array.NonEmptyReadonlyArray<AgentEvent>, unknown>

/** A reader of events: `pull` takes the unread events, or the end of the hub. */
interface Reader {
  readonly pull: NextEvents
  buffer: ReadonlyArray<AgentEvent> & { push(event: AgentEvent): void }
  exit: Exit.Exit<unknown, unknown> | undefined
  /** Resumes the waiting reader. An interrupted reader ignores it. */
  wake: ((next: NextEvents) => void) | undefined
  isWaking: boolean
}

/**
 * Collects the events of a tree of runs. An event is put in first and waited for afterwards, so an interrupted wait
 * neither loses it nor reorders it: every reader sees all events in the order of `seq`. A reader is at most `capacity`
 * events behind, plus one for each waiting fiber.
 *
 * A reader wakes when the run next waits, and takes all events until then. A queue would wake it by the event loop,
 * which costs more than the events. Unwatched runs build no events (`isWatched`).
 */
export interface Hub {
  isWatched: boolean
  seq: number
  readers: ReadonlyArray<Reader>
  waiting: Array<() => void>
  /** The terminal event: a reader that comes after the end gets it alone. */
  last: AgentEvent | undefined
  /** True after the last event: events of fibers that outlive the run are dropped. */
  isOver: boolean
  ended: Exit.Exit<unknown, unknown> | undefined
}

export const make = (): Hub => ({
  isWatched: false,
  seq: 0,
  readers: [],
  waiting: [],
  last: undefined,
  isOver: false,
  ended: undefined
})

const behind = (hub: Hub): boolean => {
  for (let index = 0; index < hub.readers.length; index++) {
    const reader = hub.readers[index]
    if (reader !== undefined && reader.buffer.length > capacity) return true
  }
  return false
}

const release = (hub: Hub): void => {
  if (hub.waiting.length === 0 || behind(hub)) return
  const waiting = hub.waiting
  hub.waiting = []
  for (const resume of waiting) resume()
}

/** Waits until every reader is near enough. */
const caughtUp = (hub: Hub): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const wake = () => resume(Effect.void)
    if (!behind(hub)) return wake()
    hub.waiting.push(wake)
    return Effect.sync(() => {
      hub.waiting = hub.waiting.filter((one) => one !== wake)
    })
  })

const wake = (reader: Reader): void => {
  if (reader.wake === undefined || reader.isWaking) return
  reader.isWaking = true
  queueMicrotask(() => {
    reader.isWaking = false
    const waiting = reader.wake
    reader.wake = undefined
    waiting?.(reader.pull)
  })
}

export const offer = (hub: Hub, event: AgentEvent): void => {
  if (hub.isOver) return
  for (let index = 0; index < hub.readers.length; index++) {
    const reader = hub.readers[index]
    if (reader === undefined) continue
    reader.buffer.push(event)
    wake(reader)
  }
}

export const wait = (hub: Hub): Effect.Effect<void> => (behind(hub) && !hub.isOver ? caughtUp(hub) : Effect.void)

/** Ends every reader, with the failure if there is one for them. */
export const end = (hub: Hub, exit: Exit.Exit<unknown, unknown>): void => {
  hub.ended = exit
  for (const reader of hub.readers) {
    reader.exit = exit
    wake(reader)
  }
  const waiting = hub.waiting
  hub.waiting = []
  for (const resume of waiting) resume()
}

/** Takes the unread events of a reader, or its end; `undefined` when it must wait. */
const take = (hub: Hub, reader: Reader): NextEvents | undefined => {
  const events = reader.buffer
  if (Array.isReadonlyArrayNonEmpty(events)) {
    reader.buffer = []
    release(hub)
    return Effect.succeed(events)
  }
  if (reader.exit === undefined) return undefined
  return Exit.isSuccess(reader.exit) ? Cause.done() : Effect.failCause(reader.exit.cause)
}

export const subscribe = (hub: Hub): Reader => {
  const reader: Reader = {
    pull: Effect.suspend(() => take(hub, reader) ?? woken),
    buffer: hub.ended === undefined || hub.last === undefined ? [] : [hub.last],
    exit: hub.ended,
    wake: undefined,
    isWaking: false
  }
  const woken = Effect.callback<Array.NonEmptyReadonlyArray<AgentEvent>, unknown>((resume) => {
    reader.wake = resume
  })
  if (hub.ended === undefined) {
    hub.readers = hub.readers.concat(reader)
    hub.isWatched = true
  }
  return reader
}

/** Is for a reader who may go before the end. */
export const leave = (hub: Hub, reader: Reader): Effect.Effect<void> =>
  Effect.sync(() => {
    hub.readers = hub.readers.filter((one) => one !== reader)
    hub.isWatched = hub.readers.length > 0
    release(hub)
  })
