/** Turns the updates of an agent of others into events of our run. */
import { fromUnknown, isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import type { RelayedEvent } from "../../../core/Run.ts"
import * as Todos from "../../../middleware/Todos.ts"
import { clean, cleanLine } from "../../../support/text/clean.ts"
import { cut } from "../../../support/text/text.ts"
import type * as Incoming from "./incoming.ts"

/** An open call of the other agent. */
export interface Call {
  readonly toolName: string
  readonly beganAt: number
}

/** The most characters of a result in an event. */
const most = 20_000

const textOf = (content: ReadonlyArray<Incoming.CallContent> | null | undefined): string =>
  (content ?? [])
    .map((one) => {
      if (one.type === "content") return "text" in one.content ? one.content.text : `[${cleanLine(one.content.type)}]`
      return one.type === "diff" ? `[${one.path} was changed]` : "[a terminal]"
    })
    .join("\n")

const argumentsOf = (raw: unknown): JsonObject => {
  const json = fromUnknown(raw)
  return isObject(json) ? json : {}
}

const todosOf = (entries: ReadonlyArray<Incoming.PlanEntry>): Json =>
  entries.map(({ content, status }, index) => ({
    id: String(index + 1),
    content: cleanLine(content),
    status
  }))

/** Keeps the open calls of the other agent, and gives the events of its updates. */
export const makeRelay = (prefix: string) => {
  const calls = new Map<string, Call>()
  const idOf = (toolCallId: string): string => `${prefix}/${cut(cleanLine(toolCallId), 200)}`
  const begin = (one: Incoming.Call, now: number): ReadonlyArray<RelayedEvent> => {
    if (calls.has(one.toolCallId)) return []
    const toolName = cut(cleanLine(one.name ?? one.title ?? one.kind ?? "a call"), 200)
    calls.set(one.toolCallId, { toolName, beganAt: now })
    return [{ _tag: "ToolCalled", callId: idOf(one.toolCallId), toolName, arguments: argumentsOf(one.rawInput) }]
  }
  const end = (one: Incoming.Call, now: number): ReadonlyArray<RelayedEvent> => {
    const call = calls.get(one.toolCallId)
    if (call === undefined || (one.status !== "completed" && one.status !== "failed")) return []
    calls.delete(one.toolCallId)
    const fields = {
      callId: idOf(one.toolCallId),
      toolName: call.toolName,
      text: cut(clean(textOf(one.content)), most),
      durationMillis: Math.max(0, now - call.beganAt)
    }
    return [
      one.status === "completed"
        ? { _tag: "ToolCompleted", ...fields }
        : { _tag: "ToolFailed", reason: "Failed", ...fields }
    ]
  }
  return (update: Incoming.Update, now: number): ReadonlyArray<RelayedEvent> => {
    const kind = update.sessionUpdate
    if (kind === "tool_call" || kind === "tool_call_update") return [...begin(update, now), ...end(update, now)]
    if (kind === "plan") return [{ _tag: "StateChanged", slot: Todos.todos.name, value: todosOf(update.entries) }]
    if ((kind !== "agent_message_chunk" && kind !== "agent_thought_chunk") || !("text" in update.content)) return []
    const { text } = update.content
    return [{ _tag: kind === "agent_message_chunk" ? "TextDelta" : "ReasoningDelta", text }]
  }
}
