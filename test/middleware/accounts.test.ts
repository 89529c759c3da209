/**
 * Calls at the expense of accounts, by the smallest middleware that charges them.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schema } from "effect"
import { Agent, Middleware, Tool, type Usage } from "effect-deepagents"
import { Budget, Subagents } from "effect-deepagents/middleware"
import { Ledger } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { failureOf, inBackground, prompt } from "./run.ts"

type Caps = Ledger.Cap | ReadonlyArray<Ledger.Cap>

const capOf = (max: Ledger.Amounts, account = "acme"): Ledger.Cap => ({ account, window: "day", max })

/** Fails the run when an account is full. */
const failing = (caps: Caps) => Budget.accounts({ caps: () => caps, onExhausted: "fail" })

/** Ends the run with an answer when an account is full. */
const gentle = (caps: Caps) => Budget.accounts({ caps: () => caps, onExhausted: "finalAnswer" })

const worker = (log: Array<number> = []) =>
  Tool.make("work", {
    description: "Works",
    parameters: { n: Schema.Finite },
    execute: ({ n }) => Effect.sync(() => `done ${log.push(n)}`)
  })

const work = (numbers: ReadonlyArray<number>, usage?: Partial<Usage.Usage>) =>
  TestChatModel.calls(
    numbers.map((n) => ({ name: "work", arguments: { n } })),
    usage === undefined ? {} : { usage }
  )

const agentOf = <E, R>(accounts: Middleware.Middleware<E, R>, log: Array<number> = []) =>
  Agent.make({ name: "agent", prompt: "You work.", tools: [worker(log)], middleware: [accounts] })

const spent = Ledger.Ledger.use((ledger) => ledger.spent("acme", "day"))

const on = (...turns: ReadonlyArray<TestChatModel.Turn>) => Layer.merge(Ledger.layerMemory, TestChatModel.script(turns))

describe("model calls at the expense of accounts", () => {
  it.effect("the usage of each turn is settled, before the next one is reserved", () =>
    Effect.gen(function* () {
      yield* Agent.run(agentOf(failing(capOf({ tokens: 5000 }))), prompt)
      const { reserved, used } = yield* spent
      assert.deepStrictEqual(used, { modelCalls: 2, toolCalls: 1, tokens: 300, cost: 0.75 })
      assert.deepStrictEqual(reserved, { modelCalls: 0, toolCalls: 0, tokens: 0, cost: 0 })
    }).pipe(
      Effect.provide(
        on(
          work([1], { inputTokens: 60, outputTokens: 40, cost: 0.25 }),
          TestChatModel.text("done", { usage: { inputTokens: 200, cost: 0.5 } })
        )
      )
    )
  )

  it.effect("a call that has no room is not begun, and fails the run typed", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(Agent.run(agentOf(failing(capOf({ tokens: 4300 }))), prompt))
      const error = failureOf(exit)
      assert.strictEqual(error?._tag, "LedgerFull")
      if (error?._tag !== "LedgerFull") return
      assert.strictEqual(error.account, "acme")
      assert.deepStrictEqual([error.limit, error.max, error.used + error.reserved], ["tokens", 4300, 250])
      assert.strictEqual((yield* TestChatModel.requests).length, 1)
    }).pipe(Effect.provide(on(work([1], { inputTokens: 250 }))))
  )

  it.effect("the end can be gentle: the run says why, and no model call is begun for it", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agentOf(gentle(capOf({ modelCalls: 1 }))), prompt)
      assert.strictEqual(result.stopReason, "budget:rounds")
      assert.strictEqual(result.text, "This was not finished: the account's 1 model calls are used up.")
      assert.strictEqual((yield* TestChatModel.requests).length, 1)
    }).pipe(Effect.provide(on(work([1]))))
  )

  it.effect("a call that is interrupted counts with all that was reserved", () =>
    Effect.gen(function* () {
      const { fiber } = yield* inBackground(Agent.run(agentOf(failing(capOf({}))), prompt))
      yield* Effect.yieldNow
      const open = yield* spent
      assert.isAbove(open.reserved.tokens, 4096)
      yield* Fiber.interrupt(fiber)
      const { reserved, used } = yield* spent
      assert.deepStrictEqual([used.tokens, reserved.tokens], [open.reserved.tokens, 0])
    }).pipe(Effect.provide(on(TestChatModel.hang)))
  )

  it.effect("a request that the provider refused counts as a call, and costs nothing", () =>
    Effect.gen(function* () {
      yield* Effect.exit(Agent.run(agentOf(failing(capOf({}))), prompt))
      assert.deepStrictEqual((yield* spent).used, { modelCalls: 1, toolCalls: 0, tokens: 0, cost: 0 })
    }).pipe(Effect.provide(on(TestChatModel.fail({ _tag: "Authentication" }))))
  )

  it.effect("a call that was lost on the way may have been paid for, and counts with all that was reserved", () =>
    Effect.gen(function* () {
      yield* Effect.exit(Agent.run(agentOf(failing(capOf({}))), prompt))
      assert.isAbove((yield* spent).used.tokens, 4096)
    }).pipe(Effect.provide(on(TestChatModel.fail({ _tag: "Transport" }))))
  )

  it.effect("the limit of the answer is that of the request", () =>
    Effect.gen(function* () {
      const limited = Middleware.make({
        name: "limited",
        wrapModelCall: (request, next) => next({ ...request, parameters: { maxTokens: 7 } })
      })
      const agent = Agent.make({ name: "a", prompt: "p", middleware: [limited, failing(capOf({ tokens: 100 }))] })
      const result = yield* Agent.run(agent, prompt)
      assert.strictEqual(result.text, "done")
    }).pipe(Effect.provide(on("done")))
  )

  it.effect("runs at once never use more than the account has", () =>
    Effect.gen(function* () {
      const limited = Middleware.make({
        name: "limited",
        wrapModelCall: (request, next) => next({ ...request, parameters: { maxTokens: 50 } })
      })
      const agent = Agent.make({
        name: "agent",
        prompt: "You work.",
        tools: [worker()],
        middleware: [limited, failing(capOf({ tokens: 2000 }))]
      })
      const usage = { inputTokens: 30, outputTokens: 45 }
      const script = [...Array.from({ length: 5 }, () => work([1], usage)), TestChatModel.text("done", { usage })]
      const one = Effect.exit(
        Effect.provide(Agent.run(agent, prompt), TestChatModel.script(script, { exhaustive: false }))
      )
      const exits = yield* Effect.all(
        Array.from({ length: 12 }, () => one),
        { concurrency: "unbounded" }
      )
      assert.isAbove(exits.filter((exit) => failureOf(exit)?._tag === "LedgerFull").length, 0)
      const { reserved, used } = yield* spent
      assert.strictEqual(reserved.tokens, 0)
      assert.isAtMost(used.tokens, 2000)
      assert.strictEqual(used.tokens, used.modelCalls * 75)
      assert.isAbove(used.tokens, 1500)
    }).pipe(Effect.provide(Ledger.layerMemory))
  )

  it.effect("sub-agents pay from the same account", () =>
    Effect.gen(function* () {
      const child = Agent.make({ name: "child", description: "Helps", prompt: "You help." })
      const agent = Agent.make({
        name: "parent",
        prompt: "You delegate.",
        middleware: [failing(capOf({})), Subagents.make({ agents: [child] })]
      })
      yield* Agent.run(agent, prompt)
      assert.deepStrictEqual((yield* spent).used, { modelCalls: 3, toolCalls: 1, tokens: 111, cost: 0 })
    }).pipe(
      Effect.provide(
        on(
          TestChatModel.calls([{ name: "task", arguments: { description: "help", subagent_type: "child" } }], {
            usage: { inputTokens: 1 }
          }),
          TestChatModel.text("helped", { usage: { inputTokens: 10 } }),
          TestChatModel.text("done", { usage: { inputTokens: 100 } })
        )
      )
    )
  )
})

