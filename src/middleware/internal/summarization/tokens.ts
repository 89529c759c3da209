/**
 * Counts the tokens of a text, a message or a request: an estimate, or a counter of the user's own.
 */
import type { ModelRequest, ToolDefinition } from "../../../core/ChatModel.ts"
import type * as Content from "../../../core/Content.ts"
import { isObject, type Json } from "../../../core/Json.ts"
import type { Message } from "../../../core/Message.ts"

/** Counts tokens of a text, and of an image or a file that the model is shown. */
export interface Counter {
  readonly text: (text: string) => number
  readonly media: (block: Content.ImageBlock | Content.FileBlock) => number
}

const isLetter = (code: number): boolean => (code | 32) >= 97 && (code | 32) <= 122
const isDigit = (code: number): boolean => code >= 48 && code <= 57

/** Tokens of an ASCII character: words are cheap, digits and the punctuation of code are not. */
const ascii = Float64Array.from({ length: 128 }, (_, code) => (isLetter(code) ? 0.22 : isDigit(code) ? 0.42 : 0.48))

/** From here on a run of letters and digits is no word but a key, a hash or base64. */
const longestWord = 24

/** Tokens of the seam of letters and digits in a word, where a tokeniser cuts. */
const seam = 0.45

/** Scripts by how finely tokenisers cut them, per UTF-16 unit; an emoji is two units. */
const other = (code: number): number => {
  if (code < 0x370) return 0.6
  if (code < 0x400) return 0.62
  if (code < 0x590) return 0.38
  if (code < 0x700) return 0.55
  if (code < 0x1100) return 0.7
  if (code >= 0xd800 && code <= 0xdfff) return 1
  return code >= 0x2000 && code < 0x2e80 ? 0.7 : 1
}

const estimateText = (text: string): number => {
  let sum = 0
  let word = 0
  let wasDigit = false
  let wasBlank = false
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code === 32 || code === 10) {
      // Indentation is one token, however deep.
      sum += wasBlank ? 0.05 : code === 32 ? 0.15 : 0.6
      wasBlank = true
      word = 0
      continue
    }
    wasBlank = false
    if (code >= 128) {
      sum += other(code)
      word = 0
      continue
    }
    const digit = isDigit(code)
    if (digit || isLetter(code)) {
      sum += ++word > longestWord ? 0.55 : (ascii[code] ?? 0)
      if (word > 1 && word <= longestWord && digit !== wasDigit) sum += seam
    } else {
      sum += ascii[code] ?? 0
      word = 0
    }
    wasDigit = digit
  }
  return Math.ceil(sum)
}

const imageTokens = 1_600
const fileTokens = 3_000

/** Text that comes as a file is its length; of a document or a recording nobody knows without reading it. */
const estimateMedia = (block: Content.ImageBlock | Content.FileBlock): number => {
  if (block.type === "image") return imageTokens
  if (block.source.kind !== "base64") return fileTokens
  const bytes = block.source.data.length * 0.75
  return Math.ceil(block.source.mimeType.startsWith("text/") ? bytes / 3.5 : Math.max(fileTokens, bytes / 100))
}

/** Good within about a quarter for prose in any script, for code and for JSON. */
export const estimate: Counter = { text: estimateText, media: estimateMedia }

/** Deeper than this, JSON is not looked into: what it holds came from a model, and may be built to overflow a stack. */
const deepest = 64

/** Roughly how many characters a value has as JSON. */
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

const jsonTokens = (counter: Counter, value: Json, depth: number): number => {
  if (typeof value === "string") return counter.text(value) + 1
  if (typeof value !== "object" || value === null) return 2
  if (depth >= deepest) return 4
  let sum = 1
  if (Array.isArray(value)) for (const item of value) sum += 1 + jsonTokens(counter, item, depth + 1)
  else if (isObject(value)) {
    for (const key of Object.keys(value)) {
      sum += 2 + counter.text(key) + jsonTokens(counter, value[key] ?? null, depth + 1)
    }
  }
  return sum
}

/** Tokens of the text in the place of an image for a model that has no vision. */
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
    sum += 8 + counter.text(call.name) + jsonTokens(counter, call.arguments, 0)
  }
  for (const call of message.malformedToolCalls) sum += 8 + counter.text(call.raw)
  return sum
}

/** Counts for one run. What was counted once is not counted again. */
export interface Meter {
  readonly text: (text: string) => number
  readonly message: (message: Message) => number
  /** Counts a request beside its messages: the system prompt, the tools, the schema of the answer. */
  readonly frame: (request: Pick<ModelRequest, "systemPrompt" | "tools" | "outputSchema">) => number
}

export const makeMeter = (counter: Counter, vision: boolean): Meter => {
  const messages = new WeakMap<Message, number>()
  const definitions = new WeakMap<object, number>()
  let prompt: { readonly text: string; readonly tokens: number } = { text: "", tokens: 0 }

  const once = <K extends object>(counts: WeakMap<K, number>, key: K, count: () => number): number => {
    const known = counts.get(key)
    if (known !== undefined) return known
    const made = count()
    counts.set(key, made)
    return made
  }

  const tool = (definition: ToolDefinition): number =>
    8 +
    counter.text(definition.name) +
    counter.text(definition.description) +
    jsonTokens(counter, definition.parameters, 0)

  return {
    text: counter.text,
    message: (message) => once(messages, message, () => messageTokens(counter, vision, message)),
    frame: ({ outputSchema, systemPrompt, tools }) => {
      if (prompt.text !== systemPrompt) prompt = { text: systemPrompt, tokens: counter.text(systemPrompt) }
      let sum = prompt.tokens
      for (const one of tools) sum += once(definitions, one, () => tool(one))
      return outputSchema === undefined
        ? sum
        : sum + once(definitions, outputSchema, () => jsonTokens(counter, outputSchema, 0))
    }
  }
}
