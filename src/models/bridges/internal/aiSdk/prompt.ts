/** Writes a history as a prompt of the AI SDK. */
import type { LanguageModelV4Message, LanguageModelV4Prompt, SharedV4ProviderOptions } from "@ai-sdk/provider"
import type { ModelRequest } from "../../../../core/ChatModel.ts"
import type { ReasoningBlock, TextBlock } from "../../../../core/Content.ts"
import { isObject, type JsonObject } from "../../../../core/Json.ts"
import { valueAt } from "../../../../support/json/valueAt.ts"
import type { Dialect, GivenContent } from "../../../internal/turn/dialect.ts"
import { arrange } from "../../../internal/turn/layout.ts"
import {
  type AiTurn,
  type AnsweredCall,
  makeNormalizer,
  makeTurnsWriter,
  type Turn
} from "../../../internal/turn/normalize.ts"
import { textOfFile } from "../../../internal/turn/textFile.ts"
import type { ToolNames } from "../../../internal/turn/toolNames.ts"
import { wellFormed } from "../../../internal/turn/wellFormed.ts"
import { stringOf } from "../../../internal/wire/read.ts"
import { canSend, filePart, type Reach, vendorOf } from "./media.ts"

type Assistant = Extract<LanguageModelV4Message, { readonly role: "assistant" }>
type AssistantPart = Assistant["content"][number]

/**
 * The key in `providerData` for a provider's own data. Each provider has its own key, because it can't read the others'
 * signatures.
 */
export const dataKey = (provider: string): string => `ai-sdk/${provider}`

const dialectOf = (provider: string, reach: Reach): Dialect => ({
  provider: dataKey(provider),
  systemMessages: "fold",
  reasoning: "own",
  media: canSend(reach),
  // Not every model reads files.
  asText: textOfFile,
  // Few providers read media inside of a result.
  toolMedia: "after",
  humanFirst: true,
  humanLast: true,
  // OpenAI's limit for chat completions, the shortest of all.
  callIdLength: 40
})

const isOptions = (value: unknown): value is SharedV4ProviderOptions =>
  isObject(value) && Object.values(value).every(isObject)

/** Data that the provider attached to a piece, as the options in which it wants it back. */
const optionsOf = (data: JsonObject | undefined): { readonly providerOptions?: SharedV4ProviderOptions } => {
  const options = data?.["options"]
  return isOptions(options) ? { providerOptions: options } : {}
}

/** The key that shows a model its own malformed arguments. */
const malformedKey = "INVALID_JSON"

const callPart = (call: AnsweredCall, names: ToolNames): AssistantPart => ({
  type: "tool-call",
  toolCallId: call.id,
  toolName: names.wire(call.name),
  input: call.raw === undefined ? call.arguments : { [malformedKey]: call.raw },
  ...optionsOf(call.data)
})

/** Makes a part of the provider's own again, as it was kept. */
const revive = (part: JsonObject): ReadonlyArray<AssistantPart> => {
  const own = optionsOf(part)
  const toolCallId = stringOf(part["toolCallId"])
  const toolName = stringOf(part["toolName"])
  switch (stringOf(part["type"]) ?? "") {
    case "tool-call":
      if (toolCallId === undefined || toolName === undefined) return []
      return [{ type: "tool-call", toolCallId, toolName, input: part["input"] ?? {}, providerExecuted: true, ...own }]
    case "tool-result": {
      if (toolCallId === undefined || toolName === undefined) return []
      const type = part["isError"] === true ? "error-json" : "json"
      const value = part["result"] ?? null
      return [{ type: "tool-result", toolCallId, toolName, output: { type, value }, ...own }]
    }
    case "custom": {
      const [vendor = "", ...kind] = (stringOf(part["kind"]) ?? "").split(".")
      return [{ type: "custom", kind: `${vendor}.${kind.join(".")}`, ...own }]
    }
    default:
      return []
  }
}

/** Makes the writer of one session: a turn that it has seen is not written again. */
export const makePromptWriter = (provider: string, reach: Reach) => {
  const dialect = dialectOf(provider, reach)
  const normalize = makeNormalizer(dialect)
  const vendor = vendorOf(provider)

  const own = (block: TextBlock | ReasoningBlock) => {
    const data = block.providerData?.[dialect.provider]
    return optionsOf(isObject(data) ? data : undefined)
  }
  const writeContent = (blocks: ReadonlyArray<GivenContent>) =>
    blocks.map((block) =>
      block.type === "text" ? { type: "text" as const, text: block.text } : filePart(block, reach)
    )

  const writeTurn = (turn: AiTurn, names: ToolNames): ReadonlyArray<LanguageModelV4Message> => {
    const texts = turn.content.map((block): AssistantPart => ({ type: block.type, text: block.text, ...own(block) }))
    const calls = turn.calls.map((call) => callPart(call, names))
    const content = arrange(turn.data, texts, calls, revive)
    const results = turn.calls.map(({ answer, id, name }) => ({
      type: "tool-result" as const,
      toolCallId: id,
      toolName: names.wire(name),
      output: {
        type: answer.isError ? ("error-text" as const) : ("text" as const),
        value: answer.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n\n")
      }
    }))
    return [
      // A turn that was paused before it said anything.
      ...(content.length === 0 ? [] : [{ role: "assistant" as const, content: [...content] }]),
      ...(results.length === 0 ? [] : [{ role: "tool" as const, content: results }])
    ]
  }

  const write = makeTurnsWriter((turn: Turn, names: ToolNames): ReadonlyArray<LanguageModelV4Message> => {
    switch (turn.role) {
      // Folded into the prompt: the dialect leaves none.
      case "system":
        return []
      case "human":
        return [{ role: "user", content: writeContent(turn.content) }]
      case "ai":
        return writeTurn(turn, names)
    }
  })

  const mark = valueAt(cacheMarks, vendor)
  const addMark = (message: LanguageModelV4Message): LanguageModelV4Message =>
    mark === undefined ? message : { ...message, providerOptions: { ...message.providerOptions, ...mark } }

  return (request: ModelRequest, names: ToolNames) => {
    const { damaged, system, turns } = normalize(request.messages)
    const { ends, output } = write(turns, names)
    const messages: LanguageModelV4Prompt = [...output]
    const hints = new Set(request.cacheHints)
    turns.forEach((turn, at) => {
      const [from = 0, end = 0] = [ends[at - 1], ends[at]]
      const last = messages[end - 1]
      const isHinted = at === turns.length - 1 || hints.has(turn.index)
      if (isHinted && end > from && last !== undefined) messages[end - 1] = addMark(last)
    })
    const text = [wellFormed(request.systemPrompt), ...system].filter((part) => part !== "").join("\n\n")
    if (text !== "") messages.unshift(addMark({ role: "system", content: text }))
    return { prompt: messages, damaged, container: containerOf(turns) }
  }
}

/**
 * Cache marks for providers that cache only on request: after the system prompt, the last message and the messages that
 * a request names.
 */
const ephemeral = { cacheControl: { type: "ephemeral" } }
const cacheMarks: { readonly [vendor: string]: SharedV4ProviderOptions } = {
  anthropic: { anthropic: ephemeral },
  "amazon-bedrock": { bedrock: { cachePoint: { type: "default" } } },
  openrouter: { openrouter: ephemeral }
}

/** The container in which Claude ran code: the next request has to name it. */
const containerOf = (turns: ReadonlyArray<Turn>): string | undefined => {
  const last = turns.findLast((turn) => turn.role === "ai")
  return stringOf(last?.data?.["container"])
}
