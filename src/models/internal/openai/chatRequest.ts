/**
 * Writes a request for the Chat Completions API, as OpenAI and compatible servers read it.
 *
 * It avoids the points on which servers disagree: system messages only at the start, alternating roles, plain strings
 * for text, no images in tool results.
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
import type { Ways } from "../servers/servers.ts"
import { narrow, type SimpleRequest } from "../turn/choice.ts"
import { dataOf, type Dialect, placeholders, type GivenContent } from "../turn/dialect.ts"
import { makeFold } from "../turn/fold.ts"
import { type AiTurn, type AnsweredCall, keepLast, makeMerger, makeNormalizer, type Turn } from "../turn/normalize.ts"
import { textOfFile } from "../turn/textFile.ts"
import { askedEffort, type Effort, isUnheard, type ThinkingLevel, withThinking } from "../turn/thinking.ts"
import type { ToolNames } from "../turn/toolNames.ts"
import { wellFormed } from "../turn/wellFormed.ts"
import { listOf, objectOf, stringOf } from "../wire/read.ts"
import { markConversation } from "./cacheMarks.ts"
import { inContent } from "./chatDecode.ts"
import { audioFormat, fileName, imageUrl, isPdf, readsFileId, readsImage } from "./media.ts"
import { commonNames, overlay, type WireNames } from "./parameters.ts"
import { makeOutputFormat, makeToolbox, type PreparedRequest } from "./schemas.ts"
import { soundIn } from "./sound.ts"
import { thinkingFields } from "./thinking.ts"

type Definitions = ReturnType<ReturnType<typeof makeToolbox>>["definitions"]

/** Settings of every request of a layer. */
export interface ChatSettings {
  readonly provider: string
  readonly model: string
  /** Typed parameters, then raw ones; a request's own come last. */
  readonly parameters: ReadonlyArray<JsonObject>
  /** Parameters that the server takes and refuses. */
  readonly ways: Ways
  /** The accepted efforts, if known. They may become fewer. */
  readonly efforts: ReadonlyArray<Effort> | undefined
  /** Holds arguments to the schemas of their tools, where those can be. */
  readonly strictTools?: boolean | undefined
  /** Marks the prompt for Claude's cache. */
  readonly isMarked?: boolean | undefined
}

const reserved = new Set(["model", "messages", "stream", "tools", "tool_choice", "n"])

const dialectOf = ({ model, provider, ways }: ChatSettings): Dialect => ({
  provider,
  systemMessages: "fold",
  reasoning: "own",
  media: (block) => {
    if (block.type === "image") return block.source.kind !== "fileId" && readsImage(block)
    if (audioFormat(block) !== undefined) return ways.audio
    return ways.documents !== "none" && (isPdf(block) || (ways.documents === "file" && readsFileId(block)))
  },
  madeMedia: ({ providerData }, data) =>
    data?.["model"] === model && dataOf(providerData, { provider })?.["sound"] !== undefined,
  asText: textOfFile,
  toolMedia: "after",
  humanFirst: false,
  humanLast: false,
  callIdLength: ways.callIds.length,
  callIdsExactly: ways.callIds.exactly
})

/** Mistral has a name of its own for a document. */
interface DocumentPart {
  readonly type: "document_url"
  readonly document_url: string
  readonly document_name: string
}

const partOf =
  ({ ways }: ChatSettings) =>
  (block: GivenContent): ChatCompletionContentPart | DocumentPart => {
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
    return ways.documents === "document_url"
      ? { type: "document_url", document_url: imageUrl(source), document_name: fileName(block) }
      : { type: "file", file: { filename: fileName(block), file_data: imageUrl(source) } }
  }

const paragraphs = (blocks: ReadonlyArray<GivenContent>): string =>
  blocks.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n\n")

/** The field for reasoning on servers that require it in each message. */
const everyField = "reasoning_content"

/**
 * Reasoning goes back in the field in which it came, to the model that it came from: some servers need it for a chain
 * of tool calls, and the others cut it out themselves.
 */
