/** The tree of a run: its sub-agents and workflows, with the usage and the last words of each. A pure reducer over events. */
import * as HashMap from "effect/HashMap"
import * as Option from "effect/Option"
import type { AgentEvent, Of } from "../core/AgentEvent.ts"
import { isObject } from "../core/Json.ts"
import { add, type Usage, zero } from "../core/Usage.ts"
import { clean, cleanLine } from "../support/text/clean.ts"
import { describeCall } from "../view/View.ts"

/** A run of an agent. `own` is the usage of its rounds, `usage` also that of the runs below it, once it ended. */
export interface Node {
  readonly runId: string
  readonly parent: string | undefined
  /** The call that started it, by run and call. */
  readonly call: string
  readonly agent: string
  readonly order: number
  readonly outcome: string | undefined
  readonly own: Usage
  readonly usage: Usage | undefined
  readonly rounds: number
  readonly calls: number
  /** The last call. */
  readonly last: string
  /** The end of the text of its turn. */
  readonly said: string
  readonly startedAt: number
  readonly endedAt: number | undefined
}

/** A call, with the phases that a workflow told. */
export interface Step {
  readonly name: string
  readonly gist: string
  readonly phases: ReadonlyArray<string>
}

export interface Tree {
  readonly root: string | undefined
  readonly nodes: HashMap.HashMap<string, Node>
  readonly steps: HashMap.HashMap<string, Step>
}

export const empty: Tree = { root: undefined, nodes: HashMap.empty(), steps: HashMap.empty() }

/** The most characters of the words of a run that are kept, and the most phases of a call. */
const keptWords = 600
const keptPhases = 50

const change = (tree: Tree, runId: string, f: (node: Node) => Node): Tree => {
  const node = HashMap.get(tree.nodes, runId)
  return Option.isNone(node) ? tree : { ...tree, nodes: HashMap.set(tree.nodes, runId, f(node.value)) }
}

const newNode = (tree: Tree, fields: Pick<Node, "agent" | "call" | "parent" | "runId" | "startedAt">): Tree => ({
  ...tree,
  nodes: HashMap.set(tree.nodes, fields.runId, {
    ...fields,
    order: HashMap.size(tree.nodes),
    outcome: undefined,
    own: zero,
    usage: undefined,
    rounds: 0,
    calls: 0,
    last: "",
    said: "",
    endedAt: undefined
  })
})

const keyOf = ({ callId, runId }: { readonly callId: string; readonly runId: string }) => `${runId}/${callId}`

const begin = (tree: Tree, { agent, at, path, runId }: Of<"RunStarted">): Tree => {
  if (HashMap.has(tree.nodes, runId)) {
    return change(tree, runId, (node) => ({ ...node, outcome: undefined, endedAt: undefined }))
  }
  // A sub-agent is known by its `SubagentStarted`.
  if (path.length > 1) return tree
  return {
    ...newNode(empty, { runId, agent: cleanLine(agent), call: "", parent: undefined, startedAt: at }),
    root: runId
  }
}

const startStep = (tree: Tree, event: Of<"ToolCalled">): Tree => {
  const name = cleanLine(event.toolName)
  const gist = describeCall(event.arguments)
  const step = { name, gist, phases: [] }
  return change({ ...tree, steps: HashMap.set(tree.steps, keyOf(event), step) }, event.runId, (node) => ({
    ...node,
    calls: node.calls + 1,
    last: `${name} ${gist}`.trim()
  }))
}

const addPhase = (tree: Tree, event: Of<"ToolProgress">): Tree => {
  const step = HashMap.get(tree.steps, keyOf(event))
  const phase = isObject(event.progress) ? event.progress["phase"] : undefined
  if (Option.isNone(step) || typeof phase !== "string") return tree
  const phases = [...step.value.phases, cleanLine(phase)].slice(-keptPhases)
  return { ...tree, steps: HashMap.set(tree.steps, keyOf(event), { ...step.value, phases }) }
}

