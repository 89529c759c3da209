/**
 * The packets of AG-UI 1.0: events for `HttpAgent`, CopilotKit and their relatives, from the events of one input.
 *
 * ```ts
 * import { Stream } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { AgUi } from "effect-deepagents/server"
 *
 * const helper = Agent.make({ name: "helper", prompt: "You help." })
 * const packets = Agent.stream(helper, "Write it").pipe(AgUi.encode({ threadId: "report-7", runId: "run-1" }))
 * const lines = Stream.map(packets, (packet) => `data: ${JSON.stringify(packet)}\n\n`)
 * ```
 *
 * Requests are interrupts at the end of a run. The plan is the state. The protocol can't take text back: a turn that begins
 * again ends its message, and a `CUSTOM` packet `void` names it.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../core/AgentEvent.ts"
import type { Decision, Request } from "../core/Approval.ts"
import * as Content from "../core/Content.ts"
import { type JsonObject, stringify } from "../core/Json.ts"
import { human, type HumanMessage, type Message, reasoning, text } from "../core/Message.ts"
import { defined } from "../support/json/defined.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import { type Answer, decisionOf, decoder, isBlank, readFile, refuse } from "./internal/packets/input.ts"
import { byTag, type Handlers, type Part, problemOf, type Subagent } from "./internal/packets/part.ts"
import { mapParts, type Take } from "./internal/packets/parts.ts"
import type { RunsError } from "./internal/service.ts"
import * as shapes from "./internal/shapes.ts"

/** A packet: an event of AG-UI, with the fields of its `type`. */
export interface Packet extends JsonObject {
  readonly type: string
}

/** The options of packets. */
export interface Options {
  /** The id of the thread, as the client knows it. */
  readonly threadId: string
  /** The client's id of its run. */
  readonly runId: string
  /** Events before these, whose packets the client has: those before a decision. Default: none. */
  readonly told?: ReadonlyArray<AgentEvent> | undefined
  /**
   * The messages of the thread before the response. A client that comes again takes them in place of its own, so that
   * the response can be told whole. Default: they are not told.
   */
  readonly before?: ReadonlyArray<Message> | undefined
}

type Out = (packet: Packet) => void

interface State {
  /** The runs so far: each end of work ends a run of the protocol. */
  runs: number
  isRunning: boolean
  steps: number
  /** The text message that is open, and the id of its part. */
  text: { readonly part: string; readonly message: string } | undefined
  readonly texts: Set<string>
  readonly started: Set<string>
  /** The text messages of the turn that is not complete. */
  readonly said: Set<string>
  /** The calls of the turn that is not complete. */
  readonly calls: Set<string>
  readonly closed: Set<string>
  readonly results: Set<string>
  readonly interrupts: Map<string, JsonObject>
}

const closeText = (state: State, out: Out): void => {
  if (state.text === undefined) return
  out({ type: "TEXT_MESSAGE_END", messageId: state.text.message })
  state.text = undefined
}

/** The message of a text: the first one of a turn has the turn's id, so that calls are of the same message. */
const openText = (state: State, part: string, out: Out): string => {
  if (state.text?.part === part) return state.text.message
  closeText(state, out)
  const turn = part.slice(0, part.lastIndexOf("/"))
  const message = state.texts.has(turn) ? `${turn}/${state.texts.size}` : turn
  state.texts.add(message)
  state.said.add(message)
  state.text = { part, message }
  out({ type: "TEXT_MESSAGE_START", messageId: message, role: "assistant" })
  return message
}

const startCall = (state: State, id: string, name: string, messageId: string, out: Out): boolean => {
  if (state.started.has(id)) return false
  closeText(state, out)
  state.started.add(id)
  state.calls.add(id)
  const parent = messageId === "" ? {} : { parentMessageId: messageId }
  out({ type: "TOOL_CALL_START", toolCallId: id, toolCallName: name, ...parent })
  return true
}

const endCall = (state: State, id: string, out: Out): void => {
  if (state.closed.has(id) || !state.started.has(id)) return
  state.closed.add(id)
  out({ type: "TOOL_CALL_END", toolCallId: id })
}

/** Ends the open text and the open calls of a turn. */
const closeTurn = (state: State, out: Out): void => {
  closeText(state, out)
  for (const id of state.started) endCall(state, id, out)
}

