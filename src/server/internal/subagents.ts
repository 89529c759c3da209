/** Rebuilds the begin and the end of sub-agents from the records that open calls keep of them. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { AgentEvent } from "../../core/AgentEvent.ts"
import type { Json } from "../../core/Json.ts"
import { StopReason } from "../../core/StopReason.ts"
import { Usage } from "../../core/Usage.ts"

type Fields<E> = E extends AgentEvent ? Omit<E, "seq" | "runId" | "path" | "at"> : never

/** Tells an event: of the root run, or of another one. */
export type Tell = (
  fields: Fields<AgentEvent>,
  of?: { readonly runId: string; readonly path: ReadonlyArray<string> }
) => void

/** The sub-agents so far, by the slot of their record. */
export type Subagents = Map<string, { readonly agent: string; readonly ends: number }>

/** The part of a record that events tell. */
const Record = Schema.TaggedStruct("Child", {
  agent: Schema.String,
  open: Schema.optionalKey(Schema.String),
  ends: Schema.Array(Schema.Struct({ stopReason: StopReason, usage: Usage }))
})
const decodeRecord = Schema.decodeUnknownOption(Record)

/** The segments of one level: `inside`, the call, the place in it; then `s` for the state of the sub-agent there. */
const level = 4

const unescape = (segment: string): string => segment.replaceAll("%2F", "/").replaceAll("%25", "%")

/** Tells what a record of an open call says of a sub-agent. A session that goes on begins anew with each input. */
export const tellSubagent = (
  subagents: Subagents,
  { agent: root, runId }: { readonly agent: string; readonly runId: string },
  slot: string,
  value: Json | undefined,
  tell: Tell
): void => {
  const segments = slot.split("/")
  if (segments.length % level !== level - 1) return
  const record = Option.getOrUndefined(decodeRecord(value))
  if (record === undefined) return
  const path = [root]
  let parent = runId
  for (let end = level - 1; end < segments.length; end += level) {
    const above = segments.slice(0, end).join("/")
    const ancestor = subagents.get(above)
    if (ancestor === undefined) return
    path.push(ancestor.agent)
    parent = `${above}#${ancestor.ends}`
  }
  const callId = unescape(segments.at(-2) ?? "")
  const before = subagents.get(slot)?.ends ?? 0
  const { agent, ends, open } = record
  subagents.set(slot, { agent, ends: ends.length })
  const of = { runId: parent, path }
  for (const [index, { stopReason: outcome, usage }] of ends.entries()) {
    if (index < before) continue
    tell({ _tag: "SubagentCompleted", callId, agent, childRunId: `${slot}#${index}`, outcome, usage }, of)
  }
  if (open !== undefined) tell({ _tag: "SubagentStarted", callId, agent, childRunId: `${slot}#${ends.length}` }, of)
}
