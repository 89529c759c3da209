import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import {
  Agent,
  type AgentEvent,
  type AgentResult,
  ChatModel,
  Middleware,
  type Run,
  Tool,
  Usage
} from "effect-deepagents"
import { Budget } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { failureOf, inBackground, prompt, watch } from "./run.ts"

/** A tool that notes each time it is done. `takes` is in milliseconds. */
const worker = (log: Array<number>, takes = 0) =>
  Tool.make("work", {
    description: "Works",
    parameters: { n: Schema.Finite },
    execute: ({ n }) =>
      Effect.sleep(takes).pipe(
        Effect.tap(() => Effect.sync(() => log.push(n))),
        Effect.as(`done ${n}`)
      )
  })

/** A turn that calls the tool with these numbers, and uses that many tokens. */
const work = (numbers: ReadonlyArray<number>, usage: Partial<Usage.Usage> = {}) =>
  TestChatModel.calls(
    numbers.map((n) => ({ name: "work", arguments: { n } })),
    { usage }
  )
const answer = (text: string, usage: Partial<Usage.Usage> = {}) => TestChatModel.text(text, { usage })

const agentOf = <E>(budget: Middleware.Middleware<E>, log: Array<number> = [], takes = 0) =>
  Agent.make({ name: "agent", prompt: "You work.", tools: [worker(log, takes)], middleware: [budget] })

const warnings = (events: ReadonlyArray<AgentEvent.AgentEvent>) =>
  events.flatMap((event) => (event._tag === "Warning" && event.code === "budget" ? [event.message] : []))

const toolMessages = (result: AgentResult.AgentResult<unknown>) =>
  result.newMessages.flatMap((message) =>
    message.role === "tool"
      ? [[message.isError, message.content.map((block) => ("text" in block ? block.text : ""))[0]]]
      : []
  )

