/** The progress of a workflow for people, as a pure function of its events. */
import * as HashMap from "effect/HashMap"
import * as Option from "effect/Option"
import type { AgentEvent } from "../../../core/AgentEvent.ts"
import { isObject, type Json } from "../../../core/Json.ts"
import { add, type Usage, zero } from "../../../core/Usage.ts"
import { valueAt } from "../../../support/json/valueAt.ts"

/** An agent of a workflow. */
export interface AgentProgress {
  /** The label that the script gave it, or its prompt. */
  readonly label: string
  /** The phase that it belongs to; empty before the first one. */
  readonly phase: string
  /** `stored`: an earlier input had its answer. */
  readonly status: "running" | "waiting" | "done" | "failed" | "stored"
  /** The calls of tools, its sub-agents' too. */
  readonly calls: number
  readonly usage: Usage
  /** The pending decisions of a person, by request. */
  readonly waits: HashMap.HashMap<string, string>
}

/** The progress of a workflow: its phases in order, its agents in the order of their begin, and the whole use. */
export interface Progress {
  readonly phases: ReadonlyArray<string>
  readonly agents: HashMap.HashMap<number, AgentProgress>
  readonly usage: Usage
  /** The agent that a run belongs to. */
  readonly runs: HashMap.HashMap<string, number>
}

/** The progress before the first event. */
export const noProgress: Progress = { phases: [], agents: HashMap.empty(), usage: zero, runs: HashMap.empty() }

const change = (
  progress: Progress,
  runId: string,
  edit: (agent: AgentProgress) => Partial<AgentProgress>
): Progress => {
  const id = HashMap.get(progress.runs, runId)
  if (Option.isNone(id)) return progress
  const agents = HashMap.modify(progress.agents, id.value, (agent) => ({ ...agent, ...edit(agent) }))
  return { ...progress, agents }
}

const addPhase = (all: ReadonlyArray<string>, phase: string): ReadonlyArray<string> =>
  phase === "" || all.includes(phase) ? all : [...all, phase]

/** Takes a report of the workflow: a phase, the begin of an agent, or a stored answer. */
const takeTold = (progress: Progress, report: Json): Progress => {
  if (!isObject(report)) return progress
  const { agent, id, phase, runId } = report
  if (typeof phase !== "string") return progress
  const phases = addPhase(progress.phases, phase)
  if (typeof agent !== "string" || typeof id !== "number") return { ...progress, phases }
  const before = HashMap.get(progress.agents, id)
  const begun: AgentProgress = Option.getOrElse(before, () => ({
    label: agent,
    phase,
    status: "stored",
    calls: 0,
    usage: zero,
    waits: HashMap.empty()
  }))
  return {
    ...progress,
    phases,
    agents: HashMap.set(progress.agents, id, typeof runId === "string" ? { ...begun, status: "running" } : begun),
    runs: typeof runId === "string" ? HashMap.set(progress.runs, runId, id) : progress.runs
  }
}

const outcomes: { readonly [outcome: string]: AgentProgress["status"] } = {
  failed: "failed",
  interrupted: "failed",
  suspended: "waiting"
}

const withoutWait = (agent: AgentProgress, id: string): Partial<AgentProgress> => {
  const waits = HashMap.remove(agent.waits, id)
  return { waits, status: agent.status === "waiting" && HashMap.isEmpty(waits) ? "running" : agent.status }
}

/** Takes an act of an agent, or of its own agents. */
const takeDone = (progress: Progress, event: AgentEvent): Progress => {
  if (event._tag === "ToolCalled") return change(progress, event.runId, ({ calls }) => ({ calls: calls + 1 }))
  if (event._tag === "ApprovalRequested") {
    return change(progress, event.runId, ({ waits }) => ({
      status: "waiting",
      waits: HashMap.set(waits, event.id, event.description)
    }))
  }
  return event._tag === "ApprovalResolved"
    ? change(progress, event.runId, (agent) => withoutWait(agent, event.id))
    : progress
}

/** Gives the progress after an event of the workflow, which `Agent.stream` and `Agent.start` give. */
export const advance = (progress: Progress, event: AgentEvent): Progress => {
  const isOwn = event.path.length === 1
  if (event._tag === "ToolProgress") return isOwn ? takeTold(progress, event.progress) : progress
  if (event._tag === "SubagentStarted") {
    const id = HashMap.get(progress.runs, event.runId)
    return Option.isNone(id) ? progress : { ...progress, runs: HashMap.set(progress.runs, event.childRunId, id.value) }
  }
  if (event._tag === "SubagentCompleted") {
    // Agents of agents end within their agent.
    return isOwn
      ? change(progress, event.childRunId, () => ({ status: valueAt(outcomes, event.outcome) ?? "done" }))
      : progress
  }
  if (event._tag !== "RoundCompleted") return takeDone(progress, event)
  return change({ ...progress, usage: add(progress.usage, event.usage) }, event.runId, ({ usage }) => ({
    usage: add(usage, event.usage)
  }))
}
