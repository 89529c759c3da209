/**
 * The events of a run, as one tagged union that encodes to JSON.
 *
 * Events come in the order of `seq`, one at a time as they happen; a sub-agent's events come inline with a longer
 * `path`. The last one is `RunCompleted`, `RunFailed` or `RunInterrupted` of the outermost run, and it is the only one
 * of these with that path. What is in the events is enough to rebuild the transcript and the usage.
 */
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import { version } from "../support/store/version.ts"
import { Choice, Request } from "./Approval.ts"
import { fromUnknown, isObject, Json, JsonObject } from "./Json.ts"
import { AiMessage, Message, TurnStop } from "./Message.ts"
import { decodeVersioned } from "./schema/encoding.ts"
import type { InvalidEncoding } from "./schema/encoding.ts"
import { Cited } from "./Sources.ts"
import { StopReason } from "./StopReason.ts"
import { add, Usage, zero } from "./Usage.ts"

/** On every event: its place in the stream, the run it belongs to, the agents from the root to it, and when (ms). */
const base = {
  seq: Schema.Finite,
  runId: Schema.String,
  path: Schema.Array(Schema.String),
  at: Schema.Finite
}

const event = <const Tag extends string, const Fields extends Schema.Struct.Fields>(tag: Tag, fields: Fields) =>
  Schema.TaggedStruct(tag, { ...base, ...fields })

const call = { callId: Schema.String, toolName: Schema.String, parent: Schema.optionalKey(Schema.String) }
const usage = { usage: Usage }

/** The id of a request, which events of earlier versions do not have. */
const earlier = Schema.String.pipe(Schema.withDecodingDefaultKey(Effect.succeed("")))

/** A run began. */
export const RunStarted = event("RunStarted", {
  agent: Schema.String,
  model: Schema.optionalKey(Schema.String),
  provider: Schema.optionalKey(Schema.String),
  threadId: Schema.optionalKey(Schema.String)
})
export interface RunStarted extends Schema.Schema.Type<typeof RunStarted> {}
/** The model is about to be asked. The first round is 1. */
export const RoundStarted = event("RoundStarted", { round: Schema.Finite })
export interface RoundStarted extends Schema.Schema.Type<typeof RoundStarted> {}
/**
 * The request of a round is about to go to the model: what fills its context window, by parts, in tokens. They are an
 * estimate, good within about a quarter; `usage` of the turn's message has the true sum. `tools` has the schema of the
 * answer too; `notices` are system messages and what was said in the user's place, a summary of earlier messages for
 * one; `ai` is the model's own text. `window` is what the model can take, where that is known. They are counted when
 * they are read: a reader that does not look pays nothing.
 */
