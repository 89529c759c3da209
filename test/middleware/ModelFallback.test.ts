import { assert, describe, it } from "@effect/vitest"
import { Context, Data, Effect, Exit, Layer } from "effect"
import { Agent, ChatModel, Message, Middleware, ModelError, Tool } from "effect-deepagents"
import { ModelFallback } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import { agentWith, failureOf, inBackground, prompt, story, watch } from "./run.ts"

const overloaded: ModelError.Reason = { _tag: "Overloaded" }

/** A failure that differs from others in any wording of errors. */
const says = (name: string, _tag: "Authentication" | "InvalidRequest" | "Overloaded" | "QuotaExhausted") =>
  TestChatModel.fail(
    new ModelError.ModelError({ provider: "test", model: name, reason: { _tag }, detail: `I am ${name}` })
  )

const failing = TestChatModel.reactive(() => TestChatModel.fail(overloaded))

/** A scripted model that reports its opening, closing and requests. */
const traced = (
  log: Array<string>,
  turns: ReadonlyArray<TestChatModel.Turn>,
  options: TestChatModel.Options & { readonly seen?: Array<ChatModel.ModelRequest> } = {}
): Layer.Layer<ChatModel.ChatModel> => {
  const name = options.modelId ?? "fallback"
  const note = (event: string) => Effect.sync(() => void log.push(`${event} ${name}`))
  const scripted = TestChatModel.reactive(
    (request, index) => {
      options.seen?.push(request)
      return turns[index] ?? TestChatModel.fail({ _tag: "Unknown" })
    },
    { modelId: name, ...options }
  )
  return Layer.effect(
    ChatModel.ChatModel,
    Effect.gen(function* () {
      yield* Effect.acquireRelease(note("build"), () => note("release"))
      const model = yield* ChatModel.ChatModel
      return {
        ...model,
        makeSession: Effect.andThen(
          Effect.acquireRelease(note("open"), () => note("close")),
          model.makeSession
        )
      }
    })
  ).pipe(Layer.provide(scripted))
}

