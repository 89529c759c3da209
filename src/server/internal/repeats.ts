/**
 * Leaves out frames of a log that the store told already. A log learns of an event a moment after the run told it, and so
 * it may have stored events behind the save that stored them.
 */
import { type AgentEvent, isTerminal } from "../../core/AgentEvent.ts"
import { type LogFrame, subagentKeyOf } from "./log.ts"
import type { Frame, Place } from "./position.ts"
import type { StoredEvent } from "./rebuild.ts"

/** The newest frames that the store told to a reader. */
export interface ToldFrames {
  readonly place: Place
  /** The run whose end is stored last. */
  readonly ended: string | undefined
  readonly keys: ReadonlySet<string>
  /** The begins and ends of sub-agents that are stored, by their keys. */
  readonly counts: ReadonlyMap<string, number>
  /** True in the middle of a turn whose message was told. */
  isInTurn: boolean
  /** True once the log tells nothing again. */
  isPast: boolean
}

/** The log is late by a few events: older ones do not come again. */
const most = 400

/** Reports whether an event is about a request, also of a sub-agent: a reader gets both once. */
const isOfRequest = (event: AgentEvent) => event._tag === "ApprovalRequested" || event._tag === "ApprovalResolved"

/** The key of an event that both the store and the log tell; `undefined` for one that only the log tells. */
const keyOf = (event: AgentEvent): string | undefined => {
  const { _tag, runId } = event
  if (_tag === "RunStarted") return `run ${runId}`
  if (_tag === "MessageAppended") return `message ${event.message.id}`
  if (_tag === "RoundCompleted") return `round ${runId} ${event.round}`
  if (isOfRequest(event)) return `${_tag} ${event.id}`
  return _tag === "ToolCalled" || _tag === "ToolCompleted" || _tag === "ToolFailed"
    ? `${_tag} ${runId} ${event.callId}`
    : undefined
}

/** Counts the begins and ends of sub-agents among stored events. An open record is written more than once. */
export const countSubagents = (events: ReadonlyArray<StoredEvent>): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  const runs = new Set<string>()
  for (const { event } of events) {
    // Another run may have calls with the same ids.
    if (event._tag === "RunStarted") counts.clear()
    const key = subagentKeyOf(event)
    if (key === undefined || !("childRunId" in event) || runs.has(key + event.childRunId)) continue
    runs.add(key + event.childRunId)
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return counts
}

/** Reports whether a turn begins here whose message was told. */
const isToldTurn = (keys: ReadonlySet<string>, event: AgentEvent): boolean =>
  event._tag === "RoundStarted" && event.messageId !== undefined && keys.has(`message ${event.messageId}`)

/** Notes the frames that the store told up to a place, and the sub-agents that it knows. */
export const make = (
  { at: place, counts, ended }: Pick<ToldFrames, "counts" | "ended"> & { readonly at: Place },
  frames: ReadonlyArray<Frame>
): ToldFrames => {
  const keys = new Set<string>()
  for (const frame of frames.slice(-most)) {
    const key = frame._tag === "Event" ? keyOf(frame.event) : undefined
    if (key !== undefined) keys.add(key)
  }
  return { place, ended, keys, counts, isInTurn: false, isPast: false }
}

/**
 * Finds the number of the first frame of a log, from `cursor` on, that may be new: nothing is new before the end of a run
 * that the store told. A reader that begins in the middle of a turn learns whether its message was told.
 */
export const skipTold = (state: ToldFrames, frames: ReadonlyArray<LogFrame>, cursor: number): number => {
  const { keys, place } = state
  const end = frames.findLast(
    ({ frame, place: own }) =>
      frame._tag === "Event" &&
      frame.event.path.length === 1 &&
      isTerminal(frame.event) &&
      own.step === place.step &&
      own.leaf === place.leaf
  )
  if (place.isOver && end !== undefined && end.n >= cursor) return end.n + 1
  const begin = frames.findLast(
    ({ frame, n }) =>
      n < cursor && frame._tag === "Event" && frame.event.path.length === 1 && frame.event._tag === "RoundStarted"
  )
  state.isInTurn = begin?.frame._tag === "Event" && isToldTurn(keys, begin.frame.event)
  return cursor
}

/** Reports whether the store told the event of a frame. */
export const isTold = ({ keys }: ToldFrames, frame: Frame): boolean => {
  const key = frame._tag === "Event" ? keyOf(frame.event) : undefined
  return key !== undefined && keys.has(key)
}

/** The parts of a turn, which its message has whole, and its measure. */
const isPart = ({ _tag }: AgentEvent): boolean =>
  _tag === "ContextMeasured" ||
  _tag === "TextDelta" ||
  _tag === "ReasoningStarted" ||
  _tag === "ReasoningDelta" ||
  _tag === "ReasoningCompleted" ||
  _tag === "ToolCallDelta"

/** Reports whether the store told this frame of a log, which follows the frames asked about before. */
export const isRepeat = (state: ToldFrames, { frame, nth }: LogFrame): boolean => {
  if (frame._tag !== "Event") return false
  const { event } = frame
  const key = subagentKeyOf(event)
  if (key !== undefined) return nth <= (state.counts.get(key) ?? 0)
  if (isOfRequest(event)) return isTold(state, frame)
  if (event.path.length > 1) return false
  if (event._tag === "RoundStarted") {
    state.isInTurn = isToldTurn(state.keys, event)
    return state.isInTurn
  }
  if (isPart(event)) return state.isInTurn
  if (event._tag === "CheckpointSaved") {
    state.isPast = event.step >= state.place.step && !state.place.isOver
    return event.step <= state.place.step
  }
  if (isTerminal(event)) {
    state.isPast = true
    return state.place.isOver && event.runId === state.ended
  }
  return isTold(state, frame)
}
