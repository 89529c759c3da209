// Measures which part of what was sent before a provider reads from its cache, over 200 rounds with 30 arrivals and
// departures of tools, skills and sub-agents, and writes ../../docs/prompt-caching.md:
//   npm run bench:prefix
// The bytes are those of the requests, on the wire; nothing is timed.
import * as Effect from "effect/Effect"
import { converse, kept, long } from "../deep/prefix.ts"
import { budgetTable, racersTable, report, writeDocs } from "./report.mjs"

/** The part of the bytes of each request that the next one begins with. */
const share = (sent) => {
  const all = kept(sent)
  return all.reduce((sum, { same }) => sum + same, 0) / all.reduce((sum, { length }) => sum + length, 0)
}

const names = { anthropic: "Anthropic, Messages", responses: "OpenAI, Responses", chat: "OpenAI, Chat Completions" }
const samples = {}
for (const name of Object.keys(names)) {
  samples[name] = {}
  for (const scenario of ["plain", "stable"]) {
    const sent = await Effect.runPromise(converse(name, long, scenario === "stable"))
    samples[name][scenario] = [{ value: share(sent) }]
  }
}

const read = ({ value }) => value
const title = "Read from the cache, of the bytes that were sent before"
const columns = [
  { title: "without `stableTools`", scenario: "plain", read },
  { title: "with `stableTools`", scenario: "stable", read }
]
const budgets = Object.entries(names).map(([name, what]) => ({ what, name, scenario: "stable", read, least: 0.99 }))
const text = report(
  samples,
  ["effect"],
  [...racersTable(samples, Object.entries(names), { title, columns }), ...budgetTable(samples, budgets)]
)
console.log(text)
writeDocs("prompt-caching.md", text)
