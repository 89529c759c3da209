/** Shows the progress of a workflow: its phases, its agents, their use, and pending requests. */
import * as HashMap from "effect/HashMap"
import * as Option from "effect/Option"
import type { AgentProgress, Progress } from "../../../../code/Workflow.ts"
import type { AgentEvent } from "../../../../core/AgentEvent.ts"
import { isObject, type Json } from "../../../../core/Json.ts"
import { totalTokens, type Usage } from "../../../../core/Usage.ts"
import { cleanLine } from "../../../../support/text/clean.ts"
import { cut } from "../../../../support/text/text.ts"
import { about, count, money, plural } from "../../render/words.ts"

/** The most agents of a phase that are shown one by one. */
const mostShown = 12

const short = (text: string): string => cut(cleanLine(text), 100)

const useOf = (usage: Usage): string =>
  [
    `${about(usage)}${count(totalTokens(usage))} tokens`,
    ...(usage.cost === undefined ? [] : [`${about(usage)}${money(usage.cost)}`])
  ].join(", ")

/** The agents in the order of their begin. */
const agentsOf = ({ agents }: Progress): ReadonlyArray<AgentProgress> =>
  [...HashMap.toEntries(agents)].toSorted(([left], [right]) => left - right).map(([, agent]) => agent)

const isOver = ({ status }: AgentProgress): boolean => status === "done" || status === "stored"

const tally = (agents: ReadonlyArray<AgentProgress>): string => {
  const number = (status: AgentProgress["status"]): number => agents.filter((one) => one.status === status).length
  const parts = [
    ["at work", number("running")],
    ["waiting", number("waiting")],
    ["failed", number("failed")],
    ["known before", number("stored")]
  ] as const
  const more = parts.flatMap(([what, many]) => (many === 0 ? [] : [`${many} ${what}`]))
  return [`${agents.filter(isOver).length} of ${plural(agents.length, "agent")} done`, ...more].join(", ")
}

/** One line: the agents and their use. */
export const summaryOf = (progress: Progress): string => `${tally(agentsOf(progress))}; ${useOf(progress.usage)}`

const marks = { running: "…", waiting: "?", done: "✓", failed: "✗", stored: "=" } as const

const lineOfAgent = ({ calls, label, status, usage, waits }: AgentProgress): ReadonlyArray<string> => [
  `    ${marks[status]} ${short(label)}  ${plural(calls, "call")}, ${useOf(usage)}`,
  ...[...HashMap.values(waits)].map((wait) => `        waits for you: ${short(wait)}`)
]

/** The tree: a line a phase, and below it the agents that are at work, wait or failed. */
export const treeOf = (progress: Progress): ReadonlyArray<string> => {
  const agents = agentsOf(progress)
  const phases = agents.some(({ phase }) => phase === "") ? ["", ...progress.phases] : progress.phases
  return phases.flatMap((phase) => {
    const own = agents.filter((one) => one.phase === phase)
    const open = own.filter((one) => !isOver(one))
    const hiddenCount = open.length - mostShown
    return [
      `  ▸ ${phase === "" ? "agents" : short(phase)}: ${tally(own)}`,
      ...open.slice(0, mostShown).flatMap(lineOfAgent),
      ...(hiddenCount > 0 ? [`    … and ${hiddenCount} more`] : [])
    ]
  })
}

/** The line of a report of the script: a phase, a printed line, or a stored answer. */
const lineOfTold = (told: Json): string | undefined => {
  if (!isObject(told)) return undefined
  const { agent, isStored, message, phase } = told
  if (typeof message === "string") return `  ${short(message)}`
  if (typeof agent === "string") return isStored === true ? `  ${marks.stored} ${short(agent)}` : undefined
  return typeof phase === "string" ? `▸ ${short(phase)}` : undefined
}

/** A line for people who wait at a log: a phase, the end of an agent, a request, a printed line or a warning. */
export const lineOf = (event: AgentEvent, progress: Progress): string | undefined => {
  if (event._tag === "ApprovalRequested") return `  ${marks.waiting} ${short(event.description)}`
  if (event._tag === "Warning") return `  ! ${short(event.message)}`
  // Agents of agents are told by their agent.
  if (event.path.length > 1) return undefined
  if (event._tag === "ToolProgress") return lineOfTold(event.progress)
  if (event._tag !== "SubagentCompleted") return undefined
  const agent = Option.flatMap(HashMap.get(progress.runs, event.childRunId), (id) => HashMap.get(progress.agents, id))
  return Option.isNone(agent)
    ? undefined
    : `  ${marks[agent.value.status]} ${short(agent.value.label)}  ${useOf(agent.value.usage)}`
}
