/**
 * Sources: what an answer rests on. Tools give them with their output, providers with the citations of a turn; a run
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
import * as Schema from "effect/Schema"
import { cut } from "../support/text/text.ts"
import { oneLine } from "../support/text/untrusted.ts"
import * as AgentState from "./AgentState.ts"

/**
 * A source that can be cited. `key` tells it from others: {@link keyOf} its URL, or an id of the document. `snippet` is
 * what it says about the matter, in its own words.
 */
export const Cited = Schema.Struct({
  key: Schema.String,
  title: Schema.optionalKey(Schema.String),
  url: Schema.optionalKey(Schema.String),
  snippet: Schema.optionalKey(Schema.String)
})
export interface Cited extends Schema.Schema.Type<typeof Cited> {}

/** A source and its number in the run, from 1. */
export interface Numbered {
  readonly number: number
  readonly source: Cited
}

/** A run knows so many sources at most; those that come later are not numbered. */
export const limit = 500

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
    readonly title?: string | undefined
    readonly snippet?: string | undefined
  } & (
    | { readonly url: string; readonly key?: string | undefined }
    | { readonly key: string; readonly url?: string | undefined }
  )
): Cited => {
  const { key, snippet, title, url } = options
  return {
    key: cut(key ?? keyOf(url ?? ""), 2_000),
    ...(title === undefined ? {} : { title: cut(title, 300) }),
    ...(url === undefined ? {} : { url: cut(url, 2_000) }),
    ...(snippet === undefined ? {} : { snippet: cut(snippet, 500) })
  }
}

/**
 * Adds sources to those that are there, by key, in the order in which they come. A number never changes, and the first
 * to give a field is believed: a source that comes later can't rename one that is cited already.
 */
export const union = (current: ReadonlyArray<Cited>, incoming: ReadonlyArray<Cited>): ReadonlyArray<Cited> => {
  const places = new Map(current.map(({ key }, index) => [key, index]))
  let all = current
  for (const source of incoming) {
    const place = places.get(source.key)
    const known = place === undefined ? undefined : all[place]
    if (place === undefined || known === undefined) {
      if (all.length >= limit) continue
      places.set(source.key, all.length)
      all = [...all, source]
    } else if (Object.keys(source).some((field) => !Object.hasOwn(known, field))) {
      all = all.with(place, { ...source, ...known })
    }
  }
  return all
}

/** The sources of a run and all of its sub-agents. The number of one is its place, from 1. */
export const slot: AgentState.Slot<ReadonlyArray<Cited>> = AgentState.slot("sources", {
  schema: Schema.Array(Cited),
  initial: [],
  shared: { merge: union }
})

/** The numbers of some sources among all that a run knows, each once, in the order of `some`. */
export const numbered = (all: ReadonlyArray<Cited>, some: ReadonlyArray<Cited>): ReadonlyArray<Numbered> => {
  const wanted = new Map(some.map(({ key }) => [key, 0]))
  for (const [index, { key }] of all.entries()) if (wanted.has(key)) wanted.set(key, index + 1)
  return [...wanted.values()].flatMap((number) => {
    const source = all[number - 1]
    return source === undefined ? [] : [{ number, source }]
  })
}

/** The sources of a run, numbered: of its result, or of a checkpoint. Sources that can't be read are none. */
export const of = (result: { readonly state: AgentState.Snapshot }): ReadonlyArray<Numbered> =>
  Result.match(AgentState.read(result.state, slot), {
    onFailure: () => [],
    onSuccess: (all) => all.map((source, index) => ({ number: index + 1, source }))
  })

/** A list of sources as a model or a person reads it, a line each: `[1] Title, https://example.com/`. */
export const render = (sources: ReadonlyArray<Numbered>): string =>
  sources
    .map(({ number, source: { key, title, url } }) => {
      const where = oneLine(cut(url ?? key, 300))
      const name = title === undefined ? "" : oneLine(title)
      return `[${number}] ${name === "" || name === where ? where : `${name}, ${where}`}`
    })
    .join("\n")
