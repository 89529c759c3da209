/**
 * The parts of a request that fill the model's context window, in tokens, estimated: what was counted once is not
 * counted again.
 */
import { jsonTokens, mediaTokens, textTokens } from "../../support/tokens.ts"
import type { ContextMeasured } from "../AgentEvent.ts"
import type { ModelRequest, ToolDefinition } from "../ChatModel.ts"
import type { Message } from "../Message.ts"
import { type From, type OwnRun, offer } from "./live.ts"

type Parts = { -readonly [Part in keyof ContextMeasured["parts"]]: number }

const none = (): Parts => ({
  systemPrompt: 0,
  tools: 0,
  human: 0,
  notices: 0,
  ai: 0,
  reasoning: 0,
  toolCalls: 0,
  toolResults: 0,
  media: 0
})

const kindOf = (message: Message): "ai" | "human" | "notices" | "toolResults" => {
  if (message.role === "ai") return "ai"
  if (message.role === "tool") return "toolResults"
  return message.role === "human" && message.source === undefined ? "human" : "notices"
}

const add = (parts: Parts, message: Message): void => {
  const kind = kindOf(message)
  parts[kind] += 4
  for (const block of message.content) {
    if (block.type === "text") parts[kind] += textTokens(block.text)
    else if (block.type === "reasoning") parts.reasoning += textTokens(block.text)
    else parts.media += mediaTokens(block)
  }
  if (message.role !== "ai") return
  for (const call of message.toolCalls) parts.toolCalls += 8 + textTokens(call.name) + jsonTokens(call.arguments)
  for (const call of message.malformedToolCalls) parts.toolCalls += 8 + textTokens(call.raw)
}

const toolTokens = ({ description, name, parameters }: ToolDefinition): number =>
  8 + textTokens(name) + textTokens(description) + jsonTokens(parameters)

/** Measures the requests of one run. A list of messages that grew costs what is new in it. */
const makeMeter = () => {
  const known = new WeakMap<object, number>()
  let prompt = { text: "", tokens: 0 }
  let list: ReadonlyArray<Message> = []
  let seen: Array<Message> = []
  let counted = none()

  const once = <K extends object>(key: K, count: (key: K) => number): number => {
    const before = known.get(key)
    if (before !== undefined) return before
    const tokens = count(key)
    known.set(key, tokens)
    return tokens
  }

  const goesOn = (messages: ReadonlyArray<Message>): boolean =>
    messages.length >= seen.length && (messages === list || seen.every((message, index) => message === messages[index]))

  return ({ messages, outputSchema, systemPrompt, tools }: ModelRequest): Parts => {
    if (!goesOn(messages)) {
      seen = []
      counted = none()
    }
    list = messages
    for (let index = seen.length; index < messages.length; index++) {
      const message = messages[index]
      if (message === undefined) continue
      add(counted, message)
      seen.push(message)
    }
    if (prompt.text !== systemPrompt) prompt = { text: systemPrompt, tokens: textTokens(systemPrompt) }
    let offered = outputSchema === undefined ? 0 : once(outputSchema, jsonTokens)
    for (const tool of tools) offered += once(tool, toolTokens)
    return { ...counted, systemPrompt: prompt.tokens, tools: offered }
  }
}

/** Says once a round, if somebody watches, what fills the window: made by the first request that is watched. */
export const makeMeasure = ({ origin, run }: From & { readonly run: OwnRun }): ((request: ModelRequest) => void) => {
  let meter: ReturnType<typeof makeMeter> | undefined
  let last = 0
  return (request) => {
    if (!origin.hub.watched || last === run.round) return
    last = run.round
    meter ??= makeMeter()
    const parts = meter(request)
    const total = Object.values(parts).reduce((sum, tokens) => sum + tokens, 0)
    const { contextWindowTokens: window } = run.model
    const measured = { _tag: "ContextMeasured", round: run.round, unit: "estimatedTokens", total, parts } as const
    offer({ origin }, window === undefined ? measured : { ...measured, window })
  }
}
