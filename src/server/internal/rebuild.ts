/** Rebuilds the events of a thread from its entries. Deltas, progress, warnings and the words of sub-agents are not among them. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { AgentEvent } from "../../core/AgentEvent.ts"
import { choiceOf, type Request } from "../../core/Approval.ts"
import type { Json, JsonObject } from "../../core/Json.ts"
import { type Message, text, type ToolMessage, type TurnStop } from "../../core/Message.ts"
import type { SessionError } from "../../core/SessionError.ts"
import type { Leaf, Page, Service, StoredEntry } from "../../core/SessionStore.ts"
import { StopReason } from "../../core/StopReason.ts"
import { Suspension, suspension } from "../../core/thread/suspension.ts"
import { type Usage, zero } from "../../core/Usage.ts"
import { defined } from "../../support/json/defined.ts"
import { type Subagents, type Tell, tellSubagent } from "./subagents.ts"

/** Entries of a path. `first` is the number of entries before them. */
export interface Path {
  readonly first: number
  readonly entries: ReadonlyArray<StoredEntry>
}

const pageSize = 1_000

/** The ids that entries behind a step refer to, and that no loaded entry defines. */
const unknownIn = ({ entries, first }: Path, after: number): boolean => {
  const knownIds = new Set<string>()
  for (const [index, { entry }] of entries.entries()) {
    if (entry._tag === "Request") knownIds.add(entry.request.id)
    if (entry._tag === "Message" && entry.message.role === "ai") {
      for (const { id } of [...entry.message.toolCalls, ...entry.message.malformedToolCalls]) knownIds.add(id)
    }
    if (first + index < after) continue
    if (entry._tag === "Decision" && !knownIds.has(entry.decision.id)) return true
    if (entry._tag === "Message" && entry.message.role === "tool" && !knownIds.has(entry.message.toolCallId))
      return true
  }
  return false
}

/** Reads the path behind a step, and the entries that it needs: the beginning of its run, its calls and its requests. */
export const readPath = Effect.fnUntraced(function* (
  store: Service,
  threadId: string,
  leaf: Leaf,
  after: number
): Effect.fn.Return<Path, SessionError> {
  let path: Path = { first: leaf.step, entries: [] }
  let from = leaf.id
  while (from !== null) {
    const page: Page = yield* store.load(threadId, { from, limit: pageSize })
    path = { first: path.first - page.entries.length, entries: [...page.entries, ...path.entries] }
    from = page.next
    const hasRun =
      path.first <= Math.max(0, after - 2) &&
      path.entries.some(({ entry }, index) => entry._tag === "RunStarted" && path.first + index <= after)
    if (hasRun && !unknownIn(path, after)) break
  }
  return path
})

interface RunState {
  runId: string
  agent: string
  round: number
  /** The stop reason of the turn, while its round is not told as completed. */
  stop: TurnStop | undefined
  usage: Usage
  /** The usage at the end of the last completed round. */
  counted: Usage
  readonly requests: Map<string, Request>
  readonly calls: Map<string, { readonly name: string; readonly arguments: JsonObject }>
  /** The calls whose answers were told before their messages are stored. */
  readonly answered: Set<string>
  readonly subagents: Subagents
}

const minus = (all: Usage, counted: Usage): Usage => {
  const less = Math.max
  return {
    inputTokens: less(0, all.inputTokens - counted.inputTokens),
    outputTokens: less(0, all.outputTokens - counted.outputTokens),
    reasoningTokens: less(0, all.reasoningTokens - counted.reasoningTokens),
    cacheReadTokens: less(0, all.cacheReadTokens - counted.cacheReadTokens),
    cacheWriteTokens: less(0, all.cacheWriteTokens - counted.cacheWriteTokens),
    ...defined({ cost: all.cost === undefined ? undefined : less(0, all.cost - (counted.cost ?? 0)) })
  }
}

/** Tells the round of the last turn as completed. */
const completeRound = (state: RunState, tell: Tell): void => {
  if (state.stop === undefined) return
  const usage = minus(state.usage, state.counted)
  tell({ _tag: "RoundCompleted", round: state.round, stopReason: state.stop, usage })
  state.stop = undefined
  state.counted = state.usage
}

/** Tells a call and its result. */
const tellAnswer = ({ calls }: RunState, message: ToolMessage, tell: Tell): void => {
  const { isError, toolCallId: callId, toolName } = message
  // Live, a call begins after its message is stored: told with the message, a reader that has the message would miss it.
  tell({ _tag: "ToolCalled", callId, toolName, arguments: calls.get(callId)?.arguments ?? {} })
  const answer = { callId, toolName, text: text(message), durationMillis: 0 }
  tell(isError ? { _tag: "ToolFailed", reason: "Failed", ...answer } : { _tag: "ToolCompleted", ...answer })
}

const decodeSuspension = Schema.decodeUnknownOption(Suspension)

