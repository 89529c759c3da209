/**
 * The packets of A2A 1.0, as a task streams them, from the events of one input.
 *
 * ```ts
 * import { Stream } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { A2A } from "effect-deepagents/server"
 *
 * const helper = Agent.make({ name: "helper", prompt: "You help." })
 * const packets = Agent.stream(helper, "Write it").pipe(A2A.encode({ taskId: "task-1", contextId: "report-7" }))
 * const lines = Stream.map(packets, (result) => `data: ${JSON.stringify({ jsonrpc: "2.0", id: 1, result })}\n\n`)
 * ```
 *
 * The text of each turn is an artifact. A request is the state `TASK_STATE_INPUT_REQUIRED`, and a message answers it.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../core/AgentEvent.ts"
import type { Decision, Request } from "../core/Approval.ts"
import * as Content from "../core/Content.ts"
import { isObject, Json, type JsonObject } from "../core/Json.ts"
import { human, type HumanMessage } from "../core/Message.ts"
import { defined } from "../support/json/defined.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import { type Answer, decisionOf, decoder, isBlank, readFile, refuse } from "./internal/packets/input.ts"
import { byTag, type Handlers, problemOf } from "./internal/packets/part.ts"
import { mapParts, type Take } from "./internal/packets/parts.ts"
import { artifactOf, requestMessageOf, stateOf, statusOf } from "./internal/packets/task.ts"
import type { RunsError } from "./internal/service.ts"
import * as shapes from "./internal/shapes.ts"

/** A packet: a `StreamResponse` of the protocol, in its JSON form. */
export type Packet = JsonObject

/** The options of packets. */
export interface Options {
  /** The id of the task. */
  readonly taskId: string
  /** The id of the context: the thread, as the client knows it. */
  readonly contextId: string
  /** Events before these, whose packets the client has: those before an answer. Default: none. */
  readonly told?: ReadonlyArray<AgentEvent> | undefined
}

type Out = (packet: Packet) => void

const makeTake =
  ({ contextId, taskId }: Options) =>
  (): Take<Packet> => {
    const requests = new Map<
      string,
      Pick<Request, "allow" | "answer" | "arguments" | "description" | "id" | "toolName">
    >()
    let isWorking = false
    /** The text of the turn so far, and the id of its artifact. */
    let open = { id: "", text: "" }
    const tellStatus = (status: JsonObject, out: Out): void => out({ statusUpdate: { taskId, contextId, status } })
    const tellText = (id: string, text: string, append: boolean, lastChunk: boolean, out: Out): void =>
      out({ artifactUpdate: { taskId, contextId, artifact: artifactOf(id, text), append, lastChunk } })
    const begin = (event: AgentEvent, out: Out): void => {
      if (isWorking) return
      isWorking = true
      tellStatus(statusOf("TASK_STATE_WORKING", event.at), out)
    }
    const say = (partId: string, text: string, out: Out): void => {
      const id = partId.slice(0, partId.lastIndexOf("/"))
      tellText(id, text, open.id === id, false, out)
      open = { id, text: (open.id === id ? open.text : "") + text }
    }
    const handlers: Handlers<Packet> = {
      Begin: (_, out, event) => {
        isWorking = true
        out({
          task: { id: taskId, contextId, status: statusOf("TASK_STATE_WORKING", event.at), artifacts: [], history: [] }
        })
      },
      Step: (_, out, event) => begin(event, out),
      TextDelta: ({ id, text }, out) => say(id, text, out),
      Void: (_, out) => {
        // An artifact can't be taken back, but be replaced.
        if (open.text !== "") tellText(open.id, "", false, false, out)
        open = { id: "", text: "" }
      },
      Turn: (_, out) => {
        if (open.text !== "") tellText(open.id, "", true, true, out)
        open = { id: "", text: "" }
      },
      Asked: ({ replaces, request }) => {
        if (replaces !== undefined) requests.delete(replaces)
        requests.set(request.id, request)
      },
      Decided: ({ event }) => void requests.delete(event.id),
      End: ({ event }, out) => {
        isWorking = false
        const state = stateOf(event)
        const message =
          state === "TASK_STATE_INPUT_REQUIRED"
            ? requestMessageOf(contextId, taskId, [...requests.values()])
            : event._tag === "RunFailed"
              ? {
                  messageId: `${event.runId}/end`,
                  contextId,
                  taskId,
                  role: "ROLE_AGENT",
                  parts: [{ text: problemOf(event) }]
                }
              : undefined
        tellStatus(statusOf(state, event.at, message), out)
      }
    }
    return byTag(handlers)
  }

