/** Messages, interrupts and their answers in the form of LangChain. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Request } from "../../../core/Approval.ts"
import { isObject, type Json, type JsonObject, stringify } from "../../../core/Json.ts"
import { type AiMessage, type Message, text } from "../../../core/Message.ts"
import { defined } from "../../../support/json/defined.ts"
import type { Answer } from "./input.ts"

const usageOf = ({ usage }: AiMessage): JsonObject =>
  usage === undefined
    ? {}
    : {
        usage_metadata: {
          input_tokens: usage.inputTokens,
          output_tokens: usage.outputTokens,
          total_tokens: usage.inputTokens + usage.outputTokens,
          input_token_details: { cache_read: usage.cacheReadTokens, cache_creation: usage.cacheWriteTokens },
          output_token_details: { reasoning: usage.reasoningTokens }
        }
      }

/** Encodes a message. Thoughts are left out, and an input has the client's id. */
export const messageOf = (message: Message): Array<JsonObject> => {
  const { id } = message
  const content = text(message)
  switch (message.role) {
    case "system":
      return []
    case "human":
      return [{ type: "human", id: id.startsWith("input:") ? id.slice("input:".length) : id, content }]
    case "tool": {
      const { isError, toolCallId, toolName: name } = message
      const status = isError ? "error" : "success"
      return [{ type: "tool", id: `${toolCallId}/result`, tool_call_id: toolCallId, name, content, status }]
    }
    case "ai": {
      const calls = message.toolCalls.map(({ arguments: args, id: callId, name }) => ({
        type: "tool_call",
        id: callId,
        name,
        args
      }))
      const broken = message.malformedToolCalls.map(({ id: callId, name = "", problem, raw }) => ({
        type: "invalid_tool_call",
        id: callId,
        name,
        args: raw,
        error: problem
      }))
      return [{ type: "ai", id, content, tool_calls: calls, invalid_tool_calls: broken, ...usageOf(message) }]
    }
  }
}

/** Encodes a call as a piece of its message. */
export const callChunkOf = (
  messageId: string,
  call: { readonly id: string; readonly name: string; readonly arguments: JsonObject },
  index: number
): JsonObject => {
  const { arguments: args, id, name } = call
  const chunk = { type: "tool_call_chunk", id, name, args: stringify(args), index }
  return { type: "AIMessageChunk", id: messageId, content: "", tool_call_chunks: [chunk] }
}

/** Encodes a request: of a call as LangChain's human in the loop has it, of a question with the schema of its answer. */
export const interruptOf = ({
  allow,
  answer,
  arguments: args,
  description,
  id,
  toolName: name
}: Pick<Request, "allow" | "answer" | "arguments" | "description" | "id" | "toolName">): JsonObject =>
  answer === undefined
    ? {
        id,
        value: {
          action_requests: [{ name, args, description }],
          review_configs: [{ action_name: name, allowed_decisions: [...allow] }]
        }
      }
    : { id, value: { question: description }, response_schema: answer }

const Chosen = Schema.Struct({
  type: Schema.Literals(["approve", "edit", "reject", "respond"]),
  message: Schema.optionalKey(Schema.String),
  edited_action: Schema.optionalKey(Schema.Struct({ args: Schema.optionalKey(Schema.Json) })),
  args: Schema.optionalKey(Schema.Json)
})
const readChosen = Schema.decodeUnknownOption(Chosen)

/** Reads an answer: a decision of LangChain's, yes or no, or the value of a question. */
const readAnswer = (value: Json, { answer }: Request): Answer => {
  if (answer !== undefined) return { isApproved: true, value }
  if (typeof value === "boolean") return { isApproved: value }
  const decision = Option.getOrUndefined(readChosen(value))
  // A word that is no decision allows nothing.
  if (decision === undefined) return { isApproved: false, ...(typeof value === "string" ? { text: value } : {}) }
  const { args = decision.edited_action?.args, message, type } = decision
  if (type === "respond") return { isApproved: true, value: message ?? args ?? "" }
  return { isApproved: type !== "reject", ...defined({ text: message, arguments: type === "edit" ? args : undefined }) }
}

/** Reads the answers of a client: by the ids of interrupts, or for all of them in their order. */
export const answersOf = (resume: Json, pending: ReadonlyArray<Request>): ReadonlyMap<Request, Answer> => {
  if (resume === null) return new Map()
  const keys = isObject(resume) ? Object.keys(resume) : []
  const byId = keys.length > 0 && keys.every((key) => pending.some(({ id }) => id === key)) ? resume : undefined
  const decisions = isObject(resume) ? resume["decisions"] : undefined
  const answers = new Map<Request, Answer>()
  for (const [index, request] of pending.entries()) {
    const own = byId === undefined ? (pending.length === 1 || Array.isArray(decisions) ? resume : undefined) : undefined
    const answer = isObject(byId) ? byId[request.id] : own
    if (answer === undefined) continue
    const inside = isObject(answer) ? answer["decisions"] : undefined
    const value = Array.isArray(inside) ? inside[byId === undefined ? index : 0] : answer
    if (value !== undefined) answers.set(request, readAnswer(value, request))
  }
  return answers
}
