import type { ScreenDesk } from "../approvals/desk.ts"
/** The keys of a chat that the editor does not handle. */
import type { Bindings } from "../input/bindings.ts"
import type { Input } from "../input/input.ts"
import { actionOf } from "../input/keys.ts"
import type { Completion } from "./completion/completion.ts"
import { isWorking, type Intent, type UiState } from "./state.ts"

/** Time for the second Ctrl+C that leaves, in milliseconds. */
const leaveWithin = 2_000

/** Time for the second Esc that rewinds, in milliseconds. */
const rewindWithin = 800

/** The parts of a chat that keys change. */
export interface Target {
  readonly state: UiState
  readonly input: Input
  readonly completion: Completion
  readonly bindings: Bindings
  readonly desk: () => ScreenDesk
  readonly now: () => number
  readonly intend: (intent: Intent) => void
  readonly repaint: () => void
  /** Asks for a frame. */
  readonly request: () => void
}

/** Queues the draft behind the turn. A tab does nothing while no turn runs. */
const queueDraft = ({ completion, input, intend, state }: Target, data: string): boolean => {
  if (!isWorking(state)) return data === "\t"
  const text = input.text().trim()
  if (text === "") return true
  input.set("")
  completion.remember([text])
  intend({ _tag: "Say", text, kind: "followUp" })
  return true
}

/** Drops the draft. Without a draft, interrupts, and leaves at the second press. */
const cancel = ({ completion, input, intend, now, request, state }: Target): boolean => {
  const text = input.text()
  if (text !== "") {
    completion.remember([text])
    input.set("")
    return true
  }
  if (now() < state.leaveAt) intend({ _tag: "Do", what: "leave" })
  else if (isWorking(state)) intend({ _tag: "Do", what: "interrupt" })
  state.leaveAt = now() + leaveWithin
  setTimeout(request, leaveWithin).unref()
  return true
}

const interrupt = ({ intend, now, state }: Target): boolean => {
  if (isWorking(state)) intend({ _tag: "Do", what: "interrupt" })
  else if (now() - state.escapeAt < rewindWithin) intend({ _tag: "Do", what: "rewind" })
  state.escapeAt = now()
  return true
}

/** Takes a key. `false` if the editor should have it. */
export const takeKey = (target: Target, data: string): boolean => {
  const { completion, desk, input, intend, state } = target
  const isEmpty = input.text() === ""
  const action = actionOf(data, target.bindings)
  switch (action) {
    case "queue":
      return queueDraft(target, data)
    case "interrupt":
      return interrupt(target)
    case "cancel":
      return cancel(target)
    case "leave":
      if (!isEmpty) return false
      intend({ _tag: "Do", what: "leave" })
      return true
    case "search":
      completion.search()
      return true
    case "takeBack":
    case "external":
    case "output":
    case "image":
    case "suspend":
      intend({ _tag: "Do", what: action })
      return true
    case "plan":
      state.isPlanOpen = !state.isPlanOpen
      return true
    case "mode":
      desk().nextMode()
      return true
    case "repaint":
      target.repaint()
      return true
    case undefined:
      if (data !== "\u0015" || !isEmpty || state.queue.length === 0) return false
      intend({ _tag: "Do", what: "dropQueue" })
      return true
  }
}
