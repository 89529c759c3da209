import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Data, Duration, Effect, Exit, Layer, Schedule, Stream } from "effect"
import { Agent, ChatModel, Message, Middleware, ModelError } from "effect-deepagents"
import { ModelRetry } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import { agentWith, failureOf, inBackground, prompt, story, watch } from "./run.ts"

const overloaded: ModelError.Reason = { _tag: "Overloaded" }
const retrying = agentWith(ModelRetry.make())

/** A model whose turns are these streams, one a request. */
const streams = (...turns: ReadonlyArray<Stream.Stream<ChatModel.TurnPart, ModelError.ModelError>>) => {
  let index = 0
  return Layer.succeed(ChatModel.ChatModel, {
    modelId: "streams",
    provider: "test",
    supportsVision: true,
    contextWindowTokens: undefined,
    makeSession: Effect.succeed({ nextTurn: () => turns[index++] ?? Stream.die("no more turns") })
  })
}

const failure = (reason: ModelError.Reason, detail = "failed") =>
  new ModelError.ModelError({ provider: "test", reason, detail })
const text = (value: string): ChatModel.TurnPart => ({ _tag: "TextDelta", text: value })
const finishTurn = (value: string): ChatModel.TurnPart => ({ _tag: "TurnDone", message: Message.ai(value) })