export const ContextMeasured = event("ContextMeasured", {
  round: Schema.Finite,
  unit: Schema.Literal("estimatedTokens"),
  total: Schema.Finite,
  window: Schema.optionalKey(Schema.Finite),
  parts: Schema.Struct({
    systemPrompt: Schema.Finite,
    tools: Schema.Finite,
    human: Schema.Finite,
    notices: Schema.Finite,
    ai: Schema.Finite,
    reasoning: Schema.Finite,
    toolCalls: Schema.Finite,
    toolResults: Schema.Finite,
    media: Schema.Finite
  })
})
export interface ContextMeasured extends Schema.Schema.Type<typeof ContextMeasured> {}
/** A piece of the answer. */
export const TextDelta = event("TextDelta", { text: Schema.String })
export interface TextDelta extends Schema.Schema.Type<typeof TextDelta> {}
/** The model began to think. */
export const ReasoningStarted = event("ReasoningStarted", {})
export interface ReasoningStarted extends Schema.Schema.Type<typeof ReasoningStarted> {}
/** A piece of its thoughts. */
export const ReasoningDelta = event("ReasoningDelta", { text: Schema.String })
export interface ReasoningDelta extends Schema.Schema.Type<typeof ReasoningDelta> {}
/** It stopped thinking. */
export const ReasoningCompleted = event("ReasoningCompleted", {})
export interface ReasoningCompleted extends Schema.Schema.Type<typeof ReasoningCompleted> {}
/** A tool call is being written: a piece of its arguments' JSON, empty at its start. */
export const ToolCallDelta = event("ToolCallDelta", { ...call, delta: Schema.String })
export interface ToolCallDelta extends Schema.Schema.Type<typeof ToolCallDelta> {}
/** A tool is about to run. */
export const ToolCalled = event("ToolCalled", { ...call, arguments: JsonObject })
export interface ToolCalled extends Schema.Schema.Type<typeof ToolCalled> {}
/** A running tool says how far it is. */
export const ToolProgress = event("ToolProgress", { ...call, progress: Json })
export interface ToolProgress extends Schema.Schema.Type<typeof ToolProgress> {}
/** A tool is done. `text` is what the model reads; `details` are for people. */
export const ToolCompleted = event("ToolCompleted", {
  ...call,
  text: Schema.String,
  details: Schema.optionalKey(Json),
  durationMillis: Schema.Finite
})
export interface ToolCompleted extends Schema.Schema.Type<typeof ToolCompleted> {}
/** A call was answered with an error: `reason` is a `ToolError` reason, or `Failed` for a result with `isError`. */
export const ToolFailed = event("ToolFailed", {
  ...call,
  reason: Schema.String,
  text: Schema.String,
  details: Schema.optionalKey(Json),
  durationMillis: Schema.Finite
})
export interface ToolFailed extends Schema.Schema.Type<typeof ToolFailed> {}
/** A tool (`callId`) or the model's own search gave sources. Their numbers hold for the whole run. */
export const SourcesFound = event("SourcesFound", {
  callId: Schema.optionalKey(Schema.String),
  sources: Schema.Array(Schema.Struct({ number: Schema.Finite, source: Cited }))
})
export interface SourcesFound extends Schema.Schema.Type<typeof SourcesFound> {}
/** The parts of this turn so far are void; the same request is asked again. */
export const TurnRestarted = event("TurnRestarted", { reason: Schema.String })
export interface TurnRestarted extends Schema.Schema.Type<typeof TurnRestarted> {}
/** A message is now part of the conversation. */
export const MessageAppended = event("MessageAppended", { message: Message })
export interface MessageAppended extends Schema.Schema.Type<typeof MessageAppended> {
  readonly message: Message
}
/** A slot of the state has this value now. */
export const StateChanged = event("StateChanged", { slot: Schema.String, value: Json })
export interface StateChanged extends Schema.Schema.Type<typeof StateChanged> {}
/** A message came in from outside and is about to be appended. */
export const Steered = event("Steered", { messageId: Schema.String, kind: Schema.Literals(["steer", "followUp"]) })
export interface Steered extends Schema.Schema.Type<typeof Steered> {}
/** A tool call started a sub-agent. */
export const SubagentStarted = event("SubagentStarted", {
  callId: Schema.String,
  agent: Schema.String,
  childRunId: Schema.String
})
export interface SubagentStarted extends Schema.Schema.Type<typeof SubagentStarted> {}
/** A sub-agent is done. `outcome` is its stop reason, `failed` or `interrupted`. */
export const SubagentCompleted = event("SubagentCompleted", {
  callId: Schema.String,
  agent: Schema.String,
  childRunId: Schema.String,
  outcome: Schema.String,
  ...usage
})
export interface SubagentCompleted extends Schema.Schema.Type<typeof SubagentCompleted> {}
/**
 * A call waits for a decision. The event is the {@link Request} itself: `Approval.approve(event)` and the like decide
 * on it. Those of earlier versions do not say their `id`, nor what may be decided.
 */
export const ApprovalRequested = event("ApprovalRequested", {
  ...Struct.omit(Request.fields, ["at", "path", "runId"]),
  id: earlier,
  allow: Schema.Array(Choice).pipe(Schema.withDecodingDefaultKey(Effect.succeed([])))
})
export interface ApprovalRequested extends Schema.Schema.Type<typeof ApprovalRequested> {}
/**
 * A decision on the request with this `id` came; or none will (`void`): something else was said, or what came was no
 * decision on it. `by` is the id of who decided, `rule` the rule that asked.
 */
