/** An `effect/ai` prompt as messages of ours. */
import type * as AiPrompt from "effect/ai/Prompt"
import { type Block, fromInput, toText } from "../../../../core/Content.ts"
import { isObject } from "../../../../core/Json.ts"
import * as Message from "../../../../core/Message.ts"
import type { MalformedToolCall, ToolCall } from "../../../../core/ToolCall.ts"
import { deepest, isTooDeep } from "../../../internal/schema/nesting.ts"
import { malformedKey } from "./encode.ts"
import { hostedPart, layoutOf, type Piece } from "./layout.ts"
import { mediaBlock, shownBlocks } from "./media.ts"
import { carriedBy, type Fields, isEmpty, provider, providerDataOf, toJson } from "./metadata.ts"

/** Converts params to a call. Params that are not a JSON object, or stand for such, become a malformed call. */
const toCall = (part: {
  readonly id: string
  readonly name: string
  readonly params: unknown
  readonly options: AiPrompt.ProviderOptions
}): { readonly call: ToolCall } | { readonly malformed: MalformedToolCall } => {
  const { id, name } = part
  if (isTooDeep(part.params)) {
    return { malformed: { id, name, raw: "", problem: `the arguments are nested deeper than ${deepest} levels` } }
  }
  const params = part.params === undefined || part.params === null ? {} : toJson(part.params)
  const raw = isObject(params) && Object.keys(params).length === 1 ? params[malformedKey] : undefined
  if (isObject(params) && typeof raw !== "string") {
    return { call: { id, name, arguments: params, ...providerDataOf(part.options) } }
  }
  const problem = "the arguments are not a JSON object"
  const text = typeof part.params === "string" ? part.params : JSON.stringify(params)
  return { malformed: { id, name, raw: typeof raw === "string" ? raw : text, problem } }
}

/** Reasoning always says whose it is: what another provider thought is not sent to this one. */
export const reasoningBlock = (text: string, options: AiPrompt.ProviderOptions): Block => {
  const { providerData } = providerDataOf(options)
  return { type: "reasoning", text, providerData: providerData ?? { [provider]: {} } }
}

const saidBlock = (part: AiPrompt.TextPart | AiPrompt.ReasoningPart): Block =>
  part.type === "text"
    ? { type: "text", text: part.text, ...providerDataOf(part.options) }
    : reasoningBlock(part.text, part.options)

const assistant = (message: AiPrompt.AssistantMessage): Message.AiMessage => {
  const content: Array<Block> = []
  const toolCalls: Array<ToolCall> = []
  const malformedToolCalls: Array<MalformedToolCall> = []
  const pieces: Array<Piece> = []
  let providerData: Fields = {}
  const addBlock = (block: Block): void => {
    content.push(block)
    pieces.push({ _tag: "content", block })
  }
  const addCall = (call: ReturnType<typeof toCall>): void => {
    if ("call" in call) toolCalls.push(call.call)
    else malformedToolCalls.push(call.malformed)
    pieces.push({ _tag: "call" })
  }
  for (const part of message.content) {
    const carried = carriedBy(part.options)
    const message: Fields = carried.message ?? {}
    providerData = { ...providerData, ...message }
    switch (part.type) {
      case "text":
      case "reasoning":
        for (const block of carried.blocks ?? [saidBlock(part)]) addBlock(block)
        break
      case "file":
        addBlock(mediaBlock(part))
        break
      case "tool-call":
        if (part.providerExecuted) pieces.push({ _tag: "hosted", part: hostedPart(part, part.options) })
        else addCall(toCall(part))
        break
      case "tool-result":
        pieces.push({ _tag: "hosted", part: hostedPart(part, part.options) })
        break
      case "tool-approval-request":
        break
    }
  }
  const layout = layoutOf(pieces)
  if (layout !== undefined) providerData = { ...providerData, [provider]: { layout } }
  return Message.ai(content, {
    toolCalls,
    malformedToolCalls,
    providerData: isEmpty(providerData) ? undefined : providerData
  })
}

const resultBlocks = (part: AiPrompt.ToolResultPart): ReadonlyArray<Block> => {
  if (part.modelOutput !== undefined) return shownBlocks(part.modelOutput)
  return fromInput(typeof part.result === "string" ? part.result : JSON.stringify(toJson(part.result)))
}

const decodeMessage = (message: AiPrompt.Message): ReadonlyArray<Message.Message> => {
  switch (message.role) {
    case "system":
      return [Message.system(message.content)]
    case "user":
      return [Message.human(shownBlocks(message.content))]
    case "assistant":
      return [assistant(message)]
    case "tool":
      return message.content.flatMap((part) =>
        part.type === "tool-result"
          ? [Message.tool(resultBlocks(part), { toolCallId: part.id, toolName: part.name, isError: part.isFailure })]
          : []
      )
  }
}

/** The messages of a prompt. */
export const decode = (prompt: AiPrompt.Prompt): ReadonlyArray<Message.Message> => prompt.content.flatMap(decodeMessage)

/** The instructions at the start of a prompt, and the conversation behind them. */
export const decodeRequest = (
  prompt: AiPrompt.Prompt
): { readonly systemPrompt: string; readonly messages: ReadonlyArray<Message.Message> } => {
  const messages = decode(prompt)
  const start = messages.findIndex((message) => message.role !== "system")
  const leading = start === -1 ? messages.length : start
  return {
    systemPrompt: messages
      .slice(0, leading)
      .map((message) => toText(message.content))
      .join("\n\n"),
    messages: messages.slice(leading)
  }
}
