/** The reducer of `View` over the events of a run and its sub-agents. */
import * as HashMap from "effect/HashMap"
import * as Option from "effect/Option"
import type { AgentEvent, Of } from "../../core/AgentEvent.ts"
import { isObject, type Json } from "../../core/Json.ts"
import { text as textOf } from "../../core/Message.ts"
import { add, totalTokens, zero } from "../../core/Usage.ts"
import * as BackgroundTasks from "../../middleware/BackgroundTasks.ts"
import * as Todos from "../../middleware/Todos.ts"
import { defined } from "../../support/json/defined.ts"
import { valueAt } from "../../support/json/valueAt.ts"
import { clean, cleanLine } from "../../support/text/clean.ts"
import { cut } from "../../support/text/text.ts"
import * as Blocks from "./blocks.ts"
import { gist, progressOf, summarise } from "./gist.ts"
import type { Call, Part, Subagent, View } from "./model.ts"
import { partOf, userPart } from "./replay.ts"

type Step = readonly [View, ReadonlyArray<Part>]

const just = (view: View): Step => [view, []]

/** The longest reasoning that is kept, in characters. */
const keptThoughts = 2_000

const keyOf = (event: { readonly runId: string; readonly callId: string }): string => `${event.runId}/${event.callId}`

const note = (level: "info" | "warning" | "error", text: string): Part => ({
  kind: "note",
  level,
  text: cleanLine(text)
})

/** Ends the open text and the open reasoning. */
const flush = (view: View, at: number): Step => {
  const [quiet, thoughts] = endThinking(view, at)
  const blocks = Blocks.end(quiet.text)
  return [{ ...quiet, text: Blocks.empty }, [...thoughts, ...blocks.map(partOf)]]
}

const endThinking = (view: View, at: number): Step => {
  const { thinking } = view
  if (thinking === undefined) return just(view)
  const { characters, startedAt, text } = thinking
  const rest: View = { ...view, thinking: undefined }
  if (characters === 0) return just(rest)
  return [rest, [{ kind: "thinking", text: clean(text), characters, millis: Math.max(0, at - startedAt) }]]
}

const callOf = (view: View, key: string): Call | undefined => Option.getOrUndefined(HashMap.get(view.calls, key))

const withCall = (
  view: View,
  event: { readonly runId: string; readonly callId: string },
  change: (call: Call | undefined) => Omit<Call, "key" | "order" | "runId">
): View => {
  const key = keyOf(event)
  const call = callOf(view, key)
  const changed: Call = { ...change(call), key, order: call?.order ?? view.begun, runId: event.runId }
  return {
    ...view,
    calls: HashMap.set(view.calls, key, changed),
    begun: call === undefined ? view.begun + 1 : view.begun
  }
}

const withoutCall = (view: View, key: string): View => ({ ...view, calls: HashMap.remove(view.calls, key) })

const withSubagent = (view: View, runId: string, change: (agent: Subagent) => Subagent): View => {
  const index = view.subagents.findIndex((agent) => agent.runId === runId)
  const agent = view.subagents[index]
  return agent === undefined ? view : { ...view, subagents: view.subagents.with(index, change(agent)) }
}

const word = (value: Json | undefined): string => (typeof value === "string" ? value : "")

const todosOf = (value: Json): View["todos"] =>
  Array.isArray(value)
    ? value.flatMap((todo) =>
        isObject(todo) ? [{ content: cleanLine(word(todo["content"])), status: cleanLine(word(todo["status"])) }] : []
      )
    : []

const tasksOf = (value: Json): View["tasks"] => {
  const tasks = isObject(value) ? value["tasks"] : undefined
  if (!Array.isArray(tasks)) return []
  return tasks.flatMap((task) =>
    isObject(task)
      ? [
          {
            id: cleanLine(word(task["id"])),
            agent: cleanLine(word(task["agent"])),
            task: cleanLine(word(task["description"])),
            status: cleanLine(word(task["status"]))
          }
        ]
      : []
  )
}