describe("ModelRetry", () => {
  it.effect("11: sends the same request again, after a wait, until there is an answer", () =>
    Effect.gen(function* () {
      const run = yield* inBackground(watch(retrying))
      yield* TestClock.adjust("399 millis")
      assert.lengthOf(yield* TestChatModel.requests, 1)
      yield* TestClock.adjust("201 millis")
      assert.lengthOf(yield* TestChatModel.requests, 2)
      yield* TestClock.adjust("1200 millis")
      const { events } = yield* run.result
      assert.deepStrictEqual(story(events), ["<model-retry>", "<model-retry>", "fine", "<RunCompleted>"])
      const [first, ...others] = yield* TestChatModel.requests
      assert.lengthOf(others, 2)
      for (const other of others) assert.deepStrictEqual(other, first)
    }).pipe(
      Effect.provide(
        TestChatModel.script([TestChatModel.fail(overloaded), TestChatModel.fail({ _tag: "Transport" }), "fine"])
      )
    )
  )

  it.effect(
    "11: TurnRestarted precedes the new parts when old ones went out, and the transcript has only the new",
    () =>
      Effect.gen(function* () {
        const run = yield* inBackground(watch(retrying))
        yield* TestClock.adjust("10 seconds")
        const { events } = yield* run.result
        assert.deepStrictEqual(story(events), [
          "half an ans",
          "<model-retry>",
          "<restarted>",
          "<model-retry>",
          "the answer",
          "<RunCompleted>"
        ])
        const said = events.flatMap((event) => (event._tag === "MessageAppended" ? [Message.text(event.message)] : []))
        assert.deepStrictEqual(said, [prompt, "the answer"])
      }).pipe(
        Effect.provide(
          TestChatModel.script([
            TestChatModel.fail({ _tag: "Transport" }, { after: "half an ans" }),
            TestChatModel.fail(overloaded),
            "the answer"
          ])
        )
      )
  )

  it.effect("asks three times within two seconds where nothing listens on this machine", () =>
    Effect.gen(function* () {
      const run = yield* inBackground(watch(retrying))
      yield* TestClock.adjust("2 seconds")
      const { exit } = yield* run.result
      assert.match(failureOf(exit)?.message ?? "", /nothing listens at .*; tried 3 times in \d s$/)
    }).pipe(
      Effect.provide(
        streams(
          ...Array.from({ length: 3 }, () =>
            Stream.fail(failure({ _tag: "Transport", isRefused: true }, "nothing listens at x"))
          )
        )
      )
    )
  )

  it.effect("11: a turn in which the provider ran a tool is not retried", () =>
    Effect.gen(function* () {
      const { events, exit } = yield* watch(retrying)
      assert.strictEqual(failureOf(exit)?._tag, "ModelError")
      assert.deepStrictEqual(story(events), ["<RunFailed>"])
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.fail(overloaded, {
            after: [{ _tag: "ToolCallStart", id: "1", name: "web_search", providerExecuted: true }]
          })
        ])
      )
    )
  )

  it.effect("a call of one of our own tools in a failed turn has had no effect, so the turn is retried", () =>
    Effect.gen(function* () {
      const run = yield* inBackground(watch(retrying))
      yield* TestClock.adjust("1 second")
      const { events } = yield* run.result
      assert.deepStrictEqual(story(events), ["<model-retry>", "<restarted>", "fine", "<RunCompleted>"])
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.fail(overloaded, { after: [{ _tag: "ToolCallStart", id: "1", name: "search" }] }),
          "fine"
        ])
      )
    )
  )

  const permanent = [
    "Authentication",
    "Permission",
    "InvalidRequest",
    "ContextOverflow",
    "ContentFiltered",
    "QuotaExhausted",
    "Unsupported",
    "Unknown"
  ] as const
  for (const _tag of permanent) {
    it.effect(`a failure that does not pass goes through at once: ${_tag}`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(Agent.run(retrying, prompt))
        assert.strictEqual(error.reason._tag, _tag)
        assert.strictEqual(yield* Clock.currentTimeMillis, 0)
      }).pipe(Effect.provide(TestChatModel.script([TestChatModel.fail({ _tag })])))
    )
  }

  it.effect("defects and interruptions inside of the model are not retried", () =>
    Effect.gen(function* () {
      const died = yield* Effect.exit(Agent.run(retrying, prompt).pipe(Effect.provide(streams(Stream.die("broken")))))
      assert.isTrue(Exit.hasDies(died))
      const stopped = yield* Effect.exit(
        Agent.run(retrying, prompt).pipe(Effect.provide(streams(Stream.fromEffect(Effect.interrupt))))
      )
      assert.isTrue(Exit.hasInterrupts(stopped))
      assert.strictEqual(yield* Clock.currentTimeMillis, 0)
    })
  )

  it.effect("waits at least as long as the provider asks", () =>
    Effect.gen(function* () {
      const run = yield* inBackground(Agent.run(retrying, prompt))
      yield* TestClock.adjust("19999 millis")
      assert.lengthOf(yield* TestChatModel.requests, 1)
      yield* TestClock.adjust("1 millis")
      assert.strictEqual((yield* run.result).text, "fine")
    }).pipe(
      Effect.provide(
        TestChatModel.script([TestChatModel.fail({ _tag: "RateLimited", retryAfter: Duration.seconds(20) }), "fine"])
      )
    )
  )

  it.effect("fails at once when the provider asks for more than is left, and says how often it was asked", () => {
    const patience = new ModelError.ModelError({
      provider: "test",
      reason: { _tag: "RateLimited", retryAfter: Duration.seconds(90) }
    })
    return Effect.gen(function* () {
      const run = yield* inBackground(Effect.flip(Agent.run(retrying, prompt)))
      yield* TestClock.adjust("90 seconds")
      const error = yield* run.result
      assert.deepStrictEqual(error.reason, patience.reason)
      assert.include(error.message, "tried 2 times in 2 minutes")
      assert.strictEqual(yield* Clock.currentTimeMillis, 90_000)
      assert.lengthOf(yield* TestChatModel.requests, 2)
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.fail(patience), TestChatModel.fail(patience)])))
  })

  it.effect("what is left counts from the first failure: a long turn that breaks may still be retried", () =>
    Effect.gen(function* () {
      const run = yield* inBackground(Agent.run(retrying, prompt))
      yield* TestClock.adjust("10 minutes")
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* run.result).text, "fine")
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.fail(overloaded, { delay: "10 minutes" }), "fine"])))
  )

  it.effect("`within` bounds any schedule", () =>
    Effect.gen(function* () {
      const agent = agentWith(ModelRetry.make({ schedule: Schedule.spaced("4 seconds"), within: "10 seconds" }))
      const run = yield* inBackground(Effect.flip(Agent.run(agent, prompt)))
      yield* TestClock.adjust("8 seconds")
      assert.strictEqual((yield* run.result).reason._tag, "Overloaded")
      assert.lengthOf(yield* TestChatModel.requests, 3)
    }).pipe(Effect.provide(TestChatModel.reactive(() => TestChatModel.fail(overloaded))))
  )

  it.effect("gives up after five tries, with the last error", () =>
    Effect.gen(function* () {
      const run = yield* inBackground(Effect.flip(Agent.run(retrying, prompt)))
      yield* TestClock.adjust("2 minutes")
      assert.include((yield* run.result).message, "try 5")
      assert.lengthOf(yield* TestChatModel.requests, 5)
    }).pipe(
      Effect.provide(
        TestChatModel.reactive((_, index) =>
          TestChatModel.fail(
            new ModelError.ModelError({ provider: "test", reason: overloaded, detail: `try ${index + 1}` }),
            { after: "some text" }
          )
        )
      )
    )
  )

  it.effect("each call has its tries for itself, side calls too", () =>
    Effect.gen(function* () {
      const asking = Middleware.make({
        name: "asking",
        afterAgent: (run) =>
          Effect.flatMap(
            Effect.orDie(run.call({ messages: [Message.human("a summary?")], purpose: "summary" })),
            (message) => run.warn("summary", Message.text(message))
          )
      })
      const once = ModelRetry.make({ schedule: Schedule.recurs(1) })
      const { events } = yield* watch(agentWith(asking, once))
      assert.deepStrictEqual(story(events), ["<model-retry>", "answer", "<model-retry>", "<summary>", "<RunCompleted>"])
    }).pipe(
      Effect.provide(
        TestChatModel.script([TestChatModel.fail(overloaded), "answer", TestChatModel.fail(overloaded), "a summary"])
      )
    )
  )

  it.effect("9: interrupting the run ends the wait, and the model is not asked again", () =>
    Effect.gen(function* () {
      const run = yield* inBackground(watch(retrying))
      yield* TestClock.adjust("100 millis")
      run.fiber.interruptUnsafe()
      yield* TestClock.adjust("1 hour")
      assert.isTrue(yield* run.isDone)
      assert.lengthOf(yield* TestChatModel.requests, 1)
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.fail(overloaded)])))
  )

  it.effect("a failed turn is closed before the next begins", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const turn = (name: string, parts: Stream.Stream<ChatModel.TurnPart, ModelError.ModelError>) =>
        Stream.unwrap(
          Effect.as(
            Effect.acquireRelease(
              Effect.sync(() => void log.push(`open ${name}`)),
              () => Effect.sync(() => void log.push(`close ${name}`))
            ),
            parts
          )
        )
      const run = yield* inBackground(
        Agent.run(retrying, prompt).pipe(
          Effect.provide(
            streams(
              turn("first", Stream.concat(Stream.make(text("a")), Stream.fail(failure(overloaded)))),
              turn("second", Stream.make(finishTurn("fine")))
            )
          )
        )
      )
      yield* TestClock.adjust("1 second")
      yield* run.result
      assert.deepStrictEqual(log, ["open first", "close first", "open second", "close second"])
    })
  )

  it.effect("arrays of parts pass as they are", () =>
    Effect.gen(function* () {
      const sizes: Array<number> = []
      const measuring = Middleware.make({
        name: "measuring",
        wrapModelCall: (request, next) =>
          Stream.mapArray(next(request), (parts) => {
            sizes.push(parts.length)
            return parts
          })
      })
      yield* Agent.run(agentWith(measuring, ModelRetry.make()), prompt).pipe(
        Effect.provide(streams(Stream.fromArrays([text("a"), text("b")], [text("c"), text("d"), finishTurn("abcd")])))
      )
      assert.deepStrictEqual(sizes, [2, 3])
    })
  )

  it.effect("the schedule's own failure and needs are the run's", () =>
    Effect.gen(function* () {
      class Enough extends Data.TaggedError("Enough")<{ readonly limit: number }> {}
      class Limit extends Context.Service<Limit, number>()("test/Limit") {}
      const counted = Schedule.recurs(10).pipe(
        Schedule.tap(({ attempt }) =>
          Effect.flatMap(Limit, (limit) => (attempt > limit ? Effect.fail(new Enough({ limit })) : Effect.void))
        )
      )
      const swallowing = Middleware.make({
        name: "swallowing",
        wrapModelCall: (request, next) => Stream.catch(next(request), () => Stream.make(finishTurn("swallowed")))
      })
      const error = yield* Agent.run(agentWith(swallowing, ModelRetry.make({ schedule: counted })), prompt).pipe(
        Effect.flip,
        Effect.provideService(Limit, 2)
      )
      // A hook outside knows a model's failures alone.
      assert.deepStrictEqual(error, new Enough({ limit: 2 }))
      assert.lengthOf(yield* TestChatModel.requests, 3)
    }).pipe(Effect.provide(TestChatModel.reactive(() => TestChatModel.fail(overloaded))))
  )

  it.effect("thousands of retries are no problem", () =>
    Effect.gen(function* () {
      const agent = agentWith(ModelRetry.make({ schedule: Schedule.forever }))
      const run = yield* inBackground(Agent.run(agent, prompt))
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* run.result).text, "at last")
    }).pipe(
      Effect.provide(TestChatModel.reactive((_, index) => (index < 3000 ? TestChatModel.fail(overloaded) : "at last")))
    )
  )
})
