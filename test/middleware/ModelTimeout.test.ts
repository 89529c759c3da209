import { assert, describe, it } from "@effect/vitest"
import { type Cause, Clock, Effect, Layer, Queue, Schedule, Stream } from "effect"
import { Agent, ChatModel, Message, Middleware, ModelError, Tool } from "effect-deepagents"
import { ModelTimeout } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import { agentWith, failureOf, inBackground, prompt, story, watch } from "./run.ts"

const model = (turn: Stream.Stream<ChatModel.TurnPart, ModelError.ModelError>) =>
  Layer.succeed(ChatModel.ChatModel, {
    modelId: "streams",
    provider: "test",
    supportsVision: true,
    contextWindowTokens: undefined,
    makeSession: Effect.succeed({ nextTurn: () => turn })
  })

const text = (value: string): ChatModel.TurnPart => ({ _tag: "TextDelta", text: value })
const finishTurn = (value: string): ChatModel.TurnPart => ({ _tag: "TurnDone", message: Message.ai(value) })

const limited = agentWith(ModelTimeout.make())

const reasonOf = (error: unknown) => (ModelError.isModelError(error) ? error.reason._tag : undefined)

describe("ModelTimeout", () => {
  it.effect("a model that never says anything fails with Timeout after 120 seconds", () =>
    Effect.gen(function* () {
      const run = yield* inBackground(Effect.flip(Agent.run(limited, prompt)))
      yield* TestClock.adjust("119999 millis")
      assert.isFalse(yield* run.isDone)
      yield* TestClock.adjust("1 millis")
      const error = yield* run.result
      assert.isTrue(ModelError.isModelError(error) && error.isRetryable)
      assert.strictEqual(reasonOf(error), "Timeout")
      assert.include(error.message, "test/scripted")
      assert.include(error.message, "it said nothing for 2m")
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.hang])))
  )

  it.effect("each part starts the wait anew", () =>
    Effect.gen(function* () {
      const run = yield* inBackground(watch(limited))
      yield* TestClock.adjust("399 seconds")
      assert.isFalse(yield* run.isDone)
      yield* TestClock.adjust("1 seconds")
      const { events } = yield* run.result
      assert.deepStrictEqual(story(events), ["a", "b", "c", "d", "<RunCompleted>"])
    }).pipe(
      Effect.provide(TestChatModel.script([TestChatModel.text(["a", "b", "c", "d"], { chunkDelay: "100 seconds" })]))
    )
  )

  it.effect("a first piece has a time of its own, and gaps have theirs", () =>
    Effect.gen(function* () {
      const brisk = agentWith(ModelTimeout.make({ first: "10 minutes", idle: "5 seconds" }))
      const warning: ChatModel.TurnPart = { _tag: "Warning", code: "x", message: "x" }
      const turn = (first: string, gap: string) =>
        Stream.fromIterable([warning]).pipe(
          Stream.concat(Stream.fromEffect(Effect.as(Effect.sleep(first as "1 second"), text("a")))),
          Stream.concat(Stream.fromEffect(Effect.as(Effect.sleep(gap as "1 second"), finishTurn("a"))))
        )
      const late = yield* inBackground(
        Effect.flip(Agent.run(brisk, prompt).pipe(Effect.provide(model(turn("11 minutes", "1 second")))))
      )
      yield* TestClock.adjust("599999 millis")
      assert.isFalse(yield* late.isDone)
      yield* TestClock.adjust("1 millis")
      assert.include((yield* late.result).message, "it had not begun to answer after 10m")

      const gap = yield* inBackground(
        Effect.flip(Agent.run(brisk, prompt).pipe(Effect.provide(model(turn("9 minutes", "6 seconds")))))
      )
      yield* TestClock.adjust("544999 millis")
      assert.isFalse(yield* gap.isDone)
      yield* TestClock.adjust("1 millis")
      assert.include((yield* gap.result).message, "it said nothing for 5s")

      const good = yield* inBackground(
        Agent.run(brisk, prompt).pipe(Effect.provide(model(turn("9 minutes", "4 seconds"))))
      )
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual((yield* good.result).text, "a")

      const short = agentWith(ModelTimeout.make({ first: "3 seconds" }))
      const silent = yield* inBackground(
        Effect.flip(Agent.run(short, prompt).pipe(Effect.provide(model(Stream.never))))
      )
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual(reasonOf(yield* silent.result), "Timeout")
    })
  )

  it.effect("a stream that stops in its middle fails 120 seconds after its last part", () =>
    Effect.gen(function* () {
      const run = yield* inBackground(watch(limited))
      yield* TestClock.adjust("219999 millis")
      assert.isFalse(yield* run.isDone)
      yield* TestClock.adjust("1 millis")
      const { events, exit } = yield* run.result
      assert.deepStrictEqual(story(events), ["a", "b", "<RunFailed>"])
      assert.strictEqual(reasonOf(failureOf(exit)), "Timeout")
    }).pipe(
      Effect.provide(
        TestChatModel.script([TestChatModel.hangAfter([text("a"), text("b")], { chunkDelay: "100 seconds" })])
      )
    )
  )

  it.effect("a turn that never comes to its end fails after `total`, however lively it is", () =>
    Effect.gen(function* () {
      const endless = Stream.repeat(Stream.fromEffect(Effect.as(Effect.sleep("1 minute"), text("."))), Schedule.forever)
      const run = yield* inBackground(Effect.flip(Agent.run(limited, prompt).pipe(Effect.provide(model(endless)))))
      yield* TestClock.adjust("59 minutes")
      yield* TestClock.adjust("59999 millis")
      assert.isFalse(yield* run.isDone)
      yield* TestClock.adjust("1 millis")
      const error = yield* run.result
      assert.strictEqual(reasonOf(error), "Timeout")
      assert.include(error.message, "the turn was not complete after 1h")
    })
  )

  it.effect("a source that never ends, and never pauses, can't keep `total` from passing", () =>
    Effect.gen(function* () {
      const run = yield* inBackground(
        Effect.flip(Agent.run(limited, prompt)).pipe(
          Effect.provide(model(Stream.forever(Stream.fromArrays([text("")], [text("")]))))
        )
      )
      yield* TestClock.adjust("1 hour")
      assert.include((yield* run.result).message, "the turn was not complete after 1h")
    })
  )

  it.effect("each of two turns at once has its own time", () =>
    Effect.gen(function* () {
      const ends: Array<readonly [number, string]> = []
      const twice = Middleware.make({
        name: "twice",
        wrapModelCall: (request, next) => {
          const ended = Effect.gen(function* () {
            const { message } = yield* Effect.flip(Stream.runDrain(next(request)))
            ends.push([yield* Clock.currentTimeMillis, message.slice(message.lastIndexOf(": ") + 2)])
          })
          const both = Effect.all([ended, Effect.delay(ended, "50 seconds")], { concurrency: 2 })
          return Stream.fromEffect(Effect.as(Effect.orDie(both), finishTurn("fine")))
        }
      })
      const turns = [Stream.concat(Stream.make(text("a")), Stream.never), Stream.never]
      const brief = ModelTimeout.make({ first: "5 seconds", idle: "Infinity", total: "1 minute" })
      const run = yield* inBackground(
        Agent.run(agentWith(twice, brief), prompt).pipe(
          Effect.provide(model(Stream.suspend(() => turns.shift() ?? Stream.empty)))
        )
      )
      yield* TestClock.adjust("1 minute")
      yield* run.result
      assert.deepStrictEqual(ends, [
        [55_000, "it had not begun to answer after 5s"],
        [60_000, "the turn was not complete after 1m"]
      ])
    })
  )

  it.effect("a finalizer that dies does not hide the time-out", () =>
    Effect.gen(function* () {
      const broken = Effect.die("broken finalizer")
      const turns = [
        Stream.ensuring(Stream.never, broken),
        Stream.fromEffect(Effect.onInterrupt(Effect.never, () => broken))
      ]
      for (const turn of turns) {
        const run = yield* inBackground(Effect.exit(Agent.run(limited, prompt)).pipe(Effect.provide(model(turn))))
        yield* TestClock.adjust("2 minutes")
        assert.strictEqual(reasonOf(failureOf(yield* run.result)), "Timeout")
      }
    })
  )

  it.effect("both limits can be set", () =>
    Effect.gen(function* () {
      const agent = agentWith(ModelTimeout.make({ idle: "10 seconds", total: "15 seconds" }))
      for (const [turn, millis] of [
        [TestChatModel.hang, 10_000],
        [TestChatModel.hangAfter("a", { delay: "9 seconds" }), 15_000]
      ] as const) {
        const before = yield* Clock.currentTimeMillis
        const run = yield* inBackground(
          Effect.flip(Agent.run(agent, prompt)).pipe(
            Effect.andThen(Clock.currentTimeMillis),
            Effect.provide(TestChatModel.script([turn]))
          )
        )
        yield* TestClock.adjust("1 minute")
        assert.strictEqual((yield* run.result) - before, millis)
      }
    })
  )

  it.effect("the stream is interrupted, and its finalizers have run when the call fails", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const turn = Stream.unwrap(
        Effect.as(
          Effect.acquireRelease(
            Effect.sync(() => void log.push("open")),
            () => Effect.sync(() => void log.push("close"))
          ),
          Stream.fromEffect(Effect.onInterrupt(Effect.never, () => Effect.sync(() => void log.push("interrupted"))))
        )
      )
      const run = yield* inBackground(
        Effect.flip(Agent.run(limited, prompt)).pipe(
          Effect.tap(() => Effect.sync(() => void log.push("failed"))),
          Effect.provide(model(turn))
        )
      )
      yield* TestClock.adjust("2 minutes")
      yield* run.result
      assert.deepStrictEqual(log, ["open", "interrupted", "close", "failed"])
    })
  )

  it.effect("what opens the stream has no more time than its parts", () =>
    Effect.gen(function* () {
      const run = yield* inBackground(
        Effect.flip(Agent.run(limited, prompt)).pipe(Effect.provide(model(Stream.fromPull(Effect.never))))
      )
      yield* TestClock.adjust("2 minutes")
      assert.strictEqual(reasonOf(yield* run.result), "Timeout")
    })
  )

  it.effect("time in which the reader is busy is not idle", () =>
    Effect.gen(function* () {
      const slow = Middleware.make({
        name: "slow",
        wrapModelCall: (request, next) => Stream.tap(next(request), () => Effect.sleep("10 minutes"))
      })
      const run = yield* inBackground(Agent.run(agentWith(slow, ModelTimeout.make()), prompt))
      yield* TestClock.adjust("30 minutes")
      assert.strictEqual((yield* run.result).text, "fine")
    }).pipe(Effect.provide(model(Stream.fromArrays([text("fi")], [text("ne")], [finishTurn("fine")]))))
  )

  it.effect("the total holds for a slow reader too, from the next part on", () =>
    Effect.gen(function* () {
      const slow = Middleware.make({
        name: "slow",
        wrapModelCall: (request, next) => Stream.tap(next(request), () => Effect.sleep("50 minutes"))
      })
      const run = yield* inBackground(Effect.flip(Agent.run(agentWith(slow, ModelTimeout.make()), prompt)))
      yield* TestClock.adjust("100 minutes")
      assert.strictEqual(reasonOf(yield* run.result), "Timeout")
    }).pipe(Effect.provide(model(Stream.fromArrays([text("fi")], [text("ne")], [finishTurn("fine")]))))
  )

  it.effect("Infinity sets no limit", () =>
    Effect.gen(function* () {
      const agent = agentWith(ModelTimeout.make({ idle: "Infinity", total: "Infinity" }))
      const run = yield* inBackground(Agent.run(agent, prompt))
      yield* TestClock.adjust("99 days")
      assert.isFalse(yield* run.isDone)
      yield* TestClock.adjust("1 day")
      assert.strictEqual((yield* run.result).text, "fine")
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.text("fine", { delay: "100 days" })])))
  )

  it.effect("9: interrupting the run interrupts the stream at once", () =>
    Effect.gen(function* () {
      let interrupted = false
      const turn = Stream.fromEffect(
        Effect.onInterrupt(Effect.never, () =>
          Effect.sync(() => {
            interrupted = true
          })
        )
      )
      const run = yield* inBackground(Agent.run(limited, prompt).pipe(Effect.provide(model(turn))))
      run.fiber.interruptUnsafe()
      yield* Effect.yieldNow
      assert.isTrue(interrupted)
      assert.isTrue(yield* run.isDone)
    })
  )

  it.effect("9: interrupting one pull interrupts the model's", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const note = (what: string) => Effect.sync(() => void log.push(what))
      const impatient = Middleware.make({
        name: "impatient",
        wrapModelCall: (request, next) =>
          Stream.transformPull(next(request), (pull) =>
            Effect.succeed(
              Effect.timeoutOrElse(pull, {
                duration: "1 second",
                orElse: () => Effect.andThen(note("given up"), Effect.die("impatient"))
              })
            )
          )
      })
      const turn = Stream.fromEffect(Effect.onInterrupt(Effect.never, () => note("interrupted")))
      const run = yield* inBackground(
        Effect.exit(Agent.run(agentWith(impatient, ModelTimeout.make()), prompt)).pipe(Effect.provide(model(turn)))
      )
      yield* TestClock.adjust("1 second")
      yield* run.result
      assert.deepStrictEqual(log, ["interrupted", "given up"])
    })
  )

  it.effect("failures and defects of the model pass as they are", () =>
    Effect.gen(function* () {
      const error = new ModelError.ModelError({ provider: "test", reason: { _tag: "Overloaded" } })
      const failed = yield* Agent.run(limited, prompt).pipe(Effect.flip, Effect.provide(model(Stream.fail(error))))
      assert.strictEqual(failed, error)
      const died = yield* Agent.run(limited, prompt).pipe(
        Effect.catchDefect(Effect.succeed),
        Effect.provide(model(Stream.die("broken")))
      )
      assert.strictEqual(died, "broken")
    })
  )

  it.effect("arrays of parts pass as they are, and nothing is read ahead", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const measuring = Middleware.make({
        name: "measuring",
        wrapModelCall: (request, next) =>
          Stream.mapArray(next(request), (parts) => {
            log.push(`read ${parts.length}`)
            return parts
          })
      })
      const turn = Stream.mapArray(
        Stream.fromArrays([text("a"), text("b")], [text("c"), finishTurn("abc")]),
        (parts) => {
          log.push("said")
          return parts
        }
      )
      yield* Agent.run(agentWith(measuring, ModelTimeout.make()), prompt).pipe(Effect.provide(model(turn)))
      assert.deepStrictEqual(log, ["said", "read 2", "said", "read 2"])
    })
  )

  it.effect("a fiber that the model forks when it opens a turn lives as long as the turn", () =>
    Effect.gen(function* () {
      const turn = Stream.unwrap(
        Effect.gen(function* () {
          const queue = yield* Queue.unbounded<ChatModel.TurnPart, Cause.Done>()
          yield* Effect.forkChild(
            Effect.gen(function* () {
              for (const part of [text("a"), text("b"), finishTurn("ab")]) {
                yield* Effect.sleep("1 second")
                yield* Queue.offer(queue, part)
              }
              yield* Queue.end(queue)
            })
          )
          return Stream.fromQueue(queue)
        })
      )
      const run = yield* inBackground(watch(limited).pipe(Effect.provide(model(turn))))
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(story((yield* run.result).events), ["a", "b", "<RunCompleted>"])
    })
  )

  it.effect("one timer serves all turns of a run, and ends with it", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      let sleeping = 0
      let begun = 0
      const counting: Clock.Clock = {
        currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe(),
        currentTimeMillis: clock.currentTimeMillis,
        currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
        currentTimeNanos: clock.currentTimeNanos,
        monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
        monotonicTimeNanos: clock.monotonicTimeNanos,
        sleep: (duration) =>
          Effect.suspend(() => {
            sleeping++
            begun++
            return Effect.ensuring(
              clock.sleep(duration),
              Effect.sync(() => void sleeping--)
            )
          })
      }
      const seen: Array<number> = []
      const look = Effect.sync(() => void seen.push(sleeping))
      const tool = Tool.make("look", { description: "", parameters: {}, execute: () => Effect.as(look, "ok") })
      const calling = Message.ai("", { toolCalls: [{ id: "1", name: "look", arguments: {} }] })
      const turns: Array<ChatModel.TurnPart> = [{ _tag: "TurnDone", message: calling }, finishTurn("a")]
      // It takes the event loop some turns to say something.
      const turn = Stream.suspend(() =>
        Stream.fromEffect(Effect.as(Effect.replicateEffect(Effect.yieldNow, 20), turns.shift() ?? finishTurn("")))
      )
      const agent = Agent.make({ name: "a", prompt: "", tools: [tool], middleware: [ModelTimeout.make()] })
      yield* Agent.run(agent, prompt).pipe(Effect.provide(model(turn)), Effect.provideService(Clock.Clock, counting))
      assert.deepStrictEqual(seen, [1])
      assert.strictEqual(begun, 1)
      assert.strictEqual(sleeping, 0)
    })
  )
})
