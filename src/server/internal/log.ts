/** The log of a thread at work: its frames, which readers follow by cursors. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { type AgentEvent, isTerminal } from "../../core/AgentEvent.ts"
import { makeId } from "../../core/Message.ts"
import type { Leaf } from "../../core/SessionStore.ts"
import { type Frame, markOf, type Place, write } from "./position.ts"

/** A frame in its place. `n` is its number in the log. */
export interface LogFrame {
  readonly n: number
  readonly frame: Frame
  readonly place: Place
  readonly size: number
  /** Numbers the begins, and the ends, of sub-agents by call and name; 0 for other events. */
  readonly nth: number
}

/** A leaf of the thread, and the first frame that may not be stored with it. */
export interface Save {
  readonly step: number
  readonly leaf: string
  readonly from: number
}

/** The frames of a call of the root run, and the step at which its answer was stored. */
interface Call {
  readonly frames: ReadonlyArray<LogFrame>
  readonly storedAt: number
}

/** The place of a reader in a log. */
export interface Reader {
  cursor: number
}

export interface Log {
  epoch: string
  frames: Array<LogFrame>
  next: number
  bytes: number
  step: number
  leaf: string
  isOver: boolean
  saves: Array<Save>
  /** The calls of the root run whose answers were not stored at the first of the saves. */
  readonly calls: Map<string, Call>
  /** The calls of the run whose answers are stored. The log learns of an event a moment after the run told it. */
  readonly answered: Set<string>
  /** The begins and ends of sub-agents so far, by their keys. */
  readonly counts: Map<string, number>
  readonly readers: Set<Reader>
  /** Completed by the next change, if somebody waits for it. */
  changed: Deferred.Deferred<void> | undefined
}

const newEpoch = (): string => makeId().replaceAll("-", "").slice(-8)

export const make = (): Log => ({
  epoch: newEpoch(),
  frames: [],
  next: 0,
  bytes: 0,
  step: 0,
  leaf: "0",
  isOver: true,
  saves: [],
  calls: new Map(),
  answered: new Set(),
  counts: new Map(),
  readers: new Set(),
  changed: undefined
})

/** The number of the first frame that is kept. */
export const firstOf = (log: Log): number => log.frames[0]?.n ?? log.next

/** The place behind the last frame. */
export const endOf = ({ epoch, isOver, leaf, next, step }: Log): Place => ({ step, leaf, epoch, told: next, isOver })

/** Wakes the readers that wait. */
export const signal = (log: Log): void => {
  const { changed } = log
  log.changed = undefined
  if (changed !== undefined) Deferred.doneUnsafe(changed, Exit.void)
}

/** Waits for the next change. */
export const nextChange = (log: Log): Effect.Effect<void> =>
  Effect.suspend(() => Deferred.await((log.changed ??= Deferred.makeUnsafe())))

/** Begins at a leaf. Frames of another branch are dropped: their readers go on from the store. */
export const begin = (log: Log, { id, step }: Leaf): void => {
  const leaf = markOf(id)
  const last = log.saves.at(-1)
  if (last !== undefined && (last.step !== step || last.leaf !== leaf)) {
    leave(log)
  }
  log.step = step
  log.leaf = leaf
  log.answered.clear()
  log.counts.clear()
  if (log.saves.length === 0) log.saves.push({ step, leaf, from: log.next })
}

/** Drops all frames, which the store has. Readers at the end go on, others go on from the store. */
export const release = (log: Log): void => {
  const last = log.saves.at(-1)
  log.frames = []
  log.bytes = 0
  log.saves = last === undefined ? [] : [{ ...last, from: log.next }]
}

/** Sends all readers to the store, which has another branch. */
export const leave = (log: Log): void => {
  log.epoch = newEpoch()
  log.frames = []
  log.bytes = 0
  log.saves = []
  log.calls.clear()
  signal(log)
}

/**
 * Notes a stored leaf. Frames from `from` on may not be stored with it. `answers` are the calls whose answers are stored
 * now: until then the frames of a call are not stored, even if something else is.
 */
