import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, type ChatModel, Message, Tool, ToolContext } from "effect-deepagents"
import { BackgroundSubagents, BackgroundTasks, Budget, Subagents } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { isFull } from "../scale.ts"

interface Tree {
  readonly cap: number
  readonly depth: number
  readonly widths: ReadonlyArray<number>
  readonly kinds: ReadonlyArray<string>
}

const trees: fc.Arbitrary<Tree> = fc.record({
  cap: fc.integer({ min: 1, max: 10 }),
  depth: fc.integer({ min: 1, max: 2 }),
  widths: fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 4 }),
  kinds: fc.array(fc.constantFrom("task", "start_task", "script"), { minLength: 1, maxLength: 4 })
})

/** A script: it calls another tool of the run. */
const script = Tool.make("script", {
  description: "",
  parameters: { description: Schema.String, subagent_type: Schema.String },
  execute: Effect.fnUntraced(function* (args) {
    const { call } = yield* ToolContext.ToolContext
    yield* Effect.ignore(call("task", args))
    return "ok"
  })
})

type Spawning = Agent.Agent<string, unknown, ChatModel.ChatModel | BackgroundTasks.BackgroundTasks>

const agentOf = (depth: number): Spawning => {
  const agents = depth === 0 ? [] : [agentOf(depth - 1)]
  return Agent.make({
    name: `level${depth}`,
    description: "spawns",
    prompt: "",
    tools: depth === 0 ? [] : [script],
    middleware: depth === 0 ? [] : [Subagents.make({ agents }), BackgroundSubagents.make({ agents })]
  })
}

/** Runs a tree with a model that spawns as long as it is let; gives its calls, and how many agents were ever open. */
const spend = Effect.fnUntraced(function* ({ cap, depth, kinds, widths }: Tree) {
  let calls = 0
  let openAtCap = 0
  const opened = new Set<string>()
  const model = TestChatModel.reactive(({ messages, tools }) => {
    calls++
    const [first] = messages
    // An agent is recognised by its first message.
    const own = first === undefined ? "" : Message.text(first)
    if (calls <= cap) opened.add(own)
    if (calls === cap) openAtCap = opened.size
    const target = /level\d/.exec(tools.find(({ name }) => name === "task")?.description ?? "")?.[0]
    if (target === undefined) return "done"
    const width = widths[calls % widths.length] ?? 1
    return TestChatModel.calls(
      Array.from({ length: width }, (_, index) => ({
        name: kinds[(calls + index) % kinds.length] ?? "task",
        arguments: { description: `${calls}.${index}`, subagent_type: target }
      }))
    )
  })
  const lead = Agent.around(agentOf(depth), Budget.make({ rounds: cap, onExhausted: "finalAnswer" }))
  const work = Effect.gen(function* () {
    yield* Effect.exit(Agent.run(lead, "go"))
    // Background tasks come to their ends, too.
    const tasks = yield* BackgroundTasks.BackgroundTasks
    for (let turn = 0; turn < 200; turn++) {
      if ((yield* tasks.list()).every(({ status }) => status !== "running")) break
      yield* Effect.yieldNow
    }
  })
  yield* Effect.provide(work, [model, BackgroundTasks.layer()])
  return { calls, openAtCap }
})

describe("Budget over trees", () => {
  it.live(
    "whatever is spawned, by sub-agents, in the background and by scripts: no more calls than the cap, and the answers of those that were open",
    () => {
      const property = fc.asyncProperty(trees, async (tree) => {
        const { calls, openAtCap } = await Effect.runPromise(spend(tree))
        assert.isAtMost(calls, tree.cap + openAtCap)
      })
      return Effect.promise(() => fc.assert(property, { numRuns: isFull ? 2_000 : 150 }))
    },
    900_000
  )
})
