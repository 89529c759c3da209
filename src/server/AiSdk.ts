/**
 * The packets of AI SDK 7: UI messages for `useChat` and its relatives, from the events of one input.
 *
 * ```ts
 * import { Stream } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { AiSdk } from "effect-deepagents/server"
 *
 * const helper = Agent.make({ name: "helper", prompt: "You help." })
 * const packets = Agent.stream(helper, "Write it").pipe(AiSdk.encode({ messageId: "answer-7" }))
 * const lines = Stream.map(packets, (packet) => `data: ${JSON.stringify(packet)}\n\n`)
 * ```
 *
 * Messages tell the rest of each delta: a response from the store has the same parts as the live one. `reset-step` makes
 * the open step void. Sub-agents are `data-subagent` parts, the plan is a `data-todos` part.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../core/AgentEvent.ts"
import type { Decision, Request } from "../core/Approval.ts"
import * as Content from "../core/Content.ts"
import type { Json, JsonObject } from "../core/Json.ts"
import { human, type HumanMessage, type Message } from "../core/Message.ts"
import type { SessionError } from "../core/SessionError.ts"
import type { SessionStore } from "../core/SessionStore.ts"
import { defined } from "../support/json/defined.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import { type Answer, decisionOf, decoder, isBlank, refuse } from "./internal/packets/input.ts"
import { type RunInput, prepareDecisions, prepareInput } from "./internal/packets/ownRoute.ts"
import { byTag, type Handlers, type Part, problemOf } from "./internal/packets/part.ts"
import { mapParts, type Take } from "./internal/packets/parts.ts"
import { decodeMessages as readMessages, readContent, UiPart } from "./internal/packets/uiMessages.ts"
import type { RunsError } from "./internal/service.ts"
import * as shapes from "./internal/shapes.ts"

export type { RunInput } from "./internal/packets/ownRoute.ts"

/** A packet: a `UIMessageChunk` of the package `ai`. */
export type Packet =
  | { readonly type: "start"; readonly messageId: string }
  | { readonly type: "start-step" | "finish-step" | "reset-step" }
  | { readonly type: "text-start" | "text-end" | "reasoning-start" | "reasoning-end"; readonly id: string }
  | { readonly type: "text-delta" | "reasoning-delta"; readonly id: string; readonly delta: string }
  | {
      readonly type: "tool-input-start"
      readonly toolCallId: string
      readonly toolName: string
      readonly dynamic: true
    }
  | { readonly type: "tool-input-delta"; readonly toolCallId: string; readonly inputTextDelta: string }
  | {
      readonly type: "tool-input-available"
      readonly toolCallId: string
      readonly toolName: string
      readonly input: JsonObject
      readonly dynamic: true
    }
  | {
      readonly type: "tool-input-error"
      readonly toolCallId: string
      readonly toolName: string
      readonly input: string
      readonly errorText: string
      readonly dynamic: true
    }
  | {
      readonly type: "tool-output-available"
      readonly toolCallId: string
      readonly output: string
      readonly dynamic: true
    }
  | {
      readonly type: "tool-output-error"
      readonly toolCallId: string
      readonly errorText: string
      readonly dynamic: true
    }
  | { readonly type: "tool-output-denied"; readonly toolCallId: string }
  | {
      readonly type: "tool-approval-request"
      readonly approvalId: string
      readonly toolCallId: string
      readonly reason: string
      readonly approvalDescriptor: JsonObject
    }
  | {
      readonly type: "tool-approval-response"
      readonly approvalId: string
      readonly approved: boolean
    }
  | { readonly type: "source-url"; readonly sourceId: string; readonly url: string; readonly title?: string }
  | { readonly type: "file"; readonly url: string; readonly mediaType: string }
  | {
      readonly type: "steering-message"
      readonly id: string
      readonly parts: Array<{ readonly type: "text"; readonly text: string }>
    }
  | { readonly type: `data-${string}`; readonly id?: string; readonly data: Json; readonly transient?: boolean }
  | { readonly type: "error"; readonly errorText: string }
  | { readonly type: "abort"; readonly reason: string }
  | {
      readonly type: "finish"
      readonly finishReason: "stop" | "length" | "content-filter" | "tool-calls" | "error" | "interrupted"
      readonly messageMetadata: JsonObject
    }

