import { assert, describe, it } from "@effect/vitest"
import { Data, Deferred, Effect, Fiber, Layer, Stream } from "effect"
import { Agent, ChatModel, Message, Middleware, ModelError, Usage } from "effect-deepagents"
import { ModelHedge } from "effect-deepagents/middleware"
import * as AiSdkChatModel from "effect-deepagents/models/bridges/AiSdkChatModel"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import { finish, mock, text as saying } from "../models/ai-sdk/models.ts"
import { agentWith, failureOf, inBackground, prompt, story, watch } from "./run.ts"

type Turn = Stream.Stream<ChatModel.TurnPart, ModelError.ModelError>

const model = (modelId: string, turn: Turn): Layer.Layer<ChatModel.ChatModel> =>
  Layer.succeed(ChatModel.ChatModel, {
    modelId,
    provider: "test",
    supportsVision: true,
    contextWindowTokens: undefined,
    makeSession: Effect.succeed({ nextTurn: () => turn })
  })

const text = (value: string): ChatModel.TurnPart => ({ _tag: "TextDelta", text: value })
const finishTurn = (value: string, usage?: Partial<Usage.Usage>): ChatModel.TurnPart => ({
  _tag: "TurnDone",
  message: Message.ai(value, usage === undefined ? {} : { usage: Usage.make(usage) })
})
const warning: ChatModel.TurnPart = { _tag: "Warning", code: "x", message: "x" }

/** A turn that waits, says, waits, and ends; `left` says whether it was interrupted. */
const slow = (value: string, wait: string, rest = "0 millis") => {
  const log: Array<string> = []
  const turn: Turn = Stream.concat(
    Stream.fromEffect(Effect.as(Effect.sleep(wait as "1 second"), text(value))),
    Stream.fromEffect(Effect.as(Effect.sleep(rest as "1 second"), finishTurn(value)))
  ).pipe(Stream.onExit((exit) => Effect.sync(() => void log.push(exit._tag === "Success" ? "ended" : "left"))))
  return { turn, log }
}

const hedged = (after = "2 seconds" as const, ...others: ReadonlyArray<Layer.Layer<ChatModel.ChatModel>>) =>
  agentWith(ModelHedge.make(others, { after }))

