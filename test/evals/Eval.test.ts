import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, FileSystem, Layer, Schema } from "effect"
import { Agent, Backend, Message, type ModelError, Tool, Usage } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { Eval, Report, Scorers } from "effect-deepagents/evals"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Cassette, TestChatModel } from "effect-deepagents/testing"

const look = Tool.make("look", {
  description: "Looks something up",
  parameters: { about: Schema.String },
  execute: ({ about }) => (about === "bad" ? Effect.fail("nothing known") : Effect.succeed(`found ${about}`))
})

const clerk = Agent.make({ name: "clerk", prompt: "You answer.", tools: [look] })

const callsThen = (about: string, answer: string) =>
  TestChatModel.reactive((request) =>
    request.messages.at(-1)?.role === "tool" ? answer : TestChatModel.calls([{ name: "look", arguments: { about } }])
  )

const one = (fields: Partial<Eval.Case> = {}): Eval.Case => ({ name: "ulm", input: "Which river?", ...fields })

const findings = (report: Report.Report) =>
  report.cases.flatMap(({ trials }) =>
    trials.flatMap(({ scores }) => scores.filter(({ passed }) => !passed).map(({ kind, name }) => `${kind} ${name}`))
  )

describe("a suite", () => {
  it.effect("passes where every expectation of a case holds, and names each that does not", () =>
    Effect.gen(function* () {
      const good = one({
        contains: ["danube"],
        excludes: ["Rhine"],
        tools: ["look"],
        avoids: ["write"],
        expected: "The Danube"
      })
      const bad = one({
        name: "wrong",
        contains: ["Rhine"],
        excludes: ["DANUBE"],
        tools: ["look", "look"],
        avoids: ["look"],
        expected: "Rhine",
        rounds: 1,
        tokens: 0
      })
      const report = yield* Eval.suite({ agent: clerk, cases: [good, bad], scorers: [Scorers.expectations] })
      assert.deepStrictEqual(
        report.cases.map(({ trials }) => trials.map(({ passed }) => passed)),
        [[true], [false]]
      )
      assert.deepStrictEqual(findings(report), [
        "correctness equals",
        "correctness contains",
        "correctness excludes",
        "correctness calls",
        "correctness avoids",
        "reported rounds"
      ])
      assert.isFalse(Report.summarize(report).isPassed)
    }).pipe(Effect.provide(callsThen("Ulm", "The Danube")))
  )

  it.effect("counts trials and gives pass^k and pass@k without bias", () =>
    Effect.gen(function* () {
      let turn = 0
      const model = TestChatModel.reactive(() => (++turn % 5 === 0 ? "no idea" : "Danube"))
      const report = yield* Eval.suite({
        agent: Agent.make({ name: "river", prompt: "You answer." }),
        cases: [one()],
        scorers: [Scorers.contains("Danube")],
        trials: 5,
        k: 3,
        concurrency: 1
      }).pipe(Effect.provide(model))
      const { interval, passAll, passAny, passed, share, trials } = Report.summarize(report)
      assert.deepStrictEqual([passed, trials, share], [4, 5, 0.8])
      // Of the ten sets of three, four have no wrong one, and all have a right one.
      assert.closeTo(passAll, 0.4, 1e-12)
      assert.closeTo(passAny, 1, 1e-12)
      assert.closeTo(interval[0], 0.3755, 1e-3)
      assert.closeTo(interval[1], 0.9638, 1e-3)
    })
  )

  it.effect("goes on behind a failed run, and begins no more after a failure that somebody must mend", () =>
    Effect.gen(function* () {
      const cases = Array.from({ length: 40 }, (_, index) => one({ name: `case ${index}` }))
      const failing = (reason: ModelError.Reason) => {
        let asked = 0
        const model = TestChatModel.reactive(() => (++asked === 3 ? TestChatModel.fail(reason) : "Danube"))
        return Effect.map(
          Effect.provide(Eval.suite({ agent: clerk, cases, scorers: [], concurrency: 1 }), model),
          (report) => ({ report, asked })
        )
      }
      const once = yield* failing({ _tag: "InvalidRequest" })
      assert.strictEqual(once.asked, 40)
      assert.strictEqual(Report.summarize(once.report).passed, 39)
      const quota = yield* failing({ _tag: "QuotaExhausted" })
      assert.strictEqual(quota.asked, 3)
      assert.include(quota.report.stopped ?? "", "used up")
      assert.isFalse(Report.summarize(quota.report).isPassed)
      assert.include(Report.toMarkdown(quota.report), "1 of 1 trials did not run")
    })
  )

  it.effect("spends no more than its limits, but for trials in flight", () =>
    Effect.gen(function* () {
      const cases = Array.from({ length: 20 }, (_, index) => one({ name: `case ${index}` }))
      const report = yield* Eval.suite({
        agent: clerk,
        cases,
        scorers: [],
        concurrency: 1,
        limits: { tokens: 100 }
      })
      const { trials, usage } = Report.summarize(report)
      assert.deepStrictEqual([trials, usage.inputTokens], [4, 120])
      assert.strictEqual(report.stopped, "The suite has spent its 100 tokens.")
      const priceless = yield* Eval.suite({ agent: clerk, cases, scorers: [], concurrency: 1, limits: { cost: 1 } })
      assert.include(priceless.stopped ?? "", "no prices")
    }).pipe(Effect.provide(TestChatModel.reactive(() => TestChatModel.text("Danube", { usage: { inputTokens: 30 } }))))
  )

  it.effect("builds its layer for each trial, for the agent and its scorers", () =>
    Effect.gen(function* () {
      let built = 0
      const keep = Tool.make("keep", {
        description: "Keeps a text",
        parameters: { text: Schema.String },
        execute: ({ text }) =>
          Effect.gen(function* () {
            const backend = yield* Backend.Backend
            // A second trial on the same files would fail.
            yield* backend.write("/kept.md", text, { create: true })
            return "kept"
          }).pipe(Effect.mapError(({ message }) => message))
      })
      const model = TestChatModel.reactive((request) =>
        request.messages.at(-1)?.role === "tool"
          ? "done"
          : TestChatModel.calls([{ name: "keep", arguments: { text: "a b" } }])
      )
      const files = Layer.effect(
        Backend.Backend,
        Effect.suspend(() => {
          built++
          return MemoryBackend.make()
        })
      )
      const report = yield* Eval.suite({
        agent: Agent.make({ name: "keeper", prompt: "You keep.", tools: [keep] }),
        cases: [one()],
        scorers: [
          Scorers.file("/kept.md", (text) => text === "a b"),
          Scorers.reported(Scorers.file("/none", () => true))
        ],
        layer: () => files,
        trials: 3
      }).pipe(Effect.provide(model))
      assert.strictEqual(built, 3)
      assert.isTrue(Report.summarize(report).isPassed)
      assert.deepStrictEqual(
        findings(report),
        Array.from({ length: 3 }, () => "reported file /none")
      )
    })
  )

  it.effect("fails trials whose scorer or layer fails", () =>
    Effect.gen(function* () {
      const cases = [one()]
      const scored = yield* Eval.suite({ agent: clerk, cases, scorers: [() => Effect.fail(new Error("no judge"))] })
      assert.include(Report.toMarkdown(scored), "The scorer failed: no judge")
      const layered = yield* Eval.suite({
        agent: clerk,
        cases,
        scorers: [],
        layer: () => Layer.effectDiscard(Effect.fail("no disk"))
      })
      assert.include(layered.cases[0]?.trials[0]?.problem ?? "", "no disk")
      assert.isFalse(Report.summarize(layered).isPassed)
    }).pipe(Effect.provide(callsThen("Ulm", "Danube")))
  )

  it.effect("keeps the other scores of a trial whose scorer throws, and other trials of a layer that throws", () =>
    Effect.gen(function* () {
      const thrown: Eval.Scorer = () => {
        throw new Error("boom")
      }
      const noLayer = (): Layer.Layer<never> => {
        throw new Error("no files")
      }
      const scored = yield* Eval.suite({ agent: clerk, cases: [one()], scorers: [Scorers.contains("Danube"), thrown] })
      assert.deepStrictEqual(
        scored.cases[0]?.trials[0]?.scores.map(({ name, passed }) => [name, passed]),
        [
          ["contains", true],
          ["scorer", false]
        ]
      )
      const layered = yield* Eval.suite({
        agent: clerk,
        cases: [one(), one({ name: "bad" })],
        scorers: [],
        layer: ({ name }) => (name === "bad" ? noLayer() : Layer.empty)
      })
      assert.deepStrictEqual(
        layered.cases.map(({ trials }) => trials[0]?.passed),
        [true, false]
      )
    }).pipe(Effect.provide(callsThen("Ulm", "Danube")))
  )

  it.effect("refuses an impossible suite before a request", () =>
    Effect.gen(function* () {
      const run = (options: object) =>
        Effect.map(
          Effect.flip(Eval.suite({ agent: clerk, cases: [one()], scorers: [], ...options })),
          ({ message }) => message
        )
      assert.include(yield* run({ trials: 0 }), "`trials` must be a whole number of at least 1, not 0")
      assert.include(yield* run({ k: 2 }), "2 is more than 1")
      assert.include(yield* run({ limits: { cost: Number.NaN } }), "`limits.cost` must be a number of at least 0")
      assert.include(yield* run({ cases: [one(), one()] }), 'two cases are named "ulm"')
      assert.include(yield* run({ cases: [] }), "there are no cases")
      assert.include(yield* run({ trails: 3 }), 'Did you mean "trials"?')
      assert.include(yield* run({ agent: Agent.make({ name: "twice", prompt: "", tools: [look, look] }) }), "look")
    }).pipe(Effect.provide(TestChatModel.script([])))
  )

  it.effect("answers calls by stubs, and never runs the tool", () =>
    Effect.gen(function* () {
      let ran = 0
      const paid = Tool.make("look", {
        description: "",
        parameters: { about: Schema.String },
        execute: () => Effect.sync(() => String(++ran))
      })
      const agent = Agent.make({ name: "clerk", prompt: "", tools: [paid] })
      const stubbed = agent.pipe(
        Agent.around(Eval.stubs({ look: ({ about }) => Effect.succeed(`stub of ${JSON.stringify(about)}`) }))
      )
      const report = yield* Eval.suite({
        agent: stubbed,
        cases: [one({ tools: ["look"] })],
        scorers: [
          Scorers.expectations,
          (trial) => {
            const result = trial.messages.find(({ role }) => role === "tool")
            const text = result === undefined ? "" : Message.text(result)
            return Effect.succeed([
              { name: "stub", kind: "correctness", passed: text === 'stub of "Ulm"', evidence: text }
            ])
          }
        ]
      })
      assert.isTrue(Report.summarize(report).isPassed)
      assert.strictEqual(ran, 0)
      const misspelt = agent.pipe(Agent.around(Eval.stubs({ loook: "" })))
      const { message } = yield* Effect.flip(Eval.suite({ agent: misspelt, cases: [one()], scorers: [] }))
      assert.include(message, "loook")
    }).pipe(Effect.provide(callsThen("Ulm", "Danube")))
  )

  it.effect("sees a run that waits for a decision", () =>
    Effect.gen(function* () {
      const gated = Agent.make({
        name: "gated",
        prompt: "",
        tools: [look],
        middleware: [HumanInTheLoop.make({ tools: { look: true } })]
      })
      const suite = (scorer: Eval.Scorer) => Eval.suite({ agent: gated, cases: [one()], scorers: [scorer] })
      assert.isTrue(Report.summarize(yield* suite(Scorers.suspends("look"))).isPassed)
      assert.isFalse(Report.summarize(yield* suite(Scorers.suspends())).isPassed)
    }).pipe(Effect.provide(callsThen("Ulm", "Danube")))
  )

  it.effect("ends its runs when it is interrupted", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(
        Eval.suite({ agent: clerk, cases: [one()], scorers: [], trials: 4 }).pipe(
          Effect.provide(TestChatModel.script([TestChatModel.text("a", { delay: "1 hour" })]))
        )
      )
      yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
    })
  )
})