/** The options of packets. */
export interface Options {
  /** The id of the response's message. A reader that comes again gets the same. */
  readonly messageId: string
  /** Events before these, whose packets the client has: those before a decision. Default: none. */
  readonly told?: ReadonlyArray<AgentEvent> | undefined
}

type Out = (packet: Packet) => void

const tellResult = ({ id: toolCallId, outcome, text }: Extract<Part, { readonly _tag: "Result" }>, out: Out): void =>
  outcome === "denied"
    ? out({ type: "tool-output-denied", toolCallId })
    : outcome === "failed"
      ? out({ type: "tool-output-error", toolCallId, errorText: text, dynamic: true })
      : out({ type: "tool-output-available", toolCallId, output: text, dynamic: true })

const tellRequest = ({ isOwn, partId, request }: Extract<Part, { readonly _tag: "Asked" }>, out: Out): void => {
  const { allow, answer, arguments: input, description, expiresAt, id, toolName } = request
  // The call of a sub-agent is in no part of this message; clients need a part to show the request on.
  if (!isOwn) out({ type: "tool-input-available", toolCallId: partId, toolName, input, dynamic: true })
  out({
    type: "tool-approval-request",
    approvalId: id,
    toolCallId: partId,
    reason: description,
    approvalDescriptor: { allow: [...allow], ...defined({ answer, expiresAt }) }
  })
}

const tellDecision = ({ event, isOwn, partId }: Extract<Part, { readonly _tag: "Decided" }>, out: Out): void => {
  const isApproved = event.decision !== "reject" && event.decision !== "void"
  out({ type: "tool-approval-response", approvalId: event.id, approved: isApproved })
  if (!isApproved) return out({ type: "tool-output-denied", toolCallId: partId })
  // The call that waits is elsewhere: its part here is done with the decision.
  if (!isOwn) out({ type: "tool-output-available", toolCallId: partId, output: event.decision, dynamic: true })
}

const finishReasons = { suspended: "tool-calls", length: "length", refused: "content-filter" } as const

const tellEnd = ({ event }: Extract<Part, { readonly _tag: "End" }>, out: Out): void => {
  const metadata = (stopReason: string): JsonObject => ({ usage: { ...event.usage }, stopReason })
  if (event._tag === "RunFailed") {
    out({ type: "error", errorText: problemOf(event) })
    return out({ type: "finish", finishReason: "error", messageMetadata: metadata("failed") })
  }
  if (event._tag === "RunInterrupted") {
    out({ type: "finish", finishReason: "interrupted", messageMetadata: metadata("interrupted") })
    return out({ type: "abort", reason: "The run was cancelled." })
  }
  const { stopReason } = event
  const reasons: Readonly<Record<string, (typeof finishReasons)[keyof typeof finishReasons]>> = finishReasons
  out({ type: "finish", finishReason: reasons[stopReason] ?? "stop", messageMetadata: metadata(stopReason) })
}

const tellOther = ({ event }: Extract<Part, { readonly _tag: "Other" }>, out: Out): void => {
  if (event._tag === "ToolProgress") {
    const { callId, progress, toolName } = event
    return out({ type: "data-progress", data: { callId, toolName, progress }, transient: true })
  }
  if (event._tag === "Custom") {
    return out({ type: "data-custom", data: { name: event.name, payload: event.payload }, transient: true })
  }
  if (event._tag === "Warning") {
    return out({ type: "data-warning", data: { code: event.code, message: event.message }, transient: true })
  }
  const { tokensAfter, tokensBefore } = event
  out({ type: "data-compacted", data: { tokensBefore, tokensAfter }, transient: true })
}

