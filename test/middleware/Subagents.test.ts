import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Logger, Schema } from "effect"
import { Agent, Message, Tool } from "effect-deepagents"
import { Budget, Subagents } from "effect-deepagents/middleware"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"

const task = (type: string, description: string) => ({
  name: "task",
  arguments: { subagent_type: type, description }
})

const answers = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))

const turnsOf = (messages: ReadonlyArray<Message.Message>) => messages.filter((message) => message.role === "ai").length

describe("Subagents", () => {
  it.effect("run with nothing but their task, several at once, and only their answers come back, in call order", () =>
    Effect.gen(function* () {
      const slow = Tool.make("slow", {
        description: "",
        parameters: { seconds: Schema.Finite },
        execute: ({ seconds }) => Effect.as(Effect.sleep(`${seconds} seconds`), "slept")
      })
      const worker = Agent.make({ name: "worker", description: "works", prompt: "worker", tools: [slow] })
      const lead = Agent.make({ name: "lead", prompt: "lead", middleware: [Subagents.make({ agents: [worker] })] })
      const running = yield* Effect.forkChild(AgentTest.collect(lead, "go"))
      // As long as the slowest, not as all of them.
      yield* TestClock.adjust("10 seconds")
      const { events } = yield* Fiber.join(running)
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "SubagentCompleted" ? [event.outcome] : [])),
        ["completed", "completed", "completed"]
      )
      const last = events.findLast((event) => event._tag === "TextDelta")
      assert.strictEqual(last?._tag === "TextDelta" ? last.text : "", "did 9 | did 1 | did 5")
      assert.isTrue(events.some((event) => event.path.join("/") === "lead/worker" && event._tag === "ToolCalled"))
    }).pipe(
      Effect.provide(
        TestChatModel.reactive((request) => {
          const turns = turnsOf(request.messages)
          const asked = Message.text(request.messages[0] ?? Message.human(""))
          if (request.systemPrompt === "worker") {
            assert.isAtMost(request.messages.length, 3)
            return turns === 0
              ? TestChatModel.calls([{ name: "slow", arguments: { seconds: Number(asked) } }])
              : `did ${asked}`
          }
          return turns === 0
            ? TestChatModel.calls(["9", "1", "5"].map((seconds) => task("worker", seconds)))
            : answers(request.messages).join(" | ")
        })
      )
    )
  )

  it.effect("without a description are refused, since the model chooses by it", () =>
    Effect.gen(function* () {
      for (const description of [undefined, " "]) {
        const worker = Agent.make({ name: "worker", prompt: "", ...(description === undefined ? {} : { description }) })
        const lead = Agent.make({ name: "lead", prompt: "", middleware: [Subagents.make({ agents: [worker] })] })
        const error = yield* Effect.flip(Agent.run(lead, "go"))
        assert.match(error.message, /the sub-agent "worker" has no description, by which the model chooses it; say in/)
      }
    }).pipe(Effect.provide(TestChatModel.script([])))
  )

  it.effect("two of one name are refused, since one of them could not be chosen", () =>
    Effect.gen(function* () {
      const twin = Agent.make({ name: "twin", description: "works", prompt: "" })
      const agent = Agent.make({
        name: "boss",
        prompt: "",
        middleware: [Subagents.make({ agents: [twin, Subagents.fork(twin)] })]
      })
      const error = yield* Effect.flip(Agent.run(agent, "go"))
      assert.include(error.message, 'two sub-agents are named "twin"; rename one of them')
    }).pipe(Effect.provide(TestChatModel.script([])))
  )

  it.effect("tells the model of an unknown, a failing and a too deep sub-agent, and goes on", () =>
    Effect.gen(function* () {
      const broken = Agent.make({
        name: "broken",
        description: "works",
        prompt: Effect.fail({ _tag: "NoPrompt", message: "no prompt today" } as const)
      })
      const deepest = Agent.make({ name: "deepest", description: "works", prompt: "deepest" })
      const deep = Agent.make({
        name: "deep",
        description: "works",
        prompt: "deep",
        middleware: [Subagents.make({ agents: [deepest], maxDepth: 1 })]
      })
      const lead = Agent.make({
        name: "lead",
        prompt: "lead",
        middleware: [Subagents.make({ agents: [broken, deep], maxDepth: 1 })]
      })
      const result = yield* Agent.run(lead, "go")
      assert.strictEqual(result.stopReason, "completed")
      const told = answers(result.messages)
      assert.include(told[0], "broken, deep")
      assert.include(told[1], "no prompt today")
      assert.include(told[2], "can't be nested deeper than 1")
    }).pipe(
      Effect.provide(
        TestChatModel.reactive((request) => {
          const done = turnsOf(request.messages) > 0
          if (request.systemPrompt.startsWith("deep")) {
            return done ? answers(request.messages).join() : TestChatModel.calls([task("deepest", "x")])
          }
          return done ? "done" : TestChatModel.calls([task("nobody", "x"), task("broken", "x"), task("deep", "x")])
        })
      )
    )
  )

  it.effect("a fork begins with its parent's conversation, without the turn that is being worked on", () =>
    Effect.gen(function* () {
      const twin = Agent.make({ name: "twin", description: "works", prompt: "twin" })
      const lead = Agent.make({
        name: "lead",
        prompt: "lead",
        middleware: [Subagents.make({ agents: [Subagents.fork(twin)] })]
      })
      yield* Agent.run(lead, "the goal", { history: [Message.human("before"), Message.ai("yes")] })
      const requests = yield* TestChatModel.requests
      const forked = requests.find((request) => request.systemPrompt === "twin")
      assert.deepStrictEqual(
        forked?.messages.map((message) => Message.text(message)),
        ["before", "yes", "the goal", "part two", "twin done"].slice(0, forked?.messages.length)
      )
      assert.isAtLeast(forked?.messages.length ?? 0, 4)
    }).pipe(
      Effect.provide(TestChatModel.script([TestChatModel.calls([task("twin", "part two")]), "twin done", "done"]))
    )
  )

  it.effect("an answer in a schema comes back as JSON", () =>
    Effect.gen(function* () {
      const counter = Agent.make({
        name: "counter",
        description: "works",
        prompt: "counter",
        // JSON has no such number: the answer is told as the model gave it.
        output: Schema.Struct({ count: Schema.BigInt })
      })
      const lead = Agent.make({ name: "lead", prompt: "lead", middleware: [Subagents.make({ agents: [counter] })] })
      const result = yield* Agent.run(lead, "go")
      assert.deepStrictEqual(answers(result.messages), ['{"count": "3"}'])
    }).pipe(
      Effect.provide(TestChatModel.script([TestChatModel.calls([task("counter", "count")]), '{"count": "3"}', "done"]))
    )
  )

  it.effect("a budget holds for all of them together", () =>
    Effect.gen(function* () {
      const worker = Agent.make({ name: "worker", description: "works", prompt: "worker" })
      const lead = Agent.make({
        name: "lead",
        prompt: "lead",
        middleware: [Budget.make({ rounds: 3, onExhausted: "finalAnswer" }), Subagents.make({ agents: [worker] })]
      })
      const result = yield* Agent.run(lead, "go")
      assert.strictEqual(result.stopReason, "budget:rounds")
    }).pipe(
      Effect.provide(
        TestChatModel.reactive((request) =>
          request.tools.length === 0
            ? "forced"
            : TestChatModel.calls([task("worker", String(request.messages.length)), task("worker", "x")])
        )
      )
    )
  )

  it.live("any set of parallel sub-agents ends with every call of the parent answered", () => {
    const outcome = fc.constantFrom("ok", "fails", "unknown", "dies", "empty")
    return Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(fc.array(outcome, { minLength: 1, maxLength: 12 }), (outcomes) => {
          const worker = Agent.make({ name: "worker", description: "works", prompt: "worker" })
          const fails = Agent.make({ name: "fails", description: "works", prompt: Effect.fail("no" as const) })
          const dies = Agent.make({ name: "dies", description: "works", prompt: Effect.die("broken") })
          const lead = Agent.make({
            name: "lead",
            prompt: "lead",
            middleware: [Subagents.make({ agents: [worker, fails, dies] })]
          })
          const model = TestChatModel.reactive((request) => {
            if (request.systemPrompt === "worker") {
              return Message.text(request.messages[0] ?? Message.human("")) === "empty" ? "" : "did it"
            }
            return turnsOf(request.messages) > 0
              ? "done"
              : TestChatModel.calls(
                  outcomes.map((one) => task(one === "ok" || one === "empty" ? "worker" : one, `${one}`))
                )
          })
          return Effect.runPromise(
            Effect.gen(function* () {
              const result = yield* Agent.run(lead, "go")
              assert.strictEqual(result.text, "done")
              assert.strictEqual(answers(result.messages).length, outcomes.length)
              assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
            }).pipe(Effect.provide([model, Logger.layer([])]))
          )
        }),
        { numRuns: 30 }
      )
    )
  })
})