describe("a judge", () => {
  const judge = (verdicts: ReadonlyArray<{ criterion: number; met: boolean; quote: string }>) =>
    Eval.suite({
      agent: Agent.make({ name: "writer", prompt: "You write." }),
      cases: [one()],
      scorers: [Scorers.judged({ criteria: ["It names the river.", "It is polite."] })]
    }).pipe(
      Effect.provide(
        TestChatModel.reactive((request) =>
          request.systemPrompt.startsWith("You judge") ? JSON.stringify({ value: verdicts }) : "It is the Danube."
        )
      )
    )

  it.effect("meets a criterion only with a quote that is in the conversation", () =>
    Effect.gen(function* () {
      const report = yield* judge([
        { criterion: 1, met: true, quote: "the  Danube" },
        { criterion: 2, met: true, quote: "kind regards" }
      ])
      const scores = report.cases[0]?.trials[0]?.scores ?? []
      assert.deepStrictEqual(
        scores.map(({ name, passed }) => [name, passed]),
        [
          ["It names the river.", true],
          ["It is polite.", false]
        ]
      )
      assert.include(scores[1]?.evidence ?? "", "not in the text: kind regards")
    })
  )

  it.effect("that is silent on a criterion leaves it unmet", () =>
    Effect.gen(function* () {
      const report = yield* judge([{ criterion: 1, met: true, quote: "Danube" }])
      assert.strictEqual(report.cases[0]?.trials[0]?.scores[1]?.evidence, "the judge gave no verdict")
    })
  )
})

