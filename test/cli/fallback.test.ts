/** The models that answer while the first one can't. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer, Stream } from "effect"
import { Agent, ChatModel, Message, ModelError, Usage } from "effect-deepagents"
import { Budget } from "effect-deepagents/middleware"
import { TestClock } from "effect/testing"
import type { Settings } from "../../src/cli/internal/config/settings.ts"
import { nextModels, persistence } from "../../src/cli/internal/work/fallback.ts"

const asked: Array<string> = []

type Answer = (now: number) => ModelError.Reason | undefined

/** A model that fails for a reason, or answers with its name. */
const model = (name: string, reasonAt: Answer, isPriced = true) =>
  Layer.succeed(ChatModel.ChatModel, {
    modelId: name,
    provider: "fake",
    supportsVision: true,
    contextWindowTokens: undefined,
    prices: isPriced ? { input: 10_000, output: 0 } : undefined,
    makeSession: Effect.succeed({
      nextTurn: () =>
        Stream.unwrap(
          Effect.map(Clock.currentTimeMillis, (now) => {
            asked.push(name)
            const reason = reasonAt(now)
            const usage = { ...Usage.zero, inputTokens: 600 }
            return reason === undefined
              ? Stream.make<[ChatModel.TurnPart]>({ _tag: "TurnDone", message: Message.ai(name, { usage }) })
              : Stream.fail(new ModelError.ModelError({ provider: "fake", model: name, reason }))
          })
        )
    })
  })

const works: Answer = () => undefined
const down: Answer = () => ({ _tag: "Overloaded" })
const empty: Answer = () => ({ _tag: "QuotaExhausted" })
const refuseKey: Answer = () => ({ _tag: "Authentication" })

const agentWith = (...others: ReadonlyArray<Layer.Layer<ChatModel.ChatModel>>) =>
  Agent.make({ name: "steady", prompt: "You answer.", middleware: persistence(others) })

/** Runs to the end, however long that takes, and says how long it took. */
const timed = <A, E, R>(run: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    asked.length = 0
    const begun = yield* Clock.currentTimeMillis
    const fiber = yield* Effect.forkChild(
      Effect.map(Effect.exit(run), (exit) => exit),
      { startImmediately: true }
    )
    for (let seconds = 0; fiber.pollUnsafe() === undefined && seconds < 1_500; seconds++) {
      yield* TestClock.adjust("1 second")
    }
    const exit = yield* Fiber.join(fiber)
    return { exit, seconds: ((yield* Clock.currentTimeMillis) - begun) / 1_000 }
  })

const answered = <E, R>(run: Effect.Effect<{ readonly text: string }, E, R>) =>
  Effect.gen(function* () {
    const { exit, seconds } = yield* timed(run)
    const { text } = yield* exit
    return { text, seconds }
  })

describe("the next model", () => {
  it.effect("answers at once where a quota is used up, and says so", () =>
    Effect.gen(function* () {
      const events = yield* Stream.runCollect(Agent.stream(agentWith(model("second", works)), "Go"))
      const warnings = events.flatMap((event) => (event._tag === "Warning" ? [`${event.code} ${event.message}`] : []))
      assert.lengthOf(warnings, 1)
      assert.match(warnings[0] ?? "", /^model-fallback fake\/first.*now asking fake\/second$/)
    }).pipe(Effect.provide(model("first", empty)))
  )

  it.effect("answers after a minute of an outage; the next round asks the first model only once", () =>
    Effect.gen(function* () {
      const agent = agentWith(model("second", works))
      const first = yield* answered(Agent.run(agent, "Go"))
      assert.strictEqual(first.text, "second")
      assert.isAtLeast(first.seconds, 55)
      assert.isAtMost(first.seconds, 100)
      const again = yield* answered(Agent.run(agent, "On"))
      assert.deepEqual([again.text, asked.join(" ")], ["second", "first second"])
      assert.isAtMost(again.seconds, 2)
    }).pipe(Effect.provide(model("first", down)))
  )

  it.effect("is left alone when the first one recovers within a minute, or refuses the key", () =>
    Effect.gen(function* () {
      const passing: Answer = (now) => (now < 20_000 ? { _tag: "Overloaded" } : undefined)
      const agent = agentWith(model("second", works))
      const first = yield* answered(Effect.provide(Agent.run(agent, "Go"), model("first", passing)))
      assert.strictEqual(first.text, "first")
      const { exit } = yield* timed(Effect.provide(Agent.run(agent, "Go"), model("first", refuseKey)))
      assert.deepEqual([exit._tag, asked], ["Failure", ["first"]])
    })
  )

  it.effect("is asked again and again while all are down, for ten minutes as ever", () =>
    Effect.gen(function* () {
      const { exit, seconds } = yield* timed(Agent.run(agentWith(model("second", down)), "Go"))
      assert.strictEqual(exit._tag, "Failure")
      assert.isAtLeast(seconds, 540)
      assert.isAtMost(seconds, 900)
    }).pipe(Effect.provide(model("first", down)))
  )

  it.effect("counts against the budget", () =>
    Effect.gen(function* () {
      const frugal = (isPriced: boolean) =>
        Agent.make({
          name: "frugal",
          prompt: "You answer.",
          middleware: [
            ...persistence([model("second", works, isPriced)]),
            Budget.make({ cost: 5, onExhausted: "finalAnswer" })
          ]
        })
      const { usage } = yield* Agent.run(frugal(true), "Go")
      assert.strictEqual(usage.cost, 6)
      const { message } = yield* Effect.flip(Agent.run(frugal(false), "Go"))
      assert.match(message, /quota or credit is used up.*nobody knows the prices of "second"/)
    }).pipe(Effect.provide(model("first", empty)))
  )

  it("is one of the setting, else a favourite, and never the first model itself", () => {
    const of = (value: ReadonlyArray<string>) => ({ value, from: "user", where: "" }) as const
    const favourites = of(["a:1", "b:2"])
    assert.deepEqual(nextModels({ favourites }, "a:1"), ["b:2"])
    assert.deepEqual(nextModels({ favourites, fallback: of(["c:3", "a:1"]) } satisfies Settings, "a:1"), ["c:3"])
    assert.deepEqual(nextModels({ favourites, fallback: of([]) }, "a:1"), [])
    assert.deepEqual(nextModels({}, "a:1"), [])
  })
})
