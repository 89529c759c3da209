// Measures ours against its peers, interleaved, and writes ../../docs/performance.md and results.json:
//   npm run bench [-- --quick] [--only ours,pi] [--scenario A,F]
// Every measurement is a process of its own. With an option the tables only go to the terminal and to results.json.
import { existsSync, writeFileSync } from "node:fs"
import { parseArgs } from "node:util"
import { budgetTable, race, racersTable, report, writeDocs } from "./report.mjs"

// --- what is measured

const names = ["bare", "effect-core", "ours", "deep", "pi", "ai", "openai-agents", "deepagents"]

const titles = {
  bare: "bare loop",
  "effect-core": "_minimal Effect loop_",
  "effect-modules": "_the Effect modules of ours_",
  "deep-modules": "_the Effect modules of `DeepAgent.make`_",
  ours: "**effect-deepagents**",
  "ours-barrel": '**the same, `import { Effect } from "effect"`**',
  deep: "**effect-deepagents, `DeepAgent.make`**",
  pi: "pi",
  ai: "AI SDK (`ToolLoopAgent`)",
  "openai-agents": "OpenAI Agents",
  deepagents: "LangChain deepagents"
}

const packages = {
  "effect-core": ["effect"],
  pi: ["@earendil-works/pi-agent-core"],
  ai: ["ai"],
  "openai-agents": ["@openai/agents"],
  deepagents: ["deepagents", "langchain", "@langchain/langgraph", "@langchain/core"]
}

/** Who takes part in a scenario; all, where none are named. */
const entrants = {
  B100k: ["bare", "effect-core", "ours", "deep", "pi", "openai-agents"],
  B64: ["bare", "effect-core", "ours", "deep"],
  C10k: ["bare", "effect-core", "ours", "deep", "pi"],
  D: [...names, "ours-barrel", "effect-modules", "deep-modules"]
}

/** Which column shows which scenario, and how. `read` takes a number out of one sample. */
const value = (sample) => sample.value
const best = (sample) => sample.best
const memory = (sample) => sample.memory
const build = (sample) => sample.build
const tables = [
  {
    title: "A, F: microseconds a round",
    columns: [
      { title: "N=10", scenario: "A10", read: value, ratio: "bare" },
      { title: "N=100", scenario: "A100", read: value, ratio: "bare" },
      { title: "N=500", scenario: "A500", read: value, ratio: "bare" },
      { title: "growth, 500 ÷ 10", scenario: "growth", read: value },
      { title: "F: 400 messages before", scenario: "F", read: value, ratio: "bare" }
    ]
  },
  {
    title: "A, F: microseconds a round, the fastest run of a process",
    columns: [
      { title: "N=10", scenario: "A10", read: best, ratio: "effect-core" },
      { title: "N=100", scenario: "A100", read: best, ratio: "effect-core" },
      { title: "N=500", scenario: "A500", read: best, ratio: "effect-core" },
      { title: "F", scenario: "F", read: best, ratio: "effect-core" }
    ]
  },
  {
    title: "B: microseconds a streamed chunk",
    columns: [
      { title: "20,000, one at a time", scenario: "B", read: value, ratio: "bare" },
      { title: "chunks/s", scenario: "B", read: (sample) => 1e6 / sample.value },
      { title: "100,000", scenario: "B100k", read: value, ratio: "bare" },
      { title: "100,000 in arrays of 64", scenario: "B64", read: value, ratio: "bare" }
    ]
  },
  {
    title: "C: many agents at once",
    columns: [
      { title: "C: wall ÷ ideal", scenario: "C", read: value, ratio: "bare" },
      { title: "peak RSS, MB", scenario: "C", read: memory },
      { title: "to build them, ms", scenario: "C", read: build },
      { title: "10,000: wall ÷ ideal", scenario: "C10k", read: value, ratio: "bare" },
      { title: "peak RSS, MB", scenario: "C10k", read: memory },
      { title: "to build them, ms", scenario: "C10k", read: build }
    ]
  },
  {
    title: "D: cold start; E: 50 tools at once",
    columns: [
      { title: "D: ms", scenario: "D", read: value },
      { title: "RSS, MB", scenario: "D", read: memory },
      { title: "E: wall ÷ 20 ms", scenario: "E", read: value }
    ]
  }
]

/**
 * The budgets of design.md, section 6 (µs and so on), and those of reference/performance.md (ratios). What depends on the
 * machine most, short runs and what many agents hold, is a ratio to the minimal Effect loop or to pi.
 */
