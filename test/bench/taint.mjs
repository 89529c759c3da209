// Measures what Taint costs a call: the same run with it and without it, interleaved.
//   npm run bench:taint
// Calls come in untrusted and are let through: each is gated, and marks the conversation.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Agent, Tool } from "../../src/index.ts"
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
    Taint.suspending({
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

await Effect.runPromise(program)
