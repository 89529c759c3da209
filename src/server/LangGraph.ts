/**
 * The packets of LangGraph's API, as `@langchain/langgraph-sdk` and `RemoteAgents` read them, from the events of one input.
 *
 * ```ts
 * import { Stream } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { LangGraph } from "effect-deepagents/server"
 *
 * const helper = Agent.make({ name: "helper", prompt: "You help." })
 * const packets = Agent.stream(helper, "Write it").pipe(LangGraph.encode({ threadId: "report-7", runId: "run-1" }))
 * const lines = Stream.map(packets, ({ data, event, id }) => `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
 * ```
 *
 * `values` are whole states: each one replaces the state before. A request is an interrupt in the form of LangChain's
 * human in the loop, and `command: { resume }` answers it.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../core/AgentEvent.ts"
import type { Decision, Request } from "../core/Approval.ts"
import type { Json, JsonObject } from "../core/Json.ts"
import { human, type HumanMessage, type Message, tool } from "../core/Message.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import { decoder, decisionOf, isBlank, refuse } from "./internal/packets/input.ts"
import { answersOf, callChunkOf, interruptOf, messageOf } from "./internal/packets/langChain.ts"
import { byTag, type Handlers, type Part, problemOf } from "./internal/packets/part.ts"
import { mapNumbered, type Tail, type Take } from "./internal/packets/parts.ts"
import { readContent, Said } from "./internal/packets/said.ts"
import type { RunsError } from "./internal/service.ts"
import * as shapes from "./internal/shapes.ts"

/**
 * A packet: an event of a run. Its `id` counts packets, and each character of a text: a response from the store has the ids
 * of the live one.
 */
export interface Packet {
  readonly id: number
  readonly event: string
  readonly data: Json
}

/** What a stream tells: whole states, updates, pieces of messages, and the own events of tools. */
export type Mode = "values" | "updates" | "messages-tuple" | "custom"

const modes: ReadonlyArray<Mode> = ["values", "updates", "messages-tuple", "custom"]

/** The options of packets. */
export interface Options {
  /** The id of the thread, as the client knows it. */
  readonly threadId: string
  /** The id of the run. */
  readonly runId: string
  /** The packets that the client wants. Default: `values`. */
  readonly modes?: ReadonlyArray<Mode> | undefined
  /** The messages of the thread up to the input, which states have in front. Default: none. */
  readonly before?: ReadonlyArray<Message> | undefined
  /** Events before these, whose packets the client has: those before a decision. Default: none. */
  readonly told?: ReadonlyArray<AgentEvent> | undefined
  /** The id of the last packet that the client has: only later ones are told. Default: none. */
  readonly after?: number | undefined
}

type Out = (packet: Packet) => void

interface State {
  /** The id of the next packet. */
  next: number
  messages: ReadonlyArray<Message>
  todos: Json | undefined
  calls: number
  readonly interrupts: Map<string, JsonObject>
}

const valuesOf = ({ messages, todos }: State): JsonObject => ({
  messages: messages.flatMap(messageOf),
  ...(todos === undefined ? {} : { todos })
})

const statusOf = ({ event }: Extract<Part, { readonly _tag: "End" }>): "success" | "interrupted" | "error" =>
  event._tag === "RunFailed"
    ? "error"
    : event._tag === "RunInterrupted" || event.stopReason === "suspended"
      ? "interrupted"
      : "success"

