/**
 * Marks where a provider may cache the prompt: at the end of the conversation, and where the last turn's request ended.
 *
 * System prompt and tools are marked by the adapters themselves. The marks are hints: what has no use for them
 * (automatic caching, no caching) leaves them aside. Tools and system prompt are the same bytes from round to round
 * unless a middleware changes them, so put what changes them rarely.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { PromptCaching } from "effect-deepagents/middleware"
 *
 * const agent = Agent.make({ name: "thrifty", prompt: "You work long.", middleware: [PromptCaching.make()] })
 * ```
 */
import { type ModelRequest, turnPurpose } from "../core/ChatModel.ts"
import * as Middleware from "../core/Middleware.ts"

/**
 * The name of this middleware: one of yours with it takes its place in a deep agent.
 *
 * @category constants
 * @since 0.1.0
 */
export const name = "PromptCaching"

/** The end of this request, which the next one reads, and the end of the last one, which this one reads. */
const marks = ({ messages }: ModelRequest): ReadonlyArray<number> => {
  const end = messages.length - 1
  let before = end
  while (before >= 0 && messages[before]?.role !== "ai") before--
  return before > 0 ? [before - 1, end] : end >= 0 ? [end] : []
}

/**
 * Adds the hints to every turn that has none. Register it inside of what rewrites the history, such as summarization.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (): Middleware.Middleware =>
  Middleware.make({
    name,
    inherit: true,
    wrapModelCall: (request, next) =>
      next(
        request.purpose === turnPurpose && request.cacheHints.length === 0
          ? { ...request, cacheHints: marks(request) }
          : request
      )
  })
