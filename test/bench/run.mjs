// Measures ours against its peers, interleaved, and writes ../../docs/performance.md and results.json:
//   npm run bench [-- --quick] [--only ours,pi] [--scenario A,F]
// Every measurement is a process of its own. With an option the tables only go to the terminal and to results.json.
import { execFile } from "node:child_process"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { findPackageJSON } from "node:module"
import { cpus, loadavg, totalmem } from "node:os"
import { fileURLToPath } from "node:url"
import { parseArgs, promisify } from "node:util"
import { median } from "./workloads.mjs"

const here = (path) => fileURLToPath(new URL(path, import.meta.url))

// --- what is measured

const names = ["bare", "effect-core", "ours", "pi", "ai", "openai-agents", "deepagents"]

const titles = {
  bare: "bare loop",
  "effect-core": "_minimal Effect loop_",
  "effect-modules": "_the Effect modules of ours_",
  ours: "**effect-deepagents**",
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
  B100k: ["bare", "effect-core", "ours", "pi", "openai-agents"],
  B64: ["bare", "effect-core", "ours"],
  D: [...names, "effect-modules"]
}

/** Which column shows which scenario, and how. `read` takes a number out of one sample. */
const value = (sample) => sample.value
const memory = (sample) => sample.memory
const build = (sample) => sample.build
const tables = [
  {
    title: "A, F: microseconds a round",
    columns: [
      { title: "N=10", scenario: "A10", read: value, hasRatio: true },
      { title: "N=100", scenario: "A100", read: value, hasRatio: true },
      { title: "N=500", scenario: "A500", read: value, hasRatio: true },
      { title: "growth, 500 ÷ 10", scenario: "growth", read: value },
      { title: "F: 2,000 messages before", scenario: "F", read: value, hasRatio: true }
    ]
  },
  {
    title: "B: microseconds a streamed chunk",
    columns: [
      { title: "20,000, one at a time", scenario: "B", read: value, hasRatio: true },
      { title: "chunks/s", scenario: "B", read: (sample) => 1e6 / sample.value },
      { title: "100,000", scenario: "B100k", read: value, hasRatio: true },
      { title: "100,000 in arrays of 64", scenario: "B64", read: value, hasRatio: true }
    ]
  },
  {
    title: "C: 1,000 agents at once; D: cold start; E: 50 tools at once",
    columns: [
      { title: "C: wall ÷ ideal", scenario: "C", read: value, hasRatio: true },
      { title: "peak RSS, MB", scenario: "C", read: memory },
      { title: "to build them, ms", scenario: "C", read: build },
      { title: "D: ms", scenario: "D", read: value },
      { title: "RSS, MB", scenario: "D", read: memory },
      { title: "E: wall ÷ 20 ms", scenario: "E", read: value }
    ]
  }
]

/** The budgets of design.md, section 6 (µs, MB and so on), and those of reference/performance.md (ratios). */
const budgets = [
  { what: "A: µs a round, N=10", scenario: "A10", read: value, most: 60 },
  { what: "A: µs a round, N=500", scenario: "A500", read: value, most: 60 },
  { what: "A: growth from N=10 to N=500", scenario: "growth", read: value, most: 1.15 },
  { what: "A: N=100 ÷ bare loop", scenario: "A100", read: value, by: "bare", most: 12 },
  { what: "A: N=100 ÷ pi", scenario: "A100", read: value, by: "pi", most: 0.7 },
  { what: "F: µs a round", scenario: "F", read: value, most: 90 },
  { what: "F ÷ pi", scenario: "F", read: value, by: "pi", most: 0.4 },
  { what: "B: chunks/s, one at a time", scenario: "B", read: (sample) => 1e6 / sample.value, least: 500_000 },
  { what: "B: chunks/s, in arrays", scenario: "B64", read: (sample) => 1e6 / sample.value, least: 2_000_000 },
  { what: "B ÷ pi", scenario: "B", read: value, by: "pi", most: 1 },
  { what: "C: wall ÷ ideal", scenario: "C", read: value, most: 4.5 },
  { what: "C: peak RSS, MB", scenario: "C", read: memory, most: 300 },
  { what: "D ÷ the Effect modules it imports", scenario: "D", read: value, by: "effect-modules", most: 1.15 },
  { what: "E: wall ÷ 20 ms", scenario: "E", read: value, most: 1.2 }
]