describe("tool calls at the expense of accounts", () => {
  it.effect("calls that have no room are answered, not run, and the answer names no account", () =>
    Effect.gen(function* () {
      const log: Array<number> = []
      const result = yield* Agent.run(agentOf(gentle(capOf({ toolCalls: 2 })), log), prompt)
      assert.strictEqual(log.length, 2)
      const refused = result.messages.flatMap((message) =>
        message.role === "tool" && message.isError ? message.content : []
      )
      assert.strictEqual(refused.length, 1)
      assert.include(JSON.stringify(refused), "Not executed: the account's 2 tool calls are used up.")
      assert.strictEqual((yield* spent).used.toolCalls, 2)
    }).pipe(Effect.provide(on(work([1, 2, 3]), "done")))
  )

  it.effect("of many runs at once no more calls run than the account has", () =>
    Effect.gen(function* () {
      const log: Array<number> = []
      const agent = agentOf(gentle(capOf({ toolCalls: 7 })), log)
      const one = Effect.provide(Agent.run(agent, prompt), TestChatModel.script([work([1, 2, 3]), "done"]))
      yield* Effect.all([one, one, one, one], { concurrency: "unbounded" })
      assert.strictEqual(log.length, 7)
    }).pipe(Effect.provide(Ledger.layerMemory))
  )
})

describe("a ledger that can't be reached", () => {
  const down = Layer.effect(
    Ledger.Ledger,
    Effect.map(Ledger.Ledger, (ledger) => ({
      ...ledger,
      reserve: () =>
        Effect.fail(
          new Ledger.LedgerError({
            operation: "reserve",
            account: "acme",
            reason: { _tag: "Unavailable", problem: "it is away" }
          })
        )
    }))
  ).pipe(Layer.provide(Ledger.layerMemory))

  it.effect("fails the run, and nothing is asked", () =>
    Effect.gen(function* () {
      const error = failureOf(yield* Effect.exit(Agent.run(agentOf(gentle(capOf({}))), prompt)))
      assert.strictEqual(error?._tag, "LedgerError")
      assert.strictEqual((yield* TestChatModel.requests).length, 0)
    }).pipe(Effect.provide(Layer.merge(down, TestChatModel.script([]))))
  )

  it.effect("after a call, the run goes on with a warning, and the call counts with all that was reserved", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agentOf(failing(capOf({}))), prompt)
      assert.strictEqual(result.text, "done")
      assert.isAbove((yield* spent).used.tokens, 4096)
    }).pipe(
      Effect.provide(
        Layer.merge(
          Layer.effect(
            Ledger.Ledger,
            Effect.map(Ledger.Ledger, (ledger) => ({
              ...ledger,
              reserve: (caps: Caps, want: Ledger.Amounts) =>
                Effect.map(ledger.reserve(caps, want), ({ id }) => ({
                  id,
                  settle: () =>
                    Effect.fail(
                      new Ledger.LedgerError({
                        operation: "settle",
                        account: "acme",
                        reason: { _tag: "Unavailable", problem: "it is away" }
                      })
                    )
                }))
            }))
          ).pipe(Layer.provide(Ledger.layerMemory)),
          TestChatModel.script([TestChatModel.text("done", { usage: { inputTokens: 5 } })])
        )
      )
    )
  )
})