const reasoningFields = (turn: AiTurn, settings: ChatSettings): { readonly [field: string]: unknown } => {
  const isEach = settings.ways.reasoning === "each"
  if (!isEach && !isOwn(turn, settings)) return {}
  const blocks = turn.content.flatMap((block) => {
    const data = block.type === "reasoning" ? dataOf(block.providerData, settings) : undefined
    return data === undefined ? [] : [{ text: block.text, data }]
  })
  const text = wellFormed(blocks.map((block) => block.text).join("\n\n"))
  if (isEach) return { [everyField]: text }
  const details = blocks.flatMap(({ data }) => listOf(data["details"]))
  if (details.length > 0) return { reasoning_details: details }
  const field = stringOf(blocks[0]?.data["field"])
  if (field === undefined || text === "") return {}
  return field === inContent
    ? { content: [{ type: "thinking", thinking: [{ type: "text", text }] }] }
    : { [field]: text }
}

const isOwn = (turn: AiTurn, settings: ChatSettings): boolean => turn.data?.["model"] === settings.model

/** Stands for the proof that a model thought of a call, where another one did. */
const excuse = { google: { thought_signature: "skip_thought_signature_validator" } }

/** Data that has to come back with a call. Of calls in parallel the first one carries the proof for all. */
const extraOf = (turn: AiTurn, call: AnsweredCall, settings: ChatSettings): JsonObject | undefined => {
  const own = isOwn(turn, settings) ? objectOf(call.data?.["extra"]) : undefined
  if (own !== undefined) return own
  return settings.ways.signatures && call === turn.calls[0] && !isBeforeSignatures(settings.model) ? excuse : undefined
}

const isBeforeSignatures = (model: string): boolean => /gemini-[12](?![\d])|gemma/.test(model)

const assistant = (turn: AiTurn, settings: ChatSettings, names: ToolNames): ChatCompletionAssistantMessageParam => {
  const text = Content.toText(turn.content)
  const calls = turn.calls.map((call) => ({
    id: call.id,
    type: "function" as const,
    function: { name: names.wire(call.name), arguments: JSON.stringify(call.arguments) },
    ...extraField(extraOf(turn, call, settings))
  }))
  const { content: thoughts, ...reasoning } = reasoningFields(turn, settings)
  const sound = soundIn(turn, settings)
  const content = text === "" || sound !== undefined ? null : text
  return {
    role: "assistant",
    // A server that thinks in parts of its content reads them back there.
    content: Array.isArray(thoughts) ? [...thoughts, ...(text === "" ? [] : [{ type: "text", text }])] : content,
    ...(sound === undefined ? {} : { audio: { id: sound } }),
    ...reasoning,
    ...extraField(isOwn(turn, settings) ? objectOf(turn.data?.["extra"]) : undefined),
    ...(calls.length === 0 ? {} : { tool_calls: calls })
  }
}

const extraField = (value: JsonObject | undefined): JsonObject => (value === undefined ? {} : { extra_content: value })

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
            : // The SDK's type has no documents of Mistral's.
              (turn.content.map(partOf(settings)) as Array<ChatCompletionContentPart>)
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

/** Reports whether a human turn follows tool results. Some servers reject it there, without words of the model between. */
const isAfterTools = (turn: Turn, before: Turn | undefined): boolean =>
  turn.role === "human" && before?.role === "ai" && before.calls.length > 0

/** The id of a recording is known for a time, so such a turn is written anew. */
const isFixed = (turn: Turn): boolean =>
  turn.role !== "ai" || !turn.content.some((block) => block.type === "text" && block.media !== undefined)

const filler: AiTurn = {
  role: "ai",
  content: [placeholders.resultsRead],
  calls: [],
  stopReason: "stop",
  index: -1
}

/**
 * Makes the writer of one session. It reuses written messages while the history and the tools stay the same. It fails
 * with the name of a reserved parameter.
 */
