import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { Agent, type AgentEvent, ChatModel, Message, Usage } from "effect-deepagents"
import { Budget } from "effect-deepagents/middleware"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { scaled } from "../../scale.ts"

const hostile = [Number.NaN, -5, Infinity, -Infinity, 1e308]

const kinds = ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens", "cost"] as const

/** A model whose layer reports this usage. */
const reporting = (usage: Usage.Usage, prices?: Usage.Prices) =>
  Layer.succeed(ChatModel.ChatModel, {
    modelId: "odd",
    provider: "test",
    supportsVision: true,
    contextWindowTokens: undefined,
    prices,
    makeSession: Effect.succeed({
      nextTurn: () => Stream.succeed({ _tag: "TurnDone" as const, message: Message.ai("done", { usage }) })
    })
  })

const agent = Agent.make({
  name: "a",
  prompt: "p",
  middleware: [Budget.make({ tokens: 1000, cost: 1, unpriced: "allow", onExhausted: "fail" })]
})

describe("usage that is no usage", () => {
  for (const kind of kinds) {
    for (const value of hostile) {
      it.effect(`${kind} ${value} counts as 0, is told once, and can be stored`, () =>
        Effect.gen(function* () {
          const usage = { ...Usage.zero, inputTokens: 1, [kind]: value }
          const events: Array<AgentEvent.AgentEvent> = []
          yield* Stream.runForEach(Agent.stream(agent, "hi", { threadId: "t" }), (event) =>
            Effect.sync(() => void events.push(event))
          ).pipe(
            Effect.provide([reporting(usage), SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))])
          )
          const warned = events.filter((event) => event._tag === "Warning" && event.code === "usage")
          assert.strictEqual(warned.length, 1)
          const end = events.at(-1)
          assert.strictEqual(end?._tag, "RunCompleted")
          if (end?._tag !== "RunCompleted") return
          assert.deepStrictEqual(end.usage, { ...Usage.zero, inputTokens: kind === "inputTokens" ? 0 : 1 })
        })
      )
    }
  }

  it.effect("replaces an invalid cost by the cost of the prices", () =>
    Effect.gen(function* () {
      const usage = Usage.make({ inputTokens: 1_000_000, cost: Number.NaN })
      const result = yield* Effect.provide(Agent.run(agent, "hi"), reporting(usage, { input: 0.25, output: 1 }))
      assert.strictEqual(result.usage.cost, 0.25)
    })
  )

  it("sums never go down and are always numbers", () => {
    const amount = fc.oneof(fc.nat(1e6), fc.constantFrom(...hostile), fc.double())
    const usage = fc.record(
      {
        inputTokens: amount,
        outputTokens: amount,
        cacheReadTokens: amount,
        cacheWriteTokens: amount,
        reasoningTokens: amount,
        cost: amount
      },
      { requiredKeys: ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens"] }
    )
    fc.assert(
      fc.property(fc.array(usage), (all) => {
        let sum = Usage.zero
        for (const one of all) {
          const next = Usage.add(sum, one)
          for (const kind of kinds) {
            const value = next[kind] ?? 0
            assert.isTrue(Number.isFinite(value) && value >= (sum[kind] ?? 0), `${kind} ${value}`)
          }
          sum = next
        }
      }),
      { numRuns: scaled(8000) }
    )
  })
})

describe("prices of long requests", () => {
  it("hold above their number of tokens, in any order", () => {
    const bands = [200_000, 400_000].map((above) => ({ above, input: above / 100_000, output: 0 }))
    const costOf = (inputTokens: number, long: Usage.Prices["long"]) =>
      Usage.priced(Usage.make({ inputTokens }), { input: 1, output: 1, long }).cost
    for (const long of [bands, bands.toReversed()]) {
      assert.deepStrictEqual(
        [200_000, 300_000, 500_000].map((tokens) => costOf(tokens, long)),
        [0.2, 0.6, 2]
      )
    }
  })
})

describe("a turn that was cut off", () => {
  it.live("counts its output so far, with its money, as an estimate", () =>
    Effect.gen(function* () {
      const said = "word ".repeat(2_000)
      const ending = yield* Effect.gen(function* () {
        const handle = yield* Agent.start(Agent.make({ name: "a", prompt: "p" }), "hi", { threadId: "t" })
        const events: Array<AgentEvent.AgentEvent> = []
        yield* Stream.runForEach(handle.events, (event) => {
          events.push(event)
          return event._tag === "TextDelta" ? Effect.asVoid(handle.interrupt) : Effect.void
        })
        const { usage } = (yield* SessionStore.checkpoint("t")) ?? assert.fail("no thread")
        return { end: events.at(-1), usage }
      }).pipe(
        Effect.scoped,
        Effect.provide([
          TestChatModel.script([TestChatModel.hangAfter(said)], { prices: { input: 1, output: 10 } }),
          SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))
        ])
      )
      const { end, usage } = ending
      assert.strictEqual(end?._tag, "RunInterrupted")
      if (end?._tag !== "RunInterrupted") return
      assert.isTrue(end.usage.isEstimated)
      assert.isAbove(end.usage.outputTokens, 1_000)
      assert.isAbove(end.usage.inputTokens, 0)
      assert.isAbove(end.usage.cost ?? 0, 0.01)
      assert.deepStrictEqual(usage, end.usage)
    })
  )

  it("leaves its mark on sums", () => {
    const estimate = { ...Usage.make({ outputTokens: 5 }), isEstimated: true }
    assert.isTrue(Usage.add(Usage.zero, estimate).isEstimated)
    assert.isUndefined(Usage.add(Usage.zero, Usage.zero).isEstimated)
    assert.isTrue(Usage.sanitize({ ...estimate, inputTokens: Number.NaN }).isEstimated)
  })
})
