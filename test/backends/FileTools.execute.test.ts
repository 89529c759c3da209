import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Ref, Stream } from "effect"
import { Agent, Backend, BackendError, type Json, Sandbox } from "effect-deepagents"
import { FileTools } from "effect-deepagents/backends"
import { AgentTest, TestBackend, TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import { converse, eventsOf, turns } from "./converse.ts"

type Output = (
  options: Sandbox.ExecuteOptions | undefined
) => Stream.Stream<Sandbox.ExecuteEvent, BackendError.BackendError>

const stdout = (text: string): Sandbox.ExecuteEvent => ({ _tag: "Output", channel: "stdout", text })
const exited = (exitCode: number, truncated = false): Sandbox.ExecuteEvent => ({ _tag: "Exited", exitCode, truncated })

/** A sandbox in which every command does this. */
const sandbox = (output: Output) =>
  Layer.effect(
    Sandbox.Sandbox,
    Effect.map(Backend.Backend, (backend) => ({
      ...backend,
      id: "test",
      reaches: () => true,
      executeStream: (_: string, options?: Sandbox.ExecuteOptions) => output(options),
      execute: (_: string, options?: Sandbox.ExecuteOptions) => Sandbox.collect(output(options))
    }))
  ).pipe(Layer.provideMerge(TestBackend.layer()))

const executing = (calls: ReadonlyArray<Json.JsonObject>, options: FileTools.ExecuteOptions = {}) =>
  converse([calls.map((args) => ["execute", args] as const)], {
    tools: FileTools.make({ execute: options, only: [] })
  }).pipe(Effect.map(({ answers }) => answers))

const watching = (args: Json.JsonObject) =>
  AgentTest.events(
    Agent.make({ name: "agent", prompt: "You are tested.", tools: FileTools.make({ execute: true, only: [] }) }),
    "Go"
  ).pipe(Effect.provide(TestChatModel.script(turns([[["execute", args]]]))))

describe("FileTools, execute", () => {
  it.effect("gives output and exit code; a command that fails is marked", () =>
    Effect.gen(function* () {
      const [good] = yield* Effect.provide(
        executing([{ command: "x" }]),
        sandbox(() => Stream.make(stdout("one\n"), stdout("two\n"), exited(0)))
      )
      assert.strictEqual(good?.text, "one\ntwo\n[Command succeeded with exit code 0]")
      assert.isFalse(good?.isError)
      const [bad] = yield* Effect.provide(
        executing([{ command: "x" }]),
        sandbox(() => Stream.make(exited(3, true)))
      )
      assert.include(bad?.text, "[No output]\n[The middle of the output was too much, and was left out]")
      assert.include(bad?.text, "[Command failed with exit code 3]")
      assert.isTrue(bad?.isError)
    })
  )

  it.effect("an output that is not too long is given as it is, also in one piece", () =>
    Effect.gen(function* () {
      const whole = Array.from({ length: 4_000 }, (_, index) => `${index}\n`).join("")
      const [answer] = yield* Effect.provide(
        executing([{ command: "x" }]),
        sandbox(() => Stream.make(stdout(whole), exited(0)))
      )
      assert.strictEqual(answer?.text, `${whole}[Command succeeded with exit code 0]`)
    })
  )

  it.effect("keeps the beginning and the end of a long output, from any pieces, and reports the gap", () =>
    Effect.gen(function* () {
      for (const size of [1, 7, 4_096, 1_000_000]) {
        const whole = Array.from({ length: 20_000 }, (_, index) => `${index}\n`).join("")
        const pieces = whole.match(new RegExp(`[^]{1,${size}}`, "g")) ?? []
        const [answer] = yield* Effect.provide(
          executing([{ command: "x" }]),
          sandbox(() => Stream.fromIterable([...pieces.map(stdout), exited(0)]))
        )
        const path = /\/large_results\/[0-9a-f]{32}\.txt/.exec(answer?.text ?? "")?.[0] ?? ""
        const expected = [
          whole.slice(0, 10_000),
          `[… ${whole.length - 30_000} characters left out; all of the output is in the file ${path}: search it, or read it in parts …]`,
          whole.slice(-20_000)
        ].join("\n")
        assert.strictEqual(answer?.text, `${expected}[Command succeeded with exit code 0]`, `pieces of ${size}`)
      }
    })
  )

  it.effect("takes a time in seconds, bounded by the option", () =>
    Effect.gen(function* () {
      const asked = yield* Ref.make<ReadonlyArray<number>>([])
      const layer = sandbox((options) =>
        Stream.unwrap(
          Effect.as(
            Ref.update(asked, (all) => [...all, Duration.toSeconds(Duration.fromInputUnsafe(options?.timeout ?? 0))]),
            Stream.make(exited(0))
          )
        )
      )
      const commands = [{}, { timeout: 5 }, { timeout: "60" }, { timeout: 61 }, { timeout: 0 }, { timeout: -1 }]
      const answers = yield* Effect.provide(
        executing(
          commands.map((args) => ({ command: "x", ...args })),
          { timeout: "10 minutes", maxTimeout: "1 minute" }
        ),
        layer
      )
      assert.deepStrictEqual(
        answers.map((answer) => answer.isError),
        [false, false, false, true, true, true]
      )
      assert.include(answers[3]?.text, "more than 0 and at most 60; you gave 61")
      assert.deepStrictEqual(
        [...(yield* Ref.get(asked))].toSorted((left, right) => left - right),
        [5, 60, 60]
      )
    })
  )

  it.effect("a command that took too long fails with the end of its output", () =>
    Effect.gen(function* () {
      const late = BackendError.make("execute", "/", { _tag: "TimedOut", limit: 5_000 })
      const layer = sandbox(() => Stream.concat(Stream.make(stdout("half\n")), Stream.fail(late)))
      const [answer] = yield* Effect.provide(executing([{ command: "x", timeout: 5 }]), layer)
      assert.isTrue(answer?.isError)
      assert.include(answer?.text, "not done within 5 seconds.")
      const [short] = yield* Effect.provide(executing([{ command: "x", timeout: 1 }]), layer)
      assert.include(short?.text, "not done within 1 second.")
      assert.include(answer?.text, "at most 3600 seconds")
      assert.include(answer?.text, "Its output ended with:\nhalf")
    })
  )

  it.effect("reports progress: the last lines, at most twice a second, not more for more pieces", () =>
    Effect.gen(function* () {
      const ticking = Stream.range(1, 2_000).pipe(
        Stream.mapEffect((index) => Effect.as(Effect.sleep("1 millis"), stdout(`${index}\n`))),
        Stream.concat(Stream.fromEffect(Effect.as(Effect.sleep("10 seconds"), exited(0))))
      )
      const fiber = yield* Effect.forkChild(
        Effect.provide(
          watching({ command: "x" }),
          sandbox(() => ticking)
        )
      )
      yield* TestClock.adjust("13 seconds")
      const events = yield* Fiber.join(fiber)
      const progress = eventsOf(events, "ToolProgress").map((event) => event.progress)
      assert.isAtLeast(progress.length, 4)
      assert.isAtMost(progress.length, 5)
      assert.deepStrictEqual(progress.at(-1), { output: "1996\n1997\n1998\n1999\n2000" })
      assert.strictEqual(eventsOf(events, "ToolCompleted").length, 1)
    })
  )

  it.effect("people are shown the exit code, also of a command that fails", () =>
    Effect.gen(function* () {
      for (const exitCode of [0, 3]) {
        const events = yield* Effect.provide(
          watching({ command: "x" }),
          sandbox(() => Stream.make(exited(exitCode)))
        )
        const [ended] = eventsOf(events, exitCode === 0 ? "ToolCompleted" : "ToolFailed")
        assert.deepStrictEqual(ended?.details, { kind: "command", exitCode, truncated: false })
      }
    })
  )

  it.effect("9: a run that is interrupted ends the command", () =>
    Effect.gen(function* () {
      const ended = yield* Ref.make(false)
      const layer = sandbox(() => Stream.ensuring(Stream.never, Ref.set(ended, true)))
      const fiber = yield* Effect.forkChild(Effect.provide(executing([{ command: "x" }]), layer))
      yield* TestClock.adjust("3 seconds")
      yield* Fiber.interrupt(fiber)
      assert.isTrue(yield* Ref.get(ended))
    })
  )
})