export const ApprovalResolved = event("ApprovalResolved", {
  id: earlier,
  ...call,
  decision: Schema.Literals([...Choice.literals, "void"]),
  by: Schema.optionalKey(Schema.String),
  rule: Schema.optionalKey(Schema.String)
})
export interface ApprovalResolved extends Schema.Schema.Type<typeof ApprovalResolved> {}
/** The history as the model sees it became shorter (tokens, estimated). */
export const Compacted = event("Compacted", { tokensBefore: Schema.Finite, tokensAfter: Schema.Finite })
export interface Compacted extends Schema.Schema.Type<typeof Compacted> {}
/** The thread is stored up to here. */
export const CheckpointSaved = event("CheckpointSaved", { threadId: Schema.String, step: Schema.Finite })
export interface CheckpointSaved extends Schema.Schema.Type<typeof CheckpointSaved> {}
/**
 * The thread was read from its store. `partial` is the turn that it ends with, if that one was cut off: a run that
 * resumes asks for it again, and the model reads it as it is if there is something new to answer.
 */
export const CheckpointLoaded = event("CheckpointLoaded", {
  threadId: Schema.String,
  step: Schema.Finite,
  partial: Schema.optionalKey(AiMessage)
})
export interface CheckpointLoaded extends Schema.Schema.Type<typeof CheckpointLoaded> {}
/** Something is worth knowing and did not stop the run. `code` is stable, `message` is for people. */
export const Warning = event("Warning", { code: Schema.String, message: Schema.String })
export interface Warning extends Schema.Schema.Type<typeof Warning> {}
/** An event of a user's own. */
export const Custom = event("Custom", { name: Schema.String, payload: Json })
export interface Custom extends Schema.Schema.Type<typeof Custom> {}
/** A round is over. `usage` is what this run spent since its last `RoundCompleted`; `stopReason` is the turn's. */
export const RoundCompleted = event("RoundCompleted", { round: Schema.Finite, stopReason: TurnStop, ...usage })
export interface RoundCompleted extends Schema.Schema.Type<typeof RoundCompleted> {}
/** The run ended by itself; `stopReason` says why. `usage` is all of this run and its sub-agents. */
export const RunCompleted = event("RunCompleted", { stopReason: StopReason, rounds: Schema.Finite, ...usage })
export interface RunCompleted extends Schema.Schema.Type<typeof RunCompleted> {}
/** The run failed: the error's tag and message. */
export const RunFailed = event("RunFailed", {
  error: Schema.Struct({ tag: Schema.String, message: Schema.String }),
  rounds: Schema.Finite,
  ...usage
})
export interface RunFailed extends Schema.Schema.Type<typeof RunFailed> {}
/** The run was interrupted. What it had is in the transcript, which is valid. */
export const RunInterrupted = event("RunInterrupted", { rounds: Schema.Finite, ...usage })
export interface RunInterrupted extends Schema.Schema.Type<typeof RunInterrupted> {}

const members = [
  RunStarted,
  RoundStarted,
  ContextMeasured,
  TextDelta,
  ReasoningStarted,
  ReasoningDelta,
  ReasoningCompleted,
  ToolCallDelta,
  ToolCalled,
  ToolProgress,
  ToolCompleted,
  ToolFailed,
  SourcesFound,
  TurnRestarted,
  MessageAppended,
  StateChanged,
  Steered,
  SubagentStarted,
  SubagentCompleted,
  ApprovalRequested,
  ApprovalResolved,
  Compacted,
  CheckpointSaved,
  CheckpointLoaded,
  Warning,
  Custom,
  RoundCompleted,
  RunCompleted,
  RunFailed,
  RunInterrupted
] as const

/** Any event. */
export const AgentEvent: Schema.Codec<AgentEvent, JsonObject> = Schema.Union(members)
export type AgentEvent =
  | RunStarted
  | RoundStarted
  | ContextMeasured
  | TextDelta
  | ReasoningStarted
  | ReasoningDelta
  | ReasoningCompleted
  | ToolCallDelta
  | ToolCalled
  | ToolProgress
  | ToolCompleted
  | ToolFailed
  | SourcesFound
  | TurnRestarted
  | MessageAppended
  | StateChanged
  | Steered
  | SubagentStarted
  | SubagentCompleted
  | ApprovalRequested
  | ApprovalResolved
  | Compacted
  | CheckpointSaved
  | CheckpointLoaded
  | Warning
  | Custom
  | RoundCompleted
  | RunCompleted
  | RunFailed
  | RunInterrupted

