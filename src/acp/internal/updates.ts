/** Turns the events of a run, and stored messages, into updates of a session. Pure. */
import type * as Acp from "@agentclientprotocol/sdk"
import * as HashMap from "effect/HashMap"
import * as Option from "effect/Option"
import type * as AgentEvent from "../../core/AgentEvent.ts"
import type * as Content from "../../core/Content.ts"
import { isObject, type Json, type JsonObject } from "../../core/Json.ts"
import * as Message from "../../core/Message.ts"
import type { Annotations } from "../../core/Tool.ts"
import type { Usage } from "../../core/Usage.ts"
import * as Todos from "../../middleware/Todos.ts"
import { clean, cleanLine } from "../../support/text/clean.ts"
import * as View from "../../view/View.ts"
import { withFolder } from "./paths.ts"

type Update = Acp.SessionUpdate

/** A call that the client knows. `count` tells calls with the same id of a model apart. */
interface CallState {
  readonly count: number
  readonly isOpen: boolean
  /** The client shows a diff or a terminal, which the result must not replace. */
  readonly isShown: boolean
  /** The call stands for a question of a tool, and ends with the answer. */
  readonly isQuestion?: boolean
}

/** The part of a session that the client has seen. */
export interface State {
  readonly calls: HashMap.HashMap<string, CallState>
  readonly compactions: number
  readonly used: number
  readonly window: number | undefined
  /** US dollars of all finished rounds. */
  readonly cost: number | undefined
}

export const empty: State = { calls: HashMap.empty(), compactions: 0, used: 0, window: undefined, cost: undefined }

/** The surroundings of updates: the folder, the tools, and the abilities of the client. */
export interface Place {
  readonly cwd: string
  readonly annotations: (tool: string) => ToolFacts | undefined
  readonly client: { readonly compaction: boolean; readonly notices: boolean }
}

/** The facts on a tool that a client shows. */
export interface ToolFacts {
  readonly annotations: Annotations
  readonly parameters: JsonObject
}

type Step = readonly [State, ReadonlyArray<Update>]

/** A call of a run: of the outermost agent, or of a sub-agent by its path. */
export interface Call {
  readonly path: ReadonlyArray<string>
  readonly runId: string
  readonly callId: string
  readonly toolName: string
}

const keyOf = ({ callId, path, runId }: Call): string =>
  path.length < 2 ? callId : `${path.slice(1).join("/")}/${runId}/${callId}`

const idOf = (key: string, count: number): string => (count === 1 ? key : `${key}#${count}`)

const text = (value: string): Acp.ToolCallContent => ({ type: "content", content: { type: "text", text: value } })

/** The kind of a call, by what its tool says about itself. */
const kindOf = (tool: ToolFacts | undefined): Acp.ToolKind => {
  if (tool === undefined) return "other"
  const { addresses, destructive, editsFiles, openWorld, readOnly, runsCommands } = tool.annotations
  if (editsFiles === true) return "edit"
  if (runsCommands === true) return "execute"
  if (addresses !== undefined && addresses.length > 0 && readOnly === true) return "fetch"
  if (destructive === true && openWorld !== true) return "delete"
  if (readOnly !== true) return "other"
  const names = isObject(tool.parameters["properties"]) ? Object.keys(tool.parameters["properties"]) : []
  return names.some((name) => name === "pattern" || name === "query") ? "search" : openWorld === true ? "fetch" : "read"
}

const titleOf = ({ path, toolName }: Call, args: JsonObject): string => {
  const about = View.describeCall(args)
  const who = path.slice(1).map((name) => `${cleanLine(name)} › `)
  return `${who.join("")}${cleanLine(toolName)}${about === "" ? "" : `: ${about}`}`
}

const locationsOf = (args: JsonObject, cwd: string): ReadonlyArray<Acp.ToolCallLocation> => {
  const { file_path: file, offset, path } = args
  const named = typeof file === "string" ? file : typeof path === "string" ? path : undefined
  if (named === undefined || named === "") return []
  const line = typeof offset === "number" && Number.isSafeInteger(offset) && offset > 0 ? { line: offset } : {}
  return [{ path: withFolder(named, cwd), ...line }]
}

