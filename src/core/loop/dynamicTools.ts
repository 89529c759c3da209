/** Tools that come and go: asks the middleware that gives them, before each round. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as AgentState from "../AgentState.ts"
import { finalAnswer, type Tool } from "../Tool.ts"
import type { Live } from "./live.ts"
import { withAnswerTool } from "./output.ts"
import { digestOf, extend, problemOf } from "./toolset.ts"

/** The digests of tools that come and go, by name, as the run last saw them. */
const promised = AgentState.slot("tools", {
  schema: Schema.Record(Schema.String, Schema.String),
  initial: {}
})

/** So many names are told of at once: a server may have thousands. */
const most = 10

const listFirst = (problems: ReadonlyArray<string>): string =>
  problems.slice(0, most).join("; ") + (problems.length > most ? `; and ${problems.length - most} more` : "")

/**
 * Asks middleware for its dynamic tools, in the order in which they first came. Unchanged arrays mean unchanged tools.
 * A tool whose name is taken is left out, so nobody can capture or end a run by a tool's name.
 */
export const refresh = Effect.fnUntraced(function* (live: Live) {
  const { definition, dynamicTools, toolset: fixed } = live.compiled
  const lists: Array<ReadonlyArray<Tool<unknown>>> = []
  for (const ask of dynamicTools) lists.push(yield* ask(live.run))
  if (live.turn.toolLists !== undefined && lists.every((one, index) => one === live.turn.toolLists?.[index])) return
  const takenNames = new Set(fixed.tools.keys())
  if (definition.output !== undefined) takenNames.add(finalAnswer)
  const more: Array<Tool<unknown>> = []
  const leftOut: Array<string> = []
  for (const tool of lists.flat()) {
    const problem =
      problemOf(tool) ?? (takenNames.has(tool.name) ? `there is a tool "${tool.name}" already` : undefined)
    if (problem !== undefined) leftOut.push(problem)
    else {
      takenNames.add(tool.name)
      more.push(tool)
    }
  }
  const before = new Map(Object.entries(yield* live.run.state.get(promised)))
  // A tool that stays keeps its place and its bytes, in whatever order it comes: a provider's cache ends at a change.
  const byName = new Map(more.map((tool) => [tool.name, tool]))
  const order = Object.fromEntries([...before.keys(), ...byName.keys()].map((name) => [name, byName.get(name)]))
  // The order of keys is that of the state, in this process and the next.
  const ordered = Object.values(order).filter((tool) => tool !== undefined)
  const now = new Map<string, string>()
  for (const tool of ordered) now.set(tool.name, digestOf(tool))
  const changed = [...now].flatMap(([name, digest]) => ((before.get(name) ?? digest) === digest ? [] : [`"${name}"`]))
  live.turn.toolLists = lists
  const earlier = new Map(live.turn.toolset.definitions.map((one) => [one.name, one]))
  live.turn.toolset = extend(fixed, ordered, ({ name }) =>
    before.get(name) === now.get(name) ? earlier.get(name) : undefined
  )
  live.turn.tools = withAnswerTool(live, live.turn.toolset.definitions)
  if (now.size !== before.size || [...now].some(([name, digest]) => before.get(name) !== digest)) {
    yield* live.run.state.set(promised, Object.fromEntries(now))
  }
  if (leftOut.length > 0) yield* live.run.warn("tool-left-out", `Tools are not offered: ${listFirst(leftOut)}.`)
  if (changed.length > 0) {
    yield* live.run.warn("tool-changed", `Tools changed since this run last saw them: ${listFirst(changed)}.`)
  }
})