describe("the usage of judges", () => {
  const judged = (prices: { readonly input: number; readonly output: number } | undefined, cost: number) =>
    Eval.suite({
      agent: Agent.make({ name: "writer", prompt: "You write." }),
      cases: Array.from({ length: 5 }, (_, index) => one({ name: `case ${index}` })),
      scorers: [Scorers.judged({ criteria: ["It names the river."] })],
      concurrency: 1,
      limits: { cost }
    }).pipe(
      Effect.provide(
        TestChatModel.reactive(
          ({ systemPrompt }) =>
            systemPrompt.startsWith("You judge")
              ? TestChatModel.text(JSON.stringify({ value: [{ criterion: 1, met: true, quote: "Danube" }] }), {
                  usage: { outputTokens: 2_000_000 }
                })
              : TestChatModel.text("The Danube.", { usage: { outputTokens: 1_000_000, cost: 1 } }),
          prices === undefined ? {} : { prices }
        )
      )
    )

  it.effect("is in the report apart from the agent's, and in the limits of the suite", () =>
    Effect.gen(function* () {
      const report = yield* judged({ input: 1, output: 1 }, 6)
      const { judging, trials, usage } = Report.summarize(report)
      // A trial costs 1, and its judge 2.
      assert.deepStrictEqual([trials, usage.cost, judging.cost, judging.outputTokens], [2, 2, 4, 4_000_000])
      assert.strictEqual(report.stopped, "The suite has spent its cost of 6.")
      assert.include(Report.toMarkdown(report), "| cost of judges | 4.0000 |")
      const codec = Schema.fromJsonString(Report.Report)
      assert.deepStrictEqual(Schema.decodeSync(codec)(Schema.encodeSync(codec)(report)), report)
    })
  )

  it.effect("without prices ends a suite with a limit of cost, though the agent's has a cost", () =>
    Effect.gen(function* () {
      const report = yield* judged(undefined, 6)
      assert.deepStrictEqual([Report.summarize(report).trials, report.stopped?.includes("no prices")], [1, true])
    })
  )

  it.effect("of a judge that fails, or of a scorer that charges its own, counts too", () =>
    Effect.gen(function* () {
      const report = yield* Eval.suite({
        agent: clerk,
        cases: [one()],
        scorers: [
          Scorers.judged({ criteria: ["It names the river."] }),
          () => Effect.as(Scorers.charge(Usage.make({ inputTokens: 5 })), [])
        ]
      }).pipe(
        Effect.provide(TestChatModel.reactive(() => TestChatModel.text("no JSON", { usage: { inputTokens: 1 } })))
      )
      // The judge is asked again twice.
      assert.strictEqual(Report.summarize(report).judging.inputTokens, 3 + 5)
      assert.isFalse(Report.summarize(report).isPassed)
    })
  )
})

describe("a recording", () => {
  it.effect("gives the same report without a request, for trials at once and their judge", () =>
    Effect.gen(function* () {
      const file = `${yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped()}/suite.jsonl`
      let asked = 0
      const live = TestChatModel.reactive((request) =>
        request.systemPrompt.startsWith("You judge")
          ? JSON.stringify({ value: [{ criterion: 1, met: true, quote: "Danube" }] })
          : `Danube ${++asked}`
      )
      const suite = Eval.suite({
        agent: Agent.make({ name: "writer", prompt: "You write." }),
        cases: [one(), one({ name: "again" })],
        scorers: [Scorers.judged({ criteria: ["It names the river."] })],
        trials: 4,
        concurrency: 8
      })
      const textsOf = (report: Report.Report) => report.cases.map(({ trials }) => trials.map(({ text }) => text))
      const recorded = yield* suite.pipe(Effect.provide(Cassette.record(file).pipe(Layer.provide(live))))
      const replayed = yield* suite.pipe(Effect.provide(Cassette.replay(file)))
      assert.isTrue(Report.summarize(replayed).isPassed, Report.toMarkdown(replayed))
      assert.deepStrictEqual(textsOf(replayed), textsOf(recorded))
      assert.strictEqual(asked, 8)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