export const makeChatWriter = (settings: ChatSettings) => {
  const { ways } = settings
  const normalize = makeNormalizer(dialectOf(settings))
  const toolbox = makeToolbox(ways.schemas, settings.strictTools)
  const outputFormat = makeOutputFormat()
  const wireNames: WireNames = {
    ...commonNames,
    maxOutputTokens: ways.maxTokens,
    reasoningEffort: "reasoning_effort"
  }
  const mergeTurns = makeMerger(isSaid)
  const write = makeFold<Turn, ChatCompletionMessageParam, ToolNames>((messages, turn, { before, key }) => {
    if (!ways.humanAfterTools && isAfterTools(turn, before)) messages.push(...messagesOf(filler, settings, key))
    messages.push(...messagesOf(turn, settings, key))
  }, isFixed)
  const thinking = (level: ThinkingLevel): JsonObject => thinkingFields(ways.thinking, level, settings.efforts)
  const systemMessage = keepLast((content: string): ChatCompletionMessageParam => ({ role: "system", content }))
  const toolsOf = keepLast((definitions: Definitions) =>
    definitions.map((definition): ChatCompletionFunctionTool => ({ type: "function", function: definition }))
  )

  return (fullRequest: ModelRequest): Result.Result<PreparedRequest<ChatCompletionCreateParamsStreaming>, string> => {
    const request = narrow(fullRequest)
    const { definitions, names, restoreCall } = toolbox(request.tools)
    const { damaged, system, turns } = normalize(request.messages)
    const conversation = [...write(mergeTurns(turns).output, names).output]
    const plea = ways.forcedTools ? undefined : pleaOf(request, names)
    if (plea !== undefined) plead(conversation, plea)
    if (conversation.length === 0) conversation.push({ role: "user", content: placeholders.emptyMessage.text })
    const prompt = [wellFormed(request.systemPrompt), ...system].filter((text) => text !== "").join("\n\n")
    const { format, lost, restore } = outputFormat(request.outputSchema)
    const formatLayers =
      format === undefined ? [] : [{ response_format: { type: "json_schema", json_schema: { ...format } } }]
    const usage = ways.streamOptions ? [{ stream_options: { include_usage: true } }] : []
    const layers = [...settings.parameters, ...formatLayers, request.parameters]
    const thinkingLayers = withThinking(layers, thinking)
    return Result.map(overlay([...usage, ...thinkingLayers], wireNames, reserved), (parameters) => {
      const tools = toolsOf(definitions)
      const messages: Array<ChatCompletionMessageParam> =
        prompt === "" ? conversation : [systemMessage(prompt)].concat(conversation)
      const body = Object.assign({}, parameters, {
        model: settings.model,
        messages: settings.isMarked === true ? markConversation(messages) : messages,
        ...(tools.length === 0 ? {} : { tools, ...(plea === undefined ? choice(request, names) : {}) }),
        stream: true as const
      })
      return {
        body,
        names,
        restore,
        restoreCall,
        lost,
        damaged,
        effort: askedEffort(layers, settings.efforts),
        unheard: isUnheard(layers, thinking)
      }
    })
  }
}

/** Says to a model that can't be made to call a tool that it should. */
const pleaOf = ({ toolChoice, tools }: SimpleRequest, names: ToolNames): string | undefined => {
  if (tools.length === 0 || toolChoice === "auto" || toolChoice === "none") return undefined
  return toolChoice === "required" ? "Call a tool now." : `Call the tool ${names.wire(toolChoice.tool)} now.`
}

const plead = (conversation: Array<ChatCompletionMessageParam>, plea: string): void => {
  const last = conversation.at(-1)
  if (last?.role !== "user") return void conversation.push({ role: "user", content: plea })
  conversation[conversation.length - 1] = {
    ...last,
    content:
      typeof last.content === "string" ? `${last.content}\n\n${plea}` : [...last.content, { type: "text", text: plea }]
  }
}

const choice = (
  { toolChoice }: SimpleRequest,
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
