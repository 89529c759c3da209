/** Renders the live area at the bottom of the screen. It is always shorter than the screen. */
import * as HashMap from "effect/HashMap"
import { valueAt } from "../../../support/json/valueAt.ts"
import type { Call, View } from "../../../view/View.ts"
import { openText } from "../../../view/View.ts"
import { renderLive, type Surface } from "../markdown/markdown.ts"
import { fit } from "./style.ts"
import { about, count, duration, money, plural } from "./words.ts"

/** A message of the person that waits for its turn. */
export interface QueuedMessage {
  readonly kind: "steer" | "followUp"
  readonly text: string
}

export interface Caret {
  readonly row: number
  readonly column: number
}

/** The parts of the live area beside the view. `panel` has the lines of a question, a menu or a list. */
export interface Around {
  readonly now: number
  readonly frame: number
  readonly isPlanOpen: boolean
  readonly queue: ReadonlyArray<QueuedMessage>
  readonly panel: ReadonlyArray<string>
  readonly editor: ReadonlyArray<string>
  readonly caret: Caret
  readonly hints: string
  readonly facts: ReadonlyArray<string>
  /** The line of the person in place of the facts. */
  readonly statusLine?: string | undefined
}

export interface Frame {
  readonly lines: ReadonlyArray<string>
  readonly caret: Caret
}

const spinner = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]

const boxes: { readonly [status: string]: string } = { pending: "☐", in_progress: "▸", completed: "☑", cancelled: "☒" }

/** After so many seconds of silence, a line says how long the model has been silent. */
const silent = 10

const most = { calls: 5, subagents: 6, plan: 8, queue: 3 } as const

const more = (left: number, dim: (text: string) => string): ReadonlyArray<string> =>
  left > 0 ? [dim(`  … ${left} more`)] : []

const since = (now: number, at: number): string => duration(Math.max(0, Math.floor((now - at) / 1_000) * 1_000))

/** The first running calls of the main agent, and their number. Sub-agents have lines of their own. */
const ownCalls = ({ calls, runId }: View): { readonly first: ReadonlyArray<Call>; readonly count: number } => {
  const first: Array<Call> = []
  let own = 0
  for (const call of HashMap.values(calls)) {
    if (call.runId !== runId) continue
    own += 1
    const at = first.findIndex(({ order }) => order > call.order)
    if (at >= 0) first.splice(at, 0, call)
    else if (first.length < most.calls) first.push(call)
    if (first.length > most.calls) first.pop()
  }
  return { first, count: own }
}

const work = (view: View, around: Around, { style }: Surface): ReadonlyArray<string> => {
  const { now } = around
  const own = ownCalls(view)
  const calls = own.first.flatMap((call) => {
    const last = call.output.split("\n").at(-1) ?? ""
    const head = call.isWritten ? `${style.bold(call.name)} ${call.gist}` : `${style.bold(call.name)} ${style.dim("…")}`
    return [
      `${style.yellow("●")} ${head} ${style.dim(since(now, call.startedAt))}`,
      ...(last === "" ? [] : [style.dim(`  ${last}`)])
    ]
  })
  const subagents = view.subagents.slice(0, most.subagents).map((agent) => {
    const facts = `${plural(agent.calls, "call")} · ${count(agent.tokens)} tokens · ${since(now, agent.startedAt)}`
    return `${style.magenta("◆")} ${style.bold(agent.path.join(" › "))} ${style.dim(facts)} ${agent.last === "" ? agent.task : agent.last}`
  })
  return [
    ...calls,
    ...more(own.count - most.calls, style.dim),
    ...subagents,
    ...more(view.subagents.length - most.subagents, style.dim)
  ]
}

const plan = (view: View, { isPlanOpen }: Around, { style }: Surface): ReadonlyArray<string> => {
  const { todos } = view
  if (todos.length === 0) return []
  const doneCount = todos.filter(({ status }) => status === "completed").length
  const current = todos.find(({ status }) => status === "in_progress")
  if (doneCount === todos.length && !isPlanOpen) return []
  const head = `${style.dim(`plan ${doneCount}/${todos.length}`)}${current === undefined ? "" : ` · ${current.content}`}`
  if (!isPlanOpen) return [head]
  const first = Math.max(
    0,
    Math.min(todos.length - most.plan, (current === undefined ? 0 : todos.indexOf(current)) - 2)
  )
  const rows = todos.slice(first, first + most.plan)
  return [
    style.dim(`plan ${doneCount}/${todos.length}`),
    ...rows.map(
      ({ content, status }) =>
        `${valueAt(boxes, status) ?? "·"} ${status === "completed" ? style.dim(content) : content}`
    ),
    ...more(todos.length - first - rows.length, style.dim)
  ]
}

const tasks = (view: View, { style }: Surface): ReadonlyArray<string> => {
  const open = view.tasks.filter(({ status }) => status === "running" || status === "suspended")
  return open.length === 0
    ? []
    : [
        `${style.dim("in the background:")} ${open.map(({ agent, id, status, task }) => `${id} ${agent} ${style.dim(status)} ${task}`).join(" · ")}`
      ]
}

/** The passing reasons of failures, in a person's words. */
const reasons: { readonly [reason: string]: string } = {
  RateLimited: "the provider limits the rate",
  Overloaded: "the provider is overloaded",
  Timeout: "the provider is too slow",
  Transport: "the provider can't be reached"
}

