/**
 * Folds events into the parts of a response. A repeated event tells nothing, and messages
 * tell the rest of their deltas: so a response that is rebuilt from the store has the parts of the live one.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { AgentEvent, Of } from "../../../core/AgentEvent.ts"
import type { Json } from "../../../core/Json.ts"
import { type Message, text, type ToolMessage } from "../../../core/Message.ts"
import { CitedSource, slot as sourcesSlot } from "../../../core/sourceList.ts"
import { suspension, Suspension } from "../../../core/thread/suspension.ts"
import { isOfRoot, type Part, type Tell } from "./part.ts"
import * as Subagents from "./subagents.ts"
import * as Turn from "./turn.ts"

/** See {@link make}. */
interface State {
  isBegun: boolean
  /** True when a turn was told, so that a person's message is no input any more. */
  isAnswering: boolean
  readonly turn: Turn.Turn
  /** The id that the message of the next turn will have. */
  nextId: string
  /** The time of the last message of the model. */
  messageAt: number
  readonly messages: Set<string>
  readonly calls: Set<string>
  readonly results: Map<string, string>
  readonly denied: Set<string>
  readonly requests: Map<
    string,
    { readonly partId: string; readonly isOwn: boolean; readonly call: string; isDecided: boolean }
  >
  readonly subagents: Subagents.Subagents
  readonly sources: Set<number>
  /** Sources are told at the end, and todos at the end of a step: entries do not say when exactly they came. */
  foundSources: Array<Of<"SourcesFound">["sources"][number]>
  dueTodos: Json | undefined
}

const make = (): State => ({
  isBegun: false,
  isAnswering: false,
  turn: Turn.make(),
  nextId: "",
  messageAt: -1,
  messages: new Set(),
  calls: new Set(),
  results: new Map(),
  denied: new Set(),
  requests: new Map(),
  subagents: new Map(),
  sources: new Set(),
  foundSources: [],
  dueTodos: undefined
})

const tellTodos = (state: State, tell: Tell): void => {
  const { dueTodos: todos } = state
  state.dueTodos = undefined
  if (todos !== undefined) tell({ _tag: "Todos", todos })
}

const decodeSources = Schema.decodeUnknownOption(Schema.Array(CitedSource))

/** The sources of a slot: entries have it in the place of events. */
const readSources = (value: Json): Of<"SourcesFound">["sources"] =>
  Option.getOrElse(decodeSources(value), () => []).map((source, index) => ({ number: index + 1, source }))

const noteSources = (state: State, sources: Of<"SourcesFound">["sources"]): void => {
  for (const one of sources) {
    if (state.sources.has(one.number)) continue
    state.sources.add(one.number)
    state.foundSources.push(one)
  }
}

const endStep = (state: State, tell: Tell): void => {
  tellTodos(state, tell)
  if (!state.turn.isOpen || state.turn.isBare) return
  state.turn.isOpen = false
  tell({ _tag: "StepEnd" })
}

const openTurn = (state: State, event: AgentEvent, tell: Tell): void => {
  const { turn } = state
  if (turn.isOpen && !turn.isComplete && !turn.isBare) return
  if (turn.isComplete) endStep(state, tell)
  Turn.open(turn, state.nextId === "" ? `${event.runId}/${event.seq}` : state.nextId, tell)
  state.isAnswering = true
}

/**
 * Reports whether a piece of a turn comes too late: the store told its message. A reader that comes from the store may have
 * missed the beginning of the turn that is at work, whose pieces are newer than the last message.
 */
const isStale = ({ messageAt, messages, nextId }: State, { at }: AgentEvent): boolean =>
  nextId === "" ? at <= messageAt : messages.has(nextId)

const tellResult = (
  state: State,
  { callId: id, name, text: said, isError }: { callId: string; name: string; text: string; isError: boolean },
  tell: Tell
): void => {
  Subagents.settle(state.subagents, "failed", id, tell)
  const outcome = state.denied.has(id) ? "denied" : isError ? "failed" : "done"
  const key = `${outcome} ${said}`
  if (state.results.get(id) === key) return
  state.results.set(id, key)
  tell({ _tag: "Result", id, name, text: said, outcome })
}

const tellAnswer = (state: State, message: ToolMessage, tell: Tell): void => {
  const { isError, toolCallId: callId, toolName: name } = message
  tellResult(state, { callId, name, text: text(message), isError }, tell)
}

