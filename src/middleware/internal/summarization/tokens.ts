/** Counts the tokens of a text, a message or a request: an estimate, or a counter of the user's own. */
import type { ModelRequest, ToolDefinition } from "../../../core/ChatModel.ts"
import type * as Content from "../../../core/Content.ts"
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import type { Message } from "../../../core/Message.ts"
import { deepest, jsonTokens, mediaTokens, textTokens } from "../../../support/text/tokens.ts"

/** Counts the tokens of a text, and of an image or a file. */
export interface Counter {
  readonly text: (text: string) => number
  readonly media: (block: Content.ImageBlock | Content.FileBlock) => number
}

/** Accurate within about a quarter for prose in any script, for code and for JSON. */
export const estimate: Counter = { text: textTokens, media: mediaTokens }

/** Estimates the characters of a value as JSON. */
export const sizeOf = (value: Json, depth = 0): number => {
  if (typeof value === "string") return value.length + 2
  if (typeof value !== "object" || value === null) return 5
  if (depth >= deepest) return 10
  let sum = 2
  if (Array.isArray(value)) for (const item of value) sum += 1 + sizeOf(item, depth + 1)
  else if (isObject(value)) {
    for (const key of Object.keys(value)) sum += key.length + 4 + sizeOf(value[key] ?? null, depth + 1)
  }
  return sum
}

/** Tokens of the text that replaces an image for a model without vision. */
const unseenTokens = 14

const blockTokens = (counter: Counter, vision: boolean, block: Content.Block): number => {
  if (block.type === "text" || block.type === "reasoning") return counter.text(block.text)
  return block.type === "image" && !vision ? unseenTokens : counter.media(block)
}

const messageTokens = (counter: Counter, vision: boolean, message: Message): number => {
  let sum = 4
  for (const block of message.content) sum += blockTokens(counter, vision, block)
  if (message.role !== "ai") return sum
  for (const call of message.toolCalls) {
    sum += 8 + counter.text(call.name) + jsonTokens(call.arguments, counter.text)
  }
  for (const call of message.malformedToolCalls) sum += 8 + counter.text(call.raw)
  return sum
}

/** Counts for many runs, with a cache. */
export interface Meter {
  readonly text: (text: string) => number
  readonly message: (message: Message) => number
  /** Counts a request without its messages: the system prompt, the tools, the schema of the answer. */
  readonly frame: (request: Pick<ModelRequest, "systemPrompt" | "tools" | "outputSchema">, last: Frame) => number
}

/** The last counted system prompt and tools of a run: most requests have the same. */
export interface Frame {
  prompt: string
  tools: ModelRequest["tools"]
  promptTokens: number
  toolTokens: number
}

export const noFrame = (): Frame => ({ prompt: "", tools: [], promptTokens: 0, toolTokens: 0 })

/** The cached tokens of a counter: of tools and schemas, and of messages with and without vision. */
export interface TokenCache {
  readonly definitions: WeakMap<object, number>
  readonly seen: WeakMap<Message, number>
  readonly unseen: WeakMap<Message, number>
}

export const nothingCounted = (): TokenCache => ({
  definitions: new WeakMap(),
  seen: new WeakMap(),
  unseen: new WeakMap()
})

/** Smaller messages are cheaper to estimate than to look up, and a table of all messages is slow to collect. */
const worthKeeping = 64

/** Makes a meter. The next run on a conversation finds its messages counted. */
export const makeMeter = (counter: Counter, vision: boolean, { definitions, seen, unseen }: TokenCache): Meter => {
  const messages = vision ? seen : unseen

  const countOnce = <K extends object>(key: K, count: (key: K) => number): number => {
    const cachedCount = definitions.get(key)
    if (cachedCount !== undefined) return cachedCount
    const tokens = count(key)
    definitions.set(key, tokens)
    return tokens
  }

  const tool = (definition: ToolDefinition): number =>
    8 +
    counter.text(definition.name) +
    counter.text(definition.description) +
    jsonTokens(definition.parameters, counter.text)

  const schema = (json: JsonObject): number => jsonTokens(json, counter.text)

  return {
    text: counter.text,
    message: (message) => {
      const cachedCount = messages.get(message)
      if (cachedCount !== undefined) return cachedCount
      const tokens = messageTokens(counter, vision, message)
      if (counter !== estimate || tokens >= worthKeeping) messages.set(message, tokens)
      return tokens
    },
    frame: ({ outputSchema, systemPrompt, tools }, last) => {
      if (last.prompt !== systemPrompt) {
        last.prompt = systemPrompt
        last.promptTokens = counter.text(systemPrompt)
      }
      if (last.tools !== tools) {
        last.tools = tools
        last.toolTokens = 0
        for (const one of tools) last.toolTokens += countOnce(one, tool)
      }
      const sum = last.promptTokens + last.toolTokens
      return outputSchema === undefined ? sum : sum + countOnce(outputSchema, schema)
    }
  }
}