const interruptOf = ({ isOwn, partId, request }: Extract<Part, { readonly _tag: "Asked" }>): JsonObject => {
  const { allow, answer, arguments: args, description: message, expiresAt, id, toolName } = request
  return {
    id,
    reason: answer === undefined ? "tool_call" : "input_required",
    message,
    metadata: { allow: [...allow], toolName, arguments: args },
    ...(isOwn ? { toolCallId: partId } : {}),
    ...(answer === undefined ? {} : { responseSchema: answer }),
    ...(expiresAt === undefined ? {} : { expiresAt: new Date(expiresAt).toISOString() })
  }
}

const tellSubagent = ({ agent, callId, id, path, status }: Subagent, out: Out): void => {
  const subagentRunId = id
  if (status === "working") {
    // The call of a deeper one is in no message of this stream.
    const parent = path.length === 2 ? { parentToolCallId: callId } : {}
    return out({ type: "SUBAGENT_STARTED", subagentRunId, name: agent, ...parent })
  }
  if (status === "failed" || status === "interrupted") {
    return out({
      type: "SUBAGENT_ERROR",
      subagentRunId,
      message: `The sub-agent ${status === "failed" ? "failed" : "was interrupted"}.`
    })
  }
  out({ type: "SUBAGENT_FINISHED", subagentRunId, outcome: { type: status === "waiting" ? "suspended" : "success" } })
}

const usageOf = ({ usage }: Extract<Part, { readonly _tag: "End" }>["event"]): Array<JsonObject> => [
  {
    inputTokens: usage.inputTokens,
    outputTokens: usage.outputTokens,
    totalTokens: usage.inputTokens + usage.outputTokens,
    reasoningTokens: usage.reasoningTokens,
    cachedInputTokens: usage.cacheReadTokens,
    cacheWriteInputTokens: usage.cacheWriteTokens
  }
]

const runIdOf = ({ runId }: Options, { runs }: State): string => (runs < 2 ? runId : `${runId}/${runs}`)

const messageOf = (message: Message): ReadonlyArray<JsonObject> => {
  const { id } = message
  const content = text(message)
  switch (message.role) {
    case "system":
      return []
    case "human":
      return [{ id: id.startsWith("input:") ? id.slice("input:".length) : id, role: "user", content }]
    case "tool":
      return [{ id: `${message.toolCallId}/result`, role: "tool", toolCallId: message.toolCallId, content }]
    case "ai": {
      const toolCalls = message.toolCalls.map(({ arguments: args, id: callId, name }) => ({
        id: callId,
        type: "function",
        function: { name, arguments: stringify(args) }
      }))
      const thoughts = reasoning(message)
      return [
        ...(thoughts === undefined ? [] : [{ id: `${id}/reasoning`, role: "reasoning", content: thoughts }]),
        { id, role: "assistant", content, ...(toolCalls.length === 0 ? {} : { toolCalls }) }
      ]
    }
  }
}

/** Makes the messages that replace the client's own. */
const snapshotOf = (messages: ReadonlyArray<Message>): Array<JsonObject> => {
  const all = messages.flatMap(messageOf)
  // A client keeps its thoughts when it gets none: it would hear the response's own twice.
  const hasThoughts = all.some(({ role }) => role === "reasoning")
  return hasThoughts ? all : [...all, { id: "no-reasoning", role: "reasoning", content: "" }]
}

const beginRun = (options: Options, state: State, out: Out): void => {
  if (state.isRunning) return
  state.isRunning = true
  state.runs++
  const { before, threadId } = options
  out({ type: "RUN_STARTED", threadId, runId: runIdOf(options, state) })
  if (before !== undefined && state.runs === 1) out({ type: "MESSAGES_SNAPSHOT", messages: snapshotOf(before) })
}

const endRun = (options: Options, state: State, event: Extract<Part, { readonly _tag: "End" }>["event"], out: Out) => {
  closeTurn(state, out)
  state.isRunning = false
  if (event._tag === "RunFailed") return out({ type: "RUN_ERROR", message: problemOf(event), code: event.error.tag })
  const { threadId } = options
  const stopReason = event._tag === "RunCompleted" ? event.stopReason : "interrupted"
  const outcome =
    stopReason === "interrupted"
      ? { type: "cancelled" }
      : stopReason === "suspended"
        ? { type: "interrupt", interrupts: [...state.interrupts.values()] }
        : { type: "success" }
  out({
    type: "RUN_FINISHED",
    threadId,
    runId: runIdOf(options, state),
    result: { stopReason },
    outcome,
    usage: usageOf(event)
  })
}

