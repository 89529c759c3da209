// Measures a deep agent of ours, with all that it has by default, beside our own bare loop, deepagents and the AI SDK, in
// one interleaved run, and writes ../../docs/performance-deep.md:
//   npm run bench:deep [-- --quick] [--only ours,deep] [--scenario A,fan]
// Every measurement is a process of its own. With an option the tables only go to the terminal.
import { parseArgs } from "node:util"
import { budgetTable, race, racersTable, report, writeDocs } from "./report.mjs"

const titles = {
  ours: "_ours, the loop alone_",
  deep: "**ours, `DeepAgent.make`**",
  ai: "AI SDK (`ToolLoopAgent`)",
  deepagents: "LangChain deepagents"
}

const value = (sample) => sample.value
const memory = (sample) => sample.memory
const tables = [
  {
    title: "Microseconds a round",
    columns: [
      { title: "N=10", scenario: "A10", read: value, ratio: "ours" },
      { title: "N=100", scenario: "A100", read: value, ratio: "ours" },
      { title: "N=500", scenario: "A500", read: value, ratio: "ours" },
      { title: "400 messages before", scenario: "F", read: value, ratio: "ours" }
    ]
  },
  {
    title: "Cold start, compaction, sub-agents",
    columns: [
      { title: "import + first agent, ms", scenario: "D", read: value },
      { title: "RSS, MB", scenario: "D", read: memory },
      { title: "10,000 messages compacted, ms", scenario: "compaction", read: value },
      { title: "peak RSS, MB", scenario: "compaction", read: memory },
      { title: "200 sub-agents at once: wall ÷ ideal", scenario: "fan", read: value },
      { title: "peak RSS, MB", scenario: "fan", read: memory }
    ]
  },
  {
    title:
      "A conversation that outgrows its window, 50 ms a turn, 250 ms a summary: the longest time to the next turn, ms",
    columns: [
      { title: "summaries in the background", scenario: "waits", read: value },
      { title: "`background: false`", scenario: "waits", read: ({ waiting }) => waiting }
    ]
  },
  {
    title: "In front of every request, the same in all rounds of all runs",
    columns: [
      { title: "system prompt, characters", scenario: "stable", read: ({ prompt }) => prompt },
      { title: "tools as JSON, characters", scenario: "stable", read: ({ tools }) => tools }
    ]
  }
]

const budgets = [
  ...["A10", "A100", "A500", "F"].map((scenario) => ({
    what: `${scenario}: µs a round on top of the loop`,
    name: "stack",
    scenario,
    read: value,
    most: 40
  })),
  { what: "growth from N=10 to N=500", name: "deep", scenario: "growth", read: value, most: 1.15 },
  { what: "time to the next turn, ms", name: "deep", scenario: "waits", read: value, most: 100 },
  { what: "prompt and tools are the same", name: "deep", scenario: "stable", read: value, least: 1 }
]

const { values: options } = parseArgs({
  options: { only: { type: "string" }, scenario: { type: "string" }, quick: { type: "boolean", default: false } }
})
const isWhole = options.only === undefined && options.scenario === undefined && !options.quick
const wanted = options.only?.split(",") ?? Object.keys(titles)

const own = { script: "deep-measure.mjs" }
const scenarios = [
  ...["A10", "A100", "A500", "F", "D"].map((scenario) => ({ scenario, names: Object.keys(titles) })),
  { ...own, scenario: "compaction", names: ["deep", "deepagents"] },
  { ...own, scenario: "fan", names: ["deep", "ai", "deepagents"] },
  { ...own, scenario: "waits", names: ["deep"] },
  { ...own, scenario: "parts", names: ["deep"] },
  { ...own, scenario: "stable", names: ["deep"], times: 1 }
]
const plan = scenarios
  .filter(({ scenario }) => options.scenario?.split(",").some((prefix) => scenario.startsWith(prefix)) ?? true)
  .map((entry) => ({
    times: options.quick ? 1 : entry.scenario === "D" ? 5 : 3,
    ...entry,
    names: entry.names.filter((name) => wanted.includes(name))
  }))

const samples = await race({ script: "measure.mjs", plan, effort: options.quick ? 0.3 : 1 })
const { deep = {}, ours = {} } = samples
if (deep.A10 && deep.A500) {
  deep.growth = deep.A500.map((sample, index) => ({ value: sample.value / deep.A10[index].value }))
}
samples.stack = Object.fromEntries(
  ["A10", "A100", "A500", "F"].map((scenario) => [
    scenario,
    (deep[scenario] ?? []).map((sample, index) => ({ value: sample.value - ours[scenario]?.[index]?.value }))
  ])
)

/** Rows of parts, as racers. */
const partsTable = () => {
  const list = (deep.parts ?? []).flatMap((sample) => (sample.parts === undefined ? [] : [sample.parts]))
  const rows = Object.keys(list[0] ?? {}).map((part) => [part, part])
  const byPart = Object.fromEntries(rows.map(([part]) => [part, { parts: list.map((parts) => parts[part]) }]))
  const titles = ["µs a round", "kB of garbage a round", "kB of an agent that waits"]
  const columns = titles.map((title, index) => ({ title, scenario: "parts", read: (costs) => costs[index] }))
  return racersTable(byPart, rows, { title: "What each part of the stack adds, by leaving it out", columns })
}

const packages = ["effect", "ai", "deepagents", "langchain", "@langchain/langgraph"]
const text = report(samples, packages, [
  ...tables.flatMap((one) => racersTable(samples, Object.entries(titles), one)),
  ...partsTable(),
  ...budgetTable(samples, budgets)
])
console.log(text)
if (isWhole && process.exitCode === undefined) writeDocs("performance-deep.md", text)
