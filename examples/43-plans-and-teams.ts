/**
 * Leads agents in three ways: a plan whose rest is made anew when a step fails, a supervisor who sends work back, and
 * steps that wait for each other.
 */
import assert from "node:assert/strict"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect } from "effect"
import { Agent, Message } from "effect-deepagents"
import { Pipeline, Plan, Supervisor } from "effect-deepagents/patterns"
import { TestChatModel } from "effect-deepagents/testing"

const builder = Agent.make({ name: "builder", description: "Builds", prompt: "You build." })
const tester = Agent.make({ name: "tester", description: "Tests", prompt: "You test." })

const planned = Plan.make({
  worker: builder,
  when: Plan.autoPlan,
  check: (step) => Effect.succeed(step.includes("paper") ? "paper gets wet" : undefined)
})

const office = Supervisor.make({ workers: [builder, tester] })

const release = Pipeline.make({
  name: "release",
  steps: {
    build: { agent: builder, ask: (_, version) => `Build ${version}` },
    unit: { agent: tester, after: ["build"], ask: ({ build }) => `Unit tests of: ${build}` },
    load: { agent: tester, after: ["build"], ask: ({ build }) => `Load tests of: ${build}` },
    notes: { agent: builder, after: ["unit", "load"], ask: ({ load, unit }) => `Notes: ${unit}; ${load}` }
  }
})

const task = (worker: string, what: string, revises = 0) => ({ worker, task: what, revises })
const orders = [
  { tasks: [task("builder", "a door"), task("tester", "the old door")], answer: "" },
  { tasks: [task("builder", "a wider door", 1)], answer: "" },
  { tasks: [], answer: "The door is wide enough." }
]

const model = TestChatModel.reactive(({ messages, systemPrompt }) => {
  const turn = messages.filter(({ role }) => role === "ai").length
  if (systemPrompt.startsWith("You divide")) {
    return JSON.stringify({ steps: turn === 0 ? ["draw a boat", "fold it of paper", "swim"] : ["build it of wood"] })
  }
  if (systemPrompt.startsWith("You lead")) return JSON.stringify(orders[turn])
  const last = messages.at(-1)
  return `done: ${last === undefined ? "" : (Message.text(last).split("\n").at(-1) ?? "")}`
})

const program = Effect.gen(function* () {
  const boat = yield* Agent.run(planned, "Build a boat")
  for (const { isDone, step } of boat.output.steps) yield* Console.log(`${isDone ? "done  " : "failed"} ${step}`)
  assert.deepEqual([boat.output.status, boat.output.plans], ["completed", 2])

  const door = yield* Agent.run(office, "We need a door")
  yield* Console.log(`${door.output.text} (${door.output.delegations} delegations)`)
  assert.equal(door.output.delegations, 3)

  const { output } = yield* Agent.run(release, "2.0")
  yield* Console.log(output["notes"]?.text)
  assert.deepEqual(
    Object.values(output).map(({ status }) => status),
    ["done", "done", "done", "done"]
  )
})

NodeRuntime.runMain(program.pipe(Effect.provide(model)))