const begin = (view: View, event: Of<"RunStarted">): View => ({
  ...view,
  runId: event.runId,
  status: "working",
  agent: cleanLine(event.agent),
  model: event.model === undefined ? view.model : cleanLine(event.model),
  startedAt: event.at,
  round: 0,
  text: Blocks.empty,
  thinking: undefined,
  calls: HashMap.empty(),
  begun: 0,
  subagents: [],
  pending: [],
  sources: [],
  usage: zero
})

/** The calls of the outermost run that had no result at its end, with their output so far. */
const openCalls = (view: View, event: Of<"RunFailed" | "RunInterrupted">): ReadonlyArray<Part> =>
  HashMap.toValues(view.calls)
    .filter(({ isWritten, runId }) => isWritten && runId === event.runId)
    .toSorted((left, right) => left.order - right.order)
    .map(({ gist, name, output, startedAt }) => ({
      kind: "tool",
      name,
      gist,
      isError: true,
      ...summarise(output, undefined),
      summary: "It was interrupted. Whether it had an effect is not known.",
      millis: Math.max(0, event.at - startedAt)
    }))

/** Ends the outermost run. */
const settle = (
  view: View,
  event: Of<"RunCompleted" | "RunFailed" | "RunInterrupted">,
  notes: ReadonlyArray<Part>
): Step => {
  const [ended, parts] = flush(view, event.at)
  const stopReason =
    event._tag === "RunCompleted" ? event.stopReason : event._tag === "RunFailed" ? "failed" : "interrupted"
  const sources: ReadonlyArray<Part> = ended.sources.length === 0 ? [] : [{ kind: "sources", sources: ended.sources }]
  // A run that failed before it started has no time.
  const millis = ended.status === "idle" ? 0 : Math.max(0, event.at - ended.startedAt)
  return [
    {
      ...ended,
      status: "idle",
      calls: HashMap.empty(),
      subagents: [],
      pending: [],
      sources: [],
      usage: event.usage,
      total: add(ended.total, event.usage)
    },
    [
      ...parts,
      ...(event._tag === "RunCompleted" ? [] : openCalls(ended, event)),
      ...notes,
      ...sources,
      { kind: "turnEnd", stopReason, usage: event.usage, millis }
    ]
  ]
}

const endCall = (view: View, event: Of<"ToolCompleted" | "ToolFailed">): Step => {
  const key = keyOf(event)
  const call = callOf(view, key)
  const rest = withoutCall(view, key)
  // A call inside of another call has no line.
  if (event.parent !== undefined) return just(rest)
  return [
    rest,
    [
      {
        kind: "tool",
        name: cleanLine(event.toolName),
        gist: call?.gist ?? "",
        isError: event._tag === "ToolFailed",
        ...summarise(event.text, event.details),
        millis: event.durationMillis
      }
    ]
  ]
}

const addMessage = (view: View, event: Of<"MessageAppended">): Step => {
  const { message } = event
  if (message.role === "tool" || message.role === "system") return just(view)
  const isSaid = message.role === "human" && message.source === undefined
  if (message.role === "human" && !isSaid) return just(view)
  const [rest, parts] = flush(view, event.at)
  return [rest, message.role === "human" ? [...parts, userPart(message)] : parts]
}

const addReasoning = (view: View, event: Of<"ReasoningDelta">): View => {
  const thinking = view.thinking ?? { text: "", characters: 0, startedAt: event.at }
  const text = cut(thinking.text + event.text, keptThoughts, "")
  return { ...view, thinking: { ...thinking, text, characters: thinking.characters + event.text.length } }
}

const addText = (view: View, event: Of<"TextDelta">): Step => {
  const [rest, thoughts] = endThinking(view, event.at)
  const [text, blocks] = Blocks.feed(rest.text, event.text)
  return [{ ...rest, text }, blocks.length === 0 ? thoughts : [...thoughts, ...blocks.map(partOf)]]
}

const restartTurn = (view: View, event: Of<"TurnRestarted">): Step => {
  const [rest, parts] = flush({ ...view, calls: HashMap.filter(view.calls, ({ isWritten }) => isWritten) }, event.at)
  return [rest, [...parts, note("warning", `↻ the answer starts again: ${event.reason}`)]]
}

