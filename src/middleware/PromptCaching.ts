/**
 * Marks cache positions in the prompt: the end of the conversation, and the end of the last turn's request.
 *
 * Adapters mark the system prompt and the tools themselves. The marks are hints that providers without explicit caching
 * ignore. Tools and system prompt stay the same bytes from round to round unless a middleware changes them.
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
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import * as shapes from "./internal/shapes.ts"
import * as StableTools from "./internal/stableTools.ts"

const name = "PromptCaching"

/** The end of this request, which the next request reads, and the end of the last one, which this request reads. */
const marks = ({ messages }: ModelRequest): ReadonlyArray<number> => {
  const end = messages.length - 1
  let before = end
  while (before >= 0 && messages[before]?.role !== "ai") before--
  return before > 0 ? [before - 1, end] : end >= 0 ? [end] : []
}

/**
 * Options of cache marks.
 *
 * Tools precede everything else in a request, so a changed tool invalidates the provider's whole cache. With
 * `stableTools`, a message announces new tools, and the model calls them by the permanent tool `call_tool`. A message
 * also announces removed tools, which no longer run. Sub-agents do not inherit it: give them their own.
 */
export interface Options {
  /**
   * Keeps the tools of a conversation as in its first turn, so that the provider's cache stays valid. Default:
   * `false`.
   */
  readonly stableTools?: boolean | undefined
}

const refuseMake = makeMiddlewareCheck(name, shapes.promptCachingMake)

/**
 * Adds the hints to every turn without hints. Register it inside of middleware that rewrites the history, such as
 * summarization, or changes the tools.
 */
export const make = (options?: Options): Middleware.Middleware => {
  const refused = refuseMake(options)
  if (refused !== undefined) return refused
  const stable = options?.stableTools === true ? StableTools.make() : undefined
  const addMarks = (request: ModelRequest): ModelRequest =>
    request.cacheHints.length === 0 ? { ...request, cacheHints: marks(request) } : request
  return Middleware.make({
    name,
    // A sub-agent has other tools.
    inherit: stable === undefined,
    ...(stable === undefined ? {} : { state: [StableTools.slot], tools: [StableTools.tool()] }),
    wrapModelCall: (request, next, run) => {
      if (request.purpose !== turnPurpose) return next(request)
      return stable === undefined
        ? next(addMarks(request))
        : stable(request, (stableRequest) => next(addMarks(stableRequest)), run)
    }
  })
}
