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
import * as StableTools from "./internal/stableTools.ts"

/** The name of this middleware: one of yours with it takes its place in a deep agent. */
const name = "PromptCaching"

/** The end of this request, which the next one reads, and the end of the last one, which this one reads. */
const marks = ({ messages }: ModelRequest): ReadonlyArray<number> => {
  const end = messages.length - 1
  let before = end
  while (before >= 0 && messages[before]?.role !== "ai") before--
  return before > 0 ? [before - 1, end] : end >= 0 ? [end] : []
}

/**
 * `stableTools` (`false`) keeps the tools of a conversation as its first turn had them. Tools stand before everything
 * else, so that one that comes or goes costs all that a provider has cached. With it, tools that come are told of in a
 * message, and called by one that is always there (`call_tool`); tools that go are told of, and not run. Sub-agents do not
 * inherit it: give them one of their own.
 */
interface Options {
  readonly stableTools?: boolean | undefined
}

/**
 * Adds the hints to every turn that has none. Register it inside of what rewrites the history, such as summarization,
 * and of what adds or removes tools.
 */
export const make = (options?: Options): Middleware.Middleware => {
  const stable = options?.stableTools === true ? StableTools.make() : undefined
  const marked = (request: ModelRequest): ModelRequest =>
    request.cacheHints.length === 0 ? { ...request, cacheHints: marks(request) } : request
  return Middleware.make({
    name,
    // The tools of a sub-agent are others.
    inherit: stable === undefined,
    ...(stable === undefined ? {} : { state: [StableTools.slot], tools: [StableTools.tool()] }),
    wrapModelCall: (request, next, run) => {
      if (request.purpose !== turnPurpose) return next(request)
      return stable === undefined ? next(marked(request)) : stable(request, (sent) => next(marked(sent)), run)
    }
  })
}
