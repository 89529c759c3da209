/**
 * Writes a request for the Chat Completions API, as OpenAI and everybody who is compatible with it reads it.
 *
 * What servers disagree on is avoided rather than configured: system messages only at the start, roles that alternate,
 * plain strings where there is only text, pictures never in tool results.
 */
import * as Result from "effect/Result"
import type {
  ChatCompletionAssistantMessageParam,
  ChatCompletionContentPart,
  ChatCompletionCreateParamsStreaming,
  ChatCompletionFunctionTool,
  ChatCompletionMessageParam
} from "openai/resources/chat/completions/completions"
import type { ModelRequest } from "../../../core/ChatModel.ts"
import * as Content from "../../../core/Content.ts"
import type { JsonObject } from "../../../core/Json.ts"
import type * as ToolSchema from "../../ToolSchema.ts"
import { dataOf, type Dialect, placeholders } from "../dialect.ts"
import { type AiTurn, makeNormalizer, mergeTurns, rememberTurns, type Shown, type Turn } from "../normalize.ts"
import { listOf, stringOf } from "../read.ts"
import type { ToolNames } from "../toolNames.ts"
import { wellFormed } from "../wellFormed.ts"
import { audioFormat, fileName, imageUrl, isDocument, readsFileId, readsImage } from "./media.ts"
import { commonNames, overlay, type WireNames } from "./parameters.ts"
import { makeOutputFormat, makeToolbox, type Written } from "./schemas.ts"

/** Settings of every request of a layer. */
export interface ChatSettings {
  readonly provider: string
  readonly model: string
  /** Typed parameters, then raw ones; a request's own come last. */
  readonly parameters: ReadonlyArray<JsonObject>
  /** Name of the limit of the answer: OpenAI's reasoning models refuse the name that everybody else knows. */
  readonly maxTokensField: "max_tokens" | "max_completion_tokens"
  /** The part of JSON Schema that the server reads. */
  readonly schemas: ToolSchema.Dialect
}

const reserved = new Set(["model", "messages", "stream", "tools", "tool_choice", "n"])

const dialectOf = (provider: string): Dialect => ({
  provider,
  systemMessages: "fold",
  reasoning: "own",
  media: (block) => {
    if (block.type === "image") return block.source.kind !== "fileId" && readsImage(block)
    return readsFileId(block) || audioFormat(block) !== undefined || isDocument(block)
  },
  toolMedia: "after",
  humanFirst: false,
  humanLast: false,
  callIdLength: 40
})

const part = (block: Shown): ChatCompletionContentPart => {
  if (block.type === "text") return { type: "text", text: block.text }
  const { source } = block
  if (block.type === "image") {
    // The dialect lets no file id of a picture through.
    const url = source.kind === "fileId" ? "" : imageUrl(source)
    return { type: "image_url", image_url: { url } }
  }
  const format = audioFormat(block)
  if (source.kind === "fileId") return { type: "file", file: { file_id: source.fileId } }
  if (format !== undefined && source.kind === "base64") {
    return { type: "input_audio", input_audio: { data: source.data, format } }
  }
  return { type: "file", file: { filename: fileName(block), file_data: imageUrl(source) } }
}

const paragraphs = (blocks: ReadonlyArray<Shown>): string =>
  blocks.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n\n")

/**
 * Reasoning goes back in the field in which it came, to the model that it came from: some servers need it for a chain
 * of tool calls, and the others cut it out themselves.
 */
const reasoningFields = (turn: AiTurn, settings: ChatSettings): { readonly [field: string]: unknown } => {
  if (turn.data?.["model"] !== settings.model) return {}
  const blocks = turn.content.flatMap((block) => {
    const data = block.type === "reasoning" ? dataOf(block.providerData, settings) : undefined
    return data === undefined ? [] : [{ text: block.text, data }]
  })
  const details = blocks.flatMap(({ data }) => listOf(data["details"]))
  if (details.length > 0) return { reasoning_details: details }
  const field = stringOf(blocks[0]?.data["field"])
  const text = wellFormed(blocks.map((block) => block.text).join("\n\n"))
  return field === undefined || text === "" ? {} : { [field]: text }
}