/** Ends a call. A call that started no sub-agent and told no phase is not in the tree. */
const endStep = (tree: Tree, event: Of<"ToolCompleted" | "ToolFailed">): Tree => {
  const key = keyOf(event)
  const step = HashMap.get(tree.steps, key)
  if (Option.isNone(step) || step.value.phases.length > 0) return tree
  const isUsed = HashMap.some(tree.nodes, ({ call }) => call === key)
  return isUsed ? tree : { ...tree, steps: HashMap.remove(tree.steps, key) }
}

const end = (tree: Tree, event: Of<"RunCompleted" | "RunFailed" | "RunInterrupted">): Tree =>
  change(tree, event.runId, (node) => ({
    ...node,
    outcome: event._tag === "RunCompleted" ? event.stopReason : event._tag === "RunFailed" ? "failed" : "interrupted",
    usage: event.usage,
    endedAt: event.at
  }))

const startSubagent = (tree: Tree, event: Of<"SubagentStarted">): Tree => {
  const { agent, at, childRunId, runId } = event
  if (HashMap.has(tree.nodes, childRunId)) return tree
  const fields = { agent: cleanLine(agent), parent: runId, call: keyOf(event), startedAt: at }
  return newNode(tree, { ...fields, runId: childRunId })
}

const endSubagent = (tree: Tree, event: Of<"SubagentCompleted">): Tree =>
  change(tree, event.childRunId, (node) => ({
    ...node,
    outcome: cleanLine(event.outcome),
    usage: event.usage,
    endedAt: event.at
  }))

const endRound = (tree: Tree, event: Of<"RoundCompleted">): Tree =>
  change(tree, event.runId, (node) => ({ ...node, rounds: node.rounds + 1, own: add(node.own, event.usage) }))

/** Adds words of a sub-agent: the root speaks on the page itself. */
const addWords = (tree: Tree, event: Of<"TextDelta">): Tree =>
  event.path.length <= 1
    ? tree
    : change(tree, event.runId, (node) => ({ ...node, said: clean(node.said + event.text).slice(-keptWords) }))

type Tag = AgentEvent["_tag"]

const handlers: { readonly [Name in Tag]?: (tree: Tree, event: Of<Name>) => Tree } = {
  RunStarted: begin,
  SubagentStarted: startSubagent,
  SubagentCompleted: endSubagent,
  RoundStarted: (tree, { runId }) => change(tree, runId, (node) => (node.said === "" ? node : { ...node, said: "" })),
  RoundCompleted: endRound,
  TextDelta: addWords,
  ToolCalled: startStep,
  ToolProgress: addPhase,
  ToolCompleted: endStep,
  ToolFailed: endStep,
  RunCompleted: end,
  RunFailed: end,
  RunInterrupted: end
}

/** Gives the tree after an event. */
export const reduce = (tree: Tree, event: AgentEvent): Tree => {
  // The handler of a tag takes the events with that tag.
  const handle = handlers[event._tag] as ((tree: Tree, event: AgentEvent) => Tree) | undefined
  return handle === undefined ? tree : handle(tree, event)
}

/** The runs below a run, in the order of their begin. */
export const children = (tree: Tree, runId: string): ReadonlyArray<Node> =>
  HashMap.toValues(tree.nodes)
    .filter(({ parent }) => parent === runId)
    .toSorted((left, right) => left.order - right.order)

/** The usage of a run and all below it, so far. */
export const usageOf = (tree: Tree, node: Node): Usage =>
  node.usage ?? children(tree, node.runId).reduce((sum, child) => add(sum, usageOf(tree, child)), node.own)

export const rootOf = ({ nodes, root }: Tree): Node | undefined =>
  root === undefined ? undefined : Option.getOrUndefined(HashMap.get(nodes, root))

export const stepOf = ({ steps }: Tree, call: string): Step | undefined =>
  Option.getOrUndefined(HashMap.get(steps, call))

/** Reports whether a run started others. */
export const hasChildren = ({ nodes }: Tree): boolean => HashMap.size(nodes) > 1

/** The calls of a run that told phases, as workflows do. */
export const stepsOf = ({ steps }: Tree, runId: string): ReadonlyArray<readonly [string, Step]> =>
  HashMap.toEntries(steps).filter(([call, { phases }]) => phases.length > 0 && call.startsWith(`${runId}/`))
