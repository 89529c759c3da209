/** The choices of the shown thread: its next input's, or else its own. */
import type { Thread } from "./client.ts"
import type { State } from "./state.ts"

const findThread = ({ thread, threads }: State): Thread | undefined => threads.find(({ id }) => id === thread)

/** The model; empty for the server's own. */
export const modelOf = (state: State): string => state.model ?? findThread(state)?.model ?? ""

/** The mode. A mode that the server no longer offers is its own. */
export const modeOf = (state: State): string => {
  const wanted = state.mode ?? findThread(state)?.mode
  return state.modes.find((one) => one === wanted) ?? state.modes[0] ?? ""
}

/** The level of thinking; empty for the model's own. */
export const thinkingOf = (state: State): string => {
  const wanted = state.thinking ?? findThread(state)?.thinking
  return state.levels.find((one) => one === wanted) ?? ""
}
