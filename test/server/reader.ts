/** A reader of frames, as docs/server.md tells clients to write it. */
import { AgentEvent, type Message } from "effect-deepagents"
import type { Server } from "effect-deepagents/server"

export interface Read {
  readonly messages: ReadonlyMap<string, Message.Message>
  readonly calls: ReadonlyMap<string, string>
  readonly requests: ReadonlyMap<string, string>
  readonly end: string
}

const nothing: Read = { messages: new Map(), calls: new Map(), requests: new Map(), end: "" }

const setEntry = <A>(map: ReadonlyMap<string, A>, key: string, value: A): ReadonlyMap<string, A> =>
  new Map(map).set(key, value)

const fold = (read: Read, event: AgentEvent.AgentEvent): Read => {
  if (event.path.length > 1) return read
  if (event._tag === "MessageAppended") {
    return { ...read, messages: setEntry(read.messages, event.message.id, event.message) }
  }
  if (event._tag === "ToolCompleted" || event._tag === "ToolFailed") {
    return { ...read, calls: setEntry(read.calls, event.callId, event.text) }
  }
  if (event._tag === "ApprovalRequested") return { ...read, requests: setEntry(read.requests, event.id, "waits") }
  if (event._tag === "ApprovalResolved") return { ...read, requests: setEntry(read.requests, event.id, event.decision) }
  if (!AgentEvent.isTerminal(event)) return read
  return { ...read, end: `${event._tag} ${event._tag === "RunCompleted" ? event.stopReason : ""}` }
}

export interface State {
  readonly now: Read
  readonly kept: Read
  readonly resets: number
}
const empty: State = { now: nothing, kept: nothing, resets: 0 }

export const foldFrames = (frames: Iterable<Server.Frame>, from: State = empty): State => {
  let { kept, now, resets } = from
  for (const frame of frames) {
    if (frame._tag === "Reset") {
      now = kept = frame.to === "beginning" ? nothing : kept
      resets++
      continue
    }
    now = fold(now, frame.event)
    if (frame.event._tag === "CheckpointSaved" && frame.event.path.length === 1) kept = now
  }
  return { now, kept, resets }
}

const byKey = ([left]: readonly [string, string], [right]: readonly [string, string]) => left.localeCompare(right)

/** What a reader has in the end, to compare. */
export const showState = ({ now }: State) => ({
  messages: [...now.messages.values()].map(({ content, id, role }) => [role, id, content]),
  calls: [...now.calls].toSorted(byKey),
  requests: [...now.requests].toSorted(byKey),
  end: now.end
})