describe("Budget, finalAnswer", () => {
  it.effect("at the limit of tokens the model answers once more without tools, and the run says why", () =>
    Effect.gen(function* () {
      const log: Array<number> = []
      const result = yield* Agent.run(agentOf(Budget.make({ tokens: 100, onExhausted: "finalAnswer" }), log), prompt)
      assert.strictEqual(result.stopReason, "budget:tokens")
      assert.strictEqual(result.text, "all I know")
      assert.deepStrictEqual(log, [1])
      const requests = yield* TestChatModel.requests
      assert.deepStrictEqual(
        requests.map((request) => request.tools.length),
        [1, 0]
      )
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          work([1], { inputTokens: 60, outputTokens: 40 }),
          answer("all I know", { inputTokens: 500 })
        ])
      )
    )
  )

  it.effect("below the limit nothing changes", () =>
    Effect.gen(function* () {
      const limits = { tokens: 102, cost: 1, toolCalls: 2, rounds: 3, time: 1000, unpriced: "allow" } as const
      const result = yield* Agent.run(agentOf(Budget.make({ ...limits, onExhausted: "finalAnswer" })), prompt)
      assert.strictEqual(result.stopReason, "completed")
    }).pipe(
      Effect.provide(
        TestChatModel.script([work([1], { inputTokens: 100, cost: 0.5 }), answer("done", { inputTokens: 1 })])
      )
    )
  )

  it.effect("a limit warns once, at 80 %", () =>
    Effect.gen(function* () {
      const { events } = yield* watch(agentOf(Budget.make({ tokens: 100, rounds: 50, onExhausted: "finalAnswer" })))
      assert.deepStrictEqual(warnings(events), ["80 tokens are used of a budget of 100 tokens."])
      const at = events.findIndex((event) => event._tag === "Warning")
      const rounds = events.slice(0, at).filter((event) => event._tag === "RoundStarted")
      assert.strictEqual(rounds.length, 2)
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          work([1], { inputTokens: 79 }),
          work([2], { inputTokens: 1 }),
          work([3], { inputTokens: 5 }),
          answer("done", { inputTokens: 5 })
        ])
      )
    )
  )

  it.effect("calls over the limit are answered in the middle of a batch, not run", () =>
    Effect.gen(function* () {
      const log: Array<number> = []
      const result = yield* Agent.run(agentOf(Budget.make({ toolCalls: 3, onExhausted: "finalAnswer" }), log), prompt)
      assert.deepStrictEqual(log, [1, 2, 3])
      assert.deepStrictEqual(toolMessages(result), [
        [false, "done 1"],
        [false, "done 2"],
        [false, "done 3"],
        [true, "Not executed: the budget of 3 tool calls is used up."]
      ])
      assert.strictEqual(result.stopReason, "budget:toolCalls")
    }).pipe(Effect.provide(TestChatModel.script([work([1]), work([2, 3, 4]), "done"])))
  )

  it.effect("rounds are counted before they begin; the final answer is not one", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agentOf(Budget.make({ rounds: 2, onExhausted: "finalAnswer" })), prompt)
      assert.strictEqual(result.stopReason, "budget:rounds")
      assert.strictEqual(result.rounds, 3)
    }).pipe(Effect.provide(TestChatModel.script([work([1]), work([2]), "done"])))
  )

  it.effect("cost is limited by the model's prices", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agentOf(Budget.make({ cost: 2, onExhausted: "finalAnswer" })), prompt)
      assert.strictEqual(result.stopReason, "budget:cost")
    }).pipe(
      Effect.provide(
        TestChatModel.script([work([1], { inputTokens: 1_000_000 }), work([2], { outputTokens: 500_000 }), "done"], {
          prices: { input: 1, output: 2 }
        })
      )
    )
  )

  it.effect("refuses to start with a limit of cost without a price, or says so once if that is allowed", () =>
    Effect.gen(function* () {
      const refused = yield* Effect.flip(
        Agent.run(agentOf(Budget.make({ cost: 2, onExhausted: "finalAnswer" })), prompt)
      )
      assert.strictEqual(refused._tag, "ModelError")
      assert.match(refused.message, /nobody knows the prices of "scripted": give `prices`.*`unpriced`.*"allow"/)
      const budget = Budget.make({ cost: 2, onExhausted: "finalAnswer", unpriced: "allow" })
      const { events } = yield* watch(agentOf(budget))
      assert.deepStrictEqual(warnings(events), [
        `"scripted" has no prices, so the cost can't be limited; give prices to its layer.`
      ])
    }).pipe(
      Effect.provide(
        TestChatModel.script([work([1], { inputTokens: 5 }), work([2], { inputTokens: 5 }), answer("done")])
      )
    )
  )

  it.effect("a model that reports its cost needs no prices; an answer without it is the last", () =>
    Effect.gen(function* () {
      const agent = agentOf(Budget.make({ cost: 2, onExhausted: "finalAnswer" }))
      const reporting = (usage: ReadonlyArray<Partial<Usage.Usage>>) =>
        Effect.provideServiceEffect(
          Agent.run(agent, prompt),
          ChatModel.ChatModel,
          Effect.map(
            Effect.provide(
              ChatModel.ChatModel,
              TestChatModel.script([...usage.map((one) => work([1], one)), "done"], { exhaustive: false })
            ),
            (model) => ({ ...model, reportsCost: true })
          )
        )
      const told = yield* reporting([{ inputTokens: 5, cost: 0.5 }])
      assert.strictEqual(told.text, "done")
      const { _tag, message } = yield* Effect.flip(
        reporting([{ inputTokens: 5, cost: 0.5 }, { inputTokens: 5 }, { inputTokens: 5 }])
      )
      assert.strictEqual(_tag, "ModelError")
      assert.include(message, "nobody knows the prices")
    })
  )

  it.effect("time: a tool that runs past it is interrupted and answered, and the model answers", () =>
    Effect.gen(function* () {
      const log: Array<number> = []
      const agent = agentOf(Budget.make({ time: "10 seconds", onExhausted: "finalAnswer" }), log, 60_000)
      const run = yield* inBackground(Agent.run(agent, prompt))
      yield* TestClock.adjust("10 seconds")
      const result = yield* run.result
      assert.deepStrictEqual(log, [])
      assert.deepStrictEqual(toolMessages(result), [
        [true, "Interrupted: the budget of 10 seconds is used up. Whether the call had an effect is not known."]
      ])
      assert.strictEqual(result.stopReason, "budget:time")
    }).pipe(Effect.provide(TestChatModel.script([work([1]), "done"])))
  )

  it.effect("time: a model call that runs past it may be the answer", () =>
    Effect.gen(function* () {
      const run = yield* inBackground(
        Agent.run(agentOf(Budget.make({ time: "10 seconds", onExhausted: "finalAnswer" })), prompt)
      )
      yield* TestClock.adjust("1 minute")
      const result = yield* run.result
      assert.deepStrictEqual([result.text, result.stopReason], ["slow", "completed"])
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.text("slow", { delay: "1 minute" })])))
  )

  it.effect("time: when it is up, calls are not begun", () =>
    Effect.gen(function* () {
      const log: Array<number> = []
      const run = yield* inBackground(
        Agent.run(agentOf(Budget.make({ time: "10 seconds", onExhausted: "finalAnswer" }), log), prompt)
      )
      yield* TestClock.adjust("10 seconds")
      const result = yield* run.result
      assert.deepStrictEqual(log, [])
      assert.deepStrictEqual(toolMessages(result), [[true, "Not executed: the budget of 10 seconds is used up."]])
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([{ name: "work", arguments: { n: 1 } }], { delay: "10 seconds" }),
          "done"
        ])
      )
    )
  )

  it.effect("a call on the side counts", () =>
    Effect.gen(function* () {
      const asks = Middleware.make({
        name: "asks",
        beforeModel: (run) =>
          run.round === 0
            ? Effect.asVoid(Effect.orDie(run.call({ messages: run.messages, purpose: "grade" })))
            : Effect.void
      })
      const agent = Agent.make({
        name: "agent",
        prompt: "You work.",
        tools: [worker([])],
        middleware: [Budget.make({ tokens: 100, onExhausted: "finalAnswer" }), asks]
      })
      const result = yield* Agent.run(agent, prompt)
      assert.strictEqual(result.stopReason, "budget:tokens")
      assert.strictEqual(Usage.totalTokens(result.usage), 100)
    }).pipe(
      Effect.provide(
        TestChatModel.script([answer("grade: A", { inputTokens: 95 }), work([1], { inputTokens: 5 }), "done"])
      )
    )
  )

  it.effect("every run starts with nothing used, from any state, and runs do not mix", () =>
    Effect.gen(function* () {
      const agent = agentOf(Budget.make({ toolCalls: 1, onExhausted: "finalAnswer" }))
      const first = yield* Agent.run(agent, prompt)
      const again = yield* Agent.run(agent, prompt, { history: first.messages, state: first.state })
      const results = yield* Effect.all([Agent.run(agent, prompt), Agent.run(agent, prompt)], { concurrency: 2 })
      for (const result of [again, ...results])
        assert.deepStrictEqual(
          toolMessages(result).map(([isError]) => isError),
          [false, true]
        )
    }).pipe(
      Effect.provide(TestChatModel.reactive((request, index) => (request.tools.length === 0 ? "done" : work([index]))))
    )
  )
})

