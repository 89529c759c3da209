/** Names the sub-agents of a response by the place of their call. A resumed sub-agent keeps its name. */
import type { Of } from "../../../core/AgentEvent.ts"
import { StopReason } from "../../../core/StopReason.ts"
import type { Subagent, Tell } from "./part.ts"

interface SubagentState {
  runId: string
  now: Subagent
}

/** The sub-agents of a response, by the place of their call. */
export type Subagents = Map<string, Array<SubagentState>>

const stopReasons: ReadonlySet<string> = new Set(StopReason.literals)
const isDone = (outcome: string): outcome is StopReason => outcome !== "suspended" && stopReasons.has(outcome)

const isOpen = ({ now }: SubagentState): boolean => now.status === "working" || now.status === "interrupted"

const change = (entry: SubagentState, now: Subagent, tell: Tell): void => {
  if (entry.now.status === now.status) return
  entry.now = now
  tell({ _tag: "Subagent", subagent: now })
}

/** Tells of a sub-agent that begins, or goes on. */
export const start = (subagents: Subagents, event: Of<"SubagentStarted">, tell: Tell): void => {
  const { agent, callId, childRunId } = event
  const place = [...event.path.slice(1), callId, agent].map((part) => encodeURIComponent(part.toWellFormed())).join("/")
  const here = subagents.get(place) ?? []
  subagents.set(place, here)
  const entry =
    here.find(({ runId }) => runId === childRunId) ??
    here.find(({ now }) => now.status === "waiting" || now.status === "interrupted")
  if (entry !== undefined) {
    entry.runId = childRunId
    const { usage: _, ...now } = entry.now
    return change(entry, { ...now, status: "working" }, tell)
  }
  const id = here.length === 0 ? place : `${place}#${here.length + 1}`
  const now: Subagent = { id, agent, callId, path: [...event.path, agent], status: "working" }
  here.push({ runId: childRunId, now })
  tell({ _tag: "Subagent", subagent: now })
}

/** Tells of a sub-agent that ended. */
export const end = (
  subagents: Subagents,
  { childRunId, outcome, usage }: Of<"SubagentCompleted">,
  tell: Tell
): void => {
  for (const here of subagents.values()) {
    const entry = here.find(({ runId }) => runId === childRunId)
    if (entry === undefined) continue
    const { usage: _, ...now } = entry.now
    if (isDone(outcome)) return change(entry, { ...now, status: outcome, usage }, tell)
    const status = outcome === "suspended" ? "waiting" : outcome === "interrupted" ? "interrupted" : "failed"
    return change(entry, { ...now, status }, tell)
  }
}

/** Tells of sub-agents that are at work no more: under an answered call, or all of them. */
export const settle = (
  subagents: Subagents,
  status: "waiting" | "failed" | "interrupted",
  callId: string | undefined,
  tell: Tell
): void => {
  for (const here of subagents.values()) {
    for (const entry of here) {
      const isMeant =
        callId === undefined ? entry.now.status === "working" : entry.now.callId === callId && isOpen(entry)
      if (isMeant) change(entry, { ...entry.now, status }, tell)
    }
  }
}
