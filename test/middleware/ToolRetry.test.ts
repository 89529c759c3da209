import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Data, Effect, Exit, Schedule } from "effect"
import { Agent, Message, type Middleware, Tool, ToolError, ToolOutput } from "effect-deepagents"
import { ToolRetry, ToolTimeout } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import { inBackground, prompt } from "./run.ts"

/** A tool that counts its tries and fails the first ones in this way. */
const flaky = (
  annotations: Tool.Annotations,
  failures: ReadonlyArray<ToolError.ToolError | "defect" | "isError" | "hang">
) => {
  const tries: Array<number> = []
  const flakyTool = Tool.make("fetch", {
    description: "A tool",
    parameters: {},
    annotations,
    execute: () =>
      Effect.gen(function* () {
        const failure = failures[tries.length]
        tries.push(yield* Clock.currentTimeMillis)
        if (failure === undefined) return "fetched"
        if (failure === "defect") return yield* Effect.die(new Error("broken"))
        if (failure === "isError") return ToolOutput.make("no such page", { isError: true })
        if (failure === "hang") return yield* Effect.never
        return yield* failure
      })
  })
  return { tool: flakyTool, tries }
}

const answerOf = <E, R>(tool: Tool.Tool, ...middleware: ReadonlyArray<Middleware.Middleware<E, R>>) =>
  Agent.run(Agent.make({ name: "agent", prompt: "You are tested.", tools: [tool], middleware }), prompt).pipe(
    Effect.map(({ messages }) =>
      messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))
    ),
    Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "fetch" }]), "done"]))
  )

const failed = (n: number) => ToolError.make(`failure ${n}`)
const reason = (reason: ToolError.ToolError["reason"]) => new ToolError.ToolError({ reason, message: reason })