const refuseEncode = makeEffectCheck("A2A.encode", shapes.a2AEncode)

/** Maps the events of one input to packets. */
export const encode = (
  options: Options
): (<E, R>(events: Stream.Stream<AgentEvent, E, R>) => Stream.Stream<Packet, E, R>) => {
  const refused = refuseEncode(options)
  return refused === undefined ? mapParts(makeTake(options), options.told) : () => Stream.fromEffect(refused)
}

const MessagePart = Schema.Struct({
  text: Schema.optionalKey(Schema.String),
  raw: Schema.optionalKey(Schema.String),
  url: Schema.optionalKey(Schema.String),
  data: Schema.optionalKey(Json),
  filename: Schema.optionalKey(Schema.String),
  mediaType: Schema.optionalKey(Schema.String)
})

const Body = Schema.Struct({
  message: Schema.Struct({
    messageId: Schema.String,
    contextId: Schema.optionalKey(Schema.String),
    taskId: Schema.optionalKey(Schema.String),
    role: Schema.String,
    parts: Schema.Array(MessagePart)
  }),
  configuration: Schema.optionalKey(
    Schema.Struct({
      returnImmediately: Schema.optionalKey(Schema.Boolean),
      historyLength: Schema.optionalKey(Schema.Finite)
    })
  )
})

const readBody = decoder(Body)

/** A message of a client: an input, or the answer to a question of a task. */
export interface ClientRequest {
  readonly messageId: string
  readonly contextId: string | undefined
  readonly taskId: string | undefined
  readonly message: HumanMessage
  readonly isImmediate: boolean
  /** The decision of the message on a request, if it has one. */
  readonly decide: (request: Request) => Decision | undefined
}

const Given = Schema.Struct({
  approved: Schema.optionalKey(Schema.Boolean),
  reason: Schema.optionalKey(Schema.String),
  arguments: Schema.optionalKey(Json),
  value: Schema.optionalKey(Json)
})
const readGiven = Schema.decodeUnknownOption(Given)

/** The words that approve. Any other text refuses, and is the reason. */
const approvals = /^\s*(?:approve|approved|yes|ok)\s*[.!]?\s*$/iu

const answerOf = (request: Request, data: Json | undefined, words: string): Answer | undefined => {
  const own = isObject(data) && Object.hasOwn(data, request.id) ? data[request.id] : data
  const decision = own === undefined ? undefined : readGiven(own)
  if (decision?._tag === "Some" && Object.keys(decision.value).length > 0) {
    const { approved = decision.value.value !== undefined, arguments: edited, reason, value } = decision.value
    return { isApproved: approved, ...defined({ text: reason, arguments: edited, value }) }
  }
  if (own !== undefined && request.answer !== undefined) return { isApproved: true, value: own }
  if (words === "") return undefined
  if (request.answer !== undefined || !request.allow.includes("approve")) return { isApproved: true, text: words }
  return approvals.test(words) ? { isApproved: true } : { isApproved: false, text: words }
}

/** Reads the parameters of `SendMessage`. */
export const decode = (params: unknown): Effect.Effect<ClientRequest, RunsError> =>
  Effect.gen(function* () {
    const { configuration, message } = yield* readBody(params)
    if (message.role !== "ROLE_USER") return yield* refuse("message.role: expected ROLE_USER")
    const content: Array<Content.Block> = []
    let data: Json | undefined
    for (const part of message.parts) {
      const { filename, mediaType = "application/octet-stream", raw, text, url } = part
      if (text !== undefined && text !== "") content.push(Content.text(text))
      if (part.data !== undefined) {
        data = part.data
        content.push(Content.text(JSON.stringify(part.data)))
      }
      const address = raw === undefined ? url : `data:${mediaType};base64,${raw}`
      if (address !== undefined) content.push(yield* readFile(address, part.mediaType, filename))
    }
    if (isBlank(content)) return yield* refuse("message.parts: expected a text, data or a file")
    const words = message.parts.map(({ text = "" }) => text).join("")
    const decide = (request: Request): Decision | undefined => {
      const answer = answerOf(request, data, words)
      return answer === undefined ? undefined : decisionOf(request, answer)
    }
    const readName = (id: string | undefined) => (id === "" ? undefined : id)
    return {
      messageId: message.messageId,
      contextId: readName(message.contextId),
      taskId: readName(message.taskId),
      message: human(content),
      isImmediate: configuration?.returnImmediately === true,
      decide
    }
  })
