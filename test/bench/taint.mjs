// Measures what Taint costs a call: the same run with it and without it, interleaved.
//   npm run bench:taint
// Calls come in untrusted and are let through: each is gated, and marks the conversation.
// Then what a file costs that a marked run writes, and reads, where one file is labelled and where 1,500 are.
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as FilesystemBackend from "../../src/backends/FilesystemBackend.ts"
import { Agent, Backend, Tool } from "../../src/index.ts"
import { Taint } from "../../src/middleware/index.ts"
import { TestChatModel } from "../../src/testing/index.ts"

const budget = 10
const repeats = 41
const warmUp = 10
const rounds = 50
const width = 8

const read = Tool.make("read_page", {
  description: "Reads a page",
  parameters: { page: Schema.Int },
  annotations: { openWorld: true, readOnly: true },
  execute: ({ page }) => Effect.succeed(`page ${page}`)
})

// Lists as an application has them: whatever tool is called, they are looked through.
const others = Array.from({ length: 10 }, (_, index) =>
  Tool.make(`tool_${index}`, { description: "Does something", parameters: {}, execute: () => Effect.succeed("done") })
)
const names = others.map(({ name }) => name)

const make = (middleware) =>
  Agent.make({ name: "reader", prompt: "", tools: [read, ...others], middleware, maxIterations: rounds + 1 })

const agents = {
  without: make([]),
  with: make([
    Taint.make({
      untrusted: names,
      trusted: names,
      acts: names,
      harmless: names,
      secrets: { read_page: ["pages"] },
      clearance: { read_page: ["pages"] }
    })
  ])
}

const turns = [
  ...Array.from({ length: rounds }, (_, round) =>
    TestChatModel.calls(
      Array.from({ length: width }, (_, call) => ({ name: "read_page", arguments: { page: round * width + call } }))
    )
  ),
  "done"
]

/** Microseconds of processor time a call, all threads; a busy machine makes no difference. */
const timed = (agent) =>
  Effect.gen(function* () {
    const begin = process.cpuUsage()
    yield* Agent.run(agent, "go")
    const { system, user } = process.cpuUsage(begin)
    return (system + user) / (rounds * width)
  }).pipe(Effect.provide(TestChatModel.script(turns)))

const median = (values) => values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)]

const program = Effect.gen(function* () {
  const costs = { without: [], with: [] }
  for (let repeat = 0; repeat < repeats + warmUp; repeat++) {
    const one = yield* timed(agents.without)
    const other = yield* timed(agents.with)
    if (repeat < warmUp) continue
    costs.without.push(one)
    costs.with.push(other)
  }
  const differences = costs.with.map((cost, index) => cost - costs.without[index])
  const cost = median(differences)
  const told = [median(costs.without), median(costs.with), cost].map((value) => value.toFixed(1))
  console.log(
    `${rounds} rounds of ${width} calls, medians of ${repeats} interleaved runs, µs of processor time a call:`
  )
  console.log(`without ${told[0]}, with Taint ${told[1]}; it costs ${told[2]} (budget ${budget})`)
  if (cost > budget) process.exitCode = 1
})

const manyFiles = 1500
const mostGrowth = 1.2

/** Runs work inside of a marked run. */
const marked = (work) => {
  const tool = Tool.make("work", {
    description: "Works",
    parameters: {},
    execute: () => Effect.as(Effect.andThen(Taint.bringIn("page"), Effect.orDie(work)), "done")
  })
  const agent = Agent.make({ name: "writer", prompt: "", tools: [tool], middleware: [Taint.make()] })
  const model = TestChatModel.script([TestChatModel.calls([{ name: "work" }]), "done"])
  return Effect.provide(Agent.run(agent, "go"), model)
}

/** The files of a new folder, with labels. */
const filesOf = Effect.gen(function* () {
  const root = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "taint-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  )
  const layer = Taint.layer.pipe(Layer.provide(FilesystemBackend.layer({ root })), Layer.provide(NodeServices.layer))
  return Context.get(yield* Layer.build(Layer.fresh(layer)), Backend.Backend)
})

/** Milliseconds of processor time a call, over a batch. */
const batch = (one) =>
  Effect.gen(function* () {
    const begin = process.cpuUsage()
    for (let index = 0; index < 20; index++) yield* one(index)
    const { system, user } = process.cpuUsage(begin)
    return (system + user) / 20_000
  })

/** How many times as much a write and a read cost with many labels as with few, in new folders. */
const growths = Effect.gen(function* () {
  const few = yield* filesOf
  const many = yield* filesOf
  for (let index = 0; index < manyFiles; index++) yield* many.write(`/notes/more${index}`, "text")
  yield* few.write("/notes/more0", "text")
  const works = [
    (files, round) => (index) => files.write(`/notes/new${round}-${index}`, "text"),
    (files) => () => files.read("/notes/more0")
  ]
  return yield* Effect.forEach(works, (work) =>
    Effect.gen(function* () {
      const costs = { few: [], many: [] }
      for (let round = 0; round < 25; round++) {
        const one = yield* batch(work(few, round))
        const other = yield* batch(work(many, round))
        if (round < 5) continue
        costs.few.push(one)
        costs.many.push(other)
      }
      return median(costs.many) / median(costs.few)
    })
  )
}).pipe(Effect.scoped)

const filesProgram = Effect.gen(function* () {
  const all = []
  const measure = Effect.gen(function* () {
    for (let trial = 0; trial < 5; trial++) all.push(yield* growths)
  })
  yield* marked(measure)
  for (const [index, what] of ["write", "read"].entries()) {
    const growth = median(all.map((trial) => trial[index]))
    console.log(
      `a ${what} of a labelled file costs ${growth.toFixed(2)} times as much with ${manyFiles} labels more (median of ${all.length} trials, budget ${mostGrowth})`
    )
    if (growth > mostGrowth) process.exitCode = 1
  }
})

await Effect.runPromise(Effect.andThen(program, filesProgram))