const makeHandlers = (options: Options, state: State): Handlers<Packet> => ({
  Step: (_, out) => out({ type: "STEP_STARTED", stepName: `step-${++state.steps}` }),
  StepEnd: (_, out) => {
    closeTurn(state, out)
    out({ type: "STEP_FINISHED", stepName: `step-${state.steps}` })
  },
  Void: (_, out) => {
    closeTurn(state, out)
    // The calls of the void turn may come again, with their ids.
    for (const id of state.calls) {
      state.started.delete(id)
      state.closed.delete(id)
    }
    state.calls.clear()
    for (const messageId of state.said) out({ type: "CUSTOM", name: "void", value: { messageId } })
    state.said.clear()
  },
  TextDelta: ({ id, text }, out) => {
    const messageId = openText(state, id, out)
    out({ type: "TEXT_MESSAGE_CONTENT", messageId, delta: text })
  },
  TextEnd: (_, out) => closeText(state, out),
  ReasoningStart: ({ id: messageId }, out) => {
    closeText(state, out)
    out({ type: "REASONING_START", messageId })
    out({ type: "REASONING_MESSAGE_START", messageId, role: "reasoning" })
  },
  ReasoningDelta: ({ id: messageId, text: delta }, out) => out({ type: "REASONING_MESSAGE_CONTENT", messageId, delta }),
  ReasoningEnd: ({ id: messageId }, out) => {
    out({ type: "REASONING_MESSAGE_END", messageId })
    out({ type: "REASONING_END", messageId })
  },
  CallStart: ({ id, messageId, name }, out) => void startCall(state, id, name, messageId, out),
  CallDelta: ({ id: toolCallId, text: delta }, out) => out({ type: "TOOL_CALL_ARGS", toolCallId, delta }),
  Call: ({ arguments: args, id, messageId, name }, out) => {
    if (startCall(state, id, name, messageId, out)) {
      out({ type: "TOOL_CALL_ARGS", toolCallId: id, delta: stringify(args) })
    }
    endCall(state, id, out)
  },
  BadCall: ({ id, messageId, name, raw }, out) => {
    if (startCall(state, id, name, messageId, out) && raw !== "") {
      out({ type: "TOOL_CALL_ARGS", toolCallId: id, delta: raw })
    }
    endCall(state, id, out)
  },
  Turn: (_, out) => {
    closeTurn(state, out)
    state.said.clear()
    state.calls.clear()
  },
  Result: ({ id, text: content }, out) => {
    if (state.results.has(id)) return
    state.results.add(id)
    out({ type: "TOOL_CALL_RESULT", messageId: `${id}/result`, toolCallId: id, content, role: "tool" })
  },
  Asked: (part) => {
    if (part.replaces !== undefined) state.interrupts.delete(part.replaces)
    state.interrupts.set(part.request.id, interruptOf(part))
  },
  Decided: ({ event }) => void state.interrupts.delete(event.id),
  Subagent: ({ subagent }, out) => tellSubagent(subagent, out),
  Sources: ({ sources }, out) =>
    out({
      type: "CUSTOM",
      name: "sources",
      value: sources.map(({ number, source }) => ({ number, ...source }))
    }),
  File: ({ mediaType, url }, out) => out({ type: "CUSTOM", name: "file", value: { url, mediaType } }),
  Steered: ({ message: { content, id: messageId } }, out) => {
    const delta = Content.toText(content)
    out({ type: "TEXT_MESSAGE_START", messageId, role: "user" })
    if (delta !== "") out({ type: "TEXT_MESSAGE_CONTENT", messageId, delta })
    out({ type: "TEXT_MESSAGE_END", messageId })
  },
  Todos: ({ todos }, out) => {
    out({ type: "STATE_SNAPSHOT", snapshot: { todos } })
  },
  Other: ({ event }, out) => {
    if (event._tag === "Custom") return out({ type: "CUSTOM", name: event.name, value: event.payload })
    const { _tag, at: _, path: __, runId: ___, seq: ____, ...value } = event
    out({ type: "CUSTOM", name: _tag, value })
  },
  End: ({ event }, out) => endRun(options, state, event, out)
})

const makeTake = (options: Options) => (): Take<Packet> => {
  const state: State = {
    runs: 0,
    isRunning: false,
    steps: 0,
    text: undefined,
    texts: new Set(),
    started: new Set(),
    said: new Set(),
    calls: new Set(),
    closed: new Set(),
    results: new Set(),
    interrupts: new Map()
  }
  const take = byTag(makeHandlers(options, state))
  return (part, out, event) => {
    // Earlier events have runs of their own, which the client knows.
    if (part._tag === "Begin") {
      Object.assign(state, { runs: 0, isRunning: false })
    }
    beginRun(options, state, out)
    take(part, out, event)
  }
}