/** The change that the arguments of an edit describe. */
const diffOf = (args: JsonObject, tool: ToolFacts | undefined, cwd: string): ReadonlyArray<Acp.ToolCallContent> => {
  const { content, file_path: path, new_string: to, old_string: from } = args
  if (tool?.annotations.editsFiles !== true || typeof path !== "string") return []
  const at = withFolder(path, cwd)
  if (typeof content === "string") return [{ type: "diff", path: at, newText: content }]
  return typeof from === "string" && typeof to === "string"
    ? [{ type: "diff", path: at, oldText: from, newText: to }]
    : []
}

/** Announces a call that the client does not know yet. A call that is open keeps its id. */
const announce = (
  state: State,
  call: Call,
  args: JsonObject,
  status: "in_progress" | "pending",
  place: Place
): Step => {
  const key = keyOf(call)
  const callState = Option.getOrUndefined(HashMap.get(state.calls, key))
  const tool = place.annotations(call.toolName)
  if (callState?.isOpen === true) {
    const update: Update = { sessionUpdate: "tool_call_update", toolCallId: idOf(key, callState.count), status }
    return [state, [update]]
  }
  const count = (callState?.count ?? 0) + 1
  const diff = diffOf(args, tool, place.cwd)
  const locations = locationsOf(args, place.cwd)
  const update: Update = {
    sessionUpdate: "tool_call",
    toolCallId: idOf(key, count),
    title: titleOf(call, args),
    name: call.toolName,
    kind: kindOf(tool),
    status,
    rawInput: args,
    ...(diff.length === 0 ? {} : { content: [...diff] }),
    ...(locations.length === 0 ? {} : { locations: [...locations] })
  }
  return [withCall(state, key, { count, isOpen: true, isShown: diff.length > 0 }), [update]]
}

const withCall = (state: State, key: string, callState: CallState): State => ({
  ...state,
  calls: HashMap.set(state.calls, key, callState)
})

/** The id by which the client knows a call. */
export const callId = (state: State, call: Call): string => {
  const key = keyOf(call)
  const callState = Option.getOrUndefined(HashMap.get(state.calls, key))
  return idOf(key, callState?.count ?? 1)
}

/** Marks a call whose content the client shows by itself, such as a terminal. */
export const showing = (state: State, call: Call): State => {
  const key = keyOf(call)
  const callState = Option.getOrUndefined(HashMap.get(state.calls, key))
  return callState === undefined ? state : withCall(state, key, { ...callState, isShown: true })
}

/** Ends a call. A failure always shows its text; a result that the client shows already keeps it. */
const end = (state: State, call: Call, resultText: string, isError: boolean, place: Place): Step => {
  const key = keyOf(call)
  const [announced, before] = HashMap.get(state.calls, key).pipe(
    Option.filter(({ isOpen }) => isOpen),
    Option.match({
      // A refused or a malformed call has no `ToolCalled`.
      onNone: () => announce(state, call, {}, "pending", place),
      onSome: (): Step => [state, []]
    })
  )
  const callState = Option.getOrElse(HashMap.get(announced.calls, key), () => ({
    count: 1,
    isOpen: true,
    isShown: false
  }))
  const update: Update = {
    sessionUpdate: "tool_call_update",
    toolCallId: idOf(key, callState.count),
    status: isError ? "failed" : "completed",
    ...(callState.isShown && !isError ? {} : { content: [text(clean(resultText))] })
  }
  return [withCall(announced, key, { ...callState, isOpen: false }), [...before, update]]
}

/** Ends all calls that a turn left open. */
export const closeCalls = (state: State): Step => {
  const open = HashMap.toEntries(state.calls).filter(([, { isOpen }]) => isOpen)
  const updates = open.map(([key, { count }]): Update => ({
    sessionUpdate: "tool_call_update",
    toolCallId: idOf(key, count),
    status: "failed"
  }))
  const closed = open.reduce(
    (calls, [key, callState]) => HashMap.set(calls, key, { ...callState, isOpen: false }),
    state.calls
  )
  return [{ ...state, calls: closed }, updates]
}

