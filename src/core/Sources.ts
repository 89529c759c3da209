/**
 * Sources: the evidence of an answer. Tools return them with their output, providers as citations of a turn; a run
 * numbers each once, from 1, over all of its sub-agents.
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Agent, Sources, Tool, ToolOutput } from "effect-deepagents"
 *
 * const lookup = Tool.make("lookup", {
 *   description: "Looks something up",
 *   parameters: { topic: Schema.String },
 *   execute: ({ topic }) =>
 *     Effect.succeed(
 *       ToolOutput.make(`${topic} is a town.`, {
 *         sources: [Sources.make({ url: "https://example.com/towns", title: "Towns" })]
 *       })
 *     )
 * })
 *
 * const agent = Agent.make({ name: "researcher", prompt: "You cite your sources.", tools: [lookup] })
 * const sourcesOf = Effect.map(Agent.run(agent, "What is Ulm?"), Sources.of)
 * ```
 */
import * as Result from "effect/Result"
import { cut } from "../support/text/text.ts"
import { oneLine } from "../support/text/untrusted.ts"
import * as AgentState from "./AgentState.ts"
import { type CitedSource, type NumberedSource, slot } from "./sourceList.ts"

export { CitedSource } from "./sourceList.ts"

/**
 * The key of a URL: scheme and host in lower case, without a fragment, a default port or credentials. Query and path
 * stay as they are, since they may name another document. A text that is no URL is its own key.
 */
export const keyOf = (url: string): string => {
  const parsed = URL.parse(url)
  if (parsed === null) return url
  parsed.hash = ""
  parsed.username = ""
  parsed.password = ""
  return parsed.href
}

/**
 * Makes a source from its URL, from the id of a document (`key`), or both. Of a long one the beginning is kept: 2,000
 * characters of URL and key, 300 of the title, 500 of the snippet.
 */
export const make = (
  options: {
    /** The title, at most 300 characters. */
    readonly title?: string | undefined
    /** An excerpt, at most 500 characters. */
    readonly snippet?: string | undefined
  } & (
    | {
        /** The address of the source. */
        readonly url: string
        /** The id of a document. Default: the URL. */
        readonly key?: string | undefined
      }
    | {
        /** The id of a document. */
        readonly key: string
        /** The address of the source. */
        readonly url?: string | undefined
      }
  )
): CitedSource => {
  const { key, snippet, title, url } = options
  return {
    key: cut(key ?? keyOf(url ?? ""), 2_000),
    ...(title === undefined ? {} : { title: cut(title, 300) }),
    ...(url === undefined ? {} : { url: cut(url, 2_000) }),
    ...(snippet === undefined ? {} : { snippet: cut(snippet, 500) })
  }
}

/** Reads the numbered sources of a result or a checkpoint; unreadable sources give an empty list. */
export const of = (result: { readonly state: AgentState.Snapshot }): ReadonlyArray<NumberedSource> =>
  Result.match(AgentState.read(result.state, slot), {
    onFailure: () => [],
    onSuccess: (all) => all.map((source, index) => ({ number: index + 1, source }))
  })

/** A list of sources as a model or a person reads it, a line each: `[1] Title, https://example.com/`. */
export const render = (sources: ReadonlyArray<NumberedSource>): string =>
  sources
    .map(({ number, source: { key, title, url } }) => {
      const where = oneLine(cut(url ?? key, 300))
      const name = title === undefined ? "" : oneLine(title)
      return `[${number}] ${name === "" || name === where ? where : `${name}, ${where}`}`
    })
    .join("\n")
