/** The patience of the program with a provider that has a bad time, and what a person sees of it. */
import { stripVTControlCharacters } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber, Layer, Stream } from "effect"
import { Agent, ChatModel, Message, ModelError } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"
import { View } from "effect-deepagents/view"
import { TestClock } from "effect/testing"
import { frameOf } from "../../src/cli/internal/render/live.ts"
import { partLines } from "../../src/cli/internal/render/part.ts"
import { styleOf } from "../../src/cli/internal/render/style.ts"
import { patience } from "../../src/cli/internal/work/patience.ts"

const agent = Agent.make({ name: "patient", prompt: "You answer.", middleware: [patience()] })

const overloaded = new ModelError.ModelError({
  provider: "fake",
  model: "m",
  status: 529,
  reason: { _tag: "Overloaded" },
  detail: "overloaded_error"
})

/** Fails until this time of the test's clock. */
const until = (millis: number) =>
  Layer.succeed(ChatModel.ChatModel, {
    modelId: "m",
    provider: "fake",
    supportsVision: true,
    contextWindowTokens: undefined,
    makeSession: Effect.succeed({
      nextTurn: () =>
        Stream.unwrap(
          Effect.map(Clock.currentTimeMillis, (now) =>
            now < millis
              ? Stream.fail(overloaded)
              : Stream.make<[ChatModel.TurnPart]>({ _tag: "TurnDone", message: Message.ai("At last.") })
          )
        )
    })
  })

describe("a provider that is overloaded", () => {
  it.effect("for a minute delays the turn, which ends well; the screen counts down", () =>
    Effect.gen(function* () {
      let view = View.empty
      const parts: Array<View.Part> = []
      const run = yield* Effect.forkChild(
        Stream.runForEach(Agent.stream(agent, "Go"), (event) =>
          Effect.sync(() => {
            const [next, more] = View.reduce(view, event)
            view = next
            parts.push(...more)
          })
        )
      )
      yield* TestClock.adjust("20 seconds")
      const now = yield* Clock.currentTimeMillis
      const around = { now, frame: 0, isPlanOpen: false, queue: [], panel: [], editor: [""], hints: "", facts: [] }
      const surface = { columns: 100, style: styleOf(false), highlight: undefined }
      const { lines } = frameOf(view, { ...around, caret: { row: 0, column: 0 } }, surface, 30)
      assert.match(lines.join("\n"), /the provider is overloaded: asking again in \d+ s · try \d+/)
      // The last wait before the minute is over may be 36 seconds long.
      yield* TestClock.adjust("80 seconds")
      yield* Fiber.join(run)
      assert.deepInclude(parts.at(-1), { kind: "turnEnd", stopReason: "completed" })
      const notes = parts.flatMap((part) => (part.kind === "note" ? [part.text] : []))
      assert.lengthOf(notes, 1)
      assert.match(notes[0] ?? "", /; asking again in \d+s$/)
      assert.isUndefined(view.retry)
    }).pipe(Effect.provide(until(60_000)))
  )

  it.effect("for hours ends the turn after ten minutes, in a person's words", () =>
    Effect.gen(function* () {
      const run = yield* Effect.forkChild(Effect.flip(Agent.run(agent, "Go")))
      yield* TestClock.adjust("11 minutes")
      const { message } = yield* Fiber.join(run)
      assert.match(
        message,
        /^fake\/m: the provider is overloaded; try again later \(status 529\): overloaded_error; tried \d\d times in 10 minutes$/
      )
      assert.isAtLeast(yield* Clock.currentTimeMillis, 9.5 * 60_000)
    }).pipe(Effect.provide(until(Number.POSITIVE_INFINITY)))
  )

  it.effect("on this machine, which nobody started, is asked three times within two seconds", () =>
    Effect.gen(function* () {
      const run = yield* Effect.forkChild(Effect.flip(Agent.run(agent, "Go")))
      yield* TestClock.adjust("2 seconds")
      assert.match((yield* Fiber.join(run)).message, /tried 3 times in [12] s$/)
    }).pipe(Effect.provide(TestChatModel.reactive(() => TestChatModel.fail({ _tag: "Transport", isRefused: true }))))
  )

  it.effect("is asked when it says so, and not asked at all if that is too late", () =>
    Effect.gen(function* () {
      const run = yield* Effect.forkChild(Agent.run(agent, "Go"))
      yield* TestClock.adjust("119 seconds")
      assert.lengthOf(yield* TestChatModel.requests, 1)
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual((yield* Fiber.join(run)).text, "fine")
      const error = yield* Effect.flip(Agent.run(agent, "Go"))
      assert.strictEqual(error._tag, "ModelError")
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.fail({ _tag: "RateLimited", retryAfter: Duration.minutes(2) }),
          "fine",
          TestChatModel.fail({ _tag: "RateLimited", retryAfter: Duration.hours(1) })
        ])
      )
    )
  )
})

describe("what a command has said", () => {
  const surface = { columns: 80, style: styleOf(false), highlight: undefined }
  const showPart = (isError: boolean, text: string) => {
    const event = { seq: 1, runId: "r", path: ["a"], at: 5, callId: "c", toolName: "execute", durationMillis: 5 }
    const [, parts] = View.reduce(View.empty, {
      ...event,
      _tag: isError ? "ToolFailed" : "ToolCompleted",
      text,
      details: { kind: "command", exitCode: isError ? 1 : 0, truncated: false },
      ...(isError ? { reason: "Failed" } : {})
    } as Parameters<typeof View.reduce>[1])
    return parts.flatMap((part) => partLines(part, surface)).map(stripVTControlCharacters)
  }

  it("is shown by its last lines: six of a failure, with the line that names the error, three of a success", () => {
    const numbers = Array.from({ length: 50 }, (_, index) => `line ${index + 1}`).join("\n")
    assert.deepStrictEqual(showPart(false, `${numbers}\n[Command succeeded with exit code 0]`).slice(1), [
      "  exit code 0",
      "  line 48",
      "  line 49",
      "  line 50"
    ])
    const failing = [
      "✖ sum (1.1ms)",
      "  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:",
      "  3 !== 4",
      "      at TestContext.<anonymous> (file:///p/a.test.js:4:10)",
      "    generatedMessage: true,",
      "    code: 'ERR_ASSERTION',",
      "    actual: 3,",
      "    expected: 4,",
      "    operator: 'strictEqual',",
      "    diff: 'simple'",
      "  }",
      "",
      "[Command failed with exit code 1]"
    ].join("\n")
    const lines = showPart(true, failing)
    assert.include(lines[2], "AssertionError [ERR_ASSERTION]: Expected values")
    assert.include(lines.join("\n"), "actual: 3,")
    assert.strictEqual(lines.length, 2 + 7)
  })

  it("of a message of 5,000 lines is its beginning, and how many follow", () => {
    const text = Array.from({ length: 5_000 }, (_, index) => `${index}`).join("\n")
    const lines = partLines({ kind: "user", text, attachments: 0 }, surface)
    assert.isBelow(lines.length, 20)
    assert.include(lines.join("\n"), "[4985 more lines; /history shows all]")
    // A line without an end is as long.
    const line = partLines({ kind: "user", text: "x".repeat(1_000_000), attachments: 0 }, surface)
    assert.isBelow(line.length, 100)
    assert.include(line.join("\n"), "[more characters; /history shows all]")
  })
})
