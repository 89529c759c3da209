/** A catalogue of tools that is searched by their names and descriptions. */
import type MiniSearch from "minisearch"

/** The part of a tool that a catalogue reads. */
interface CatalogueTool {
  readonly name: string
  readonly description: string
}

/** Finds the tools that match a query, the best first. */
export interface Catalogue<Tool extends CatalogueTool> {
  readonly tools: ReadonlyArray<Tool>
  readonly byName: ReadonlyMap<string, Tool>
  readonly search: (query: string, limit: number) => ReadonlyArray<Tool>
}

/** The words of a name or a text: `getHTTPResponse_v2` has get, http, response, v2. */
const words = (text: string): Array<string> =>
  text
    .replaceAll(/(\p{Ll}|\p{N})(\p{Lu})/gu, "$1 $2")
    .replaceAll(/(\p{Lu})(\p{Lu}\p{Ll})/gu, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "")

const empty: ReadonlySet<string> = new Set(
  "a an and are as at be by can do for from has have how i if in is it its me my of on or that the this to was what when where which will with you your".split(
    " "
  )
)

/** One form for the forms of an English word, right or not: "invoices" and "invoice", "converting" and "convert". */
const stem = (word: string): string =>
  word.length < 4
    ? word
    : word.replace(/ies$/, "y").replace(word.length > 5 ? /(?:ing|ed|es|(?<!s)s|e)$/ : /(?:es|(?<!s)s|e)$/, "")

/** The least share of the best score: below it a tool only shares a common word with the query. */
const share = 0.25

/** Indexes tools once by BM25, with the optional package `minisearch`. A name counts more than a description. */
export const make = <Tool extends CatalogueTool>(
  Search: typeof MiniSearch,
  tools: ReadonlyArray<Tool>
): Catalogue<Tool> => {
  const index = new Search<{ id: number; name: string; description: string }>({
    fields: ["name", "description"],
    tokenize: words,
    processTerm: (word) => (empty.has(word) ? undefined : stem(word)),
    searchOptions: { boost: { name: 2 }, prefix: (word) => word.length > 2 }
  })
  index.addAll(tools.map(({ description, name }, id) => ({ id, name, description })))
  return {
    tools,
    byName: new Map(tools.map((tool) => [tool.name, tool])),
    search: (query, limit) => {
      const hits = index.search(query)
      const least = (hits[0]?.score ?? 0) * share
      return hits.slice(0, limit).flatMap(({ id, score }) => (score < least ? [] : (tools[id] ?? [])))
    }
  }
}

/** Reports whether these are the same tools in the same order. */
export const same = (left: ReadonlyArray<CatalogueTool>, right: ReadonlyArray<CatalogueTool>): boolean =>
  left === right || (left.length === right.length && left.every((tool, index) => tool === right[index]))