describe("Budget, fail", () => {
  it.effect("the next model call fails the run with the amounts used", () =>
    Effect.gen(function* () {
      const { exit } = yield* watch(agentOf(Budget.make({ tokens: 100, onExhausted: "fail" })))
      const error = failureOf(exit)
      assert.instanceOf(error, Budget.BudgetExceeded)
      assert.deepInclude(error, { agent: "agent", limit: "tokens", max: 100, used: 120 })
      assert.strictEqual(
        error.message,
        'Agent "agent" was stopped: the budget of 100 tokens is used up (120 tokens so far); raise `tokens` of Budget.make, or set `onExhausted` to "finalAnswer"'
      )
    }).pipe(Effect.provide(TestChatModel.script([work([1], { inputTokens: 120 })])))
  )

  it.effect("the last tool call that there is fails nobody; one more does, and nothing of its turn runs", () =>
    Effect.gen(function* () {
      const log: Array<number> = []
      const agent = agentOf(Budget.make({ toolCalls: 2, onExhausted: "fail" }), log)
      const result = yield* Agent.run(agent, prompt)
      assert.strictEqual(result.text, "fine")
      const exit = yield* Effect.exit(Agent.run(agent, prompt))
      assert.deepInclude(failureOf(exit), { _tag: "BudgetExceeded", limit: "toolCalls", max: 2, used: 2 })
      assert.deepStrictEqual(log, [1, 2])
    }).pipe(Effect.provide(TestChatModel.script([work([1, 2]), "fine", work([3, 4, 5])])))
  )

  it.effect("time interrupts a model call that runs past it", () =>
    Effect.gen(function* () {
      const run = yield* inBackground(watch(agentOf(Budget.make({ time: "10 seconds", onExhausted: "fail" }))))
      yield* TestClock.adjust("10 seconds")
      const { exit } = yield* run.result
      assert.deepInclude(failureOf(exit), { _tag: "BudgetExceeded", limit: "time", max: 10_000, used: 10_000 })
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.hangAfter("well")])))
  )

  it.effect("time interrupts a tool that runs past it", () =>
    Effect.gen(function* () {
      const log: Array<number> = []
      const agent = agentOf(Budget.make({ time: "10 seconds", onExhausted: "fail" }), log, 60_000)
      const run = yield* inBackground(Effect.exit(Agent.run(agent, prompt)))
      yield* TestClock.adjust("10 seconds")
      assert.deepInclude(failureOf(yield* run.result), { _tag: "BudgetExceeded", limit: "time" })
      assert.deepStrictEqual(log, [])
    }).pipe(Effect.provide(TestChatModel.script([work([1])])))
  )

  it.effect("a call on the side fails too", () =>
    Effect.gen(function* () {
      const grader = Middleware.make({
        name: "grader",
        afterModel: (run) => Effect.asVoid(Effect.orDie(run.call({ messages: run.messages, purpose: "grade" })))
      })
      const agent = Agent.make({
        name: "agent",
        prompt: "You work.",
        middleware: [Budget.make({ tokens: 100, onExhausted: "fail" }), grader]
      })
      const exit = yield* Effect.exit(Agent.run(agent, prompt))
      assert.deepInclude(failureOf(exit), { _tag: "BudgetExceeded", limit: "tokens" })
    }).pipe(Effect.provide(TestChatModel.script([answer("done", { inputTokens: 100 })])))
  )
})