const tellMessage = (state: State, event: AgentEvent, message: Message, tell: Tell): void => {
  if (state.messages.has(message.id)) {
    // The pieces that were told before it are in the message that the store told.
    if (message.role === "ai") Turn.discard(state.turn, tell)
    return
  }
  state.messages.add(message.id)
  if (message.role === "ai") {
    openTurn(state, event, tell)
    Turn.complete(state.turn, message, tell)
    for (const { id } of message.toolCalls) state.calls.add(id)
    for (const { id } of message.malformedToolCalls) state.calls.add(id)
    Object.assign(state, { nextId: "", messageAt: event.at })
  } else if (message.role === "tool") {
    tellAnswer(state, message, tell)
  } else if (message.role === "human" && message.source === undefined) {
    if (!state.isAnswering || message.id.startsWith("input:")) return
    tellTodos(state, tell)
    tell({ _tag: "Steered", message })
  }
}

const decodeSuspension = Schema.decodeUnknownOption(Suspension)

/** Tells the answers that a round which waits has so far. They are no messages yet. */
const tellAnswers = (state: State, value: Json, tell: Tell): void => {
  const { answers } = Option.getOrElse(decodeSuspension(value), () => ({ answers: [] }))
  for (const answer of answers) tellAnswer(state, answer, tell)
}

const tellRequest = (state: State, request: Of<"ApprovalRequested">, tell: Tell): void => {
  if (state.requests.has(request.id)) return
  const isOwn = isOfRoot(request) && state.calls.has(request.callId)
  const place = { partId: isOwn ? request.callId : request.id, isOwn }
  const call = [...request.path, request.callId].join("\n")
  const [replaces] = Array.from(state.requests).find(([, one]) => one.call === call && !one.isDecided) ?? []
  if (replaces !== undefined) state.requests.delete(replaces)
  state.requests.set(request.id, { ...place, call, isDecided: false })
  tell({ _tag: "Asked", request, replaces, ...place })
}

const tellDecision = (state: State, event: Of<"ApprovalResolved">, tell: Tell): void => {
  const request = state.requests.get(event.id)
  if (request === undefined || request.isDecided) return
  request.isDecided = true
  const { isOwn, partId } = request
  if (isOwn && event.decision === "reject") state.denied.add(partId)
  tell({ _tag: "Decided", event, partId, isOwn })
}

const tellEnd = (state: State, event: Extract<Part, { readonly _tag: "End" }>["event"], tell: Tell): void => {
  Turn.discard(state.turn, tell)
  const status =
    event._tag === "RunInterrupted"
      ? "interrupted"
      : event._tag === "RunCompleted" && event.stopReason === "suspended"
        ? "waiting"
        : "failed"
  Subagents.settle(state.subagents, status, undefined, tell)
  state.turn.isBare = false
  endStep(state, tell)
  const { foundSources: sources } = state
  if (sources.length > 0 && status !== "waiting") {
    state.foundSources = []
    tell({ _tag: "Sources", sources })
  }
  tell({ _tag: "End", event })
}

type Tellers = {
  readonly [Tag in AgentEvent["_tag"]]?: (
    state: State,
    event: Extract<AgentEvent, { readonly _tag: Tag }>,
    tell: Tell
  ) => void
}

const sayPiece =
  (kind: "Text" | "Reasoning") =>
  (state: State, event: Of<"TextDelta" | "ReasoningDelta">, tell: Tell): void => {
    if (event.text === "" || isStale(state, event)) return
    openTurn(state, event, tell)
    Turn.say(state.turn, kind, event.text, tell)
  }

const tellOutcome = (state: State, event: Of<"ToolCompleted" | "ToolFailed">, tell: Tell): void => {
  const { callId, parent, text: resultText, toolName: name } = event
  if (parent === undefined)
    tellResult(state, { callId, name, text: resultText, isError: event._tag === "ToolFailed" }, tell)
}

const tellOther = (_: State, event: Extract<Part, { readonly _tag: "Other" }>["event"], tell: Tell): void =>
  tell({ _tag: "Other", event })