// --- measuring

const { values: options } = parseArgs({
  options: { only: { type: "string" }, scenario: { type: "string" }, quick: { type: "boolean", default: false } }
})
const isWhole = options.only === undefined && options.scenario === undefined && !options.quick

const wanted = options.only?.split(",") ?? names
const hasOurs = existsSync(here("../../dist/index.js"))
if (!hasOurs) console.error("There is no dist/index.js: ours is left out. Run `npm run build` first.")
const peers = names.filter((name) => (name === "bare" || wanted.includes(name)) && (name !== "ours" || hasOurs))

const scenarios = ["A10", "A100", "A500", "F", "B", "B100k", "B64", "C", "E", "D"].filter(
  (scenario) => options.scenario?.split(",").some((prefix) => scenario.startsWith(prefix)) ?? true
)

const run = promisify(execFile)
// No key and no tracing, whatever the shell has.
const env = { PATH: process.env.PATH, HOME: process.env.HOME, NODE_ENV: "production" }

const measure = async (name, scenario) => {
  const args = [here("measure.mjs"), name, scenario, options.quick ? "0.3" : "1"]
  try {
    const { stdout } = await run(process.execPath, args, { env, timeout: 300_000, cwd: here(".") })
    return JSON.parse(stdout.trimEnd().split("\n").at(-1))
  } catch (error) {
    process.exitCode = 1
    return {
      error: String(error.stderr ?? error)
        .trim()
        .slice(-600)
    }
  }
}

/** samples[peer][scenario] is a list with one sample a repetition. */
const samples = Object.fromEntries([...peers, "effect-modules"].map((name) => [name, {}]))

const measureAll = async () => {
  const repetitions = options.quick ? 1 : 5
  for (let repetition = 0; repetition < repetitions; repetition++) {
    for (const scenario of scenarios) {
      if (repetition >= 3 && scenario !== "D") continue
      const racers = (entrants[scenario] ?? names).filter(
        (name) => peers.includes(name) || (name === "effect-modules" && peers.includes("ours"))
      )
      for (const name of racers) {
        const sample = await measure(name, scenario)
        const list = (samples[name][scenario] ??= [])
        list.push(sample)
        console.error(
          `${repetition + 1}  ${scenario.padEnd(6)} ${name.padEnd(15)} ${sample.error ?? show(sample.value)}`
        )
      }
    }
  }
  for (const of of Object.values(samples)) {
    if (of.A10 && of.A500) of.growth = of.A500.map((sample, index) => ({ value: sample.value / of.A10[index].value }))
  }
}

// --- reporting

const show = (number) => {
  if (number >= 1_000_000) return `${(number / 1_000_000).toFixed(1)} M`
  if (number >= 100_000) return `${Math.round(number / 1_000)} k`
  if (number >= 100) return Math.round(number).toLocaleString("en-US")
  return number.toFixed(number >= 10 ? 0 : number >= 1 ? 1 : 2)
}

const medianOf = (name, scenario, read) => {
  const numbers = (samples[name]?.[scenario] ?? []).map(read).filter(Number.isFinite)
  return numbers.length === 0 ? undefined : median(numbers)
}

/** The median of the ratios within each repetition. */
const ratioOf = (name, by, scenario, read) => {
  const others = samples[by]?.[scenario] ?? []
  const ratios = (samples[name]?.[scenario] ?? []).map((sample, index) => read(sample) / read(others[index] ?? {}))
  const numbers = ratios.filter(Number.isFinite)
  return numbers.length === 0 ? undefined : median(numbers)
}