/** The packets of each part. */
const handlers = {
  TextDelta: ({ id, text: delta }, out) => out({ type: "text-delta", id, delta }),
  ReasoningDelta: ({ id, text: delta }, out) => out({ type: "reasoning-delta", id, delta }),
  CallDelta: ({ id: toolCallId, text }, out) => out({ type: "tool-input-delta", toolCallId, inputTextDelta: text }),
  Step: (_, out) => out({ type: "start-step" }),
  StepEnd: (_, out) => out({ type: "finish-step" }),
  Void: (_, out) => out({ type: "reset-step" }),
  TextStart: ({ id }, out) => out({ type: "text-start", id }),
  TextEnd: ({ id }, out) => out({ type: "text-end", id }),
  ReasoningStart: ({ id }, out) => out({ type: "reasoning-start", id }),
  ReasoningEnd: ({ id }, out) => out({ type: "reasoning-end", id }),
  CallStart: ({ id: toolCallId, name: toolName }, out) =>
    out({ type: "tool-input-start", toolCallId, toolName, dynamic: true }),
  Call: ({ arguments: input, id: toolCallId, name: toolName }, out) =>
    out({ type: "tool-input-available", toolCallId, toolName, input, dynamic: true }),
  BadCall: ({ id: toolCallId, name: toolName, problem: errorText, raw: input }, out) =>
    out({ type: "tool-input-error", toolCallId, toolName, input, errorText, dynamic: true }),
  Asked: tellRequest,
  Decided: tellDecision,
  Subagent: ({ subagent: { agent, callId, id, path, status, usage } }, out) =>
    out({ type: "data-subagent", id, data: { agent, callId, path: [...path], status, ...defined({ usage }) } }),
  Sources: ({ sources }, out) => {
    for (const { number, source } of sources) {
      if (source.url === undefined) continue
      out({ type: "source-url", sourceId: String(number), url: source.url, ...defined({ title: source.title }) })
    }
  },
  File: ({ mediaType, url }, out) => out({ type: "file", url, mediaType }),
  Steered: ({ message: { content, id } }, out) =>
    out({ type: "steering-message", id, parts: [{ type: "text", text: Content.toText(content) }] }),
  Todos: ({ todos }, out) => out({ type: "data-todos", id: "todos", data: todos }),
  Other: tellOther,
  End: tellEnd
} satisfies Handlers<Packet>

const makeTake = (messageId: string) => (): Take<Packet> => {
  // A client fails on the result of a call that is in an earlier message: of a request that nobody answered.
  const calls = new Set<string>()
  return byTag<Packet>({
    ...handlers,
    Begin: (_, out) => out({ type: "start", messageId }),
    CallStart: (part, out) => {
      calls.add(part.id)
      handlers.CallStart(part, out)
    },
    Call: (part, out) => {
      calls.add(part.id)
      handlers.Call(part, out)
    },
    BadCall: (part, out) => {
      calls.add(part.id)
      handlers.BadCall(part, out)
    },
    Result: (part, out) => {
      if (calls.has(part.id)) tellResult(part, out)
    }
  })
}

const refuseEncode = makeEffectCheck("AiSdk.encode", shapes.aiSdkEncode)

/** Maps the events of one input to packets. */
export const encode = (
  options: Options
): (<E, R>(events: Stream.Stream<AgentEvent, E, R>) => Stream.Stream<Packet, E, R>) => {
  const refused = refuseEncode(options)
  if (refused !== undefined) return () => Stream.fromEffect(refused)
  const { messageId, told } = options
  return mapParts(makeTake(messageId), told)
}

const Body = Schema.Struct({
  id: Schema.String,
  messages: Schema.Array(Schema.Struct({ id: Schema.String, role: Schema.String, parts: Schema.Array(UiPart) })),
  trigger: Schema.optionalKey(Schema.String)
})

