/** Transcripts of sub-agents, from their events. */
import type { AgentEvent } from "../../../core/AgentEvent.ts"
import { cleanLine } from "../../../support/text/clean.ts"
import * as View from "../../../view/View.ts"
import { partLines } from "../render/part.ts"
import { styleOf } from "../render/style.ts"

interface Transcript {
  readonly name: string
  readonly view: View.View
  readonly parts: ReadonlyArray<View.Part>
}

export interface Transcripts {
  readonly take: (event: AgentEvent) => void
  /** The names of the sub-agents, oldest first. */
  readonly names: () => ReadonlyArray<string>
  /** The transcript at a place in the list. */
  readonly text: (index: number) => string | undefined
}

/** The most sub-agents that are kept, and the most parts of each. */
const most = { agents: 50, parts: 2_000 } as const

const surface = { columns: 100, style: styleOf(false), highlight: undefined }

const lines = (part: View.Part): ReadonlyArray<string> =>
  part.kind === "tool" && part.output !== "" && part.output !== part.summary
    ? [...partLines(part, surface), part.output]
    : partLines(part, surface)

export const makeTranscripts = (): Transcripts => {
  const all = new Map<string, Transcript>()
  return {
    take: (event) => {
      if (event.path.length <= 1) return
      const before = all.get(event.runId) ?? {
        name: event.path.slice(1).map(cleanLine).join(" › "),
        view: View.empty,
        parts: []
      }
      const [view, parts] = View.reduce(before.view, { ...event, path: event.path.slice(-1) })
      const recentParts = parts.length === 0 ? before.parts : [...before.parts, ...parts].slice(-most.parts)
      all.set(event.runId, { ...before, view, parts: recentParts })
      const [oldest] = all.keys()
      if (all.size > most.agents && oldest !== undefined) all.delete(oldest)
    },
    names: () => [...all.values()].map(({ name }) => name),
    text: (index) => {
      const transcript = [...all.values()][index]
      if (transcript === undefined) return undefined
      return [...transcript.parts.flatMap(lines), View.openText(transcript.view)].join("\n").trim()
    }
  }
}