const statuses = new Set(["pending", "in_progress", "completed"])

const isStatus = (value: Json | undefined): value is Acp.PlanEntryStatus =>
  typeof value === "string" && statuses.has(value)

/** The plan in the todos of a state. */
export const planOf = (value: Json | undefined): ReadonlyArray<Update> => {
  if (!Array.isArray(value)) return []
  const entries = value.flatMap((one: Json): ReadonlyArray<Acp.PlanEntry> => {
    if (!isObject(one)) return []
    const { content, status } = one
    return typeof content === "string"
      ? [{ content: cleanLine(content), priority: "medium", status: isStatus(status) ? status : "pending" }]
      : []
  })
  return [{ sessionUpdate: "plan", entries }]
}

const usageOf = ({ cost, used, window }: State): Update => ({
  sessionUpdate: "usage_update",
  used,
  size: window ?? used,
  ...(cost === undefined ? {} : { cost: { amount: cost, currency: "USD" } })
})

const spend = (state: State, usage: Usage): Step => {
  if (usage.cost === undefined || usage.cost === 0) return [state, []]
  const next = { ...state, cost: (state.cost ?? 0) + usage.cost }
  return [next, [usageOf(next)]]
}

export const notice = (severity: "error" | "info" | "warning", title: string, place: Place): ReadonlyArray<Update> =>
  place.client.notices ? [{ sessionUpdate: "notice", severity, title: cleanLine(title) }] : []

const compact = (state: State, place: Place, tokens: number): Step => {
  const compactions = state.compactions + 1
  const next = { ...state, compactions, used: tokens }
  const updates: ReadonlyArray<Update> = place.client.compaction
    ? [{ sessionUpdate: "compaction_update", compactionId: `compaction-${compactions}`, status: "completed" }]
    : []
  return [next, [...updates, usageOf(next)]]
}

const say = (kind: "agent_message_chunk" | "agent_thought_chunk", words: string): ReadonlyArray<Update> =>
  words === "" ? [] : [{ sessionUpdate: kind, content: { type: "text", text: words } }]

type Event = AgentEvent.AgentEvent

type Handlers = {
  readonly [Tag in Event["_tag"]]: (state: State, event: AgentEvent.Of<Tag>, place: Place) => Step
}

const isRoot = ({ path }: Pick<Event, "path">): boolean => path.length < 2

const progress = (state: State, event: AgentEvent.Of<"ToolProgress">): Step => {
  const key = keyOf(event)
  const callState = Option.getOrUndefined(HashMap.get(state.calls, key))
  if (callState === undefined || !callState.isOpen || callState.isShown) return [state, []]
  const content = [text(View.describeProgress(event.progress))]
  return [state, [{ sessionUpdate: "tool_call_update", toolCallId: idOf(key, callState.count), content }]]
}

/** Announces a call that waits for a decision, or a question of a tool, which has a call of its own. */
const request = (state: State, event: AgentEvent.Of<"ApprovalRequested">, place: Place): Step => {
  const [next, updates] = announce(state, event, event.arguments, "pending", place)
  const key = keyOf(event)
  const callState = Option.getOrUndefined(HashMap.get(next.calls, key))
  const isQuestion = event.toolDigest === undefined
  return [callState === undefined ? next : withCall(next, key, { ...callState, isQuestion }), updates]
}

/** Ends a question. A call that waited for a decision goes on, or ends by itself. */
const resolve = (state: State, event: AgentEvent.Of<"ApprovalResolved">): Step => {
  const key = keyOf(event)
  const callState = Option.getOrUndefined(HashMap.get(state.calls, key))
  if (callState === undefined || !callState.isOpen || callState.isQuestion !== true) return [state, []]
  const status = event.decision === "approve" || event.decision === "respond" ? "completed" : "failed"
  const update: Update = { sessionUpdate: "tool_call_update", toolCallId: idOf(key, callState.count), status }
  return [withCall(state, key, { ...callState, isOpen: false }), [update]]
}