const addSources = (view: View, event: Of<"SourcesFound">): View => ({
  ...view,
  sources: [
    ...view.sources,
    ...event.sources.map(({ number, source }) => ({
      number,
      title: cleanLine(source.title ?? source.key),
      url: cleanLine(source.url ?? "")
    }))
  ]
})

const startSubagent = (view: View, event: Of<"SubagentStarted">): View => {
  const call = callOf(view, keyOf(event))
  const agent: Subagent = {
    runId: event.childRunId,
    path: [...event.path, event.agent].slice(1).map(cleanLine),
    task: call?.gist ?? "",
    last: "",
    calls: 0,
    tokens: 0,
    startedAt: event.at
  }
  return { ...view, subagents: [...view.subagents, agent] }
}

const endSubagent = (view: View, event: Of<"SubagentCompleted">): Step => {
  const agent = view.subagents.find(({ runId }) => runId === event.childRunId)
  if (agent === undefined) return just(view)
  const { calls, path, startedAt, task } = agent
  const rest = { ...view, subagents: view.subagents.filter((one) => one !== agent) }
  const millis = Math.max(0, event.at - startedAt)
  return [
    rest,
    [{ kind: "subagent", path, task, outcome: cleanLine(event.outcome), calls, usage: event.usage, millis }]
  ]
}

const addPending = (view: View, event: Of<"ApprovalRequested">): View => {
  const { allow, answer, arguments: args, description, expiresAt, id, path, runId, toolName } = event
  const names = { path: path.map(cleanLine), toolName: cleanLine(toolName) }
  return {
    ...view,
    pending: [...view.pending, { id, runId, ...names, description, arguments: args, answer, allow, expiresAt }]
  }
}

/** Shows a call while the model writes it. */
const writeCall = (view: View, event: Of<"ToolCallDelta">): Step => {
  const [quiet, parts] = event.delta === "" ? flush(view, event.at) : just(view)
  const next = withCall(quiet, event, (call) => ({
    name: cleanLine(event.toolName),
    gist: "",
    output: "",
    startedAt: call?.startedAt ?? event.at,
    isWritten: false
  }))
  return [next, parts]
}

/** Adds a call that begins. Calls of sub-agents are kept, as they name the sub-agents that they start. */
const startCall = (view: View, event: Of<"ToolCalled">): View =>
  withCall(view, event, () => ({
    name: cleanLine(event.toolName),
    gist: gist(event.arguments),
    output: "",
    startedAt: event.at,
    isWritten: true
  }))

const showProgress = (view: View, event: Of<"ToolProgress">): View =>
  HashMap.has(view.calls, keyOf(event))
    ? withCall(view, event, (call) => ({
        name: cleanLine(event.toolName),
        gist: call?.gist ?? "",
        startedAt: call?.startedAt ?? event.at,
        output: progressOf(event.progress),
        isWritten: true
      }))
    : view

/** The slots that a view shows. */
const shownSlots: { readonly [slot: string]: (value: Json) => Pick<View, "tasks"> | Pick<View, "todos"> } = {
  [Todos.todos.name]: (value) => ({ todos: todosOf(value) }),
  [BackgroundTasks.slot.name]: (value) => ({ tasks: tasksOf(value) })
}

const showSlot = (view: View, { slot, value }: Of<"StateChanged">): View => {
  const change = valueAt(shownSlots, slot)?.(value)
  return change === undefined ? view : { ...view, ...change }
}

type Tag = AgentEvent["_tag"]
type Handlers = { readonly [Name in Tag]: (view: View, event: Of<Name>) => Step }

/** Reads the next try of a model call from its warning. */
const retryOf = ({ code, data }: Of<"Warning">): View["retry"] => {
  if (code !== "model-retry" || !isObject(data)) return undefined
  const { attempt, reason, until } = data
  return typeof until === "number" && typeof attempt === "number"
    ? { until, attempt, reason: typeof reason === "string" ? cleanLine(reason) : "" }
    : undefined
}

const addTokens = (view: View, event: Of<"RoundCompleted">): View => ({ ...view, usage: add(view.usage, event.usage) })