/** The tags of all events. */
export const tags: ReadonlyArray<AgentEvent["_tag"]> = members.map((member) => member.fields._tag.schema.literal)

/** The events of one tag. */
export type Of<Tag extends AgentEvent["_tag"]> = Extract<AgentEvent, { readonly _tag: Tag }>

type Tag = AgentEvent["_tag"]

/** Keeps the events of one tag, or of several. */
export const filter: {
  <const T extends Tag>(
    tag: T | ReadonlyArray<T>
  ): <E, R>(events: Stream.Stream<AgentEvent, E, R>) => Stream.Stream<Of<T>, E, R>
  <E, R, const T extends Tag>(
    events: Stream.Stream<AgentEvent, E, R>,
    tag: T | ReadonlyArray<T>
  ): Stream.Stream<Of<T>, E, R>
} = dual(2, <E, R, T extends Tag>(events: Stream.Stream<AgentEvent, E, R>, tag: T | ReadonlyArray<T>) => {
  const wanted: ReadonlySet<Tag> = new Set<Tag>(typeof tag === "string" ? [tag] : tag)
  return Stream.filter(events, (one): one is Of<T> => wanted.has(one._tag))
})

/**
 * Gives the pieces of text that the outermost agent says, as they come: the text of a terminal, or of a response. After
 * a `TurnRestarted`, which is not seen here, the turn is said again from its beginning.
 */
export const textDeltas = <E, R>(events: Stream.Stream<AgentEvent, E, R>): Stream.Stream<string, E, R> =>
  events.pipe(
    filter("TextDelta"),
    Stream.filter((delta) => delta.path.length === 1),
    Stream.map((delta) => delta.text)
  )

/** Tells whether an event is the last of its run. */
export const isTerminal = (value: AgentEvent): value is Of<"RunCompleted" | "RunFailed" | "RunInterrupted"> =>
  value._tag === "RunCompleted" || value._tag === "RunFailed" || value._tag === "RunInterrupted"

const encodeEvent = Schema.encodeUnknownResult(AgentEvent)
const decodeEvent = decodeVersioned("event", AgentEvent, tags)

const asJson = (value: AgentEvent): JsonObject => {
  const json = fromUnknown(value)
  return isObject(json) ? json : {}
}

/**
 * Encodes an event as versioned JSON: `{ "v": 1, "_tag": …, … }`. It never fails: what is no JSON in an event that was
 * made by hand (a number that is none, a date) becomes it, as `Json.fromUnknown` says.
 */
export const encode = (value: AgentEvent): Json => ({
  v: version,
  ...Result.getOrElse(encodeEvent(value), () => asJson(value))
})

/** Decodes an event that came from outside. */
export const decode = (input: unknown): Effect.Effect<AgentEvent, InvalidEncoding> =>
  Effect.fromResult(decodeEvent(input))

/** Collects the messages of the run of these events' first event, in the order in which they were appended. */
export const transcript = (events: Iterable<AgentEvent>): ReadonlyArray<Message> => {
  const messages: Array<Message> = []
  let root: string | undefined
  for (const one of events) {
    root ??= one.runId
    if (one._tag === "MessageAppended" && one.runId === root) messages.push(one.message)
  }
  return messages
}

/**
 * Sums up the usage of these events' runs, sub-agents included: what the last event says if the run is over, else the
 * sum of the rounds so far.
 */
export const usageOf = (events: Iterable<AgentEvent>): Usage => {
  let sum = zero
  let root: string | undefined
  for (const one of events) {
    root ??= one.runId
    if (one._tag === "RoundCompleted") sum = add(sum, one.usage)
    else if (isTerminal(one) && one.runId === root) sum = one.usage
  }
  return sum
}
