import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect } from "effect"
import { AgentEvent, Message, ModelError } from "effect-deepagents"
import { ModelFallback, ModelRetry, ModelTimeout } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import { agentWith, failureOf, inBackground, prompt, story, watch } from "./run.ts"

const overloaded = TestChatModel.fail({ _tag: "Overloaded" })

const failing = (reason: ModelError.Reason, detail: string) =>
  TestChatModel.fail(new ModelError.ModelError({ provider: "test", reason, detail }))

describe("ModelRetry > ModelFallback > ModelTimeout", () => {
  it.effect("a model that hangs in its turn is cut, and the next one answers", () =>
    Effect.gen(function* () {
      const second = TestChatModel.script(["from the second"])
      const run = yield* inBackground(
        watch(agentWith(ModelRetry.make(), ModelFallback.make([second]), ModelTimeout.make()))
      )
      yield* TestClock.adjust("2 minutes")
      const { events } = yield* run.result
      assert.deepStrictEqual(story(events), [
        "from the f",
        "<model-fallback>",
        "<restarted>",
        "from the second",
        "<RunCompleted>"
      ])
      const restarted = events.find((event) => event._tag === "TurnRestarted")
      assert.include(restarted?.reason, "it said nothing for 2m")
      assert.include(restarted?.reason, "now asking test/scripted")
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.hangAfter("from the f")])))
  )

  it.effect("when no model answers, all of it begins again", () =>
    Effect.gen(function* () {
      const second = TestChatModel.script([TestChatModel.fail({ _tag: "Authentication" }, { after: "b" })])
      const run = yield* inBackground(
        watch(agentWith(ModelRetry.make(), ModelFallback.make([second]), ModelTimeout.make({ idle: "10 seconds" })))
      )
      yield* TestClock.adjust("20 seconds")
      const { events } = yield* run.result
      assert.deepStrictEqual(story(events), [
        "a",
        "<model-fallback>",
        "<restarted>",
        "b",
        "<model-retry>",
        "<restarted>",
        "fine",
        "<RunCompleted>"
      ])
      assert.deepStrictEqual(AgentEvent.transcript(events).map(Message.text), [prompt, "fine"])
      assert.deepStrictEqual(
        events.map((event) => event.seq),
        events.map((_, index) => index)
      )
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.hangAfter("a"), "fine"])))
  )

  it.effect("does not void again what an inner middleware has voided", () =>
    Effect.gen(function* () {
      const second = TestChatModel.script([overloaded])
      const run = yield* inBackground(watch(agentWith(ModelRetry.make(), ModelFallback.make([second]))))
      yield* TestClock.adjust("1 second")
      const { events } = yield* run.result
      assert.deepStrictEqual(story(events), [
        "a",
        "<model-fallback>",
        "<restarted>",
        "<model-retry>",
        "fine",
        "<RunCompleted>"
      ])
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.fail({ _tag: "Transport" }, { after: "a" }), "fine"])))
  )

  it.effect("the first registered is outermost: a retry inside of the fallback tries one model to its end", () =>
    Effect.gen(function* () {
      const second = TestChatModel.script(["second"])
      const run = yield* inBackground(watch(agentWith(ModelFallback.make([second]), ModelRetry.make())))
      yield* TestClock.adjust("1 minute")
      const { events } = yield* run.result
      const retry = "<model-retry>"
      assert.deepStrictEqual(story(events), [
        retry,
        retry,
        retry,
        retry,
        "<model-fallback>",
        "second",
        "<RunCompleted>"
      ])
    }).pipe(Effect.provide(TestChatModel.script([overloaded, overloaded, overloaded, overloaded, overloaded])))
  )

  it.effect("a provider that asks for more time than the retry has leaves the run with the models' errors", () =>
    Effect.gen(function* () {
      const second = TestChatModel.script([failing({ _tag: "QuotaExhausted" }, "nothing left")])
      const { events, exit } = yield* watch(
        agentWith(ModelRetry.make(), ModelFallback.make([second]), ModelTimeout.make())
      )
      const error = failureOf(exit)
      assert.strictEqual(error?._tag, "ModelError")
      assert.match(error?.message ?? "", /\(1\).*come back in an hour.*\(2\).*nothing left/)
      assert.deepStrictEqual(story(events), ["<model-fallback>", "<RunFailed>"])
      assert.strictEqual(yield* Clock.currentTimeMillis, 0)
    }).pipe(
      Effect.provide(
        TestChatModel.script([failing({ _tag: "RateLimited", retryAfter: Duration.hours(1) }, "come back in an hour")])
      )
    )
  )
})
