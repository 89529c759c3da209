/** Failures that end a fan-out at once, and failures of one part. Budgets over programs of every shape. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Deferred, Result, Schema } from "effect"
import { Agent, type ChatModel, Message, type ModelError } from "effect-deepagents"
import { Budget } from "effect-deepagents/middleware"
import { Goal, MapReduce, Pipeline, Plan, Supervisor, Team } from "effect-deepagents/patterns"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import * as journal from "../core/journal.ts"
import { reply } from "./scenarios.ts"

const worker = Agent.make({ name: "worker", prompt: "WORK" })

const mapOver = (count: number, concurrency = 8) =>
  MapReduce.make({
    name: "map",
    split: () => Effect.succeed(Array.from({ length: count }, (_, index) => `part ${index}`)),
    map: worker,
    reduce: (found) =>
      Effect.succeed(
        found.map(({ answer, part }) => Result.getOrElse(answer, (text) => `${part}! ${text}`)).join("\n")
      ),
    concurrency
  })

const lastOf = ({ messages }: ChatModel.ModelRequest): string => Message.text(messages.at(-1) ?? Message.human(""))

describe("a failure that all parts share", () => {
  const reasons: ReadonlyArray<ModelError.Reason> = [
    { _tag: "QuotaExhausted" },
    { _tag: "Authentication" },
    { _tag: "Permission" }
  ]
  for (const reason of reasons) {
    it.effect(`ends a map-reduce: ${reason._tag}`, () =>
      Effect.gen(function* () {
        let asked = 0
        const model = TestChatModel.reactive(() => (++asked < 11 ? "found" : TestChatModel.fail(reason)))
        const error = yield* Effect.flip(Agent.run(mapOver(400), "go").pipe(Effect.provide(model)))
        assert.strictEqual(error._tag === "ModelError" && error.reason._tag, reason._tag)
        // The failed call, and the calls in flight beside it.
        assert.isAtMost(asked, 11 + 7)
      })
    )

    it.effect(`ends steps, members, workers and plans: ${reason._tag}`, () =>
      Effect.gen(function* () {
        const patterns: ReadonlyArray<Agent.Agent<unknown, { readonly _tag: string }, ChatModel.ChatModel>> = [
          Team.make({ members: [worker, Agent.make({ name: "other", prompt: "WORK" })], rounds: 30 }),
          Supervisor.make({ workers: [worker] }),
          Plan.make({ worker }),
          Pipeline.make({
            name: "steps",
            concurrency: 1,
            steps: Object.fromEntries(
              Array.from({ length: 20 }, (_, index) => [`s${index}`, { agent: worker, ask: () => `${index}` }] as const)
            )
          })
        ]
        for (const pattern of patterns) {
          let refused = 0
          const model = TestChatModel.reactive((request) =>
            request.systemPrompt === "WORK" ? (refused++, TestChatModel.fail(reason)) : reply(request)
          )
          const error = yield* Effect.flip(Agent.run(pattern, "go").pipe(Effect.provide(model)))
          assert.strictEqual(error._tag, "ModelError", pattern.name)
          assert.strictEqual(refused, 1, pattern.name)
        }
      })
    )
  }

  it.effect("leaves finished parts finished: the resumed run asks about the others alone", () =>
    Effect.gen(function* () {
      const threads: Record<string, journal.Stored> = {}
      let asked = 0
      let isPaid = false
      const model = TestChatModel.reactive((request) => {
        asked++
        return isPaid || asked <= 5 ? `found ${lastOf(request)}` : TestChatModel.fail({ _tag: "QuotaExhausted" })
      })
      const places = Layer.merge(model, journal.layer(threads))
      yield* Effect.flip(Agent.run(mapOver(20, 1), "go", { threadId: "t" }).pipe(Effect.provide(places)))
      assert.strictEqual(asked, 6)
      isPaid = true
      const { output } = yield* Agent.resume(mapOver(20, 1), { threadId: "t" }).pipe(Effect.provide(places))
      assert.strictEqual(asked, 21)
      assert.strictEqual(output.split("\n").length, 20)
    })
  )
})

describe("a model without prices under a limit of cost", () => {
  it.effect("ends a pattern with one problem, and is not asked", () =>
    Effect.gen(function* () {
      let asked = 0
      const model = TestChatModel.reactive(() => `said ${++asked}`)
      const budget = Budget.make({ cost: 1, onExhausted: "finalAnswer" })
      const patterns: ReadonlyArray<Agent.Agent<unknown, { readonly _tag: string }, ChatModel.ChatModel>> = [
        mapOver(40),
        Supervisor.make({ workers: [worker] }),
        Team.make({ members: [worker, Agent.make({ name: "other", prompt: "WORK" })] })
      ]
      for (const pattern of patterns) {
        const error = yield* Effect.flip(Agent.run(Agent.around(pattern, budget), "go").pipe(Effect.provide(model)))
        assert.strictEqual(error._tag === "ModelError" && String(Reflect.get(error, "reason")._tag), "Unpriced")
      }
      assert.strictEqual(asked, 0)
    })
  )
})

describe("the failure of one part", () => {
  it.effect("is the problem of that part", () =>
    Effect.gen(function* () {
      const model = TestChatModel.reactive((request) =>
        lastOf(request) === "part 3" ? TestChatModel.fail({ _tag: "ContentFiltered" }) : "found"
      )
      const { output } = yield* Agent.run(mapOver(10), "go").pipe(Effect.provide(model))
      const lines = output.split("\n")
      assert.strictEqual(lines.filter((line) => line === "found").length, 9)
      assert.match(lines[3] ?? "", /^part 3! .*content filter/)
    })
  )

  it.effect("blocks the steps after it, and no others", () =>
    Effect.gen(function* () {
      const say = (text: string) => () => text
      const pipeline = Pipeline.make({
        name: "p",
        steps: {
          bad: { agent: worker, ask: say("bad") },
          good: { agent: worker, ask: say("good") },
          next: { agent: worker, after: ["bad"], ask: say("next") },
          last: { agent: worker, after: ["next"], ask: say("last") },
          never: { agent: worker, after: ["good"], when: ({ good }) => good !== "did good", ask: say("never") },
          joined: { agent: worker, after: ["good", "never"], ask: ({ good, never }) => `${good}, ${never}` }
        }
      })
      const model = TestChatModel.reactive((request) =>
        lastOf(request) === "bad" ? TestChatModel.fail({ _tag: "InvalidRequest" }) : `did ${lastOf(request)}`
      )
      const { output } = yield* Agent.run(pipeline, "go").pipe(Effect.provide(model))
      const ends = Object.fromEntries(Object.entries(output).map(([name, { status }]) => [name, status]))
      assert.deepStrictEqual(ends, {
        bad: "failed",
        good: "done",
        next: "blocked",
        last: "blocked",
        never: "skipped",
        joined: "done"
      })
      assert.strictEqual(output["joined"]?.text, "did did good, undefined")
    })
  )

  it.effect("is told to the lead and to the team", () =>
    Effect.gen(function* () {
      const model = TestChatModel.reactive((request) =>
        request.systemPrompt === "WORK" ? TestChatModel.fail({ _tag: "ContextOverflow" }) : reply(request)
      )
      const helper = Agent.make({ name: "other", prompt: "HELP" })
      const { output } = yield* Agent.run(Supervisor.make({ workers: [worker, helper] }), "go").pipe(
        Effect.provide(model)
      )
      assert.deepStrictEqual([output.status, output.text, output.delegations], ["completed", "all done", 3])
      const { output: team } = yield* Agent.run(Team.make({ members: [worker, helper] }), "go").pipe(
        Effect.provide(model)
      )
      assert.deepStrictEqual(
        team.said.map(({ who }) => who),
        ["team", "other"]
      )
      assert.strictEqual(team.text, "helped go\n\nIt is yo")
    })
  )

  it.effect("of the first worker fails a goal, and a later one keeps the best attempt", () =>
    Effect.gen(function* () {
      const goal = Goal.make({ worker })
      const input = goal.input({ objective: "write", criteria: ["a draft", "a link"] })
      const failing = (from: number) => {
        let asked = 0
        return TestChatModel.reactive((request) =>
          request.systemPrompt === "WORK" && ++asked >= from
            ? TestChatModel.fail({ _tag: "ContextOverflow" })
            : reply(request)
        )
      }
      const error = yield* Effect.flip(Agent.run(goal, input).pipe(Effect.provide(failing(1))))
      assert.strictEqual(error._tag, "ModelError")
      const { output } = yield* Agent.run(goal, input).pipe(Effect.provide(failing(2)))
      assert.deepStrictEqual([output.status, output.attempts], ["partial", 1])
      assert.match(output.reason, /^The worker stopped: .*context window/)
    })
  )
})

describe("a used-up budget", () => {
  it.effect("ends an agent with a schema by its own words, before its first turn", () =>
    Effect.gen(function* () {
      const typed = Agent.make({ name: "typed", prompt: "WORK", output: Schema.Struct({ score: Schema.Finite }) })
      const both = Agent.program({
        name: "both",
        output: Schema.Struct({ score: Schema.Finite }),
        run: () => Effect.andThen(Agent.answer(worker, "a"), Agent.answer(typed, "b"))
      })
      const bounded = Agent.around(both, Budget.make({ rounds: 1, onExhausted: "finalAnswer" }))
      const error = yield* Effect.flip(
        Agent.run(bounded, "go").pipe(Effect.provide(TestChatModel.reactive(() => "said")))
      )
      assert.strictEqual(error._tag, "AgentError")
      assert.strictEqual(
        error.message,
        'Agent "typed" gave no answer (budget:rounds): This was not begun: the budget of 1 round is used up.'
      )
    })
  )
})

/** The limits of a budget, and how many turns of 100 tokens, a cost of one and a second they allow in a row. */
const limits = [
  [{ rounds: 6 }, 6],
  [{ tokens: 600 }, 6],
  [{ cost: 6 }, 6],
  [{ time: "6 seconds" }, 6]
] as const

