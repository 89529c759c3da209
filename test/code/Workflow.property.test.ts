/** Workflows that are stopped, killed and edited anywhere: neither work nor money is lost. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Journal } from "effect-deepagents"
import * as NodeScripts from "effect-deepagents/code/NodeScripts"
import * as fc from "fast-check"
import * as journal from "../core/journal.ts"
import { isFull, scaled } from "../scale.ts"
import { asking, makeWorld, rounds, runInput, stoppedBy, tasksOf, twice, type World } from "./workflows.ts"

const answersOf = (tasks: ReadonlyArray<string>) => tasks.map((task) => `said ${task}`)

/** Values of an arbitrary, the same ones each time. */
const samples = <A>(arbitrary: fc.Arbitrary<A>, count: number): ReadonlyArray<A> =>
  fc.sample(arbitrary, { seed: 11, numRuns: scaled(count) })

layer(NodeScripts.layer({ warm: 2 }))("a workflow", (it) => {
  it.effect("makes no model call after a terminal failure, and never completes with one", () =>
    Effect.gen(function* () {
      const tasks = tasksOf(5)
      const script = asking(tasks)
      const terminal = ["QuotaExhausted", "Authentication", "Permission"] as const
      for (let at = 0; at < tasks.length * rounds; at += isFull ? 1 : 6) {
        const world = makeWorld()
        const stored = journal.stored()
        const limits = { concurrency: 4 - (at % 3) }
        const reason = { _tag: terminal[at % 3] ?? "QuotaExhausted" }
        const error = yield* stoppedBy(
          runInput(world, stored, { script, limits }, (turn) => (turn >= at ? reason : undefined))
        )
        const where = `failure at ${at}: ${JSON.stringify(error)}`
        assert.strictEqual(error.reason, "Terminal", where)
        assert.strictEqual(world.refused.length, 1, where)
        assert.strictEqual(world.turns.length, at, where)
        assert.strictEqual(error.finished + error.inFlight.length + error.notBegun, tasks.length, where)
        assert.isAtMost(error.inFlight.length, limits.concurrency, where)
        const { output } = yield* runInput(world, stored, { script })
        assert.deepStrictEqual(output?.value, answersOf(tasks), where)
        assert.deepStrictEqual([twice(world.turns), twice(world.acts)], [[], []], where)
      }
    })
  )

  it.effect("costs at most its limit and what was in flight, over all inputs", () =>
    Effect.gen(function* () {
      const arbitrary = fc.record({
        agents: fc.integer({ min: 1, max: 6 }),
        concurrency: fc.integer({ min: 1, max: 4 }),
        caps: fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 3 })
      })
      for (const { agents, caps, concurrency } of samples(arbitrary, 40)) {
        const world = makeWorld()
        const stored = journal.stored()
        const script = asking(tasksOf(agents))
        let before = 0
        for (const cost of caps) {
          const run = runInput(world, stored, { script, limits: { concurrency, cost } })
          const isDone = yield* Effect.matchEffect(run, {
            onSuccess: () => Effect.succeed(true),
            onFailure: (error) => Effect.as(stoppedBy(Effect.fail(error)), false)
          })
          const most = Math.max(before, cost + concurrency - 1)
          assert.isAtMost(world.turns.length, most, JSON.stringify({ agents, concurrency, cost, before }))
          // It stops for want of money alone.
          assert.isTrue(isDone || world.turns.length >= Math.max(before, cost))
          before = world.turns.length
        }
        yield* runInput(world, stored, { script })
        assert.strictEqual(world.turns.length, agents * rounds)
      }
    })
  )

  it.effect("goes on with a corrected script, wherever the script failed", () =>
    Effect.gen(function* () {
      const ask = (task: string) => `agent(${JSON.stringify(task)})`
      const lines = [
        ["a"],
        ["b", "c", "d"],
        // Equal agents are told apart by their count.
        ["e", "e"],
        ["f"]
      ].map((tasks) => `all.push(...(await Promise.all([${tasks.map(ask).join(", ")}])))`)
      const scriptOf = (failsAt: number) =>
        ["const all = []", ...lines, "return all"].toSpliced(failsAt + 1, 0, "null.x").join("\n")
      for (let at = 0; at <= lines.length; at++) {
        for (let second = at; second <= lines.length; second++) {
          const world = makeWorld()
          const stored = journal.stored()
          for (const failsAt of [at, second]) {
            const error = yield* stoppedBy(runInput(world, stored, { script: `// ${failsAt}\n${scriptOf(failsAt)}` }))
            assert.strictEqual(error.reason, "Script")
          }
          const { output } = yield* runInput(world, stored, { script: scriptOf(lines.length + 1) })
          assert.deepStrictEqual(output?.value, answersOf(["a", "b", "c", "d", "e", "e", "f"]))
          const where = `${at}, ${second}`
          assert.strictEqual(world.turns.length, 7 * rounds, where)
          assert.strictEqual(world.acts.length, 7 * (rounds - 1), where)
        }
      }
    })
  )

  it.effect("does nothing twice, wherever it is killed and however its script is edited", () =>
    Effect.gen(function* () {
      const task = fc.constantFrom("a", "b", "c", "d", "e", "f", "g")
      const edit = fc.record({
        tasks: fc.uniqueArray(task, { minLength: 1, maxLength: 7 }),
        verify: fc.boolean(),
        cut: fc.nat(1_000)
      })
      const scriptOf = ({ tasks, verify }: { tasks: ReadonlyArray<string>; verify: boolean }) =>
        verify
          ? `return await pipeline(${JSON.stringify(tasks)}, (task) => agent(task), (found) => agent("verify " + found))`
          : asking(tasks)
      const concurrency = 3
      for (const edits of samples(fc.array(edit, { minLength: 1, maxLength: 4 }), 40)) {
        let world = makeWorld()
        let entries: ReadonlyArray<Journal.Entry> = []
        for (const one of edits) {
          const stored = journal.stored(entries)
          const running = makeWorld(world)
          const cuts: Array<{ readonly entries: ReadonlyArray<Journal.Entry>; readonly world: World }> = []
          stored.onAppend = Effect.sync(() => {
            if (stored.entries.length > entries.length) {
              cuts.push({ entries: [...stored.entries], world: makeWorld(running) })
            }
          })
          yield* runInput(running, stored, { script: scriptOf(one), limits: { concurrency } })
          // The process died there, before the answer was stored: an answer drops what its input did not ask for.
          const at = cuts[one.cut % (cuts.length + 1)]
          if (at === undefined) continue
          entries = at.entries
          world = at.world
        }
        const all = [...new Set(edits.flatMap(({ tasks }) => tasks))]
        const last = makeWorld(world)
        const { output } = yield* runInput(last, journal.stored(entries), {
          script: scriptOf({ tasks: all, verify: true })
        })
        assert.deepStrictEqual(output?.value, answersOf(all.map((one) => `verify said ${one}`)))
        const where = JSON.stringify(edits)
        assert.deepStrictEqual(twice(last.acts), [], where)
        assert.isAtMost(twice(last.turns).length, concurrency * edits.length, where)
      }
    })
  )
})
