import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { Agent, ModelError } from "effect-deepagents"
import { CircuitBreaker, ModelFallback } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import { agentWith, prompt, story, watch } from "./run.ts"

const down = TestChatModel.fail({ _tag: "Overloaded" })

/** A model whose answers a test sets, with a count of its requests. */
const switchable = () => {
  const state = { answer: down, asked: 0 }
  const layer = TestChatModel.reactive(() => {
    state.asked++
    return state.answer
  })
  return { state, layer }
}

const ask = (agent: Agent.Agent<string, ModelError.ModelError, never>) => Effect.result(Agent.run(agent, prompt))

describe("CircuitBreaker", () => {
  it.effect("does not ask a model that failed too often, tries it once later, and closes when that goes well", () =>
    Effect.gen(function* () {
      const { layer, state } = switchable()
      const agent = Agent.provide(agentWith(CircuitBreaker.make({ failures: 3, cooldown: "10 seconds" })), layer)
      for (let times = 0; times < 3; times++) yield* ask(agent)
      assert.strictEqual(state.asked, 3)

      yield* TestClock.adjust("4 seconds")
      const refused = yield* Effect.flip(Agent.run(agent, prompt))
      assert.strictEqual(state.asked, 3)
      assert.isTrue(ModelError.isModelError(refused) && refused.reason._tag === "Overloaded")
      assert.deepStrictEqual(ModelError.isModelError(refused) && refused.retryAfter, Duration.seconds(6))
      assert.include(refused.message, "failed 3 times in a row")

      // Half open: a failure opens it again.
      yield* TestClock.adjust("6 seconds")
      yield* ask(agent)
      assert.strictEqual(state.asked, 4)
      yield* ask(agent)
      assert.strictEqual(state.asked, 4)

      yield* TestClock.adjust("10 seconds")
      state.answer = TestChatModel.text("here")
      assert.strictEqual((yield* Agent.run(agent, prompt)).text, "here")
      assert.strictEqual((yield* Agent.run(agent, prompt)).text, "here")
      assert.strictEqual(state.asked, 6)

      // Closed as at first: two failures don't open it.
      state.answer = down
      yield* ask(agent)
      yield* ask(agent)
      state.answer = TestChatModel.text("here")
      yield* ask(agent)
      state.answer = down
      yield* ask(agent)
      assert.strictEqual(state.asked, 10)
    })
  )

  it.effect("lets one call try at a time, and the next one if that is interrupted", () =>
    Effect.gen(function* () {
      const { layer, state } = switchable()
      const agent = Agent.provide(agentWith(CircuitBreaker.make({ failures: 1, cooldown: "1 second" })), layer)
      yield* ask(agent)
      yield* TestClock.adjust("1 second")
      state.answer = TestChatModel.hang
      const trial = yield* Effect.forkChild(Agent.run(agent, prompt), { startImmediately: true })
      yield* Effect.yieldNow
      const beside = yield* ask(agent)
      assert.strictEqual(beside._tag, "Failure")
      assert.strictEqual(state.asked, 2)
      yield* Fiber.interrupt(trial)
      state.answer = TestChatModel.text("here")
      assert.strictEqual((yield* Agent.run(agent, prompt)).text, "here")
    })
  )

  it.effect("interrupted at any of its first steps, it never stays half open", () =>
    Effect.gen(function* () {
      for (let steps = 0; steps < 40; steps++) {
        const { layer, state } = switchable()
        const agent = Agent.provide(agentWith(CircuitBreaker.make({ failures: 1, cooldown: "1 second" })), layer)
        yield* ask(agent)
        yield* TestClock.adjust("1 second")
        state.answer = TestChatModel.hang
        const trial = yield* Effect.forkChild(Agent.run(agent, prompt))
        for (let step = 0; step < steps; step++) yield* Effect.yieldNow
        yield* Fiber.interrupt(trial)
        state.answer = TestChatModel.text("here")
        assert.strictEqual((yield* Agent.run(agent, prompt)).text, "here")
      }
    })
  )

  it.effect("counts each model for itself, and those of a fallback too", () =>
    Effect.gen(function* () {
      const first = switchable()
      let asked = 0
      const second = TestChatModel.reactive(
        () => {
          asked++
          return TestChatModel.text("second")
        },
        { modelId: "second" }
      )
      const breaker = CircuitBreaker.make({ failures: 2 })
      const agent = Agent.provide(agentWith(ModelFallback.make([second]), breaker), first.layer)
      for (let times = 0; times < 5; times++) assert.strictEqual((yield* Agent.run(agent, prompt)).text, "second")
      assert.deepStrictEqual([first.state.asked, asked], [2, 5])
      const { events } = yield* watch(agent)
      assert.deepStrictEqual(story(events), ["<model-fallback>", "second", "<RunCompleted>"])
    })
  )

  it.effect("says when it opens, and waits as long as the provider asks for", () =>
    Effect.gen(function* () {
      const { layer, state } = switchable()
      state.answer = TestChatModel.fail({ _tag: "RateLimited", retryAfter: Duration.minutes(5) })
      const agent = Agent.provide(agentWith(CircuitBreaker.make({ failures: 1 })), layer)
      const { events } = yield* watch(agent)
      assert.deepStrictEqual(story(events), ["<circuit-breaker>", "<RunFailed>"])
      yield* TestClock.adjust("299 seconds")
      yield* ask(agent)
      assert.strictEqual(state.asked, 1)
      yield* TestClock.adjust("1 second")
      yield* ask(agent)
      assert.strictEqual(state.asked, 2)
    })
  )

  it.effect("does not count failures that say nothing about the model", () =>
    Effect.gen(function* () {
      const { layer, state } = switchable()
      state.answer = TestChatModel.fail({ _tag: "ContextOverflow" })
      const agent = Agent.provide(agentWith(CircuitBreaker.make({ failures: 1 })), layer)
      for (let times = 0; times < 4; times++) yield* ask(agent)
      assert.strictEqual(state.asked, 4)
      const strict = Agent.provide(agentWith(CircuitBreaker.make({ failures: 1, when: () => true })), layer)
      for (let times = 0; times < 4; times++) yield* ask(strict)
      assert.strictEqual(state.asked, 5)
    })
  )

  it.effect("refuses invalid limits", () =>
    Effect.gen(function* () {
      for (const options of [{ failures: 0 }, { failures: Number.NaN }, { cooldown: Number.NaN }, { cooldown: -1 }]) {
        const error = yield* Effect.flip(
          Agent.run(agentWith(CircuitBreaker.make(options)), prompt).pipe(Effect.provide(TestChatModel.script([])))
        )
        assert.strictEqual(error._tag, "AgentError")
      }
    })
  )
})