const refuseEncode = makeEffectCheck("AgUi.encode", shapes.agUiEncode)

/** Maps the events of one input to packets. */
export const encode = (
  options: Options
): (<E, R>(events: Stream.Stream<AgentEvent, E, R>) => Stream.Stream<Packet, E, R>) => {
  const refused = refuseEncode(options)
  return refused === undefined ? mapParts(makeTake(options), options.told) : () => Stream.fromEffect(refused)
}

const Media = Schema.Struct({
  type: Schema.String,
  text: Schema.optionalKey(Schema.String),
  source: Schema.optionalKey(
    Schema.Struct({
      type: Schema.String,
      value: Schema.optionalKey(Schema.String),
      mimeType: Schema.optionalKey(Schema.String)
    })
  )
})

const Body = Schema.Struct({
  threadId: Schema.String,
  runId: Schema.String,
  messages: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      role: Schema.String,
      content: Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Media)]))
    })
  ),
  resume: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        interruptId: Schema.String,
        status: Schema.Literals(["resolved", "cancelled"]),
        payload: Schema.optionalKey(Schema.Json)
      })
    )
  )
})

const readBody = decoder(Body)

/** A request of a client: for an answer to its last message, or to go on with decisions. */
export type ClientRequest = {
  readonly threadId: string
  readonly runId: string
} & (
  | {
      readonly _tag: "Input"
      /** Identifies the input: the id of the client's message. */
      readonly id: string
      readonly message: HumanMessage
    }
  | {
      readonly _tag: "Decisions"
      /** The ids of the answered interrupts. */
      readonly interrupts: ReadonlyArray<string>
      /** The decision of the client on a request, if it has one. */
      readonly decide: (request: Request) => Decision | undefined
    }
)

const Payload = Schema.Struct({
  approved: Schema.optionalKey(Schema.Boolean),
  reason: Schema.optionalKey(Schema.String),
  arguments: Schema.optionalKey(Schema.Json)
})
const readPayload = Schema.decodeUnknownOption(Payload)

/** The answer of an interrupt: of a question its value, of a call `{ approved, reason?, arguments? }`. */
const answerOf = ({ payload, status }: NonNullable<(typeof Body.Type)["resume"]>[number], request: Request): Answer => {
  if (status === "cancelled") return { isApproved: false, text: "cancelled" }
  if (request.answer !== undefined && payload !== undefined) return { isApproved: true, value: payload }
  if (payload === undefined || payload === null) return { isApproved: true }
  const decoded = readPayload(payload)
  const { approved, arguments: edited, reason } = decoded._tag === "Some" ? decoded.value : {}
  // An answer that can't be read, such as one with a misspelt key, approves nothing.
  return { isApproved: approved ?? edited !== undefined, ...defined({ text: reason, arguments: edited }) }
}

/** Reads a `RunAgentInput`. Only the last message of the user counts, or the answers to interrupts: the rest is in the thread. */
export const decode = (body: unknown): Effect.Effect<ClientRequest, RunsError> =>
  Effect.gen(function* () {
    const { messages, resume = [], runId, threadId } = yield* readBody(body)
    if (resume.length > 0) {
      const answers = new Map(resume.map((one) => [one.interruptId, one]))
      const decide = (request: Request) => {
        const answer = answers.get(request.id)
        return answer === undefined ? undefined : decisionOf(request, answerOf(answer, request))
      }
      return { _tag: "Decisions", threadId, runId, interrupts: [...answers.keys()], decide } as const
    }
    // A client that comes again may have a part of the answer behind it.
    const last = messages.findLast(({ role }) => role === "user")
    if (last === undefined) return yield* refuse("messages: expected a message of the user")
    const content: Array<Content.Block> = []
    for (const part of typeof last.content === "string"
      ? [{ type: "text", text: last.content }]
      : (last.content ?? [])) {
      if (part.text !== undefined && part.text !== "") content.push(Content.text(part.text))
      const { mimeType, type, value } = ("source" in part ? part.source : undefined) ?? {}
      if (value === undefined) continue
      const url = type === "data" ? `data:${mimeType ?? "application/octet-stream"};base64,${value}` : value
      content.push(yield* readFile(url, mimeType, undefined))
    }
    if (isBlank(content)) return yield* refuse("messages: the last one has no text and no file")
    return { _tag: "Input", threadId, runId, id: last.id, message: human(content) } as const
  })
