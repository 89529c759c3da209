import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../AgentEvent.ts"

/** How many events a reader may be behind before the run waits for it. */
const capacity = 64

type Reader = Queue.Queue<AgentEvent, unknown>

/**
 * Where the events of a tree of runs come together. An event is first put in and then waited for, so interrupting the
 * wait neither loses it nor lets another pass it: the order of `seq` is the order of every reader, without gaps. A reader
 * is at most `capacity` events behind, and one more for each fiber that waits.
 *
 * Nothing is made for a run that nobody watches: `watched` says so before an event is built.
 */
export interface Hub {
  watched: boolean
  seq: number
  readers: ReadonlyArray<Reader>
  waiting: Array<() => void>
  ended: Exit.Exit<unknown, unknown> | undefined
}

export const make = (): Hub => ({ watched: false, seq: 0, readers: [], waiting: [], ended: undefined })

const behind = (hub: Hub): boolean => {
  for (let index = 0; index < hub.readers.length; index++) {
    const reader = hub.readers[index]
    if (reader !== undefined && Queue.sizeUnsafe(reader) > capacity) return true
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

/** Puts an event in, without waiting. */
export const offer = (hub: Hub, event: AgentEvent): void => {
  for (let index = 0; index < hub.readers.length; index++) {
    const reader = hub.readers[index]
    if (reader !== undefined) Queue.offerUnsafe(reader, event)
  }
}

/** Completes when the readers allow more. */
export const wait = (hub: Hub): Effect.Effect<void> => (behind(hub) ? caughtUp(hub) : Effect.void)

/** Ends every reader, with the failure if there is one for them. */
export const end = (hub: Hub, exit: Exit.Exit<unknown, unknown>): void => {
  hub.ended = exit
  for (const reader of hub.readers) finish(reader, exit)
  const waiting = hub.waiting
  hub.waiting = []
  for (const resume of waiting) resume()
}

const finish = (reader: Reader, exit: Exit.Exit<unknown, unknown>): void => {
  if (Exit.isSuccess(exit)) Queue.endUnsafe(reader)
  else Queue.failCauseUnsafe(reader, exit.cause)
}

/** Subscribes at once; what is read is a stream. */
export const subscribe = (hub: Hub) =>
  Effect.map(Queue.unbounded<AgentEvent, unknown>(), (reader) => {
    if (hub.ended === undefined) {
      hub.readers = [...hub.readers, reader]
      hub.watched = true
    } else finish(reader, hub.ended)
    const leave = Effect.sync(() => {
      hub.readers = hub.readers.filter((one) => one !== reader)
      hub.watched = hub.readers.length > 0
      release(hub)
    })
    const pull = Effect.map(Queue.takeAll(reader), (events) => {
      release(hub)
      return events
    })
    return { stream: Stream.fromPull(Effect.succeed(pull)), leave }
  })