describe("ToolRetry", () => {
  for (const annotations of [{ readOnly: true }, { idempotent: true }]) {
    it.effect(`runs a tool again that does no harm: ${JSON.stringify(annotations)}`, () =>
      Effect.gen(function* () {
        const { tool, tries } = flaky(annotations, [failed(1), failed(2)])
        const run = yield* inBackground(answerOf(tool, ToolRetry.make()))
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* run.result, ["fetched"])
        const [first = 0, second = 0, third = 0] = tries
        assert.lengthOf(tries, 3)
        assert.isTrue(second - first >= 160 && second - first <= 240)
        assert.isTrue(third - second >= 320 && third - second <= 480)
      })
    )
  }

  it.effect("tells the model the last failure after three tries", () =>
    Effect.gen(function* () {
      const { tool, tries } = flaky({ readOnly: true }, [1, 2, 3, 4].map(failed))
      const run = yield* inBackground(answerOf(tool, ToolRetry.make()))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* run.result, ["failure 3"])
      assert.lengthOf(tries, 3)
    })
  )

  for (const annotations of [{}, { destructive: true }, { readOnly: false, openWorld: true }]) {
    it.effect(`a tool that may do harm is not run again: ${JSON.stringify(annotations)}`, () =>
      Effect.gen(function* () {
        const { tool, tries } = flaky(annotations, [failed(1)])
        assert.deepStrictEqual(yield* answerOf(tool, ToolRetry.make()), ["failure 1"])
        assert.lengthOf(tries, 1)
      })
    )
  }

  for (const one of ["InvalidArguments", "UnknownTool", "Rejected", "Defect"] as const) {
    it.effect(`another try would not help: ${one}`, () =>
      Effect.gen(function* () {
        const { tool, tries } = flaky({ readOnly: true }, [reason(one)])
        assert.deepStrictEqual(yield* answerOf(tool, ToolRetry.make()), [one])
        assert.lengthOf(tries, 1)
      })
    )
  }

  it.effect("a defect and an output with isError are not retried", () =>
    Effect.gen(function* () {
      const broken = flaky({ readOnly: true }, ["defect"])
      yield* answerOf(broken.tool, ToolRetry.make())
      assert.lengthOf(broken.tries, 1)
      const missing = flaky({ readOnly: true }, ["isError"])
      assert.deepStrictEqual(yield* answerOf(missing.tool, ToolRetry.make()), ["no such page"])
      assert.lengthOf(missing.tries, 1)
    })
  )

  it.effect("a tool's own schedule retries it with any annotations, and false never does", () =>
    Effect.gen(function* () {
      const own = flaky({}, [1, 2, 3, 4].map(failed))
      assert.deepStrictEqual(yield* answerOf(own.tool, ToolRetry.make({ tools: { fetch: Schedule.recurs(4) } })), [
        "fetched"
      ])
      assert.lengthOf(own.tries, 5)
      const never = flaky({ readOnly: true }, [failed(1)])
      assert.deepStrictEqual(yield* answerOf(never.tool, ToolRetry.make({ tools: { fetch: false } })), ["failure 1"])
      assert.lengthOf(never.tries, 1)
    })
  )

  it.effect("`schedule` is for all tools that are retried", () =>
    Effect.gen(function* () {
      const { tool, tries } = flaky({ idempotent: true }, [1, 2, 3].map(failed))
      const answer = yield* answerOf(
        tool,
        ToolRetry.make({ schedule: Schedule.recurs(3), tools: { other: Schedule.recurs(1) } })
      )
      assert.deepStrictEqual(answer, ["fetched"])
      assert.lengthOf(tries, 4)
    })
  )

  it.effect("ToolTimeout inside of it gives each try its time, outside all of them together", () =>
    Effect.gen(function* () {
      const limit = ToolTimeout.make({ default: "10 seconds" })
      const retry = ToolRetry.make({ schedule: Schedule.recurs(2) })
      const inside = flaky({ readOnly: true }, ["hang", "hang"])
      const first = yield* inBackground(answerOf(inside.tool, retry, limit))
      yield* TestClock.adjust("20 seconds")
      assert.deepStrictEqual(yield* first.result, ["fetched"])
      assert.deepStrictEqual(inside.tries, [0, 10_000, 20_000])
      const outside = flaky({ readOnly: true }, ["hang", "hang"])
      const second = yield* inBackground(answerOf(outside.tool, limit, retry))
      yield* TestClock.adjust("10 seconds")
      assert.include((yield* second.result)[0], "was given 10s")
      assert.lengthOf(outside.tries, 1)
    })
  )

  it.effect("9: interrupting the run ends the wait", () =>
    Effect.gen(function* () {
      const { tool, tries } = flaky({ readOnly: true }, [failed(1)])
      const run = yield* inBackground(answerOf(tool, ToolRetry.make()))
      yield* TestClock.adjust("100 millis")
      run.fiber.interruptUnsafe()
      yield* TestClock.adjust("1 minute")
      const exit = run.fiber.pollUnsafe()
      assert.isTrue(exit !== undefined && Exit.hasInterrupts(exit))
      assert.lengthOf(tries, 1)
    })
  )

  it.effect("a schedule's own failure and needs are the run's", () =>
    Effect.gen(function* () {
      class Enough extends Data.TaggedError("Enough")<{ readonly limit: number }> {}
      class Limit extends Context.Service<Limit, number>()("test/Limit") {}
      const { tool, tries } = flaky({}, [1, 2, 3].map(failed))
      const counted = Schedule.recurs(10).pipe(
        Schedule.tap(({ attempt }) =>
          Effect.flatMap(Limit, (limit) => (attempt > limit ? Effect.fail(new Enough({ limit })) : Effect.void))
        )
      )
      const error = yield* answerOf(tool, ToolRetry.make({ tools: { fetch: counted } })).pipe(
        Effect.flip,
        Effect.provideService(Limit, 1)
      )
      assert.deepStrictEqual(error, new Enough({ limit: 1 }))
      assert.lengthOf(tries, 2)
    })
  )
})