const budgets = [
  { what: "A: µs a round, N=10", scenario: "A10", read: value, most: 60 },
  { what: "A: µs a round, N=500", scenario: "A500", read: value, most: 60 },
  { what: "A: growth from N=10 to N=500", scenario: "growth", read: value, most: 1.15 },
  { what: "A: N=10 ÷ pi, the fastest runs", scenario: "A10", read: best, by: "pi", most: 0.9 },
  { what: "A: N=100 ÷ bare loop", scenario: "A100", read: value, by: "bare", most: 12 },
  { what: "A: N=100 ÷ pi", scenario: "A100", read: value, by: "pi", most: 0.7 },
  {
    what: "A, deep agents: N=100 ÷ ours, the fastest runs",
    name: "deep",
    scenario: "A100",
    read: best,
    by: "ours",
    most: 2.5
  },
  { what: "F: µs a round", scenario: "F", read: value, most: 90 },
  { what: "F ÷ pi", scenario: "F", read: value, by: "pi", most: 0.4 },
  { what: "B: chunks/s, one at a time", scenario: "B", read: (sample) => 1e6 / sample.value, least: 500_000 },
  { what: "B: chunks/s, in arrays", scenario: "B64", read: (sample) => 1e6 / sample.value, least: 2_000_000 },
  { what: "B ÷ pi", scenario: "B", read: value, by: "pi", most: 1 },
  { what: "C: wall ÷ pi", scenario: "C", read: value, by: "pi", most: 1 },
  { what: "C: peak RSS ÷ minimal Effect loop", scenario: "C", read: memory, by: "effect-core", most: 1.1 },
  {
    what: "C, 10,000 agents: peak RSS ÷ minimal Effect loop",
    scenario: "C10k",
    read: memory,
    by: "effect-core",
    most: 1.1
  },
  { what: "C, deep agents: wall ÷ pi", name: "deep", scenario: "C", read: value, by: "pi", most: 2.1 },
  {
    what: "C, deep agents: peak RSS ÷ minimal Effect loop",
    name: "deep",
    scenario: "C",
    read: memory,
    by: "effect-core",
    most: 1.5
  },
  { what: "D ÷ the Effect modules it imports", scenario: "D", read: value, by: "effect-modules", most: 1.05 },
  {
    what: "D, deep agents ÷ the Effect modules they import",
    name: "deep",
    scenario: "D",
    read: value,
    by: "deep-modules",
    most: 1.2
  },
  { what: "E: wall ÷ 20 ms", scenario: "E", read: value, most: 1.2 }
]

// --- measuring

const { values: options } = parseArgs({
  options: { only: { type: "string" }, scenario: { type: "string" }, quick: { type: "boolean", default: false } }
})
const isWhole = options.only === undefined && options.scenario === undefined && !options.quick

const wanted = options.only?.split(",") ?? names
const hasOurs = existsSync(new URL("../../dist/index.js", import.meta.url))
if (!hasOurs) console.error("There is no dist/index.js: ours is left out. Run `npm run build` first.")
const isOurs = (name) => name === "ours" || name === "deep"
const peers = names.filter((name) => (name === "bare" || wanted.includes(name)) && (!isOurs(name) || hasOurs))

const besideOurs = ["ours-barrel", "effect-modules", "deep-modules"]
const isRacing = (name) => peers.includes(name) || (besideOurs.includes(name) && peers.includes("ours"))
const plan = ["A10", "A100", "A500", "F", "B", "B100k", "B64", "C", "C10k", "E", "D"]
  .filter((scenario) => options.scenario?.split(",").some((prefix) => scenario.startsWith(prefix)) ?? true)
  .map((scenario) => ({
    scenario,
    names: (entrants[scenario] ?? names).filter(isRacing),
    times: options.quick ? 1 : scenario === "D" ? 5 : 3
  }))

const samples = await race({ script: "measure.mjs", plan, effort: options.quick ? 0.3 : 1 })
for (const of of Object.values(samples)) {
  if (of.A10 && of.A500) of.growth = of.A500.map((sample, index) => ({ value: sample.value / of.A10[index].value }))
}

const racers = [...peers, ...besideOurs].map((name) => [name, titles[name]])
const used = peers.flatMap((name) => packages[name] ?? [])
const text = report(samples, used, [
  ...tables.flatMap((one) => racersTable(samples, racers, one)),
  ...budgetTable(samples, budgets)
])
console.log(text)
writeFileSync(
  new URL("results.json", import.meta.url),
  JSON.stringify({ date: new Date(), node: process.version, samples }, undefined, 2)
)
if (isWhole && process.exitCode === undefined) writeDocs("performance.md", text)