/** Handles events of any run. */
const common = {
  SubagentStarted: (view, event) => just(startSubagent(view, event)),
  SubagentCompleted: endSubagent,
  ApprovalRequested: (view, event) => just(addPending(view, event)),
  ApprovalResolved: (view, { decision, id, toolName }) => [
    { ...view, pending: view.pending.filter((one) => one.id !== id) },
    [{ kind: "decision", toolName: cleanLine(toolName), decision }]
  ],
  Warning: (view, event) => {
    const retry = retryOf(event)
    // The live view counts down; a line for each of many tries would push the conversation away.
    return [
      { ...view, ...defined({ retry }) },
      retry === undefined || retry.attempt === 2 ? [note("warning", event.message)] : []
    ]
  },
  ToolProgress: (view, event) => just(showProgress(view, event))
} satisfies Partial<Handlers>

/** Handles events of the outermost run. */
const ofRoot: Handlers = {
  ...common,
  TextDelta: addText,
  RunStarted: (view, event) => just(begin(view, event)),
  RoundStarted: (view, { round }) => just({ ...view, round }),
  ContextMeasured: (view, { parts, total, window }) =>
    just({ ...view, context: { parts, total, ...defined({ window }) } }),
  ReasoningStarted: (view, { at }) => just({ ...view, thinking: { text: "", characters: 0, startedAt: at } }),
  ReasoningDelta: (view, event) => just(addReasoning(view, event)),
  ReasoningCompleted: (view, { at }) => endThinking(view, at),
  TurnRestarted: restartTurn,
  MessageAppended: addMessage,
  Compacted: (view, { tokensAfter, tokensBefore }) => [
    view,
    [note("info", `The conversation was compacted: ${tokensBefore} → ${tokensAfter} tokens (estimated)`)]
  ],
  CheckpointLoaded: (view, { partial }) =>
    partial === undefined
      ? just(view)
      : [view, [note("info", `The last answer was cut off after: ${cut(cleanLine(textOf(partial)), 80)}`)]],
  SourcesFound: (view, event) => just(addSources(view, event)),
  RunCompleted: (view, event) => settle(view, event, []),
  RunFailed: (view, event) => settle(view, event, [note("error", event.error.message)]),
  RunInterrupted: (view, event) => settle(view, event, []),
  ToolCallDelta: writeCall,
  ToolCalled: (view, event) => {
    const [quiet, parts] = flush(view, event.at)
    return [startCall(quiet, event), parts]
  },
  ToolCompleted: endCall,
  ToolFailed: endCall,
  RoundCompleted: (view, event) => just(addTokens(view, event)),
  StateChanged: (view, event) => just(showSlot(view, event)),
  Steered: just,
  CheckpointSaved: just,
  Custom: just
}

/** Handles events of sub-agents. A sub-agent has a line, and no text of its own. */
const ofSubagent: Partial<Handlers> = {
  ...common,
  ToolCalled: (view, event) => {
    const next = startCall(view, event)
    const last = `${cleanLine(event.toolName)} ${gist(event.arguments)}`.trim()
    return just(withSubagent(next, event.runId, (agent) => ({ ...agent, calls: agent.calls + 1, last })))
  },
  ToolCompleted: (view, event) => just(withoutCall(view, keyOf(event))),
  ToolFailed: (view, event) => just(withoutCall(view, keyOf(event))),
  RoundCompleted: (view, event) => {
    const tokens = totalTokens(event.usage)
    return just(
      withSubagent(addTokens(view, event), event.runId, (agent) => ({ ...agent, tokens: agent.tokens + tokens }))
    )
  }
}

/** Gives the view after an event, and the parts that the event finished. */
export const reduce = (before: View, event: AgentEvent): Step => {
  const isOver = before.retry !== undefined && event._tag !== "Warning" && event._tag !== "TurnRestarted"
  const later: View = isOver ? { ...before, retry: undefined } : before
  const view: View = event.at > later.lastAt ? { ...later, lastAt: event.at } : later
  const handlers = event.path.length <= 1 ? ofRoot : ofSubagent
  // The handler of a tag takes the events with that tag.
  const handle = handlers[event._tag] as ((view: View, event: AgentEvent) => Step) | undefined
  return handle === undefined ? just(view) : handle(view, event)
}
