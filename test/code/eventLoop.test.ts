/** The host goes on while a hostile script asks, prints and passes as much as it can. */
import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, Tool } from "effect-deepagents"
import { CodeMode } from "effect-deepagents/code"
import * as NodeScripts from "effect-deepagents/code/NodeScripts"
import { TestChatModel } from "effect-deepagents/testing"
import { threadTime } from "../spent.ts"

/** The longest time, in milliseconds, that the host may work for a script without a turn of its event loop. */
const longest = 50

/**
 * Runs work, and measures the longest time that this thread computed between two turns of the event loop. Unlike the delay
 * of the loop, it does not count the work of other programs.
 */
const withLongest = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    let most = 0
    let isOn = true
    let last = threadTime()
    const turn = () => {
      most = Math.max(most, threadTime() - last)
      last = threadTime()
      if (isOn) setImmediate(turn)
    }
    setImmediate(turn)
    const value = yield* Effect.ensuring(
      work,
      Effect.sync(() => {
        isOn = false
      })
    )
    return { value, most }
  })

const add = Tool.make("add", {
  description: "Adds",
  parameters: { n: Schema.Finite },
  execute: ({ n }) => Effect.succeed(String(n)),
  annotations: { readOnly: true }
})

/** The answer of the tool that runs a script. */
const run = (script: string) => {
  let answer = ""
  const agent = Agent.make({
    name: "coder",
    prompt: "",
    tools: [add],
    middleware: [CodeMode.make({ limits: { calls: 100_000, time: "1 minute" } })]
  })
  const model = TestChatModel.reactive(({ messages }) => {
    const result = messages.find(({ role }) => role === "tool")
    answer = JSON.stringify(result?.content ?? "")
    return result === undefined ? TestChatModel.calls([{ name: "run_script", arguments: { script } }]) : "end"
  })
  return Effect.map(Effect.provide(Agent.run(agent, "go"), model), () => answer)
}

const scripts = {
  "makes 10,000 calls at once": [
    "const all = await Promise.all(Array.from({ length: 10000 }, (_, n) => tools.add({ n }))); return all.length",
    /10000/
  ],
  "prints 50 MB": ["for (let n = 0; n < 50; n++) text('x'.repeat(1e6))", /more than 2000000 characters/],
  "returns 200,000 objects": ["return Array.from({ length: 200000 }, (_, n) => ({ n }))", /more than 2000000/],
  "passes 600,000 objects": [
    "return await tools.add({ n: 1, more: Array.from({ length: 600000 }, () => ({})) })",
    /more than 100000 values/
  ],
  "passes as many values as it may": [
    "return await tools.add({ n: 1, more: Array.from({ length: 49000 }, (_, n) => ({ n })) })",
    /"1"/
  ]
} as const

it.effect.each(Object.entries(scripts))(
  "is not blocked by a script that %s",
  ([, [script, wanted]]) =>
    Effect.gen(function* () {
      yield* run("return 1")
      let best = Infinity
      // A collection of garbage may fall into a try.
      for (let attempt = 0; attempt < 3 && best > longest; attempt++) {
        const { most, value } = yield* withLongest(run(script))
        assert.match(value, wanted)
        best = Math.min(best, most)
      }
      assert.isAtMost(best, longest)
    }).pipe(Effect.provide(NodeScripts.layer())),
  60_000
)