export const save = (log: Log, { id, step }: Leaf, from: number, answers: ReadonlyArray<string>): void => {
  log.saves.push({ step, leaf: markOf(id), from })
  const first = log.saves[0]?.step ?? step
  for (const callId of answers) {
    log.answered.add(callId)
    const call = log.calls.get(callId)
    if (call !== undefined) log.calls.set(callId, { ...call, storedAt: step })
  }
  for (const [callId, { storedAt }] of log.calls) if (storedAt <= first) log.calls.delete(callId)
}

/** The frames before `from` that were not stored with a leaf: those of calls without a stored answer. */
export const openFrames = ({ calls }: Log, { from, step }: Save): ReadonlyArray<LogFrame> =>
  [...calls.values()].flatMap(({ frames, storedAt }) => (storedAt > step ? frames.filter(({ n }) => n < from) : []))

/** The id of the call of the root run that an event is about. */
const callOf = (event: AgentEvent): string | undefined =>
  event.path.length === 1 &&
  (event._tag === "ToolCalled" || event._tag === "ToolCompleted" || event._tag === "ToolFailed")
    ? event.callId
    : undefined

/** The key of a begin or an end of a sub-agent: its run has another id in the store. */
export const subagentKeyOf = (event: AgentEvent): string | undefined =>
  event._tag === "SubagentStarted" || event._tag === "SubagentCompleted"
    ? JSON.stringify([event._tag, event.path, event.callId, event.agent])
    : undefined

/** Counts a begin or an end of a sub-agent. */
const countSubagent = ({ counts }: Log, event: AgentEvent): number => {
  const key = subagentKeyOf(event)
  if (key === undefined) return 0
  const nth = (counts.get(key) ?? 0) + 1
  counts.set(key, nth)
  return nth
}

/** Estimates the memory of an event. */
const sizeOf = (event: AgentEvent): number =>
  event._tag === "TextDelta" || event._tag === "ReasoningDelta"
    ? 192 + 2 * event.text.length
    : 192 + 2 * JSON.stringify(event).length

/** The most bytes of a log, in multiples of `keep`, while a reader is behind. */
const patience = 8

/** Drops frames that the store has. Frames behind the last save are nowhere else, and stay. */
const trim = (log: Log, keep: number): void => {
  if (log.bytes <= keep) return
  const slowest = Math.min(...[...log.readers].map(({ cursor }) => cursor))
  let most = log.saves.at(-1)?.from ?? 0
  if (log.bytes <= keep * patience) most = Math.min(most, slowest)
  let count = 0
  for (const { n, size } of log.frames) {
    if (n >= most || log.bytes <= keep) break
    log.bytes -= size
    count++
  }
  if (count === 0) return
  log.frames = log.frames.slice(count)
  const first = firstOf(log)
  log.saves = log.saves.filter(({ from }, index) => from >= first || index === log.saves.length - 1)
}

/** Appends events, and wakes readers. */
export const tell = (log: Log, events: ReadonlyArray<AgentEvent>, keep: number): void => {
  for (const event of events) {
    if (event.path.length === 1 && event._tag === "CheckpointSaved") {
      const saved = log.saves.findLast(({ step }) => step === event.step)
      log.step = event.step
      log.leaf = saved?.leaf ?? log.leaf
      log.isOver = false
    }
    if (event.path.length === 1 && isTerminal(event)) log.isOver = true
    const n = log.next++
    const size = sizeOf(event)
    const place = endOf(log)
    const logged: LogFrame = {
      n,
      frame: { _tag: "Event", position: write(place), event },
      place,
      size,
      nth: countSubagent(log, event)
    }
    log.frames.push(logged)
    log.bytes += size
    const callId = callOf(event)
    if (callId !== undefined && !log.answered.has(callId)) {
      log.calls.set(callId, { frames: [...(log.calls.get(callId)?.frames ?? []), logged], storedAt: Infinity })
    }
  }
  trim(log, keep)
  signal(log)
}