const cell = (name, { scenario, read, hasRatio }) => {
  const number = medianOf(name, scenario, read)
  if (number === undefined) return samples[name]?.[scenario] === undefined ? "" : "failed"
  const ratio = hasRatio && name !== "bare" ? ratioOf(name, "bare", scenario, read) : undefined
  return ratio === undefined ? show(number) : `${show(number)} (${show(ratio)}×)`
}

/** A Markdown table as the formatter leaves it: the first column to the left, the others to the right. */
const table = ([head, ...rows]) => {
  const widths = head.map((_, column) => Math.max(3, ...[head, ...rows].map((row) => row[column].length)))
  const line = (row) =>
    `| ${row.map((text, at) => (at ? text.padStart(widths[at]) : text.padEnd(widths[at]))).join(" | ")} |`
  const rule = widths.map((width, at) => (at ? `${"-".repeat(width - 1)}:` : "-".repeat(width)))
  return [line(head), `| ${rule.join(" | ")} |`, ...rows.map(line)].join("\n")
}

const peerTables = () =>
  tables.flatMap(({ title, columns }) => {
    const shown = columns.filter(({ scenario }) => samples.bare[scenario] !== undefined)
    const rows = [...peers, "effect-modules"]
      .map((name) => [titles[name], ...shown.map((column) => cell(name, column))])
      .filter((row) => row.slice(1).some((text) => text !== ""))
    return rows.length === 0 ? [] : [`### ${title}`, table([["", ...shown.map((column) => column.title)], ...rows])]
  })

const budgetTable = () => {
  const rows = budgets.flatMap(({ what, scenario, read, by, most, least }) => {
    const number = by === undefined ? medianOf("ours", scenario, read) : ratioOf("ours", by, scenario, read)
    if (number === undefined) return []
    const isKept = most === undefined ? number >= least : number <= most
    return [[what, most === undefined ? `≥ ${show(least)}` : `≤ ${most}`, show(number), isKept ? "pass" : "**fail**"]]
  })
  return rows.length === 0 ? [] : ["### Budgets", table([["", "budget", "measured", ""], ...rows])]
}

const versionOf = (name) => JSON.parse(readFileSync(findPackageJSON(name, import.meta.url), "utf8")).version

const versions = () => peers.flatMap((name) => packages[name] ?? []).map((name) => `${name} ${versionOf(name)}`)

const failures = () =>
  Object.entries(samples).flatMap(([name, of]) =>
    Object.entries(of).flatMap(([scenario, list]) =>
      list.flatMap(({ error }) =>
        error === undefined ? [] : [`- ${name}, ${scenario}: \`${error.replaceAll("\n", " ")}\``]
      )
    )
  )

const report = (load) => {
  const machine = `${cpus().length} cores of ${cpus()[0].model}, ${Math.round(totalmem() / 2 ** 30)} GiB`
  const [before, after] = load.map((number) => number.toFixed(1))
  const date = new Date().toISOString().slice(0, 10)
  return [
    `Measured ${date} with node ${process.version} on ${machine} (load ${before} before, ${after} after).`,
    versions().join(", "),
    ...peerTables(),
    ...budgetTable(),
    ...(failures().length > 0 ? ["### Failed", failures().join("\n")] : [])
  ]
    .filter((text) => text !== "")
    .join("\n\n")
}

const [start, end] = ["<!-- bench:start -->", "<!-- bench:end -->"]

const writeDocs = (text) => {
  const file = here("../../docs/performance.md")
  const old = readFileSync(file, "utf8")
  writeFileSync(file, `${old.slice(0, old.indexOf(start))}${start}\n\n${text}\n\n${old.slice(old.indexOf(end))}`)
}

const loadBefore = loadavg()[0]
await measureAll()
const text = report([loadBefore, loadavg()[0]])
console.log(text)
writeFileSync(here("results.json"), JSON.stringify({ date: new Date(), node: process.version, samples }, undefined, 2))
if (isWhole && process.exitCode === undefined) writeDocs(text)
