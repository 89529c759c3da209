/** Names of OpenTelemetry's GenAI conventions: metrics, finish reasons, errors, and content in their JSON form. */
import * as Cause from "effect/Cause"
import type * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { ModelRequest } from "../../core/ChatModel.ts"
import type * as Content from "../../core/Content.ts"
import type { Json, JsonObject } from "../../core/Json.ts"
import type { AiMessage, Message, TurnStop } from "../../core/Message.ts"
import { failureOf } from "../../core/Middleware.ts"
import { isModelError } from "../../core/ModelError.ts"
import { isToolError } from "../../core/ToolError.ts"
import type { Usage } from "../../core/Usage.ts"

const seconds = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]

/** Tokens of a model call; `gen_ai.token.type` is their kind. */
export const tokenUsage = Metric.histogram("gen_ai.client.token.usage", {
  description: "Number of input and output tokens used.",
  attributes: { unit: "{token}" },
  boundaries: [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864]
})

/** Seconds that a model call took. */
export const operationDuration = Metric.histogram("gen_ai.client.operation.duration", {
  description: "GenAI operation duration.",
  attributes: { unit: "s" },
  boundaries: seconds
})

/** Seconds that a run took. */
export const agentDuration = Metric.histogram("gen_ai.invoke_agent.duration", {
  description: "The end-to-end duration of a single agent invocation.",
  attributes: { unit: "s" },
  boundaries: [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6]
})

/** Seconds that a tool call took. */
export const toolDuration = Metric.histogram("gen_ai.execute_tool.duration", {
  description: "The duration of a single tool execution.",
  attributes: { unit: "s" },
  boundaries: seconds
})

/** `error.type`: the reason of a model's or tool's failure, else the tag of the error; `undefined` for a success. */
export const errorType = (exit: Exit.Exit<unknown, unknown>): string | undefined => {
  if (exit._tag === "Success") return undefined
  const passing = failureOf(exit.cause)
  const failure = passing === undefined ? Cause.findError(exit.cause) : Result.succeed(passing.error)
  if (Result.isFailure(failure)) return Cause.hasInterruptsOnly(exit.cause) ? "interrupted" : "_OTHER"
  const error = failure.success
  if (isModelError(error)) return error.reason._tag
  if (isToolError(error)) return error.reason
  return Predicate.hasProperty(error, "_tag") && typeof error._tag === "string" ? error._tag : "_OTHER"
}

const finishReasons: { readonly [Stop in TurnStop]: string } = {
  stop: "stop",
  toolCalls: "tool_call",
  length: "length",
  contentFilter: "content_filter",
  refusal: "content_filter",
  pause: "stop",
  interrupted: "error"
}

/** The reason that a turn ended. */
export const finishReason = (message: AiMessage): string => finishReasons[message.stopReason]

/** Attributes of the usage of a run or a call, if that is known. */
export const usageAttributes = (usage: Usage | undefined): Record<string, number> =>
  usage === undefined
    ? {}
    : {
        "gen_ai.usage.input_tokens": usage.inputTokens,
        "gen_ai.usage.output_tokens": usage.outputTokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cacheReadTokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cacheWriteTokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoningTokens
      }

const parameters = [
  "frequency_penalty",
  "max_tokens",
  "presence_penalty",
  "seed",
  "temperature",
  "top_k",
  "top_p"
] as const

/** The request parameters with a name in the conventions, if the provider uses the same name. */
export const parameterAttributes = (request: ModelRequest): Record<string, number> => {
  const attributes: Record<string, number> = {}
  for (const name of parameters) {
    const value = request.parameters[name]
    if (typeof value === "number") attributes[`gen_ai.request.${name}`] = value
  }
  return attributes
}

/** Describes the source of content, without the bytes: a span is no place for megabytes. */
const sourcePart = (source: Content.Source, modality: string): JsonObject => {
  switch (source.kind) {
    case "url":
      return { type: "uri", modality, uri: source.url }
    case "base64":
      return { type: "blob", modality, mime_type: source.mimeType, content: "" }
    case "fileId":
      return { type: "file", modality, file_id: source.fileId }
  }
}

const part = (block: Content.Block): JsonObject => {
  switch (block.type) {
    case "text":
    case "reasoning":
      return { type: block.type, content: block.text }
    case "image":
      return sourcePart(block.source, "image")
    case "file":
      return sourcePart(block.source, "document")
  }
}

const roles = { system: "system", human: "user", ai: "assistant", tool: "tool" } as const

const toMessage = (message: Message): { readonly role: string; readonly parts: ReadonlyArray<Json> } => {
  const content = message.content.map(part)
  const parts: ReadonlyArray<Json> =
    message.role === "tool"
      ? [{ type: "tool_call_response", id: message.toolCallId, response: content }]
      : message.role === "ai"
        ? [
            ...content,
            ...message.toolCalls.map(({ arguments: args, id, name }) => ({
              type: "tool_call",
              id,
              name,
              arguments: args
            }))
          ]
        : content
  return { role: roles[message.role], parts }
}

/** `gen_ai.input.messages`, as a JSON text: span attributes hold no objects. */
export const inputMessages = (messages: ReadonlyArray<Message>): string => JSON.stringify(messages.map(toMessage))

/** `gen_ai.output.messages`. */
export const outputMessages = (message: AiMessage): string =>
  JSON.stringify([{ ...toMessage(message), finish_reason: finishReason(message) }])

/** `gen_ai.system_instructions`. */
export const systemInstructions = (prompt: string): string => JSON.stringify([{ type: "text", content: prompt }])
