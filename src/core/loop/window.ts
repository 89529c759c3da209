/** Estimates the tokens of a request by its parts. It counts each message once. */
import { jsonTokens, mediaTokens, textTokens } from "../../support/text/tokens.ts"
import type { Of } from "../AgentEvent.ts"
import type { ModelRequest, ToolDefinition } from "../ChatModel.ts"
import type { Message } from "../Message.ts"
import * as Hub from "./hub.ts"
import type { From, OwnRun } from "./live.ts"

type Parts = { -readonly [Part in keyof Of<"ContextMeasured">["parts"]]: number }

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

/**
 * Measures the requests of one run. As long as they have the same list, which only grows, a measurement costs what is
 * new in it.
 */
const makeMeter = () => {
  const sizes = new WeakMap<object, number>()
  let prompt = { text: "", tokens: 0 }
  let list: ReadonlyArray<Message> = []
  let count = 0
  let counted = none()

  const measureOnce = <K extends object>(key: K, tokens: (key: K) => number): number => {
    const before = sizes.get(key)
    if (before !== undefined) return before
    const size = tokens(key)
    sizes.set(key, size)
    return size
  }

  const goesOn = (messages: ReadonlyArray<Message>, length: number): boolean => {
    if (length < count) return false
    if (messages === list) return true
    for (let index = 0; index < count; index++) if (messages[index] !== list[index]) return false
    return true
  }

  return ({ messages, outputSchema, systemPrompt, tools }: ModelRequest, length: number): Parts => {
    if (!goesOn(messages, length)) {
      count = 0
      counted = none()
    }
    list = messages
    for (; count < length; count++) {
      const message = messages[count]
      if (message !== undefined) add(counted, message)
    }
    if (prompt.text !== systemPrompt) prompt = { text: systemPrompt, tokens: textTokens(systemPrompt) }
    let offered = outputSchema === undefined ? 0 : measureOnce(outputSchema, jsonTokens)
    for (const tool of tools) offered += measureOnce(tool, toolTokens)
    return { ...counted, systemPrompt: prompt.tokens, tools: offered }
  }
}

const sum = (parts: Parts): number => {
  let total = 0
  for (const tokens of Object.values(parts)) total += tokens
  return total
}

const counting = Symbol("effect-deepagents/counting")

/** An event whose parts are counted when they are looked at. */
interface CountedEvent extends Of<"ContextMeasured"> {
  readonly [counting]: () => Parts
}

// The same functions for all events. With functions of its own, written in place, each event has a shape of its own, which
// is old from the start: it, its request and thereby the whole conversation stay until a full collection.
const total: PropertyDescriptor & ThisType<CountedEvent> = {
  get() {
    return sum(this[counting]())
  },
  enumerable: true,
  configurable: true
}
const parts: PropertyDescriptor & ThisType<CountedEvent> = {
  get() {
    return this[counting]()
  },
  enumerable: true,
  configurable: true
}

/** Estimates the tokens of a request. */
export const estimateRequest = (request: ModelRequest): number => sum(makeMeter()(request, request.messages.length))

const measured = (
  fields: Omit<Of<"ContextMeasured">, "total" | "parts">,
  value: () => Parts
): Of<"ContextMeasured"> => {
  Object.defineProperty(fields, counting, { value })
  Object.defineProperty(fields, "total", total)
  // The parts that the type leaves out are there now.
  return Object.defineProperty(fields, "parts", parts) as Of<"ContextMeasured">
}

/**
 * Says once a round, if somebody watches, what fills the window. It is counted when a reader looks at it: most readers
 * do not, and a long history is long to count.
 */
export const makeMeasure = ({ origin, run }: From & { readonly run: OwnRun }): ((request: ModelRequest) => void) => {
  const { hub, path, runId } = origin
  const contextWindowTokens = run.model?.contextWindowTokens
  const window = contextWindowTokens === undefined ? {} : { window: contextWindowTokens }
  let meter: ReturnType<typeof makeMeter> | undefined
  let last = 0
  return (request) => {
    if (!hub.isWatched || last === run.round) return
    last = run.round
    const { length } = request.messages
    let requestToCount: ModelRequest | undefined = request
    let counts = none()
    const count = (): Parts => {
      if (requestToCount !== undefined) {
        meter ??= makeMeter()
        counts = meter(requestToCount, length)
        requestToCount = undefined
      }
      return counts
    }
    const fields = {
      _tag: "ContextMeasured",
      round: run.round,
      unit: "estimatedTokens",
      ...window,
      seq: hub.seq++,
      runId,
      path,
      at: origin.clock.currentTimeMillisUnsafe()
    } as const
    Hub.offer(hub, measured(fields, count))
  }
}