const measure = (state: State, event: AgentEvent.Of<"ContextMeasured">): Step => {
  if (!isRoot(event)) return [state, []]
  const next = { ...state, used: event.total, window: event.window ?? state.window }
  return [next, [usageOf(next)]]
}

const handlers: Partial<Handlers> = {
  TextDelta: (state, event) => [state, isRoot(event) ? say("agent_message_chunk", event.text) : []],
  ReasoningDelta: (state, event) => [state, isRoot(event) ? say("agent_thought_chunk", event.text) : []],
  TurnRestarted: (state, event, place) => [
    state,
    isRoot(event) ? notice("warning", `The model is asked again: ${event.reason}`, place) : []
  ],
  ApprovalRequested: (state, event, place) => request(state, event, place),
  ApprovalResolved: (state, event) => resolve(state, event),
  ToolCalled: (state, event, place) => announce(state, event, event.arguments, "in_progress", place),
  ToolProgress: progress,
  ToolCompleted: (state, event, place) => end(state, event, event.text, false, place),
  ToolFailed: (state, event, place) => end(state, event, event.text, true, place),
  StateChanged: (state, event) => [state, isRoot(event) && event.slot === Todos.todos.name ? planOf(event.value) : []],
  ContextMeasured: measure,
  RoundCompleted: (state, event) => spend(state, event.usage),
  Compacted: (state, event, place) => (isRoot(event) ? compact(state, place, event.tokensAfter) : [state, []]),
  Warning: (state, event, place) => [state, notice("warning", event.message, place)]
}

/** The updates of an event, and the state after them. */
export const ofEvent = <Tag extends Event["_tag"]>(state: State, event: AgentEvent.Of<Tag>, place: Place): Step =>
  handlers[event._tag]?.(state, event, place) ?? [state, []]

/** The client's form of a block. A block that the protocol lacks is named. */
const contentOf = (block: Content.Block): Acp.ContentBlock => {
  if (block.type === "text") return { type: "text", text: block.text }
  if (block.type === "reasoning") return { type: "text", text: "" }
  const { source } = block
  if (block.type === "image" && source.kind === "base64") {
    return { type: "image", data: source.data, mimeType: source.mimeType }
  }
  const name = block.type === "file" ? (block.name ?? "file") : "image"
  return { type: "text", text: `[${cleanLine(name)}]` }
}

const ofMessage = (state: State, message: Message.Message, place: Place): Step => {
  const call = { path: [], runId: "" }
  if (message.role === "human") {
    const isSaid = message.source === undefined
    const updates = isSaid ? message.content.map(contentOf).filter((one) => one.type !== "text" || one.text !== "") : []
    return [state, updates.map((content): Update => ({ sessionUpdate: "user_message_chunk", content }))]
  }
  if (message.role === "tool") {
    const { isError, toolCallId, toolName } = message
    return end(state, { ...call, callId: toolCallId, toolName }, Message.text(message), isError, place)
  }
  if (message.role !== "ai") return [state, []]
  const chunks = [
    ...say("agent_thought_chunk", Message.reasoning(message) ?? ""),
    ...say("agent_message_chunk", Message.text(message))
  ]
  return message.toolCalls.reduce(
    ([before, updates]: Step, one): Step => {
      const called = { ...call, callId: one.id, toolName: one.name }
      const [next, more] = announce(before, called, one.arguments, "in_progress", place)
      return [next, [...updates, ...more]]
    },
    [state, chunks]
  )
}

/** The updates of stored messages, behind the state that the client has seen. */
export const ofMessages = (before: State, messages: Iterable<Message.Message>, place: Place): Step => {
  const updates: Array<Update> = []
  let state = before
  for (const message of messages) {
    const [next, more] = ofMessage(state, message, place)
    state = next
    updates.push(...more)
  }
  return [state, updates]
}