const assistant = (turn: AiTurn, settings: ChatSettings, names: ToolNames): ChatCompletionAssistantMessageParam => {
  const text = Content.toText(turn.content)
  const calls = turn.calls.map((call) => ({
    id: call.id,
    type: "function" as const,
    function: { name: names.wire(call.name), arguments: JSON.stringify(call.arguments) }
  }))
  return {
    role: "assistant",
    content: text === "" ? null : text,
    ...reasoningFields(turn, settings),
    ...(calls.length === 0 ? {} : { tool_calls: calls })
  }
}

/** A provider may pause with nothing said; this API knows no such turn. */
const isSaid = (turn: Turn): boolean =>
  turn.role !== "ai" || turn.calls.length > 0 || Content.toText(turn.content) !== ""

const messagesOf = (
  turn: Turn,
  settings: ChatSettings,
  names: ToolNames
): ReadonlyArray<ChatCompletionMessageParam> => {
  switch (turn.role) {
    // Folded into the prompt: the dialect leaves none.
    case "system":
      return []
    case "human":
      return [
        {
          role: "user",
          content: turn.content.every((block) => block.type === "text")
            ? paragraphs(turn.content)
            : turn.content.map(part)
        }
      ]
    case "ai":
      return [
        assistant(turn, settings, names),
        ...turn.calls.map(({ answer, id }) => ({
          role: "tool" as const,
          tool_call_id: id,
          content: paragraphs(answer.content)
        }))
      ]
  }
}

/**
 * Makes the writer of one session. It keeps what it wrote for as long as the history and the tools stay the same. Fails
 * with the name of a parameter that is not the caller's to set.
 */
export const makeChatWriter = (settings: ChatSettings) => {
  const normalize = makeNormalizer(dialectOf(settings.provider))
  const toolbox = makeToolbox(settings.schemas)
  const outputFormat = makeOutputFormat()
  const wireNames: WireNames = {
    ...commonNames,
    maxOutputTokens: settings.maxTokensField,
    reasoningEffort: "reasoning_effort"
  }
  const write = rememberTurns((turn, names: ToolNames) => messagesOf(turn, settings, names))

  return (request: ModelRequest): Result.Result<Written<ChatCompletionCreateParamsStreaming>, string> => {
    const { definitions, names } = toolbox(request.tools)
    const { damaged, system, turns } = normalize(request.messages)
    const conversation = mergeTurns(turns.filter(isSaid)).flatMap((turn) => write(turn, names))
    if (conversation.length === 0) conversation.push({ role: "user", content: placeholders.emptyMessage.text })
    const prompt = [wellFormed(request.systemPrompt), ...system].filter((text) => text !== "").join("\n\n")
    const { format, lost, restore } = outputFormat(request.outputSchema)
    const asked = format === undefined ? [] : [{ response_format: { type: "json_schema", json_schema: { ...format } } }]
    const layers = [{ stream_options: { include_usage: true } }, ...settings.parameters, ...asked, request.parameters]
    return Result.map(overlay(layers, wireNames, reserved), (parameters) => {
      const tools = definitions.map((definition): ChatCompletionFunctionTool => ({
        type: "function",
        function: definition
      }))
      const body = Object.assign({}, parameters, {
        model: settings.model,
        messages: prompt === "" ? conversation : [{ role: "system" as const, content: prompt }, ...conversation],
        ...(tools.length === 0 ? {} : { tools, ...choice(request, names) }),
        stream: true as const
      })
      return { body, names, restore, lost, damaged }
    })
  }
}

const choice = (
  { toolChoice }: ModelRequest,
  names: ToolNames
): Pick<ChatCompletionCreateParamsStreaming, "tool_choice"> => {
  if (toolChoice === "auto") return {}
  return {
    tool_choice:
      typeof toolChoice === "string"
        ? toolChoice
        : { type: "function", function: { name: names.wire(toolChoice.tool) } }
  }
}
