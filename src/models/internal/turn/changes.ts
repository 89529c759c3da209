/** Changes of the tools inside of a conversation, by the turn behind which they stand. */
import type { ModelRequest, ToolChange } from "../../../core/ChatModel.ts"
import type { Turn } from "./normalize.ts"

/** The last message of the history that a turn holds. */
const endOf = (turn: Turn): number =>
  turn.role === "ai"
    ? turn.calls.reduce((end, { answer }) => Math.max(end, answer.index ?? -1), turn.index)
    : turn.index

const none: ReadonlyMap<Turn, ReadonlyArray<ToolChange>> = new Map()

/** Puts changes behind their turns. */
export const withChanges = (
  turns: ReadonlyArray<Turn>,
  changes: ReadonlyMap<Turn, ReadonlyArray<ToolChange>>
): ReadonlyArray<Turn | ToolChange> =>
  changes.size === 0 ? turns : turns.flatMap((turn) => [turn, ...(changes.get(turn) ?? [])])

/** Finds the turn of each change. */
export const changesBehind = (
  turns: ReadonlyArray<Turn>,
  { toolChanges = [] }: ModelRequest
): ReadonlyMap<Turn, ReadonlyArray<ToolChange>> => {
  if (toolChanges.length === 0) return none
  const placed = new Map<Turn, Array<ToolChange>>()
  for (const change of toolChanges) {
    const turn = turns.find((one) => endOf(one) >= change.after)
    if (turn !== undefined) placed.set(turn, [...(placed.get(turn) ?? []), change])
  }
  return placed
}
