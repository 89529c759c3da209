/** Brings the events of a tree of runs to their readers, with back-pressure. */
import * as Array from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Pull from "effect/Pull"
import type { AgentEvent } from "../AgentEvent.ts"

/** The number of events that a reader may be behind before the run waits for it. */
const capacity = 64

type Taken = Pull.Pull<Array.NonEmptyReadonlyArray<AgentEvent>, unknown>

/** One who reads: by `pull`, what was said since and was not taken, with the end of the hub as its own. */
interface Reader {
  readonly pull: Taken
  buffer: ReadonlyArray<AgentEvent> & { push(event: AgentEvent): void }
  exit: Exit.Exit<unknown, unknown> | undefined
  /** Gives the reader who waits something to do. One that was interrupted meanwhile takes no notice. */
  wake: ((next: Taken) => void) | undefined
  isWaking: boolean
}

/**
 * The place where the events of a tree of runs come together. An event is first put in and then waited for, so
 * interrupting the wait neither loses it nor lets another pass it: the order of `seq` is the order of every reader,
 * without gaps. A reader is at most `capacity` events behind, and one more for each fiber that waits.
 *
 * A reader is woken when the run next waits for something, and takes all that was said until then: a queue would wake
 * it by way of the event loop, which costs more than the events. Nothing is made for a run that nobody watches:
 * `watched` says so before an event is built.
 */
export interface Hub {
  watched: boolean
  seq: number
  readers: ReadonlyArray<Reader>
  waiting: Array<() => void>
  /** The terminal event: a reader that comes after the end gets it alone. */
  last: AgentEvent | undefined
  /** Set when the last event is in: what a fiber that outlives the run says is said to nobody. */
  isOver: boolean
  ended: Exit.Exit<unknown, unknown> | undefined
}

export const make = (): Hub => ({
  watched: false,
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

/** Puts an event in, without waiting. */
export const offer = (hub: Hub, event: AgentEvent): void => {
  if (hub.isOver) return
  for (let index = 0; index < hub.readers.length; index++) {
    const reader = hub.readers[index]
    if (reader === undefined) continue
    reader.buffer.push(event)
    wake(reader)
  }
}

/** Completes when the readers allow more. */
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

/** Takes what a reader has, or its end; `undefined` when it has to wait. */
const take = (hub: Hub, reader: Reader): Taken | undefined => {
  const events = reader.buffer
  if (Array.isReadonlyArrayNonEmpty(events)) {
    reader.buffer = []
    release(hub)
    return Effect.succeed(events)
  }
  if (reader.exit === undefined) return undefined
  return Exit.isSuccess(reader.exit) ? Cause.done() : Effect.failCause(reader.exit.cause)
}

/** Subscribes at once. */
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
    hub.watched = true
  }
  return reader
}

/** Is for a reader who may go before the end. */
export const leave = (hub: Hub, reader: Reader): Effect.Effect<void> =>
  Effect.sync(() => {
    hub.readers = hub.readers.filter((one) => one !== reader)
    hub.watched = hub.readers.length > 0
    release(hub)
  })