/** Tells a change of the state, or of a sub-agent. */
const tellState = (state: RunState, slot: string, value: Json | undefined, tell: Tell): void => {
  if (slot.startsWith("inside/")) return tellSubagent(state.subagents, state, slot, value, tell)
  if (slot === suspension.name) {
    // The results of a turn in which another call waits have no messages yet.
    for (const message of Option.getOrUndefined(decodeSuspension(value))?.answers ?? []) {
      if (state.answered.has(message.toolCallId)) continue
      state.answered.add(message.toolCallId)
      tellAnswer(state, message, tell)
    }
  }
  if (value !== undefined) tell({ _tag: "StateChanged", slot, value })
}

const tellMessage = (state: RunState, message: Message, tell: Tell): void => {
  if (message.role === "ai") {
    completeRound(state, tell)
    state.stop = message.stopReason
    for (const { arguments: args, id, name } of message.toolCalls) state.calls.set(id, { name, arguments: args })
  }
  if (message.role === "tool" && !state.answered.has(message.toolCallId)) tellAnswer(state, message, tell)
  tell({ _tag: "MessageAppended", message })
}

const stopReasons: ReadonlySet<string> = new Set(StopReason.literals)
const isStopReason = (outcome: string): outcome is StopReason => stopReasons.has(outcome)

type SettledEntry = Extract<StoredEntry["entry"], { readonly _tag: "RunSettled" }>

const tellEnd = (state: RunState, { error, outcome }: SettledEntry, tell: Tell): void => {
  const totals = { rounds: state.round, usage: state.usage }
  if (outcome === "interrupted" || outcome === "stopped") return tell({ _tag: "RunInterrupted", ...totals })
  if (isStopReason(outcome)) return tell({ _tag: "RunCompleted", stopReason: outcome, ...totals })
  tell({ _tag: "RunFailed", error: error ?? { tag: "Unknown", message: "The run failed" }, ...totals })
}

/** The run of a sub-agent's request. */
const ofRequest = ({ path, runId }: Pick<Request, "path" | "runId">) => (path.length > 1 ? { runId, path } : undefined)

const tellApproval = (
  { requests }: RunState,
  entry: Extract<StoredEntry["entry"], { readonly _tag: "Request" | "Decision" }>,
  tell: Tell
): void => {
  if (entry._tag === "Request") {
    const { at: _, path, runId, ...request } = entry.request
    requests.set(entry.request.id, entry.request)
    return tell({ _tag: "ApprovalRequested", ...request }, ofRequest({ path, runId }))
  }
  const { by, id, rule } = entry.decision
  const request = requests.get(id)
  const { callId = "", toolName = "" } = request ?? {}
  const decision = choiceOf(entry.decision)
  tell(
    { _tag: "ApprovalResolved", id, callId, toolName, decision, ...defined({ by: by?.id, rule }) },
    request === undefined ? undefined : ofRequest(request)
  )
}

/** An event, and the step of the entry that tells it. */
export interface StoredEvent {
  readonly step: number
  readonly id: string
  readonly event: AgentEvent
}

/** The events that the entries of a path tell, in order, with a `CheckpointSaved` behind each step of a run. */
export const rebuild = (threadId: string, { entries, first }: Path): ReadonlyArray<StoredEvent> => {
  const reports: Array<StoredEvent> = []
  const state: RunState = {
    runId: "",
    agent: "",
    round: 0,
    stop: undefined,
    usage: zero,
    counted: zero,
    requests: new Map(),
    calls: new Map(),
    answered: new Set(),
    subagents: new Map()
  }
  for (const [index, { at, entry, id }] of entries.entries()) {
    const step = first + index + 1
    const tell: Tell = (fields, of = { runId: state.runId, path: [state.agent] }) =>
      reports.push({ step, id, event: { seq: reports.length, ...of, at, ...fields } })
    switch (entry._tag) {
      case "RunStarted":
        Object.assign(state, { runId: entry.runId, agent: entry.agent, round: 0, stop: undefined })
        tell({ _tag: "RunStarted", agent: entry.agent, threadId })
        break
      case "Message":
        tellMessage(state, entry.message, tell)
        break
      case "State":
        tellState(state, entry.slot, entry.value, tell)
        break
      case "Compaction":
        tell({ _tag: "Compacted", tokensBefore: entry.tokensBefore, tokensAfter: entry.tokensAfter })
        break
      case "Request":
      case "Decision":
        tellApproval(state, entry, tell)
        break
      case "Step": {
        state.usage = entry.usage
        // A round is stored as begun before its turn is asked for.
        state.round = entry.rounds
        if (state.stop === undefined) state.counted = entry.usage
        tell({ _tag: "CheckpointSaved", threadId, step })
        const before = entries[index - 1]?.entry
        // Live, too, the end comes behind the save that has it.
        if (before?._tag === "RunSettled") {
          completeRound(state, tell)
          tellEnd(state, before, tell)
        }
        break
      }
      case "Label":
      case "Part":
      case "RunSettled":
        break
    }
  }
  return reports
}
