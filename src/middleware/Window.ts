/**
 * Shows the model the end of a long conversation, bounded by messages or tokens, without a summary.
 *
 * The conversation itself stays whole, in the thread and in results. `Summarization` keeps what a window leaves out.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { Window } from "effect-deepagents/middleware"
 *
 * const agent = Agent.make({
 *   name: "clerk",
 *   prompt: "You answer short questions.",
 *   middleware: [Window.make({ messages: 20 })]
 * })
 * ```
 */
import { type ModelRequest, turnPurpose } from "../core/ChatModel.ts"
import type { Message } from "../core/Message.ts"
import * as Middleware from "../core/Middleware.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import { countProblem } from "./internal/limits.ts"
import * as shapes from "./internal/shapes.ts"
import { makeMeter, nothingCounted } from "./internal/summarization/tokens.ts"
import { type Counter, defaultCounter } from "./Summarization.ts"

const name = "Window"

/** The bounds of a window. Both hold, if both are set. */
export interface Options {
  /** The most messages. Default: no limit. */
  readonly messages?: number | undefined
  /** The most tokens of messages, estimated. Default: no limit. */
  readonly tokens?: number | undefined
  /** The token counter. Default: `Summarization.defaultCounter`. */
  readonly counter?: Counter | undefined
}

interface Limits {
  readonly messages: number
  readonly tokens: number
  readonly tokensOf: (message: Message) => number
}

/** The number of system messages at the beginning: they stay. */
const leadingOf = (messages: ReadonlyArray<Message>): number => {
  const first = messages.findIndex(({ role }) => role !== "system")
  return first === -1 ? messages.length : first
}

/**
 * The places of the messages that fit. A call stays with its results, and the last group stays even if it is too long. A
 * view that would begin with an answer keeps the question before it.
 */
const placesIn = (
  messages: ReadonlyArray<Message>,
  { messages: most, tokens, tokensOf }: Limits
): ReadonlyArray<number> => {
  const leading = leadingOf(messages)
  let start = messages.length
  let size = 0
  for (let place = messages.length - 1; place >= leading; place--) {
    const message = messages[place]
    if (message === undefined) break
    size += tokensOf(message)
    const isTooMuch = messages.length - place > most || size > tokens
    if (isTooMuch && start < messages.length) break
    if (message.role !== "tool") start = place
  }
  const indexes = Array.from({ length: messages.length - start }, (_, index) => start + index)
  const question = messages.slice(leading, start).findLastIndex(({ role }) => role === "human")
  const opening = messages[start]?.role === "human" || question === -1 ? [] : [leading + question]
  return [...Array.from({ length: leading }, (_, index) => index), ...opening, ...indexes]
}

const viewOf = (request: ModelRequest, limits: Limits): ModelRequest => {
  const places = placesIn(request.messages, limits)
  if (places.length === request.messages.length) return request
  return {
    ...request,
    messages: places.flatMap((place) => request.messages[place] ?? []),
    cacheHints: request.cacheHints.map((hint) => places.indexOf(hint)).filter((place) => place >= 0)
  }
}

const refuseMake = makeMiddlewareCheck(name, shapes.windowMake)

/**
 * Bounds the messages of each turn's request. System messages at the beginning stay, and calls are never parted from their
 * results. A view that slides changes the beginning that a provider has cached, so each request past the bound is read
 * anew.
 */
export const make = (options: Options): Middleware.Middleware => {
  const refused = refuseMake(options)
  if (refused !== undefined) return refused
  const { counter = defaultCounter, messages = Infinity, tokens = Infinity } = options
  const meter = makeMeter(counter, true, nothingCounted())
  const limits: Limits = { messages, tokens, tokensOf: meter.message }
  return Middleware.make({
    name,
    check: () =>
      messages === Infinity && tokens === Infinity
        ? `${name}: set \`messages\` or \`tokens\`: without them it bounds nothing`
        : countProblem(name, { messages, tokens }, 1),
    wrapModelCall: (request, next) => next(request.purpose === turnPurpose ? viewOf(request, limits) : request)
  })
}