describe("ModelFallback", () => {
  it.effect("the next model gets the same request, and a warning says so", () =>
    Effect.gen(function* () {
      const seen: Array<ChatModel.ModelRequest> = []
      const agent = agentWith(ModelFallback.make([traced([], ["from the second"], { modelId: "second", seen })]))
      const { events } = yield* watch(agent)
      assert.deepStrictEqual(story(events), ["<model-fallback>", "from the second", "<RunCompleted>"])
      const warning = events.find((event) => event._tag === "Warning")
      assert.include(warning?.message, "I am the first")
      assert.include(warning?.message, "now asking test/second")
      const [first] = yield* TestChatModel.requests
      assert.deepStrictEqual(
        seen.map(({ session: _, ...request }) => request),
        first === undefined ? [] : [first]
      )
    }).pipe(Effect.provide(TestChatModel.script([says("the first", "Overloaded")])))
  )

  it.effect("11: TurnRestarted precedes the new parts when parts of any model went out", () =>
    Effect.gen(function* () {
      const second = TestChatModel.script([TestChatModel.fail(overloaded, { after: "sec" })])
      const { events } = yield* watch(agentWith(ModelFallback.make([second, failing, TestChatModel.script(["third"])])))
      assert.deepStrictEqual(story(events), [
        "fir",
        "<model-fallback>",
        "<restarted>",
        "sec",
        "<model-fallback>",
        "<restarted>",
        "<model-fallback>",
        "third",
        "<RunCompleted>"
      ])
      const said = events.flatMap((event) => (event._tag === "MessageAppended" ? [Message.text(event.message)] : []))
      assert.deepStrictEqual(said, [prompt, "third"])
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.fail({ _tag: "Transport" }, { after: "fir" })])))
  )

  it.effect("11: a turn in which the provider ran a tool is not asked for again", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const { exit } = yield* watch(agentWith(ModelFallback.make([traced(log, ["no"])])))
      assert.strictEqual(failureOf(exit)?._tag, "ModelError")
      assert.deepStrictEqual(log, [])
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

  const leadsOn = [
    "RateLimited",
    "Timeout",
    "Authentication",
    "Permission",
    "InvalidRequest",
    "ContextOverflow",
    "QuotaExhausted",
    "BadResponse",
    "Unsupported",
    "Unknown"
  ] as const
  for (const _tag of leadsOn) {
    it.effect(`by default a failure leads on: ${_tag}`, () =>
      Effect.gen(function* () {
        const result = yield* Agent.run(agentWith(ModelFallback.make([TestChatModel.script(["second"])])), prompt)
        assert.strictEqual(result.text, "second")
      }).pipe(Effect.provide(TestChatModel.script([TestChatModel.fail({ _tag })])))
    )
  }

  it.effect("a refusal by a content filter stays, unless `when` says otherwise", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const second = traced(log, ["second"])
      const error = yield* Effect.flip(Agent.run(agentWith(ModelFallback.make([second])), prompt))
      assert.strictEqual(error.reason._tag, "ContentFiltered")
      assert.deepStrictEqual(log, [])
      const result = yield* Agent.run(agentWith(ModelFallback.make([second], { when: () => true })), prompt)
      assert.strictEqual(result.text, "second")
    }).pipe(Effect.provide(TestChatModel.reactive(() => TestChatModel.fail({ _tag: "ContentFiltered" }))))
  )

  it.effect("`when` is asked about each model's failure", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const second = TestChatModel.script([says("b", "InvalidRequest")])
      const agent = agentWith(
        ModelFallback.make([second, traced(log, ["third"])], { when: (error) => error.reason._tag === "Overloaded" })
      )
      const error = yield* Effect.flip(Agent.run(agent, prompt))
      assert.match(error.message, /\(2\) test\/b: .*I am b/)
      assert.deepStrictEqual(log, [])
    }).pipe(Effect.provide(failing))
  )

  it.effect("a model that is not needed is not built", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      yield* Agent.run(agentWith(ModelFallback.make([traced(log, ["second"])])), prompt)
      assert.deepStrictEqual(log, [])
    }).pipe(Effect.provide(TestChatModel.script(["first"])))
  )

  const ping = Tool.make("ping", {
    description: "Answers",
    parameters: {},
    execute: () => Effect.succeed("pong")
  })
  const pinging = (log: Array<string>, turns: ReadonlyArray<TestChatModel.Turn>) =>
    Agent.make({
      name: "agent",
      prompt: "You are tested.",
      tools: [ping],
      middleware: [ModelFallback.make([traced(log, [TestChatModel.calls([{ name: "ping" }]), ...turns])])]
    })
  const lifetime = ["build fallback", "open fallback", "close fallback", "release fallback"]

  it.effect("a model is opened once a run, and closed when the run ends", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const agent = pinging(log, ["done"])
      const result = yield* Agent.run(agent, prompt)
      assert.strictEqual(result.rounds, 2)
      assert.deepStrictEqual(log, lifetime)
      yield* Agent.run(agent, prompt)
      assert.deepStrictEqual(log, [...lifetime, ...lifetime])
    }).pipe(Effect.provide(failing))
  )

  it.effect("it is closed when the run fails", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      yield* Effect.flip(Agent.run(pinging(log, [TestChatModel.fail(overloaded)]), prompt))
      assert.deepStrictEqual(log, lifetime)
    }).pipe(Effect.provide(failing))
  )

  it.effect("9: it is closed when the run is interrupted", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const run = yield* inBackground(watch(pinging(log, [TestChatModel.hang])))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(log, lifetime.slice(0, 2))
      run.fiber.interruptUnsafe()
      yield* TestClock.adjust("1 second")
      assert.isTrue(yield* run.isDone)
      assert.deepStrictEqual(log, lifetime)
    }).pipe(Effect.provide(failing))
  )

  it.effect("every call begins with the first model", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(pinging([], []), prompt)
      assert.strictEqual(result.text, "first again")
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.fail(overloaded), "first again"])))
  )

  it.effect("a fallback model is opened as the loop opens models: priced, and counted for the run", () =>
    Effect.gen(function* () {
      const second = TestChatModel.script([TestChatModel.text("second", { usage: { outputTokens: 1_000_000 } })], {
        prices: { input: 1, output: 3 }
      })
      const { usage } = yield* Agent.run(agentWith(ModelFallback.make([second])), prompt)
      assert.deepStrictEqual([usage.outputTokens, usage.cost], [1_000_000, 3])
    }).pipe(Effect.provide(failing))
  )

  describe("when no model answers", () => {
    const quota = (name: string) => TestChatModel.reactive(() => says(name, "QuotaExhausted"))

    it.effect("the error is the last one, with the errors of all models", () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(Agent.run(agentWith(ModelFallback.make([quota("b"), quota("c")])), prompt))
        assert.match(
          error.message,
          /^test\/c: .*\(1\) test\/a: .*I am a.*\(2\) test\/b: .*I am b.*\(3\) test\/c: .*I am c/
        )
        assert.strictEqual(error.reason._tag, "QuotaExhausted")
      }).pipe(Effect.provide(TestChatModel.script([says("a", "Authentication")])))
    )

    it.effect("the error is retryable if one of them is", () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(Agent.run(agentWith(ModelFallback.make([quota("b")])), prompt))
        assert.strictEqual(error.reason._tag, "Overloaded")
        assert.isTrue(ModelError.isModelError(error) && error.isRetryable)
        assert.match(error.message, /^test\/a: .*\(2\) test\/b: .*I am b/)
      }).pipe(Effect.provide(TestChatModel.script([says("a", "Overloaded")])))
    )

    it.effect("without a fallback the error is the first model's own", () => {
      const original = new ModelError.ModelError({ provider: "test", reason: overloaded })
      return Effect.gen(function* () {
        const error = yield* Effect.flip(Agent.run(agentWith(ModelFallback.make([])), prompt))
        assert.strictEqual(error, original)
      }).pipe(Effect.provide(TestChatModel.script([TestChatModel.fail(original)])))
    })
  })

  describe("a layer that can't be built", () => {
    class NoKey extends Data.TaggedError("NoKey")<{ readonly variable: string }> {}
    class Region extends Context.Service<Region, string>()("test/Region") {}
    const broken = Layer.effect(
      ChatModel.ChatModel,
      Effect.flatMap(Region, (region) => Effect.fail(new NoKey({ variable: `KEY_${region}` })))
    )

    it.effect("is passed over", () =>
      Effect.gen(function* () {
        const agent = agentWith(ModelFallback.make([broken, TestChatModel.script(["third"])]))
        const { events } = yield* watch(agent)
        assert.deepStrictEqual(story(events), ["<model-fallback>", "third", "<RunCompleted>"])
        assert.include(events.find((event) => event._tag === "Warning")?.message, "could not be opened: NoKey")
      }).pipe(Effect.provideService(Region, "EU"), Effect.provide(failing))
    )

    it.effect("is the run's failure when no model is left and nothing can be retried", () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(Agent.run(agentWith(ModelFallback.make([broken])), prompt))
        assert.deepStrictEqual(error, new NoKey({ variable: "KEY_EU" }))
      }).pipe(
        Effect.provideService(Region, "EU"),
        Effect.provide(TestChatModel.script([TestChatModel.fail({ _tag: "Authentication" })]))
      )
    )

    it.effect("releases its resources, and is tried again the next time", () =>
      Effect.gen(function* () {
        const log: Array<string> = []
        let builds = 0
        const flaky = Layer.effect(
          ChatModel.ChatModel,
          Effect.gen(function* () {
            yield* Effect.acquireRelease(
              Effect.sync(() => void log.push("acquire")),
              () => Effect.sync(() => void log.push("release"))
            )
            if (++builds === 1) return yield* new NoKey({ variable: "KEY" })
            log.push("built")
            return yield* ChatModel.ChatModel
          })
        ).pipe(Layer.provide(TestChatModel.script(["second"])))
        const agent = Agent.make({
          name: "agent",
          prompt: "You are tested.",
          tools: [ping],
          middleware: [ModelFallback.make([flaky, TestChatModel.script([TestChatModel.calls([{ name: "ping" }])])])]
        })
        assert.strictEqual((yield* Agent.run(agent, prompt)).text, "second")
        assert.deepStrictEqual(log, ["acquire", "release", "acquire", "built", "release"])
      }).pipe(Effect.provide(failing))
    )
  })

  it.effect("a model whose session can't be opened is closed, and the next one is asked", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const mute = Layer.effect(
        ChatModel.ChatModel,
        Effect.map(ChatModel.ChatModel, (model) => ({
          ...model,
          makeSession: Effect.fail(new ModelError.ModelError({ provider: "test", reason: { _tag: "Transport" } }))
        }))
      ).pipe(Layer.provide(traced(log, [], { modelId: "mute" })))
      const third = traced(log, ["third"], { modelId: "third" })
      const result = yield* Agent.run(agentWith(ModelFallback.make([mute, third])), prompt)
      assert.strictEqual(result.text, "third")
      assert.deepStrictEqual(log.slice(0, 3), ["build mute", "release mute", "build third"])
    }).pipe(Effect.provide(failing))
  )

  it.effect("side calls at the same time open a model once", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const slow = Layer.effect(
        ChatModel.ChatModel,
        Effect.andThen(Effect.yieldNow, Effect.service(ChatModel.ChatModel))
      ).pipe(Layer.provide(traced(log, ["one", "two", "three"])))
      const asking = Middleware.make({
        name: "asking",
        beforeAgent: (run) =>
          Effect.orDie(
            Effect.all(
              ["a", "b"].map((text) => run.call({ messages: [Message.human(text)], purpose: "test" })),
              { concurrency: "unbounded", discard: true }
            )
          )
      })
      const agent = agentWith(asking, ModelFallback.make([slow]))
      assert.strictEqual((yield* Agent.run(agent, prompt)).text, "three")
      assert.deepStrictEqual(log, lifetime)
    }).pipe(Effect.provide(failing))
  )

  it.effect("an interruption starts no fallback", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const run = yield* inBackground(watch(agentWith(ModelFallback.make([traced(log, ["no"])]))))
      yield* TestClock.adjust("1 second")
      run.fiber.interruptUnsafe()
      yield* TestClock.adjust("1 second")
      const exit = run.fiber.pollUnsafe()
      assert.isTrue(exit !== undefined && Exit.hasInterrupts(exit))
      assert.deepStrictEqual(log, [])
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.hang])))
  )
})
