/** Takes the events of a turn: the view changes, and finished parts go to the scrollback. */
import type { AgentEvent } from "../../../core/AgentEvent.ts"
import { priced, type Prices } from "../../../core/Usage.ts"
import * as Subagents from "../../../middleware/Subagents.ts"
import * as View from "../../../view/View.ts"
import { makeIsToldWarning } from "../render/told.ts"
import type { Questions } from "./asking.ts"
import type { UiState } from "./state.ts"

/** Tells whether the line of an event's part says nothing new. */
const makeIsSaid = (asking: Pick<Questions, "wasAsked">) => {
  /** The calls whose sub-agents have a line of their own. */
  const delegated = new Set<string>()
  /** The calls that the person rejected. */
  const rejected = new Set<string>()
  const isToldWarning = makeIsToldWarning()
  return (event: AgentEvent): boolean => {
    // A resumed conversation was shown, with the place where its answer was cut off.
    if (event._tag === "CheckpointLoaded") return true
    if (event._tag === "ApprovalResolved" && event.decision === "reject" && asking.wasAsked(event.id)) {
      rejected.add(event.callId)
    }
    if (event._tag === "Warning") return isToldWarning(event)
    if (event._tag === "ToolFailed") return rejected.delete(event.callId)
    if (event._tag === "SubagentCompleted") delegated.add(event.callId)
    if (event._tag === "ToolCompleted") return delegated.delete(event.callId) && event.toolName === Subagents.toolName
    // A call that nobody was asked about needs no line about its approval.
    return event._tag === "ApprovalResolved" && event.decision === "approve" && !asking.wasAsked(event.id)
  }
}

/** The view after an event, and the parts that it finished. */
export type Step = readonly [view: View.View, parts: ReadonlyArray<View.Part>]

/** Takes events of a turn at once. `step` is given for events that were folded elsewhere. `commit` writes parts, without the diff that a question has shown. */
export const makeTakeEvent = (options: {
  readonly state: UiState
  readonly asking: Pick<Questions, "hasShown" | "wasAsked">
  readonly prices: () => Prices | undefined
  readonly commit: (parts: ReadonlyArray<View.Part>, hasShownDiff: boolean) => void
  readonly onStatus: () => void
}) => {
  const { asking, commit, state } = options
  const isSaid = makeIsSaid(asking)
  return (event: AgentEvent, step?: Step): void => {
    const prices = options.prices()
    const pricedEvent =
      prices !== undefined && "usage" in event ? { ...event, usage: priced(event.usage, prices) } : event
    const before = state.view.status
    const [view, parts] = step ?? View.reduce(state.view, pricedEvent)
    state.view = view
    if (event._tag === "Steered") state.queue = state.queue.filter(({ id }) => id !== event.messageId)
    const isNews = !isSaid(event)
    if (isNews && parts.length > 0) commit(parts, event._tag === "ToolCompleted" && asking.hasShown(event))
    if (before !== view.status) options.onStatus()
  }
}
