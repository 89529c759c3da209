/** The panel beside a conversation: the plan, the tree of runs, the context, the cost. */
import { add } from "../core/Usage.ts"
import type { Moment } from "../view/Transcript.ts"
import type { View } from "../view/View.ts"
import { type Children, type Element, h, unseen } from "./element.ts"
import * as Format from "./format.ts"
import * as Tree from "./tree.ts"

/** The most runs of one call that are drawn. */
const mostRuns = 100

const section = (title: string, ...body: ReadonlyArray<Children>): Element =>
  h("section", null, h("h2", null, title), ...body)

const marks: ReadonlyMap<string, string> = new Map([
  ["completed", "done"],
  ["in_progress", "at work"],
  ["pending", "to do"]
])

const plan = (todos: View["todos"]): Element => {
  const doneCount = todos.filter(({ status }) => status === "completed").length
  return section(
    `Plan: ${doneCount} of ${todos.length}`,
    h(
      "ol",
      { class: "plan" },
      todos.map(({ content, status }) =>
        h(
          "li",
          { class: status.replaceAll(/\W/g, "-") },
          h("span", { class: "mark", "aria-hidden": true }),
          unseen(`${marks.get(status) ?? status}: `),
          content
        )
      )
    )
  )
}

const outcomeOf = ({ outcome }: Tree.Node): { readonly dot: string; readonly words: string } =>
  outcome === undefined
    ? { dot: "busy", words: "at work" }
    : outcome === "completed"
      ? { dot: "good", words: "done" }
      : { dot: outcome === "suspended" ? "waits" : "bad", words: Format.ending(outcome) }

const numbersOf = (tree: Tree.Tree, node: Tree.Node, now: number): string => {
  const calls = node.calls === 1 ? "1 call" : `${node.calls} calls`
  const millis = Math.max(0, (node.endedAt ?? now) - node.startedAt)
  return [Format.usage(Tree.usageOf(tree, node)), calls, Format.duration(millis)].join(" · ")
}

const drawNode = (tree: Tree.Tree, node: Tree.Node, now: number): Element => {
  const { dot, words } = outcomeOf(node)
  const task = Tree.stepOf(tree, node.call)?.gist ?? ""
  const latest = node.said.trim() === "" ? node.last : node.said.trim().slice(-160)
  return h(
    "li",
    { key: node.runId },
    h("div", { class: "run" }, h("span", { class: `dot ${dot}` }), unseen(`${words}: `), h("strong", null, node.agent)),
    h("div", { class: "quiet numbers" }, numbersOf(tree, node, now)),
    task === "" ? null : h("div", { class: "task" }, task),
    node.outcome === undefined && node.parent !== undefined && latest !== ""
      ? h("div", { class: "quiet latest" }, latest)
      : null,
    drawChildren(tree, node.runId, now)
  )
}

/** Draws the runs below a run. Several that one call started, such as those of a workflow, are under the call. */
const drawChildren = (tree: Tree.Tree, runId: string, now: number): Element | null => {
  const groups = Map.groupBy(Tree.children(tree, runId), ({ call }) => call)
  const empty = [...Tree.stepsOf(tree, runId)].filter(([call]) => !groups.has(call))
  if (groups.size === 0 && empty.length === 0) return null
  const steps = [...groups, ...empty.map(([call]) => [call, []] as const)]
  return h(
    "ul",
    null,
    steps.map(([call, nodes]) => {
      const step = Tree.stepOf(tree, call)
      const phases = step?.phases ?? []
      if (nodes.length === 1 && nodes[0] !== undefined && phases.length === 0) return drawNode(tree, nodes[0], now)
      return h(
        "li",
        { key: call },
        h(
          "div",
          { class: "run" },
          h("strong", null, step?.name ?? "call"),
          " ",
          h("span", { class: "quiet" }, step?.gist)
        ),
        phases.length === 0 ? null : h("div", { class: "quiet latest" }, phases.slice(-3).join(" › ")),
        h(
          "ul",
          null,
          nodes.slice(0, mostRuns).map((node) => drawNode(tree, node, now))
        ),
        nodes.length > mostRuns ? h("div", { class: "quiet" }, `and ${nodes.length - mostRuns} more`) : null
      )
    })
  )
}

const names: { readonly [Part in keyof NonNullable<View["context"]>["parts"]]: string } = {
  systemPrompt: "Instructions",
  tools: "Tools",
  human: "You",
  notices: "Notices",
  ai: "Answers",
  reasoning: "Reasoning",
  toolCalls: "Calls",
  toolResults: "Results",
  media: "Media"
}

const context = ({ parts, total, window }: NonNullable<View["context"]>): Element => {
  const share = window === undefined ? undefined : Math.min(1, total / window)
  const rows = Object.entries(names).flatMap(([name, words]) => {
    const tokens = Object.entries(parts).find(([one]) => one === name)?.[1] ?? 0
    return tokens === 0 ? [] : [{ words, tokens }]
  })
  return section(
    "Context",
    share === undefined
      ? null
      : h(
          "meter",
          {
            class: share > 0.85 ? "full" : "",
            min: 0,
            max: 1,
            value: share,
            "aria-label": "Share of the context window in use"
          },
          `${Math.round(share * 100)} %`
        ),
    h(
      "p",
      { class: "quiet" },
      share === undefined || window === undefined
        ? `about ${Format.count(total)} tokens`
        : `about ${Format.count(total)} of ${Format.count(window)} tokens, ${Math.round(share * 100)} %`
    ),
    h(
      "dl",
      null,
      rows.map(({ tokens, words }) => [h("dt", null, words), h("dd", null, Format.count(tokens))])
    )
  )
}

const cost = (view: View): Element => {
  const turn = view.usage
  const all = view.status === "working" ? add(view.total, turn) : view.total
  return section(
    "Usage",
    h(
      "dl",
      null,
      h("dt", null, view.status === "working" ? "This turn" : "Last turn"),
      h("dd", null, Format.usage(turn)),
      h("dt", null, "Thread"),
      h("dd", null, Format.usage(all)),
      h("dt", null, "Input"),
      h("dd", null, Format.count(all.inputTokens)),
      h("dt", null, "From the cache"),
      h("dd", null, Format.count(all.cacheReadTokens)),
      h("dt", null, "Output"),
      h("dd", null, Format.count(all.outputTokens))
    )
  )
}

const tasks = (all: View["tasks"]): Element =>
  section(
    "In the background",
    h(
      "ul",
      { class: "tasks" },
      all.map(({ agent, status, task }) =>
        h("li", null, h("strong", null, agent), " ", h("span", { class: "quiet" }, status), h("div", null, task))
      )
    )
  )

/** Draws the panel of a moment. */
export const drawPanel = ({ folded: tree, view }: Moment<Tree.Tree>): Element => {
  const root = Tree.rootOf(tree)
  const hasTree = root !== undefined && (Tree.hasChildren(tree) || [...Tree.stepsOf(tree, root.runId)].length > 0)
  return h(
    "div",
    { class: "sections" },
    view.todos.length === 0 ? null : plan(view.todos),
    hasTree ? section("Agents", h("ul", { class: "tree" }, drawNode(tree, root, view.lastAt))) : null,
    view.tasks.length === 0 ? null : tasks(view.tasks),
    view.context === undefined ? null : context(view.context),
    cost(view)
  )
}
