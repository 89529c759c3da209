import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Stream } from "effect"
import { Agent, Message } from "effect-deepagents"
import { BackgroundSubagents, BackgroundTasks } from "effect-deepagents/middleware"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { cancel, lead, notices, start, threads, transcript, worker } from "./BackgroundSubagents.fixtures.ts"

const { calls } = TestChatModel

describe("Announcements of BackgroundSubagents", () => {
  it.effect("a run that is left anywhere loses no announcement, and doubles none", () =>
    Effect.forEach(
      Array.from({ length: 24 }, (_, index) => index),
      (count) =>
        Effect.gen(function* () {
          const agent = lead([worker("slow", 10)])
          yield* Agent.run(agent, "one", { threadId: "t" })
          yield* TestClock.adjust("10 seconds")
          yield* Agent.stream(agent, "two", { threadId: "t" }).pipe(
            Stream.rechunk(1),
            Stream.take(count),
            Stream.runDrain
          )
          yield* Agent.run(agent, "three", { threadId: "t" })
          yield* Agent.run(agent, "four", { threadId: "t" })
          const messages = yield* transcript("t")
          assert.strictEqual(notices(messages).length, 1, `left after ${count} events`)
          assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
        }).pipe(
          Effect.provide([
            threads,
            BackgroundTasks.layer(),
            TestChatModel.reactive(({ messages }) => (messages.length === 1 ? calls([start("slow", "x")]) : "ok"))
          ])
        )
    )
  )

  it.effect("counts announcements in the transcript, not those about to be made", () =>
    Effect.gen(function* () {
      const agent = lead([worker("slow", 10)])
      const first = yield* Agent.run(agent, "one")
      const [task] = Result.getOrThrow(BackgroundSubagents.tasks(first.state))
      assert.isDefined(task)
      const about = { ...task, status: "completed", told: false, notice: "the notice" }
      const state = { backgroundTasks: { group: "g", next: 2, tasks: [about] } }
      const cut = yield* Agent.run(agent, "two", { history: first.messages, state })
      assert.strictEqual(notices(cut.messages).length, 1)
      const said = Message.human("said", { id: "the notice" })
      const whole = yield* Agent.run(agent, "two", { history: [...first.messages, said], state })
      assert.strictEqual(notices(whole.messages).length, 0)
    }).pipe(
      Effect.provide([
        BackgroundTasks.layer(),
        TestChatModel.reactive(({ messages }) => (messages.length === 1 ? calls([start("slow", "x")]) : "ok"))
      ])
    )
  )

  it.effect("any number of tasks that end in any way and at any time are each told of once", () => {
    const seconds = fc.integer({ min: 0, max: 30 })
    return Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.array(fc.record({ seconds, fails: fc.boolean(), cancelled: fc.boolean() }), {
            minLength: 1,
            maxLength: 6
          }),
          fc.array(fc.integer({ min: 0, max: 15 }), { maxLength: 4 }),
          (wanted, pauses) => {
            const agents = wanted.map((one, index) =>
              Agent.provide(
                Agent.make({ name: `agent-${index}`, prompt: "" }),
                TestChatModel.reactive(() =>
                  one.fails
                    ? TestChatModel.fail({ _tag: "Overloaded" }, { delay: `${one.seconds} seconds` })
                    : TestChatModel.text("done", { delay: `${one.seconds} seconds` })
                )
              )
            )
            const cancels = wanted.flatMap((one, index) => (one.cancelled ? [cancel(`task-${index + 1}`)] : []))
            const model = TestChatModel.reactive(({ messages }) => {
              if (messages.length === 1) return calls(agents.map(({ name }) => start(name, "x")))
              const last = messages.at(-1)
              return last?.role === "human" && Message.text(last) === "cancel" && cancels.length > 0
                ? calls(cancels)
                : "ok"
            })
            return Effect.runPromise(
              Effect.gen(function* () {
                const agent = lead(agents)
                yield* Agent.run(agent, "go", { threadId: "t" })
                for (const pause of pauses) {
                  yield* TestClock.adjust(`${pause} seconds`)
                  yield* Agent.run(agent, "and?", { threadId: "t" })
                }
                yield* Agent.run(agent, "cancel", { threadId: "t" })
                yield* TestClock.adjust("60 seconds")
                const last = yield* Agent.run(agent, "at last?", { threadId: "t" })
                const messages = yield* transcript("t")
                assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
                const told = notices(messages).join("\n")
                for (const { id, status } of Result.getOrThrow(BackgroundSubagents.tasks(last.state))) {
                  const count = told.split(`- ${id} (`).length - 1
                  // A task that the model cancelled itself needs no announcement.
                  assert.strictEqual(count, status === "cancelled" ? 0 : 1, `${id} ${status}`)
                  assert.notStrictEqual(status, "running")
                }
              }).pipe(Effect.provide([threads, BackgroundTasks.layer(), model, TestClock.layer()]))
            )
          }
        ),
        { numRuns: 40 }
      )
    )
  })

  it.effect("a thread remembers so many tasks, and the supervisor keeps so many that are over", () =>
    Effect.gen(function* () {
      const tasks = yield* BackgroundTasks.BackgroundTasks
      const agent = lead([worker("slow", 1)])
      let result = yield* Agent.run(agent, "go", { threadId: "t" })
      for (let round = 0; round < 70; round++) {
        yield* TestClock.adjust("1 second")
        result = yield* Agent.run(agent, "go", { threadId: "t" })
      }
      const known = Result.getOrThrow(BackgroundSubagents.tasks(result.state))
      assert.strictEqual(known.length, 64)
      assert.strictEqual(known.at(-1)?.id, "task-71")
      assert.strictEqual(new Set(known.map(({ place }) => place)).size, 64)
      assert.isAtMost(Object.keys(result.state).length, 66)
      assert.strictEqual((yield* tasks.list()).filter(({ status }) => status !== "running").length, 5)
    }).pipe(
      Effect.provide([
        threads,
        BackgroundTasks.layer({ keep: 5 }),
        TestChatModel.reactive(({ messages }) =>
          messages.at(-1)?.role === "tool" ? "ok" : calls([start("slow", String(messages.length))])
        )
      ])
    )
  )
})