describe("ModelHedge", () => {
  it.effect("asks nobody else while the first model begins in time, however slow it goes on", () =>
    Effect.gen(function* () {
      const first = slow("one", "1999 millis", "1 hour")
      const second = slow("two", "0 millis")
      const run = yield* inBackground(
        watch(hedged("2 seconds", model("second", second.turn))).pipe(Effect.provide(model("first", first.turn)))
      )
      yield* TestClock.adjust("2 hours")
      const { events } = yield* run.result
      assert.deepStrictEqual(story(events), ["one", "<RunCompleted>"])
      assert.deepStrictEqual(second.log, [])
    })
  )

  it.effect("takes the model that begins first, and interrupts the other", () =>
    Effect.gen(function* () {
      const first = slow("one", "10 seconds")
      const second = slow("two", "1 second", "1 minute")
      const run = yield* inBackground(
        watch(hedged("2 seconds", model("second", second.turn))).pipe(Effect.provide(model("first", first.turn)))
      )
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(first.log, ["left"])
      assert.isFalse(yield* run.isDone)
      yield* TestClock.adjust("1 minute")
      const { events } = yield* run.result
      assert.deepStrictEqual(story(events), ["<model-hedge>", "two", "<RunCompleted>"])
      assert.deepStrictEqual(second.log, ["ended"])
    })
  )

  it.effect("the first model may still win after the second was asked", () =>
    Effect.gen(function* () {
      const first = slow("one", "3 seconds")
      const second = slow("two", "5 seconds")
      const run = yield* inBackground(
        watch(hedged("2 seconds", model("second", second.turn))).pipe(Effect.provide(model("first", first.turn)))
      )
      yield* TestClock.adjust("3 seconds")
      const { events } = yield* run.result
      assert.deepStrictEqual(story(events), ["<model-hedge>", "one", "<RunCompleted>"])
      assert.deepStrictEqual(second.log, ["left"])
    })
  )

  it.effect("asks one after the other, and warnings are no beginning", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const silent = (name: string) =>
        model(
          name,
          Stream.concat(
            Stream.fromEffect(Effect.sync(() => (asked.push(name), warning))),
            Stream.fromEffect(Effect.never)
          )
        )
      const agent = hedged("2 seconds", silent("b"), silent("c"), model("d", slow("four", "0 millis").turn))
      const run = yield* inBackground(watch(agent).pipe(Effect.provide(silent("a"))))
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(asked, ["a", "b", "c"])
      yield* TestClock.adjust("1 second")
      const { events } = yield* run.result
      assert.deepStrictEqual(story(events).slice(-2), ["four", "<RunCompleted>"])
    })
  )

  it.effect("counts the usage of a loser that had ended by then", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const answerLate = (value: string, outputTokens: number) =>
        Stream.fromEffect(Effect.as(Deferred.await(gate), finishTurn(value, { outputTokens })))
      const agent = hedged("2 seconds", model("second", answerLate("two", 5)))
      const run = yield* inBackground(
        Agent.run(agent, prompt).pipe(Effect.provide(model("first", answerLate("one", 3))))
      )
      yield* TestClock.adjust("2 seconds")
      yield* Deferred.succeed(gate, undefined)
      const { messages, text, usage } = yield* run.result
      assert.strictEqual(text, "one")
      assert.strictEqual(usage.outputTokens, 8)
      assert.strictEqual(messages.length, 2)
    })
  )

  it.effect("a failure loses, and all failures are the first model's", () =>
    Effect.gen(function* () {
      const fails = (tag: "Overloaded" | "Timeout", wait: string) =>
        Stream.fromEffect(
          Effect.andThen(
            Effect.sleep(wait as "1 second"),
            Effect.fail(new ModelError.ModelError({ provider: "test", reason: { _tag: tag } }))
          )
        )
      const one = yield* inBackground(
        watch(hedged("2 seconds", model("second", slow("two", "9 seconds").turn))).pipe(
          Effect.provide(model("first", fails("Overloaded", "3 seconds")))
        )
      )
      yield* TestClock.adjust("11 seconds")
      assert.deepStrictEqual(story((yield* one.result).events).slice(-2), ["two", "<RunCompleted>"])

      const both = yield* inBackground(
        watch(hedged("2 seconds", model("second", fails("Timeout", "0 millis")))).pipe(
          Effect.provide(model("first", fails("Overloaded", "3 seconds")))
        )
      )
      yield* TestClock.adjust("3 seconds")
      const failure = failureOf((yield* both.result).exit)
      assert.isTrue(ModelError.isModelError(failure) && failure.reason._tag === "Overloaded")

      // Nobody else is asked because of a failure.
      const alone = yield* watch(hedged("2 seconds", model("second", Stream.die("asked")))).pipe(
        Effect.provide(TestChatModel.script([TestChatModel.fail({ _tag: "Authentication" })]))
      )
      assert.strictEqual(failureOf(alone.exit)?._tag, "ModelError")
    })
  )

  it.effect("a model that can't be opened loses", () =>
    Effect.gen(function* () {
      class NoKey extends Data.TaggedError("NoKey") {}
      const broken: Layer.Layer<ChatModel.ChatModel, NoKey> = Layer.effect(
        ChatModel.ChatModel,
        Effect.fail(new NoKey())
      )
      const agent = agentWith(ModelHedge.make([broken], { after: "2 seconds" }))
      const run = yield* inBackground(
        Agent.run(agent, prompt).pipe(Effect.provide(model("first", slow("one", "5 seconds").turn)))
      )
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* run.result).text, "one")
    })
  )

  it.effect("leaves nothing behind when the run is interrupted", () =>
    Effect.gen(function* () {
      const first = slow("one", "1 hour")
      const second = slow("two", "1 hour")
      const fiber = yield* Effect.forkChild(
        Agent.run(hedged("2 seconds", model("second", second.turn)), prompt).pipe(
          Effect.provide(model("first", first.turn))
        ),
        { startImmediately: true }
      )
      yield* TestClock.adjust("3 seconds")
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual([first.log, second.log], [["left"], ["left"]])
    })
  )

  it.effect("calls on the side are not hedged", () =>
    Effect.gen(function* () {
      const note = Middleware.make({
        name: "note",
        afterModel: (run, message) => Effect.asVoid(run.call({ messages: [message], purpose: "note" }))
      })
      let asked = 0
      const patient = TestChatModel.reactive(({ purpose }) => {
        asked++
        return TestChatModel.text(purpose, purpose === "note" ? { delay: "1 minute" } : {})
      })
      const agent = agentWith(note, ModelHedge.make([model("second", Stream.die("asked"))]))
      const run = yield* inBackground(Agent.run(agent, prompt).pipe(Effect.provide(patient)))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* run.result).text, "turn")
      assert.strictEqual(asked, 2)
    })
  )

  it.live("reads on from a real source of the winner", () =>
    Effect.gen(function* () {
      const pieces = Array.from({ length: 2_000 }, (_, index) => `${index} `)
      const winner = AiSdkChatModel.layer(mock([[...saying(...pieces), finish()]]))
      const agent = agentWith(ModelHedge.make([winner], { after: "5 millis" }))
      const { text } = yield* Agent.run(agent, prompt).pipe(Effect.provide(model("first", Stream.never)))
      assert.strictEqual(text, pieces.join(""))
    })
  )
})
