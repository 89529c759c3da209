// Measures what threads cost, with each store, beside LangGraph's checkpointers in the same interleaved run, and writes
// ../../docs/performance-sessions.md:
//   npm run bench:sessions [-- --quick] [--only none,memory,sqlite] [--scenario L,many]
// Every measurement is a process of its own. With an option the tables only go to the terminal.
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Effect from "effect/Effect"
import { postgres } from "../servers/postgres.ts"
import { redis } from "../servers/redis.ts"
import { budgetTable, race, racersTable, report, writeDocs } from "./report.mjs"

const titles = {
  none: "_ours, no thread_",
  memory: "**ours, memory**",
  sqlite: "**ours, SQLite**",
  "sqlite-full": "**ours, SQLite, `full`**",
  jsonl: "**ours, JSON lines**",
  postgres: "**ours, Postgres**",
  redis: "**ours, Redis**",
  "lg-none": "_LangGraph, no thread_",
  "lg-memory": "LangGraph, `MemorySaver`",
  "lg-sqlite": "LangGraph, `SqliteSaver`"
}

const value = (sample) => sample.value
const lengths = [10, 100, 1_000, 10_000]
const tables = [
  {
    title: "Microseconds a round, by the messages that the thread has",
    columns: [
      ...lengths.map((length) => ({
        title: length.toLocaleString("en-US"),
        scenario: `L${length}`,
        read: value,
        ratio: "none"
      })),
      { title: "growth, 10,000 ÷ 10", scenario: "growth", read: value }
    ]
  },
  {
    title: "Bytes a round on the disk, by the messages that the thread has",
    columns: lengths.map((length) => ({
      title: length.toLocaleString("en-US"),
      scenario: `L${length}`,
      read: ({ bytes }) => (bytes > 0 ? bytes : Number.NaN)
    }))
  },
  {
    title: "A thread of 10,000 messages",
    columns: [
      { title: "ms to load it", scenario: "long", read: value },
      { title: "ms from a run's begin to the model", scenario: "long", read: ({ cold }) => cold },
      { title: "… after an earlier read or write", scenario: "L10000", read: ({ first }) => first },
      { title: "ms to fork it", scenario: "long", read: ({ fork }) => fork },
      { title: "… ÷ a fork of 10 messages", scenario: "long", read: ({ growth }) => growth }
    ]
  },
  {
    title: "Parts of an answer stored while it is streamed ÷ not, processor time",
    columns: [
      { title: "200,000 chunks, as fast as it can be", scenario: "parts", read: value },
      { title: "20 answers of 100 chunks a second", scenario: "parts", read: ({ paced }) => paced }
    ]
  },
  {
    title: "1,000 threads at once, on one file or server",
    columns: [
      { title: "wall ÷ ideal", scenario: "many", read: value, ratio: "none" },
      { title: "rounds a second", scenario: "many", read: ({ perSecond }) => perSecond },
      { title: "peak RSS, MB", scenario: "many", read: ({ memory }) => memory }
    ]
  }
]

const own = ["memory", "sqlite", "sqlite-full", "jsonl", "postgres", "redis"]
const budgets = [
  ...["memory", "sqlite"].map((name) => ({
    what: `${name}: streaming with parts ÷ without`,
    name,
    scenario: "parts",
    read: value,
    most: 1.05
  })),
  ...[10, 10_000].flatMap((length) => [
    { what: `memory: µs a round, ${length} messages`, name: "memory", scenario: `L${length}`, read: value, most: 90 },
    { what: `SQLite: µs a round, ${length} messages`, name: "sqlite", scenario: `L${length}`, read: value, most: 150 }
  ]),
  ...own.flatMap((name) => [
    { what: `${name}: growth from 10 to 10,000 messages`, name, scenario: "growth", read: value, most: 1.15 },
    { what: `${name}: fork of 10,000 ÷ fork of 10`, name, scenario: "long", read: ({ growth }) => growth, most: 2 }
  ])
]

const { values: options } = parseArgs({
  options: { only: { type: "string" }, scenario: { type: "string" }, quick: { type: "boolean", default: false } }
})
const isWhole = options.only === undefined && options.scenario === undefined && !options.quick

const wanted = options.only?.split(",") ?? Object.keys(titles)

/** Without a store there is nothing to load; LangGraph copies no threads and stores no file without one. */
const entrants = {
  long: wanted.filter((name) => !name.endsWith("none")),
  // It would be a measurement of the disk's sync alone.
  many: wanted.filter((name) => name !== "sqlite-full"),
  parts: wanted.filter((name) => own.includes(name))
}
const plan = [...lengths.map((length) => `L${length}`), "long", "many", "parts"]
  .filter((scenario) => options.scenario?.split(",").some((prefix) => scenario.startsWith(prefix)) ?? true)
  .map((scenario) => ({ scenario, names: entrants[scenario] ?? wanted, times: options.quick ? 1 : 3 }))

const measured = Effect.gen(function* () {
  const env = {
    ...(wanted.includes("postgres") ? { POSTGRES_URL: yield* postgres } : {}),
    ...(wanted.includes("redis") ? { REDIS_URL: yield* redis } : {})
  }
  return yield* Effect.promise((signal) =>
    race({
      script: "sessions-measure.mjs",
      flags: ["--expose-gc"],
      plan,
      effort: options.quick ? 0.3 : 1,
      env,
      signal,
      timeout: 600_000
    })
  )
})
const reported = (samples) => {
  for (const of of Object.values(samples)) {
    if (of.L10 && of.L10000) {
      of.growth = of.L10000.map((sample, index) => ({ value: sample.value / of.L10[index].value }))
    }
  }

  const packages = ["effect", "langchain", "@langchain/langgraph", "@langchain/langgraph-checkpoint-sqlite"]
  const text = report(samples, packages, [
    ...tables.flatMap((one) => racersTable(samples, Object.entries(titles), one)),
    ...budgetTable(samples, budgets)
  ])
  console.log(text)
  if (isWhole && process.exitCode === undefined) writeDocs("performance-sessions.md", text)
}

// Ended early, it ends the servers, too.
NodeRuntime.runMain(Effect.map(Effect.scoped(measured), reported))