describe("Budget, sub-agents", () => {
  const helperOf = (log: Array<number>, takes = 0, ...middleware: ReadonlyArray<Middleware.Middleware>) =>
    Agent.make({ name: "helper", description: "Helps", prompt: "You help.", tools: [worker(log, takes)], middleware })

  const parentOf = <E>(
    budget: Middleware.Middleware<E>,
    helper: Agent.Agent<string, unknown, never> | ReturnType<typeof helperOf>
  ) => Agent.make({ name: "agent", prompt: "You delegate.", tools: [Agent.asTool(helper)], middleware: [budget] })

  const delegate = (...tasks: ReadonlyArray<string>) =>
    TestChatModel.calls(tasks.map((task) => ({ name: "helper", arguments: { task } })))

  it.effect("the whole tree works on one budget, in parallel too", () =>
    Effect.gen(function* () {
      const log: Array<number> = []
      const agent = parentOf(Budget.make({ toolCalls: 5, onExhausted: "finalAnswer" }), helperOf(log))
      const result = yield* Agent.run(agent, prompt)
      // Two calls of `helper`, so three are left for what they do.
      assert.strictEqual(log.length, 3)
      assert.strictEqual(result.stopReason, "budget:toolCalls")
    }).pipe(
      Effect.provide(
        TestChatModel.reactive((request, index) => {
          if (request.tools.length === 0) return "done"
          return request.systemPrompt.startsWith("You delegate") ? delegate("a", "b") : work([index * 2, index * 2 + 1])
        })
      )
    )
  )

  it.effect("a sub-agent whose budget is used up is not begun", () =>
    Effect.gen(function* () {
      const agent = parentOf(Budget.make({ tokens: 100, onExhausted: "finalAnswer" }), helperOf([]))
      const result = yield* Agent.run(agent, prompt)
      assert.deepStrictEqual(toolMessages(result), [
        [false, "This was not begun: the budget of 100 tokens is used up."]
      ])
      assert.strictEqual((yield* TestChatModel.requests).length, 2)
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([{ name: "helper", arguments: { task: "a" } }], { usage: { inputTokens: 100 } }),
          "done"
        ])
      )
    )
  )

  it.effect("time: a sub-agent is not cut off but brought to an answer", () =>
    Effect.gen(function* () {
      const agent = parentOf(Budget.make({ time: "10 seconds", onExhausted: "finalAnswer" }), helperOf([], 60_000))
      const run = yield* inBackground(Agent.run(agent, prompt))
      yield* TestClock.adjust("15 seconds")
      const result = yield* run.result
      assert.deepStrictEqual(toolMessages(result), [[false, "what I found"]])
      assert.deepStrictEqual([result.text, result.stopReason], ["done", "budget:time"])
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          delegate("a"),
          work([1]),
          TestChatModel.text("what I found", { delay: "5 seconds" }),
          "done"
        ])
      )
    )
  )

  it.effect("fail: a sub-agent that is stopped stops its parent at its next call", () =>
    Effect.gen(function* () {
      const agent = parentOf(Budget.make({ tokens: 100, onExhausted: "fail" }), helperOf([]))
      const exit = yield* Effect.exit(Agent.run(agent, prompt))
      assert.deepInclude(failureOf(exit), { _tag: "BudgetExceeded", agent: "agent", used: 150 })
    }).pipe(Effect.provide(TestChatModel.script([delegate("a"), work([1], { inputTokens: 150 })])))
  )

  it.effect("a sub-agent's own budget is for each of its runs, and for it alone", () =>
    Effect.gen(function* () {
      const log: Array<number> = []
      const own = Budget.make({ toolCalls: 1, onExhausted: "finalAnswer" })
      const agent = parentOf(Budget.make({ toolCalls: 10, onExhausted: "finalAnswer" }), helperOf(log, 0, own))
      const result = yield* Agent.run(agent, prompt)
      assert.deepStrictEqual(log, [1, 3])
      assert.strictEqual(result.stopReason, "completed")
    }).pipe(
      Effect.provide(
        TestChatModel.script([delegate("a"), work([1, 2]), "one", delegate("b"), work([3, 4]), "two", "done"])
      )
    )
  )

  it.effect("a run that a tool begins on its own account has a budget of its own", () =>
    Effect.gen(function* () {
      const budget = Budget.make({ toolCalls: 1, onExhausted: "finalAnswer" })
      const log: Array<number> = []
      const inner = agentOf(budget, log)
      const aside = Tool.make("aside", {
        description: "Runs an agent",
        parameters: {},
        execute: () => Effect.map(Agent.run(inner, prompt), (result) => result.text)
      })
      const outer = Agent.make({ name: "outer", prompt: "", tools: [aside], middleware: [budget] })
      yield* Agent.run(outer, prompt)
      assert.deepStrictEqual(log, [1])
    }).pipe(
      Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "aside" }]), work([1]), "inner", "outer"]))
    )
  )

  it.effect("no turn begins over budget, no call runs over budget: for any tree of agents", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.record({
            tokens: fc.integer({ min: 0, max: 200 }),
            toolCalls: fc.integer({ min: 0, max: 12 }),
            rounds: fc.integer({ min: 0, max: 12 }),
            steps: fc.array(
              fc.record({
                delegates: fc.nat(2),
                works: fc.nat(3),
                used: fc.nat(40),
                takes: fc.nat(50)
              }),
              { minLength: 1, maxLength: 12 }
            )
          }),
          ({ rounds, steps, tokens, toolCalls }) =>
            Effect.runPromise(
              Effect.gen(function* () {
                const log: Array<number> = []
                const violations: Array<string> = []
                const turns = { begun: 0 }
                const calls = { begun: 0 }
                let root: Run.Run | undefined
                const probe = Middleware.make({
                  name: "probe",
                  inherit: true,
                  beforeAgent: (run) =>
                    Effect.sync(() => {
                      root ??= run
                    }),
                  wrapModelCall: (request, next) => {
                    if (request.tools.length > 0) {
                      turns.begun++
                      const used = root === undefined ? 0 : Usage.totalTokens(root.usage)
                      if (used >= tokens) violations.push(`a turn began at ${used} of ${tokens} tokens`)
                    }
                    return next(request)
                  },
                  wrapToolCall: (call, next) => {
                    calls.begun++
                    return next(call)
                  }
                })
                const budget = Budget.make({ tokens, toolCalls, rounds, onExhausted: "finalAnswer" })
                const agent = Agent.make({
                  name: "agent",
                  prompt: "You delegate.",
                  tools: [worker(log, 7), Agent.asTool(helperOf(log, 3))],
                  middleware: [budget, probe]
                })
                const model = TestChatModel.reactive((request, index) => {
                  const step = steps[index % steps.length]
                  if (step === undefined || request.tools.length === 0) return answer("final", { inputTokens: 1 })
                  const canDelegate = request.tools.some((tool) => tool.name === "helper")
                  const all = [
                    ...Array.from({ length: step.works }, (_, n) => ({
                      name: "work",
                      arguments: { n: index * 10 + n }
                    })),
                    ...Array.from({ length: canDelegate ? step.delegates : 0 }, (_, n) => ({
                      name: "helper",
                      arguments: { task: `${index} ${n}` }
                    }))
                  ]
                  const options = { usage: { inputTokens: step.used }, delay: step.takes }
                  return all.length === 0 || index > 60
                    ? TestChatModel.text("enough", options)
                    : TestChatModel.calls(all, options)
                })
                const run = yield* inBackground(Effect.provide(Agent.run(agent, prompt), model))
                yield* TestClock.adjust("1 hour")
                yield* run.result
                assert.deepStrictEqual(violations, [])
                assert.isAtMost(calls.begun, toolCalls)
                assert.isAtMost(turns.begun, rounds)
              }).pipe(Effect.provide(TestClock.layer()), Effect.scoped)
            )
        ),
        { numRuns: 60 }
      )
    )
  )
})
