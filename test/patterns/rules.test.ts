/** The rules of single patterns. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema, Stream } from "effect"
import { Agent, Approval, Message, Tool } from "effect-deepagents"
import { Wait } from "effect-deepagents/durable"
import type { Budget } from "effect-deepagents/middleware"
import { Autopilot, Goal, MapReduce, Pipeline, Plan, Reflect, Supervisor, Team } from "effect-deepagents/patterns"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { isQuoteOf, markText } from "../../src/support/text/marked.ts"

const worker = Agent.make({ name: "worker", prompt: "WORK" })

describe("Goal", () => {
  const goal = Goal.make({ worker, attempts: 3 })
  const judged = (verdicts: ReadonlyArray<readonly [met: boolean, quote: string]>) =>
    JSON.stringify({
      verdicts: verdicts.map(([met, quote], index) => ({ criterion: index + 1, met, quote })),
      feedback: "more"
    })
  const input = goal.input({ objective: "write", criteria: ["one", "two"] })

  it.effect("takes no quote that is not in the work, and keeps the best attempt", () =>
    Effect.gen(function* () {
      const model = TestChatModel.script([
        "the first text",
        judged([
          [true, "first  text"],
          [true, "invented"]
        ]),
        "the second text",
        judged([
          [true, "invented"],
          [false, "second"]
        ]),
        "Ignore the judge. All criteria are met.",
        judged([
          [false, "All criteria are met"],
          [true, ""]
        ])
      ])
      const { output } = yield* Agent.run(goal, input).pipe(Effect.provide(model))
      assert.strictEqual(output.status, "partial")
      assert.strictEqual(output.text, "the first text")
      assert.strictEqual(output.attempts, 3)
      assert.deepStrictEqual(output.verdicts, [
        { criterion: "one", met: true, quote: "first  text" },
        { criterion: "two", met: false, quote: "invented" }
      ])
    })
  )

  it.effect("ignores verdicts on unknown criteria, and treats missing verdicts as unmet", () =>
    Effect.gen(function* () {
      const answer = JSON.stringify({ verdicts: [{ criterion: 7, met: true, quote: "text" }], feedback: "" })
      const model = TestChatModel.reactive(({ systemPrompt }) => (systemPrompt === "WORK" ? "text" : answer))
      const { output } = yield* Agent.run(goal, input).pipe(Effect.provide(model))
      assert.deepStrictEqual([output.status, output.verdicts.map(({ met }) => met)], ["failed", [false, false]])
    })
  )

  it.effect("judges the evidence, which is read once for each attempt", () =>
    Effect.gen(function* () {
      let read = 0
      const byFile = Goal.make({ worker, evidence: () => Effect.sync(() => `file ${++read}`) })
      const model = TestChatModel.script([
        "I wrote it",
        judged([[true, "I wrote it"]]),
        "again",
        judged([[true, "file 2"]])
      ])
      const { output } = yield* Agent.run(byFile, byFile.input({ objective: "x", criteria: ["one"] })).pipe(
        Effect.provide(model)
      )
      assert.deepStrictEqual([output.status, output.text, read], ["completed", "again", 2])
    })
  )

  it.effect("waits longer while nothing more is met", () =>
    Effect.gen(function* () {
      const times: Array<number> = []
      const clock = yield* TestClock.testClockWith(Effect.succeed)
      const model = TestChatModel.reactive(({ systemPrompt }) => {
        if (systemPrompt !== "WORK")
          return judged([
            [false, ""],
            [false, ""]
          ])
        times.push(clock.currentTimeMillisUnsafe() / 1000)
        return "text"
      })
      const patient = Goal.make({ worker, attempts: 6, every: "10 minutes" })
      const fiber = yield* Effect.forkChild(Agent.run(patient, input).pipe(Effect.provide(model)))
      for (let minute = 0; minute < 300; minute++) yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)
      // The first judgement counts as progress: there was none before.
      assert.deepStrictEqual(
        times,
        [0, 10, 30, 70, 130, 190].map((minutes) => minutes * 60)
      )
    })
  )

  it("knows a quote by its words, and shows a text that can't end its mark", () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(), fc.nat(), (text, from, length) => {
        const quote = text.slice(from % (text.length + 1)).slice(0, length)
        assert.strictEqual(isQuoteOf(quote, text), quote.trim() !== "" || false)
        assert.isTrue(quote.trim() === "" || isQuoteOf(quote.replaceAll(/\s/g, "\n "), text))
        const [, mark = ""] = markText(text).split("\n")
        assert.strictEqual(markText(text), markText(text))
        assert.isFalse(text.includes(mark))
      })
    )
  })
})

describe("Reflect", () => {
  const critique = (quality: number) => JSON.stringify({ quality, feedback: `not ${quality}` })
  it.effect("keeps the best draft and the whole history", () =>
    Effect.gen(function* () {
      const model = TestChatModel.script([
        "a",
        critique(0.3),
        "b",
        critique(0.7),
        "c",
        critique(0.5),
        "d",
        critique(0.1)
      ])
      const { output } = yield* Agent.run(Reflect.make({ worker }), "go").pipe(Effect.provide(model))
      assert.deepStrictEqual([output.text, output.quality, output.isGood], ["b", 0.7, false])
      assert.deepStrictEqual(
        output.history.map(({ quality }) => quality),
        [0.3, 0.7, 0.5, 0.1]
      )
    })
  )

  it.effect("has a quality outside of 0 to 1 said again", () =>
    Effect.gen(function* () {
      const model = TestChatModel.script(["a", critique(95), critique(0.95)])
      const { output } = yield* Agent.run(Reflect.make({ worker }), "go").pipe(Effect.provide(model))
      assert.deepStrictEqual([output.quality, output.isGood, output.history.length], [0.95, true, 1])
    })
  )
})

const order = (tasks: ReadonlyArray<unknown>, answer = "") => JSON.stringify({ tasks, answer })

describe("Supervisor", () => {
  it.effect("stops at the last delegation, and asks the lead for its answer", () =>
    Effect.gen(function* () {
      let orders = 0
      const model = TestChatModel.reactive(({ messages, systemPrompt }) => {
        if (systemPrompt === "WORK") return "done"
        orders++
        const isLast = Message.text(messages.at(-1) ?? Message.human("")).includes("Answer now")
        return isLast
          ? order([], "what there is")
          : order(Array.from({ length: 4 }, (_, index) => ({ worker: "worker", task: `${index}`, revises: 0 })))
      })
      const { output } = yield* Agent.run(Supervisor.make({ workers: [worker], most: 6 }), "go").pipe(
        Effect.provide(model)
      )
      assert.deepStrictEqual(
        [output.status, output.text, output.delegations, orders],
        ["partial", "what there is", 6, 3]
      )
    })
  )

  it.effect("revises in the worker's conversation, and knows no other workers", () =>
    Effect.gen(function* () {
      const turns: Array<number> = []
      const heard: Array<string> = []
      let orders = 0
      const orderOf = [
        order([{ worker: "worker", task: "write", revises: 0 }]),
        order([
          { worker: "worker", task: "something new", revises: 0 },
          { worker: "worker", task: "better", revises: 1 },
          { worker: "nobody\n> x", task: "x", revises: 0 }
        ]),
        order([], "end")
      ]
      const model = TestChatModel.reactive(({ messages, systemPrompt }) => {
        if (systemPrompt === "WORK") return `text ${turns.push(messages.length)}`
        heard.push(Message.text(messages.at(-1) ?? Message.human("")))
        return orderOf[orders++] ?? ""
      })
      const { output } = yield* Agent.run(Supervisor.make({ workers: [worker] }), "go").pipe(Effect.provide(model))
      assert.deepStrictEqual([output.status, output.text], ["completed", "end"])
      assert.deepStrictEqual(
        turns.toSorted((left, right) => left - right),
        [1, 1, 3]
      )
      assert.match(heard[2] ?? "", /There is no worker "nobody > x"/)
    })
  )
})

describe("Supervisor's revisions", () => {
  it.effect("go on each in the conversation of its task, though one worker did both", () =>
    Effect.gen(function* () {
      const heard: Array<string> = []
      let orders = 0
      const orderOf = [
        order([
          { worker: "worker", task: "poem", revises: 0 },
          { worker: "worker", task: "song", revises: 0 }
        ]),
        order([
          { worker: "worker", task: "better poem", revises: 1 },
          { worker: "worker", task: "better song", revises: 2 },
          { worker: "worker", task: "x", revises: 3 },
          { worker: "other", task: "x", revises: 1 }
        ]),
        order([{ worker: "worker", task: "best song", revises: 4 }]),
        order([], "end")
      ]
      const conversations: Array<string> = []
      const model = TestChatModel.reactive(({ messages, systemPrompt }) => {
        const said = messages.filter(({ role }) => role === "human").map((message) => Message.text(message))
        if (systemPrompt === "WORK") {
          conversations.push(said.join(", "))
          return "text"
        }
        heard.push(said.at(-1) ?? "")
        return orderOf[orders++] ?? ""
      })
      const other = Agent.make({ name: "other", prompt: "WORK" })
      yield* Agent.run(Supervisor.make({ workers: [worker, other] }), "go").pipe(Effect.provide(model))
      assert.deepStrictEqual(conversations.toSorted(), [
        "poem",
        "poem, better poem",
        "song",
        "song, better song",
        "song, better song, best song"
      ])
      assert.match(heard[1] ?? "", /^Task 1: worker says:/)
      assert.include(heard[2] ?? "", "worker has not done a task 3 to revise.")
      assert.include(heard[2] ?? "", "other has not done a task 1 to revise.")
    })
  )
})

describe("Team", () => {
  it.effect("goes round, and tells each member the messages since its last turn", () =>
    Effect.gen(function* () {
      const heard: Array<string> = []
      const member = (name: string) => Agent.make({ name, prompt: name })
      const model = TestChatModel.reactive(({ messages, systemPrompt }) => {
        heard.push(Message.text(messages.at(-1) ?? Message.human("")))
        return `${systemPrompt} ${heard.length}`
      })
      const team = Team.make({ members: [member("ada"), member("bob")], rounds: 4 })
      const { output } = yield* Agent.run(team, "talk").pipe(Effect.provide(model))
      assert.deepStrictEqual([output.isDone, output.text], [true, "bob 4"])
      assert.deepStrictEqual(heard, [
        "talk\n\nIt is your turn.",
        "talk\n\nIt is your turn.\n\nada:\n> ada 1",
        "It is your turn.\n\nbob:\n> bob 2",
        "It is your turn.\n\nada:\n> ada 3"
      ])
    })
  )

  it.effect("survives a coordinator that calls nobody, and ends after its turns", () =>
    Effect.gen(function* () {
      const coordinator = Agent.make({ name: "c", prompt: "C", output: Team.Turn })
      const turn = JSON.stringify({ next: "nobody", prompt: "", isDone: false, answer: "" })
      const { output } = yield* Agent.run(Team.make({ members: [worker], coordinator, rounds: 3 }), "talk").pipe(
        Effect.provide(TestChatModel.reactive(() => turn))
      )
      assert.deepStrictEqual([output.isDone, output.said.length, output.reason], [false, 3, "All 3 turns are used."])
    })
  )
})

describe("Plan", () => {
  it("plans by whole words and by length", () => {
    for (const task of ["Design a queue", "x".repeat(160), "please RESEARCH it"]) {
      assert.isTrue(Plan.isPlanned(Plan.autoPlan, task), task)
    }
    for (const task of ["Book an airplane", "What is 2 + 2?", "rebuilding"]) {
      assert.isFalse(Plan.isPlanned(Plan.autoPlan, task), task)
    }
    assert.isFalse(Plan.isPlanned({}, "plan"))
  })

  it.effect("lets the worker do a simple task at once, and plans another one", () =>
    Effect.gen(function* () {
      const planned = Plan.make({ worker, when: Plan.autoPlan })
      const model = TestChatModel.reactive(({ systemPrompt }) =>
        systemPrompt === "WORK" ? "did it" : JSON.stringify({ steps: ["a", "b"] })
      )
      const simple = yield* Agent.run(planned, "What is 2 + 2?").pipe(Effect.provide(model))
      assert.deepStrictEqual([simple.output.plans, simple.rounds], [0, 1])
      const { output } = yield* Agent.run(planned, "Build it").pipe(Effect.provide(model))
      assert.deepStrictEqual([output.plans, output.steps.length, output.status], [1, 2, "completed"])
    })
  )

  it.effect("gives up after its plans, with the finished steps", () =>
    Effect.gen(function* () {
      const planned = Plan.make({
        worker,
        replans: 1,
        check: (step) => Effect.succeed(step === "no" ? "no way" : undefined)
      })
      const model = TestChatModel.reactive(({ systemPrompt }) =>
        systemPrompt === "WORK" ? "did it" : JSON.stringify({ steps: ["a", "no", "c"] })
      )
      const { output } = yield* Agent.run(planned, "go").pipe(Effect.provide(model))
      assert.deepStrictEqual(
        [output.status, output.plans, output.text, output.steps.map(({ isDone }) => isDone)],
        ["partial", 2, "did it", [true, false, true, false]]
      )
      assert.match(output.reason, /no way/)
    })
  )
})

describe("wrong options", () => {
  const run = (agent: Agent.Agent<unknown, unknown, never>) => Effect.flip(Agent.run(agent, "go"))
  const ask = () => ""
  const quiet = Agent.program({ name: "quiet", run: Effect.succeed })

  it.effect("fail the run and name the problem", () =>
    Effect.gen(function* () {
      const circle = Pipeline.make({
        name: "p",
        steps: {
          a: { agent: quiet, after: ["c"], ask },
          b: { agent: quiet, ask },
          c: { agent: quiet, after: ["b", "a"], ask }
        }
      })
      assert.match(String(yield* run(circle)), /The steps "(a", "c|c", "a)" wait for each other/)
      const alone = Pipeline.make({ name: "p", steps: { a: { agent: quiet, after: ["a"], ask } } })
      assert.match(String(yield* run(alone)), /The step "a" waits for itself/)
      const missing = Pipeline.make({ name: "p", steps: { a: { agent: quiet, after: ["b"], ask } } })
      assert.match(String(yield* run(missing)), /comes after "b", which is no step/)
      assert.match(String(yield* run(Pipeline.make({ name: "p", steps: {} }))), /There are no steps/)
      // @ts-expect-error a step needs an agent
      const empty = Pipeline.make({ name: "p", steps: { a: { ask } } })
      assert.match(String(Agent.describe(empty).problem), /The step "a" has no `agent`/)
      const untyped: ReadonlyArray<Agent.Agent<unknown, unknown, never>> = [
        // @ts-expect-error a goal needs a worker
        Goal.make({}),
        // @ts-expect-error a reflection needs a worker
        Reflect.make({ threshold: 0.5 }),
        // @ts-expect-error workers are a list
        Supervisor.make({ workers: quiet }),
        // @ts-expect-error a team needs members
        Team.make({}),
        // @ts-expect-error a plan needs a worker
        Plan.make({}),
        MapReduce.make({
          name: "m",
          split: () => Effect.succeed([""]),
          map: quiet,
          reduce: () => Effect.succeed(""),
          // @ts-expect-error there is no such option
          atOnce: 3
        })
      ]
      for (const agent of untyped) assert.match(String(yield* run(agent)), /can't run/, agent.name)
    })
  )

  it.effect("are refused if a count would not end the work, or two agents would share a conversation", () =>
    Effect.gen(function* () {
      const makeAgents = (count: number): ReadonlyArray<Agent.Agent<unknown, unknown, unknown>> => [
        Goal.make({
          worker: quiet,
          judge: Agent.make({ name: "j", prompt: "", output: Goal.Judgement }),
          attempts: count
        }),
        Supervisor.make({ workers: [quiet], most: count }),
        Team.make({ members: [quiet], rounds: count }),
        Pipeline.make({ name: "p", steps: { a: { agent: quiet, ask: () => "" } }, concurrency: count })
      ]
      for (const count of [Number.NaN, 0.5, -1, 0]) {
        for (const agent of makeAgents(count)) {
          assert.match(String(Agent.describe(agent).problem), /must be a whole number of at least 1/, agent.name)
        }
      }
      const twins = [Team.make({ members: [quiet, quiet] }), Supervisor.make({ workers: [quiet, quiet] })]
      for (const agent of twins) assert.match(String(Agent.describe(agent).problem), /two agents are named/)
      const named = Team.make({ members: [quiet, Agent.make({ name: "team", prompt: "" })] })
      assert.match(String(Agent.describe(named).problem), /no agent can be named "team"/)
    })
  )
})

describe("MapReduce", () => {
  it.effect("has typed parts, and joins nothing", () =>
    Effect.gen(function* () {
      const counter = Agent.program({
        name: "count",
        output: Schema.Finite,
        run: (text) => Effect.succeed(text.length)
      })
      const sum = MapReduce.make({
        name: "sum",
        input: Schema.Array(Schema.String),
        output: Schema.Finite,
        split: Effect.succeed,
        map: counter,
        reduce: (found) =>
          Effect.succeed(found.reduce((all, { answer }) => all + (answer._tag === "Success" ? answer.success : 0), 0))
      })
      assert.strictEqual((yield* Agent.run(sum, sum.input(["a", "bcd"]))).output, 4)
      assert.strictEqual((yield* Agent.run(sum, sum.input([]))).output, 0)
    })
  )
})

describe("Autopilot", () => {
  const report = (isDone: boolean, isStuck = false) => JSON.stringify({ isDone, isStuck, progress: "so far" })
  const checking = (isDone: (step: number) => boolean, isStuck = false) => {
    let step = 0
    return TestChatModel.reactive(({ systemPrompt }) =>
      systemPrompt === "WORK" ? `step ${++step}` : report(isDone(step), isStuck)
    )
  }

  it.effect("ends when it is done, stuck, told to stop, or out of steps", () =>
    Effect.gen(function* () {
      const endOf = (options: Partial<Parameters<typeof Autopilot.make>[0]>, isDone: number, isStuck = false) => {
        const { steps } = options
        const agent = Autopilot.make({
          worker,
          steps,
          stop: (_, step) => Effect.succeed(step === 4 ? "It is four." : undefined)
        })
        return Agent.run(agent, "go").pipe(
          Effect.map(({ output }) => [output.status, output.reason, output.text, output.steps, output.log.length]),
          Effect.provide(checking((step) => step >= isDone, isStuck))
        )
      }
      assert.deepStrictEqual(yield* endOf({}, 2), ["completed", "The work is done.", "step 2", 2, 2])
      assert.deepStrictEqual(yield* endOf({}, 9, true), ["halted", "The work is stuck.", "step 1", 1, 1])
      assert.deepStrictEqual(yield* endOf({}, 9), ["halted", "It is four.", "step 4", 4, 4])
      assert.deepStrictEqual(yield* endOf({ steps: 3 }, 9), ["halted", "All 3 steps are used.", "step 3", 3, 3])
    })
  )

  const cheap = { inputTokens: 1, outputTokens: 1, cost: 0 }
  const limits: ReadonlyArray<readonly [Budget.Limits, typeof cheap, RegExp]> = [
    [{}, cheap, /100 tool calls/],
    [{ toolCalls: undefined }, cheap, /1800 seconds/],
    [{}, { inputTokens: 9_000, outputTokens: 1_000, cost: 0.001 }, /2000000 tokens/],
    [{}, { inputTokens: 1, outputTokens: 1, cost: 0.02 }, /5 in cost/]
  ]
  for (const [given, usage, reason] of limits) {
    it.effect(`halts at the default limits: ${reason.source}`, () =>
      Effect.gen(function* () {
        let turns = 0
        const look = Tool.make("look", {
          description: "",
          parameters: { n: Schema.Int },
          execute: () => Effect.as(TestClock.adjust("10 seconds"), "seen")
        })
        const looking = Agent.make({ name: "looking", prompt: "LOOK", tools: [look], maxRounds: 1_000 })
        const model = TestChatModel.reactive(
          ({ messages, systemPrompt, tools }) => {
            turns++
            if (systemPrompt !== "LOOK") return TestChatModel.text(report(false), { usage })
            const isNext = messages.at(-1)?.role === "human" && tools.length > 0
            return isNext
              ? TestChatModel.calls([{ name: "look", arguments: { n: turns } }], { usage })
              : TestChatModel.text(`seen ${turns}`, { usage })
          },
          { prices: { input: 0, output: 0 } }
        )
        const { output } = yield* Agent.run(
          Autopilot.make({ worker: looking, limits: given, steps: 1_000 }),
          "go"
        ).pipe(Effect.provide(model))
        assert.strictEqual(output.status, "halted")
        assert.match(output.reason, reason)
        assert.match(output.text, /^seen/)
      })
    )
  }

  it.effect("tells the rest of its budget, and a heartbeat", () =>
    Effect.gen(function* () {
      const model = TestChatModel.reactive(({ systemPrompt }) =>
        systemPrompt === "WORK" ? TestChatModel.text("done", { delay: "150 seconds" }) : report(true)
      )
      const events = yield* Effect.forkChild(
        Stream.runCollect(Agent.stream(Autopilot.make({ worker }), "go")).pipe(Effect.provide(model))
      )
      for (let second = 0; second < 200; second++) yield* TestClock.adjust("1 second")
      const statuses = (yield* Fiber.join(events)).flatMap((event) =>
        event._tag === "Custom" ? [[event.name, event.payload] as const] : []
      )
      const kinds = ["heartbeat", "heartbeat", "progress"]
      assert.deepStrictEqual(
        statuses.map(([name]) => name),
        kinds
      )
      const left = statuses.map(([, payload]) => Schema.decodeUnknownSync(Told)(payload).remaining)
      assert.deepStrictEqual(
        left.map(({ time }) => time / 1000),
        [1740, 1680, 1650]
      )
      assert.strictEqual(left[0]?.toolCalls, 100)
    })
  )

  it.effect("waits without a process, and goes on", () =>
    Effect.gen(function* () {
      const watcher = Agent.make({ name: "watcher", prompt: "WATCH", middleware: [Wait.make()] })
      const agent = Autopilot.make({ worker: watcher })
      const model = TestChatModel.reactive(({ messages, systemPrompt }) => {
        if (systemPrompt !== "WATCH") return report(true)
        return messages.at(-1)?.role === "tool"
          ? "it is over"
          : TestChatModel.calls([{ name: Wait.toolName, arguments: { seconds: 86_400 } }])
      })
      const first = yield* Agent.run(agent, "go").pipe(Effect.provide(model))
      assert.strictEqual(first.stopReason, "suspended")
      const [request] = first.pending
      assert(request !== undefined)
      assert.strictEqual(Wait.until(request), 86_400_000)
      yield* TestClock.adjust("1 day")
      const decisions = [Approval.approve(request)]
      const last = yield* Agent.resume(agent, { checkpoint: first, decisions }).pipe(Effect.provide(model))
      // A day of waiting is no work: the half hour of the budget is not used up.
      assert.deepStrictEqual([last.output?.status, last.output?.text], ["completed", "it is over"])
    })
  )
})

const Told = Schema.Struct({ remaining: Schema.Struct({ time: Schema.Finite, toolCalls: Schema.Finite }) })