/** The events of the outermost run. */
const ofRoot: Tellers = {
  TextDelta: sayPiece("Text"),
  ReasoningDelta: sayPiece("Reasoning"),
  ToolCallDelta: (state, event, tell) => {
    if (event.parent !== undefined || isStale(state, event)) return
    openTurn(state, event, tell)
    Turn.call(state.turn, event.callId, event.toolName, event.delta, tell)
  },
  RoundStarted: (state, { messageId = "" }) => {
    state.nextId = messageId
  },
  TurnRestarted: ({ turn }, _, tell) => Turn.discard(turn, tell),
  RoundCompleted: (state, _, tell) => endStep(state, tell),
  ToolCalled: (state, { arguments: args, callId: id, parent, toolName: name }, tell) => {
    if (parent !== undefined || state.calls.has(id)) return
    // The open call of a program is in no turn.
    state.calls.add(id)
    tell({ _tag: "Call", id, name, arguments: args, messageId: "" })
  },
  ToolCompleted: tellOutcome,
  ToolFailed: tellOutcome,
  MessageAppended: (state, event, tell) => tellMessage(state, event, event.message, tell),
  StateChanged: (state, { slot, value }, tell) => {
    if (slot === "todos") state.dueTodos = value
    if (slot === sourcesSlot.name) noteSources(state, readSources(value))
    if (slot === suspension.name) tellAnswers(state, value, tell)
  },
  ToolProgress: tellOther,
  Warning: tellOther,
  Custom: tellOther,
  Compacted: tellOther,
  RunCompleted: tellEnd,
  RunFailed: tellEnd,
  RunInterrupted: tellEnd
}

/** The events of any run. */
const ofAny: Tellers = {
  SourcesFound: (state, { sources }) => noteSources(state, sources),
  SubagentStarted: ({ subagents }, event, tell) => Subagents.start(subagents, event, tell),
  SubagentCompleted: ({ subagents }, event, tell) => Subagents.end(subagents, event, tell),
  ApprovalRequested: tellRequest,
  ApprovalResolved: tellDecision
}

const ofAll: Tellers = { ...ofRoot, ...ofAny }

const tellEvent = (state: State, event: AgentEvent, tell: Tell): void => {
  if (!state.isBegun) {
    state.isBegun = true
    tell({ _tag: "Begin" })
  }
  // The key and the event have the same tag.
  const teller = (isOfRoot(event) ? ofAll : ofAny)[event._tag] as
    | ((state: State, event: AgentEvent, tell: Tell) => void)
    | undefined
  teller?.(state, event, tell)
}

/** Tells the packets of a part. The time of the event is for protocols that date their packets. */
export type Take<Packet> = (part: Part, out: (packet: Packet) => void, event: AgentEvent) => void

/**
 * Maps events to the packets of a protocol, a chunk at a time. `told` are the events before, whose packets the client
 * has. A protocol has a state of its own a stream.
 */
export const mapParts =
  <Packet>(begin: () => Take<Packet>, told: ReadonlyArray<AgentEvent> = []) =>
  <E, R>(events: Stream.Stream<AgentEvent, E, R>): Stream.Stream<Packet, E, R> =>
    Stream.mapAccumArray(
      events,
      () => {
        const state = make()
        const take = begin()
        const ignore = () => undefined
        for (const event of told) tellEvent(state, event, (part) => take(part, ignore, event))
        // A response that goes on begins, too.
        state.isBegun = false
        return { state, take }
      },
      (both, some) => {
        const packets: Array<Packet> = []
        const out = (packet: Packet) => void packets.push(packet)
        for (const event of some) tellEvent(both.state, event, (part) => both.take(part, out, event))
        return [both, packets]
      }
    )

/** The packets that end a stream if nothing else does. */
export interface Tail<Packet> {
  due: ReadonlyArray<Packet>
}

/**
 * Maps events to numbered packets. A turn that began again has more numbers live than in the store, so that a client may
 * have the numbers of packets that it never got: it gets the tail.
 */
export const mapNumbered =
  <Packet>(begin: (tail: Tail<Packet>) => () => Take<Packet>, told?: ReadonlyArray<AgentEvent>) =>
  <E, R>(events: Stream.Stream<AgentEvent, E, R>): Stream.Stream<Packet, E, R> =>
    Stream.suspend(() => {
      const tail: Tail<Packet> = { due: [] }
      const rest = Stream.suspend(() => Stream.fromIterable(tail.due))
      return Stream.concat(mapParts(begin(tail), told)(events), rest)
    })
