/** Workflows under review: no agent begins before a person has seen its prompt, and none after a denial. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent, Approval, Json } from "effect-deepagents"
import { Workflow } from "effect-deepagents/code"
import * as NodeScripts from "effect-deepagents/code/NodeScripts"
import * as fc from "fast-check"
import * as journal from "../core/journal.ts"
import { scaled } from "../scale.ts"
import { inThread, makeWorld, modelOf, rounds, stoppedBy, twice, workerOf, type World } from "./workflows.ts"

/** The prompts that a request shows. */
const shownIn = ({ arguments: { effects } }: Approval.Request): ReadonlyArray<string> =>
  Array.isArray(effects)
    ? effects.flatMap((one) => {
        const args = Json.isObject(one) ? one["arguments"] : undefined
        return Json.isObject(args) && typeof args["prompt"] === "string" ? [args["prompt"]] : []
      })
    : []

/** The tasks that agents have begun. */
const begunIn = ({ turns }: World): ReadonlyArray<string> =>
  turns.filter((turn) => turn.endsWith("#0")).map((turn) => turn.slice(0, -2))

/** Runs an input under review to its end. `decide` gives the decision on each part. */
const runReviewed = (
  world: World,
  stored: journal.Stored,
  input: Workflow.Input,
  decide: (request: Approval.Request) => boolean,
  refuse?: Parameters<typeof modelOf>[1]
) => {
  const workflow = Workflow.make({ agents: [workerOf(world)], review: true })
  return Effect.gen(function* () {
    let result = yield* Agent.run(workflow, workflow.input(input), inThread)
    while (result.stopReason === "suspended") {
      const decisions = result.pending.map((one) => (decide(one) ? Approval.approve(one) : Approval.reject(one)))
      result = yield* Agent.resume(workflow, { ...inThread, decisions })
    }
    return result
  }).pipe(Effect.provide(Layer.merge(modelOf(world, refuse), journal.layer({ t: stored }))))
}

const script = `
  phase("Read")
  const found = await parallel(["a", "b"].map((task) => () => agent(task, { label: task })))
  phase("Verify")
  return await agent("verify " + found.join(", "))`

layer(NodeScripts.layer({ warm: 2 }))("a workflow under review", (it) => {
  it.effect("shows the prompts of its agents before they begin, part by part", () =>
    Effect.gen(function* () {
      const world = makeWorld()
      const seen: Array<readonly [ReadonlyArray<string>, ReadonlyArray<string>]> = []
      const descriptions: Array<string> = []
      const { output } = yield* runReviewed(world, journal.stored(), { script }, (request) => {
        seen.push([shownIn(request), begunIn(world)])
        descriptions.push(request.description)
        return true
      })
      assert.deepStrictEqual(seen, [
        [["a", "b"], []],
        [["verify said a, said b"], ["a", "b"]]
      ])
      assert.match(descriptions[0] ?? "", /these 2 things[^]*to do: a [^]*to do: b [^]*own rules[^]*What follows/)
      assert.deepStrictEqual(output, { value: "said verify said a, said b", agents: 3, replayed: 2 })
      assert.deepStrictEqual(twice(world.turns), [])
    })
  )

  it.effect("begins nothing when it is denied, and asks again when it gets the input again", () =>
    Effect.gen(function* () {
      const world = makeWorld()
      const stored = journal.stored()
      const error = yield* stoppedBy(runReviewed(world, stored, { script }, () => false))
      assert.strictEqual(error.reason, "Rejected")
      assert.deepStrictEqual([error.finished, error.inFlight, world.turns], [0, [], []])
      let asked = 0
      const second = yield* stoppedBy(runReviewed(world, stored, { script }, () => ++asked === 1))
      assert.strictEqual(second.reason, "Rejected")
      assert.deepStrictEqual([asked, begunIn(world)], [2, ["a", "b"]])
      const { output } = yield* runReviewed(world, stored, { script }, (request) => {
        asked++
        return shownIn(request).length === 1
      })
      // What was approved, and done, is not asked about again.
      assert.strictEqual(asked, 3)
      assert.deepStrictEqual(output?.agents, 3)
      assert.deepStrictEqual(twice(world.turns), [])
    })
  )

  it.effect("asks about the additions of an edit, and repeats nothing", () =>
    Effect.gen(function* () {
      const world = makeWorld()
      const stored = journal.stored()
      yield* runReviewed(world, stored, { script }, () => true)
      const shown: Array<ReadonlyArray<string>> = []
      const edited = script.replace("return await", `await agent("c"); return await`)
      const { output } = yield* runReviewed(world, stored, { script: edited }, (request) => {
        shown.push(shownIn(request))
        return true
      })
      assert.deepStrictEqual(
        shown.flat().filter((prompt) => prompt === "c"),
        ["c"]
      )
      assert.deepStrictEqual(output, { value: "said verify said a, said b", agents: 4, replayed: 4 })
      assert.deepStrictEqual(twice(world.turns), [])
    })
  )

  it.effect("stops at its limits and at a terminal failure, as without review", () =>
    Effect.gen(function* () {
      const world = makeWorld()
      const stored = journal.stored()
      const limit = yield* stoppedBy(runReviewed(world, stored, { script, limits: { agents: 1 } }, () => true))
      assert.deepStrictEqual([limit.reason, limit.finished, limit.notBegun], ["Limit", 1, 1])
      const quota = yield* stoppedBy(
        runReviewed(
          world,
          stored,
          { script },
          () => true,
          (_, task) => (task === "b" ? { _tag: "QuotaExhausted" } : undefined)
        )
      )
      assert.deepStrictEqual([quota.reason, world.refused.length], ["Terminal", 1])
      const { output } = yield* runReviewed(world, stored, { script }, () => true)
      assert.strictEqual(output?.agents, 3)
      assert.deepStrictEqual(twice(world.turns), [])
      assert.strictEqual(world.turns.length, 3 * rounds)
    })
  )

  it.effect("begins only calls that were shown since the last look, for any script and decisions", () =>
    Effect.gen(function* () {
      const statement: fc.Arbitrary<string> = fc.oneof(
        fc.constantFrom("a", "b", "c").map((task) => `s += (await agent("${task}" + s.length)).length`),
        fc
          .integer({ min: 1, max: 3 })
          .map(
            (n) =>
              `s += (await parallel(Array.from({ length: ${n} }, (_, at) => () => agent("p" + at + s.length)))).join("").length`
          ),
        fc.constant(
          `s += (await pipeline(["x", "y"], (item) => agent(item + s.length), (said) => agent("then " + said))).join("").length`
        ),
        fc.constant(`if (s.length % 2 === 0) s += await agent("even")`)
      )
      const bodies = fc.sample(fc.array(statement, { minLength: 1, maxLength: 3 }), { seed: 3, numRuns: scaled(80) })
      let parts = 0
      for (const [at, body] of bodies.entries()) {
        const source = `let s = ""; ${body.join("\n")}\nreturn s.length`
        const world = makeWorld()
        let before: ReadonlyArray<string> = []
        let shown: ReadonlyArray<string> = []
        const check = () => {
          const begun = begunIn(world)
          assert.deepStrictEqual(begun.slice(before.length).toSorted(), shown.toSorted(), source)
          before = begun
        }
        const run = runReviewed(world, journal.stored(), { script: source }, (request) => {
          check()
          const isApproved = (at + ++parts) % 5 !== 0
          shown = isApproved ? shownIn(request) : []
          return isApproved
        })
        yield* Effect.catch(run, (error) => stoppedBy(Effect.fail(error)))
        check()
      }
      assert.isAbove(parts, bodies.length)
    })
  )
})