const makeTake = (options: Options) => (tail: Tail<Packet>) => (): Take<Packet> => {
  const { after = -1, before = [], modes = ["values"], runId, threadId } = options
  const state: State = { next: 1, messages: before, todos: undefined, calls: 0, interrupts: new Map() }
  const tell = (event: string, data: Json, out: Out): void => {
    const id = state.next++
    if (id <= after) return
    tail.due = []
    out({ id, event, data })
  }
  const tellIn = (mode: Mode, data: Json, out: Out): void => {
    // A client may choose other modes when it comes again: ids don't depend on them.
    const id = state.next++
    if (id > after && modes.includes(mode)) out({ id, event: mode === "messages-tuple" ? "messages" : mode, data })
  }
  const pieceOf = (chunk: JsonObject): Json => [
    chunk,
    { langgraph_node: chunk["type"] === "tool" ? "tools" : "agent", tags: [] }
  ]
  const tellPiece = (chunk: JsonObject, out: Out): void => tellIn("messages-tuple", pieceOf(chunk), out)
  const tellText = (partId: string, text: string, out: Out): void => {
    const messageId = partId.slice(0, partId.lastIndexOf("/"))
    const first = state.next
    state.next += Math.max(0, text.length - 1)
    const rest = text.slice(Math.max(0, after + 1 - first))
    tellPiece({ type: "AIMessageChunk", id: messageId, content: rest, tool_call_chunks: [] }, out)
  }
  const add = (node: "agent" | "tools", message: Message, out: Out): void => {
    state.messages = [...state.messages, message]
    tellIn("updates", { [node]: { messages: messageOf(message) } }, out)
  }
  /** Tells the text of a result that a middleware changed. Entries tell only this one, so it has no id of its own. */
  const change = (message: Message, out: Out): void => {
    state.messages = state.messages.map((one) => (one.id === message.id ? message : one))
    const id = state.next - 1
    if (id <= after || !modes.includes("messages-tuple")) return
    for (const chunk of messageOf(message)) out({ id, event: "messages", data: pieceOf(chunk) })
  }
  const handlers: Handlers<Packet> = {
    // It has no id of its own: a response that goes on begins, too.
    Begin: (_, out) => {
      if (after < 0) out({ id: state.next - 1, event: "metadata", data: { run_id: runId, thread_id: threadId } })
    },
    TextDelta: ({ id, text }, out) => tellText(id, text, out),
    Call: ({ arguments: args, id, messageId, name }, out) =>
      tellPiece(callChunkOf(messageId, { id, name, arguments: args }, state.calls++), out),
    Turn: ({ message }, out) => {
      state.calls = 0
      add("agent", message, out)
      tellIn("values", valuesOf(state), out)
    },
    Result: ({ id, name, outcome, text }, out) => {
      const message = tool(text, { id: `${id}/result`, toolCallId: id, toolName: name, isError: outcome !== "done" })
      if (state.messages.some((one) => one.id === message.id)) return change(message, out)
      for (const chunk of messageOf(message)) tellPiece(chunk, out)
      add("tools", message, out)
    },
    StepEnd: (_, out) => tellIn("values", valuesOf(state), out),
    Steered: ({ message }) => void (state.messages = [...state.messages, message]),
    Todos: ({ todos }) => void (state.todos = todos),
    Asked: ({ replaces, request }) => {
      if (replaces !== undefined) state.interrupts.delete(replaces)
      state.interrupts.set(request.id, interruptOf(request))
    },
    Decided: ({ event }) => void state.interrupts.delete(event.id),
    Other: ({ event }, out) => {
      // Entries do not tell it: it has no id of its own.
      if (event._tag !== "Custom" || !modes.includes("custom") || state.next <= after) return
      out({ id: state.next - 1, event: "custom", data: { name: event.name, payload: event.payload } })
    },
    End: (part, out) => {
      const { event } = part
      const waits = event._tag === "RunCompleted" && event.stopReason === "suspended"
      const interrupts = waits ? { __interrupt__: [...state.interrupts.values()] } : {}
      if (waits) tellIn("updates", interrupts, out)
      const values = { ...valuesOf(state), ...interrupts }
      tellIn("values", values, out)
      if (event._tag === "RunFailed") tell("error", { error: event.error.tag, message: problemOf(event) }, out)
      const end = { run_id: runId, status: statusOf(part) }
      const finalValues = modes.includes("values") ? [{ id: after + 1, event: "values", data: values }] : []
      tail.due = state.next > after ? [] : [...finalValues, { id: after + 1, event: "end", data: end }]
      tell("end", end, out)
    }
  }
  return byTag(handlers)
}

const refuseEncode = makeEffectCheck("LangGraph.encode", shapes.langGraphEncode)