const readBody = decoder(Body)

/**
 * A request of a client: for an answer to its last message, or to go on with decisions. `messageId` is the id of
 * the response.
 */
export type ClientRequest =
  | {
      readonly _tag: "Input"
      readonly threadId: string
      readonly messageId: string
      /** Identifies the input: the id of the client's message. */
      readonly id: string
      readonly message: HumanMessage
      /** True when the client wants the answer again. */
      readonly isRepeated: boolean
    }
  | {
      readonly _tag: "Decisions"
      readonly threadId: string
      readonly messageId: string
      /** The decision of the client on a request, if it has one. */
      readonly decide: (request: Request) => Decision | undefined
    }

/**
 * Reads the body of `useChat`'s request. Only the last message counts: the thread has the earlier ones, and a client
 * can't change them.
 */
export const decode = (body: unknown): Effect.Effect<ClientRequest, RunsError> =>
  Effect.gen(function* () {
    const { id: threadId, messages, trigger } = yield* readBody(body)
    const last = messages.at(-1)
    if (last?.role === "assistant" && trigger !== "regenerate-message") {
      const answers = new Map<string, Answer>()
      for (const { approval, state } of last.parts) {
        if (approval?.approved === undefined || state !== "approval-responded") continue
        answers.set(approval.id, { isApproved: approval.approved, text: approval.reason })
      }
      if (answers.size === 0) return yield* refuse("messages: the last one is of the assistant and answers no request")
      const decide = (request: Request) => {
        const answer = answers.get(request.id)
        return answer === undefined ? undefined : decisionOf(request, answer)
      }
      return { _tag: "Decisions", threadId, messageId: last.id, decide } as const
    }
    if (last?.role !== "user") return yield* refuse("messages: expected a message of the user at the end")
    const content = yield* readContent(last.parts)
    if (isBlank(content)) return yield* refuse("messages: the last one has no text and no file")
    const isRepeated = trigger === "regenerate-message"
    const message = human(content, { id: last.id })
    return { _tag: "Input", threadId, messageId: `${last.id}-answer`, id: last.id, message, isRepeated } as const
  })

/**
 * Prepares the run of a request, in a route of your own: the input of the run, and the `told` of `encode`. Decisions go on
 * with the message that asked. If the client wants an answer again, the earlier answer stays in the thread as a branch.
 *
 * Fails with `Conflict` if nothing waits for the decisions.
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { AiSdk } from "effect-deepagents/server"
 *
 * const helper = Agent.make({ name: "helper", prompt: "You help." })
 *
 * const answer = Effect.fnUntraced(function* (body: unknown) {
 *   const request = yield* AiSdk.decode(body)
 *   const { input, told } = yield* AiSdk.prepareRun(request)
 *   const { messageId, threadId } = request
 *   return Agent.stream(helper, input, { threadId }).pipe(AiSdk.encode({ messageId, told }))
 * })
 * ```
 */
export const prepareRun = (request: ClientRequest): Effect.Effect<RunInput, RunsError | SessionError, SessionStore> =>
  request._tag === "Input"
    ? prepareInput(request.threadId, request.message, request.isRepeated)
    : prepareDecisions(request.threadId, request.decide)

/**
 * Reads messages that an application stored for `useChat`, as messages of a thread: texts, reasoning, files, calls and
 * their results. Other parts are left out. Fails with `InvalidInput`, which names the field.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { AiSdk } from "effect-deepagents/server"
 *
 * const program = AiSdk.decodeMessages([{ id: "1", role: "user", parts: [{ type: "text", text: "Hello" }] }])
 * const messages = Effect.runSync(program)
 * ```
 */
export const decodeMessages = (messages: unknown): Effect.Effect<ReadonlyArray<Message>, RunsError> =>
  readMessages(messages)
