/** Makes the options of an `effect/ai` call a request to a model of ours. */
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as AiTool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import {
  type ModelRequest,
  type Service,
  type ToolChoice,
  type ToolDefinition,
  turnPurpose
} from "../../../../core/ChatModel.ts"
import * as Content from "../../../../core/Content.ts"
import { isObject, type JsonObject } from "../../../../core/Json.ts"
import type { AiMessage } from "../../../../core/Message.ts"
import { decodeRequest } from "./decode.ts"
import { definitionOf } from "./definitions.ts"

/** A request, and how its answer is read. */
export interface BridgeRequest {
  readonly request: ModelRequest
  /** The answer as `effect/ai` wants it: an object is its text. */
  readonly answered: (message: AiMessage) => AiMessage
}

const fail = (method: string, reason: AiError.AiErrorReason) =>
  Effect.fail(AiError.make({ module: "LanguageModelFromChatModel", method, reason }))

/** The choice of callable tools was settled before: `tools` are those of `oneOf`. */
const choiceOf = (choice: LanguageModel.ProviderOptions["toolChoice"]): ToolChoice => {
  if (typeof choice === "string") return choice
  if ("tool" in choice) return { tool: choice.tool }
  return choice.mode ?? "auto"
}

const schemaOf = (
  format: Extract<LanguageModel.ProviderOptions["responseFormat"], { readonly type: "json" }>,
  method: string
): Effect.Effect<JsonObject, AiError.AiError> =>
  Effect.flatMap(
    Effect.try({
      try: (): unknown => LanguageModel.defaultCodecTransformer(format.schema).jsonSchema,
      catch: (cause) =>
        AiError.make({
          module: "LanguageModelFromChatModel",
          method,
          reason: new AiError.UnsupportedSchemaError({ description: String(cause) })
        })
    }),
    (schema) =>
      isObject(schema)
        ? Effect.succeed(schema)
        : fail(method, new AiError.UnsupportedSchemaError({ description: "the schema has no JSON form" }))
  )

/** A tool's call as the answer: the model's only way to say an object. */
const answeredBy =
  (toolName: string) =>
  (message: AiMessage): AiMessage => {
    const call = message.toolCalls.find((one) => one.name === toolName)
    if (call === undefined) return message
    return {
      ...message,
      content: [
        ...message.content.filter((block) => block.type === "reasoning"),
        Content.text(JSON.stringify(call.arguments))
      ],
      toolCalls: [],
      malformedToolCalls: [],
      stopReason: "stop"
    }
  }

const answerTool = (objectName: string, parameters: JsonObject): ToolDefinition => ({
  name: objectName.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64),
  description: "Gives the final answer. Call it once, when you are done, and nothing beside it.",
  parameters,
  annotations: {}
})

/** Makes the request. */
export const toRequest = Effect.fnUntraced(function* (
  options: LanguageModel.ProviderOptions,
  model: Service,
  method: string
): Effect.fn.Return<BridgeRequest, AiError.AiError> {
  const hosted = options.tools.find((tool) => AiTool.isProviderDefined(tool) && !tool.requiresHandler)
  if (hosted !== undefined) {
    const description = `${model.provider} can't run it through a ChatModel. Leave it out, or give it a handler.`
    return yield* fail(method, new AiError.ToolConfigurationError({ toolName: hosted.name, description }))
  }
  const tools = options.tools.map(definitionOf)
  const request: ModelRequest = {
    ...decodeRequest(options.prompt),
    tools,
    toolChoice: choiceOf(options.toolChoice),
    parameters: {},
    cacheHints: [],
    purpose: turnPurpose
  }
  const { responseFormat } = options
  if (responseFormat.type === "text") return { request, answered: (message) => message }
  const outputSchema = yield* schemaOf(responseFormat, method)
  if (model.structuredOutput === "native")
    return { request: { ...request, outputSchema }, answered: (message) => message }
  const answer = answerTool(responseFormat.objectName, outputSchema)
  return {
    request: {
      ...request,
      tools: [...tools, answer],
      toolChoice: tools.length === 0 ? { tool: answer.name } : "required"
    },
    answered: answeredBy(answer.name)
  }
})