const status = (view: View, around: Around, { style }: Surface): ReadonlyArray<string> => {
  if (view.status === "idle") return []
  const { frame, now } = around
  const quiet = Math.floor((now - view.lastAt) / 1_000)
  const hasCalls = !HashMap.isEmpty(view.calls)
  const isAlone = !hasCalls && view.subagents.length === 0 && view.pending.length === 0
  const doing =
    view.pending.length > 0
      ? "waits for you"
      : view.thinking !== undefined
        ? `thinks · ${count(view.thinking.characters)} characters`
        : hasCalls || view.subagents.length > 0
          ? "works"
          : view.text.tail !== "" || view.text.lines.length > 0
            ? "writes"
            : "waits for the model"
  const mark = view.pending.length > 0 ? "?" : (spinner[frame % spinner.length] ?? "")
  if (view.retry !== undefined) {
    const { attempt, reason, until } = view.retry
    const seconds = Math.max(0, Math.ceil((until - now) / 1_000))
    const why = valueAt(reasons, reason) ?? "the model does not answer"
    return [
      `${style.cyan(mark)} ${style.yellow(`${why}: asking again in ${seconds} s`)} ${style.dim(`· try ${attempt}`)}`
    ]
  }
  const silence = isAlone && quiet >= silent ? style.yellow(` · no word from the model for ${quiet} s`) : ""
  return [`${style.cyan(mark)} ${doing} ${style.dim(since(now, view.startedAt))}${silence}`]
}

const queued = ({ queue }: Around, { style }: Surface): ReadonlyArray<string> => [
  ...queue
    .slice(0, most.queue)
    .map(({ kind, text }) =>
      style.dim(`${kind === "steer" ? "↳ will be told" : "⇥ queued"}: ${text.replaceAll("\n", " ")}`)
    ),
  ...more(queue.length - most.queue, style.dim)
]

/** The used share of the context window. */
export const contextOf = ({ context }: { readonly context?: View["context"] }): string | undefined =>
  context === undefined
    ? undefined
    : context.window === undefined
      ? `${count(context.total)} tokens`
      : `${Math.round((100 * context.total) / context.window)} % of ${count(context.window)}`

/** The money spent; `undefined` if it is not known. */
export const costOf = (usage: View["total"]): string | undefined =>
  usage.cost === undefined ? undefined : `${about(usage)}${money(usage.cost)}`

/** The width of a narrow footer, in columns. */
const narrow = 50

const footer = (view: View, { facts, hints, statusLine }: Around, { columns, style }: Surface): string => {
  const costs = [contextOf(view), costOf(view.total) ?? costOf(view.usage)]
  const [mode, ...others] = facts
  // A narrow line keeps its changing part, and loses its end.
  const parts = (columns < narrow ? [mode, ...costs, ...others] : [...facts, ...costs]).filter(
    (part) => part !== undefined && part !== ""
  )
  const line = statusLine ?? parts.join(" · ")
  return style.dim(fit(hints === "" ? line : `${line} · ${hints}`, columns))
}

/** Rendered lines of the open text. A spinner repaints far more often than the text changes. */
const lineCache = new WeakMap<View["text"], { readonly surface: Surface; readonly lines: ReadonlyArray<string> }>()

const openLines = (view: View, { columns, style }: Surface): ReadonlyArray<string> => {
  const before = lineCache.get(view.text)
  if (before !== undefined && before.surface.columns === columns && before.surface.style === style) return before.lines
  const text = openText(view)
  const surface = { columns, style, highlight: undefined }
  const lines = text === "" ? [] : renderLive(text, { ...surface, columns: Math.min(columns, 120) })
  lineCache.set(view.text, { surface, lines })
  return lines
}

/** The last lines of the open text. */
const tail = (view: View, rows: number, surface: Surface): ReadonlyArray<string> => {
  if (rows <= 0) return []
  const lines = openLines(view, surface)
  const visibleLines = lines.slice(-rows)
  return visibleLines.length === lines.length
    ? lines
    : [surface.style.dim(`… ${lines.length - visibleLines.length + 1} lines above`), ...visibleLines.slice(1)]
}

/** Renders the live area: at most `rows` lines, each at most `columns` wide. */
export const frameOf = (view: View, around: Around, surface: Surface, rows: number): Frame => {
  const { columns } = surface
  const fitAll = (lines: ReadonlyArray<string>): ReadonlyArray<string> => lines.map((line) => fit(line, columns))
  const bottom = [...fitAll(around.panel), ...around.editor, footer(view, around, surface)]
  const middle = fitAll([
    ...work(view, around, surface),
    ...tasks(view, surface),
    ...plan(view, around, surface),
    ...status(view, around, surface),
    ...queued(around, surface)
  ])
  const room = Math.max(0, rows - bottom.length)
  const rest = middle.slice(Math.max(0, middle.length - room))
  const top = tail(view, Math.min(room - rest.length, rows - 8), surface)
  const lines = [...top, ...rest, ...bottom].slice(-rows)
  const row = lines.length - 1 - around.editor.length + around.caret.row
  return { lines, caret: { row: Math.max(0, row), column: Math.min(around.caret.column, columns) } }
}
