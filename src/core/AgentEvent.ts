/**
 * The events of a run, as one tagged union that encodes to JSON.
 *
 * Events come in the order of `seq`, one at a time as they happen. Events of a sub-agent come inline with a longer
 * `path`. The last event is the `RunCompleted`, `RunFailed` or `RunInterrupted` of the outermost run. The events are
 * enough to rebuild the transcript and the usage.
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
import { CitedSource } from "./Sources.ts"
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

const members = [
  /** A run began. */
  event("RunStarted", {
    agent: Schema.String,
    model: Schema.optionalKey(Schema.String),
    provider: Schema.optionalKey(Schema.String),
    threadId: Schema.optionalKey(Schema.String)
  }),
  /** The model is about to be asked. The first round is 1. `messageId` is the id that the message of its turn will have. */
  event("RoundStarted", { round: Schema.Finite, messageId: Schema.optionalKey(Schema.String) }),
  /**
   * A request goes to the model: the parts of its context window, in estimated tokens (good within about a quarter;
   * `usage` of the turn has the true sum).
   *
   * - `tools`: tools and the schema of the answer
   * - `notices`: system messages and texts in the user's place, such as summaries
   * - `ai`: the model's own text
   * - `window`: the model's limit, if known
   *
   * They are counted when a reader looks at them.
   */
  event("ContextMeasured", {
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
  }),
  /** A piece of the answer. */
  event("TextDelta", { text: Schema.String }),
  /** The model began to think. */
  event("ReasoningStarted", {}),
  /** A piece of its thoughts. */
  event("ReasoningDelta", { text: Schema.String }),
  /** It stopped thinking. */
  event("ReasoningCompleted", {}),
  /** A tool call is being written: a piece of its arguments' JSON, empty at its start. */
  event("ToolCallDelta", { ...call, delta: Schema.String }),
  /** A tool is about to run. */
  event("ToolCalled", { ...call, arguments: JsonObject }),
  /** A running tool says how far it is. */
  event("ToolProgress", { ...call, progress: Json }),
  /** A tool is done. The model reads `text`; `details` are for people. */
  event("ToolCompleted", {
    ...call,
    text: Schema.String,
    details: Schema.optionalKey(Json),
    durationMillis: Schema.Finite
  }),
  /** A call was answered with an error: `reason` is a `ToolError` reason, or `Failed` for a result with `isError`. */
  event("ToolFailed", {
    ...call,
    reason: Schema.String,
    text: Schema.String,
    details: Schema.optionalKey(Json),
    durationMillis: Schema.Finite
  }),
  /** A tool (`callId`) or the model's own search gave sources. Their numbers hold for the whole run. */
  event("SourcesFound", {
    callId: Schema.optionalKey(Schema.String),
    sources: Schema.Array(Schema.Struct({ number: Schema.Finite, source: CitedSource }))
  }),
  /** The parts of this turn so far are void; the same request is asked again. */
  event("TurnRestarted", { reason: Schema.String }),
  /** A message is now part of the conversation. */
  event("MessageAppended", { message: Message }),
  /** A slot of the state has this value now. */
  event("StateChanged", { slot: Schema.String, value: Json }),
  /** A message came in from outside and is about to be appended. */
  event("Steered", { messageId: Schema.String, kind: Schema.Literals(["steer", "followUp"]) }),
  /** A tool call started a sub-agent. */
  event("SubagentStarted", {
    callId: Schema.String,
    agent: Schema.String,
    childRunId: Schema.String
  }),
  /** A sub-agent is done. `outcome` is its stop reason, `failed` or `interrupted`. */
  event("SubagentCompleted", {
    callId: Schema.String,
    agent: Schema.String,
    childRunId: Schema.String,
    outcome: Schema.String,
    ...usage
  }),
  /**
   * A call waits for a decision. The event is the {@link Request} itself: `Approval.approve(event)` and the like decide
   * on it. Those of earlier versions do not say their `id`, nor what may be decided.
   */
  event("ApprovalRequested", {
    ...Struct.omit(Request.fields, ["at", "path", "runId"]),
    id: earlier,
    allow: Schema.Array(Choice).pipe(Schema.withDecodingDefaultKey(Effect.succeed([])))
  }),
  /**
   * A decision on the request with this `id` came, or none will (`void`). `by` is the id of the decider, `rule` the
   * rule that asked.
   */
  event("ApprovalResolved", {
    id: earlier,
    ...call,
    decision: Schema.Literals([...Choice.literals, "void"]),
    by: Schema.optionalKey(Schema.String),
    rule: Schema.optionalKey(Schema.String)
  }),
  /** The history as the model sees it became shorter (tokens, estimated). */
  event("Compacted", { tokensBefore: Schema.Finite, tokensAfter: Schema.Finite }),
  /** The thread is stored up to here. */
  event("CheckpointSaved", { threadId: Schema.String, step: Schema.Finite }),
  /**
   * The thread was read from its store. `partial` is the turn that it ends with, if that one was cut off: a run that
   * resumes asks for it again, and the model reads it as it is if there is something new to answer.
   */
  event("CheckpointLoaded", {
    threadId: Schema.String,
    step: Schema.Finite,
    partial: Schema.optionalKey(AiMessage)
  }),
  /** Something is worth knowing and did not stop the run. `code` is stable, `message` is for people. */
  event("Warning", { code: Schema.String, message: Schema.String, data: Schema.optionalKey(Json) }),
  /** An event of a user's own. */
  event("Custom", { name: Schema.String, payload: Json }),
  /** A round is over. `usage` is the usage since the last `RoundCompleted`; `stopReason` is that of the turn. */
  event("RoundCompleted", { round: Schema.Finite, stopReason: TurnStop, ...usage }),
  /** The run ended by itself; `stopReason` says why. `usage` is all of this run and its sub-agents. */
  event("RunCompleted", { stopReason: StopReason, rounds: Schema.Finite, ...usage }),
  /** The run failed: the error's tag and message. */
  event("RunFailed", {
    error: Schema.Struct({ tag: Schema.String, message: Schema.String }),
    rounds: Schema.Finite,
    ...usage
  }),
  /** The run was interrupted. The transcript is valid. */
  event("RunInterrupted", { rounds: Schema.Finite, ...usage })
] as const

/** Any event. */
export type AgentEvent = Schema.Schema.Type<(typeof members)[number]>
export const AgentEvent: Schema.Codec<AgentEvent, JsonObject> = Schema.Union(members)

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
 * Encodes an event as versioned JSON: `{ "v": 1, "_tag": …, … }`. It never fails: `Json.fromUnknown` converts values
 * that are not JSON in a hand-made event.
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

/** Sums up the usage of a run and its sub-agents: the total of its last event, or else the sum of its rounds so far. */
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