/** Maps the events of one input to packets. */
export const encode = (
  options: Options
): (<E, R>(events: Stream.Stream<AgentEvent, E, R>) => Stream.Stream<Packet, E, R>) => {
  const refused = refuseEncode(options)
  return refused === undefined ? mapNumbered(makeTake(options), options.told) : () => Stream.fromEffect(refused)
}

const Command = Schema.Struct({ resume: Schema.optionalKey(Schema.NullOr(Schema.Json)) })

const Typed = Schema.Struct({
  ...Said.fields,
  id: Schema.optionalKey(Schema.NullOr(Schema.String)),
  type: Schema.optionalKey(Schema.String)
})

const Body = Schema.Struct({
  assistant_id: Schema.String,
  input: Schema.optionalKey(
    Schema.NullOr(Schema.Struct({ messages: Schema.optionalKey(Schema.Union([Schema.Array(Typed), Typed])) }))
  ),
  command: Schema.optionalKey(Schema.NullOr(Command)),
  stream_mode: Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Array(Schema.String)]))),
  multitask_strategy: Schema.optionalKey(Schema.NullOr(Schema.Literals(["reject", "enqueue", "interrupt"]))),
  if_not_exists: Schema.optionalKey(Schema.NullOr(Schema.String))
})

const readBody = decoder(Body)

/** Reads the names of modes. */
export const decodeModes = (names: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Mode>, RunsError> => {
  const validModes = names.flatMap((name) => modes.find((mode) => mode === name) ?? [])
  return validModes.length === names.length
    ? Effect.succeed(validModes.length === 0 ? ["values"] : validModes)
    : Effect.fail(refuse(`stream_mode: expected ${modes.join(", ")}`))
}

/** A request of a client: an input, answers to interrupts, or to go on with a run that failed. */
export type ClientRequest = {
  readonly assistantId: string
  readonly modes: ReadonlyArray<Mode>
} & (
  | {
      readonly _tag: "Input"
      /** The client's id of its message, which identifies the input. */
      readonly id: string | undefined
      readonly message: HumanMessage
      /** The treatment of a run at work. */
      readonly busy: "refuse" | "queue" | "replace"
      readonly createsThread: boolean
    }
  | {
      readonly _tag: "Decisions"
      /** The decisions of the client, of the requests that wait. */
      readonly decide: (pending: ReadonlyArray<Request>) => ReadonlyArray<Decision>
    }
)

const strategies = { reject: "refuse", enqueue: "queue", interrupt: "replace" } as const

const idForm = /^[\w-]{1,128}$/u

const readHuman = Effect.fnUntraced(function* ({ content, role, type = "" }: typeof Typed.Type) {
  if (!["human", "user"].includes(role ?? type)) {
    return yield* refuse("input.messages: expected a message of the user at the end")
  }
  const blocks = yield* readContent(content)
  return isBlank(blocks) ? yield* refuse("input.messages: the last one has no text and no file") : blocks
})

/** Reads the body of a run. Only the last message of the input counts: the rest is in the thread. */
export const decode = (body: unknown): Effect.Effect<ClientRequest, RunsError> =>
  Effect.gen(function* () {
    const request = yield* readBody(body)
    const { assistant_id: assistantId, command, if_not_exists: ifMissing, input } = request
    const mode = request.stream_mode ?? []
    const head = { assistantId, modes: yield* decodeModes(typeof mode === "string" ? [mode] : mode) }
    const messages = input?.messages ?? []
    const last = "at" in messages ? messages.at(-1) : messages
    if (last === undefined) {
      if (input?.messages !== undefined) return yield* refuse("input.messages: expected a message")
      const { resume = null } = command ?? {}
      const decide = (pending: ReadonlyArray<Request>) =>
        Array.from(answersOf(resume, pending)).flatMap(([request, answer]) => decisionOf(request, answer) ?? [])
      return { ...head, _tag: "Decisions", decide } as const
    }
    const content = yield* readHuman(last)
    return {
      ...head,
      _tag: "Input",
      id: idForm.test(last.id ?? "") ? (last.id ?? undefined) : undefined,
      message: human(content),
      busy: strategies[request.multitask_strategy ?? "enqueue"],
      createsThread: ifMissing === "create"
    } as const
  })