describe("a budget", () => {
  const inRow = Agent.program({
    name: "row",
    run: () =>
      Effect.as(
        Effect.forEach(Array.from({ length: 40 }), (_, index) => Agent.answer(worker, `${index}`)),
        "over"
      )
  })
  const shapes = {
    "a program": { agent: inRow, width: 1 },
    "a program in a program": {
      agent: Agent.program({ name: "outer", run: () => Agent.answer(inRow, "go") }),
      width: 1
    },
    "a map-reduce at 8 at once": { agent: mapOver(200), width: 8 }
  }

  for (const [shape, { agent, width }] of Object.entries(shapes)) {
    for (const [limit, most] of limits) {
      for (const isKilled of [false, true]) {
        const what = `of ${JSON.stringify(limit)} holds for ${shape}${isKilled ? " that was killed and resumed" : ""}`
        it.effect(what, () =>
          Effect.gen(function* () {
            let turns = 0
            const reached = yield* Deferred.make<void>()
            const threads: Record<string, journal.Stored> = {}
            const model = TestChatModel.reactive(
              () => {
                turns++
                if (isKilled && turns === 3) {
                  Deferred.doneUnsafe(reached, Effect.void)
                  return TestChatModel.hang
                }
                const usage = { inputTokens: 60, outputTokens: 40, cost: 1 }
                return TestChatModel.text("said", { usage, delay: "1 second" })
              },
              { prices: { input: 0, output: 0 } }
            )
            const bounded = Agent.around(agent, Budget.make({ ...limit, onExhausted: "fail" }))
            const passing = Effect.forever(Effect.andThen(TestClock.adjust("1 second"), Effect.yieldNow))
            const places = Layer.merge(model, journal.layer(threads))
            const run = Agent.run(bounded, "go", { threadId: "t" }).pipe(Effect.provide(places))
            const ended = Effect.flip(
              isKilled
                ? Effect.gen(function* () {
                    const fiber = yield* Effect.forkChild(run)
                    yield* Deferred.await(reached)
                    yield* Fiber.interrupt(fiber)
                    return yield* Agent.resume(bounded, { threadId: "t" }).pipe(Effect.provide(places))
                  })
                : run
            )
            const error = yield* Effect.raceFirst(ended, passing)
            assert.strictEqual(error._tag, "BudgetExceeded")
            // The budget does not know turns in flight, or the turns of a killed process.
            const allowed = "time" in limit ? most * width : most
            assert.isAtMost(turns, allowed + width - 1 + (isKilled ? width : 0))
            assert.isAtLeast(turns, 4)
          })
        )
      }
    }
  }
})
