import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Result, Tracer } from "effect"
import { Agent, Message, Tool } from "effect-deepagents"
import { BackgroundSubagents, BackgroundTasks } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import {
  answers,
  cancel,
  check,
  lead,
  list,
  notices,
  script,
  start,
  statuses,
  threads,
  update,
  worker
} from "./BackgroundSubagents.fixtures.ts"

const { calls } = TestChatModel

describe("The tools of BackgroundSubagents", () => {
  it.effect("cancel_task interrupts the task, and nobody announces the model's own cancellation", () =>
    Effect.gen(function* () {
      const stopped = yield* Deferred.make<void>()
      const hang = Tool.make("hang", {
        description: "",
        parameters: {},
        execute: () => Effect.onInterrupt(Effect.never, () => Deferred.succeed(stopped, undefined))
      })
      const hanging = Agent.provide(
        Agent.make({ name: "hanging", prompt: "", tools: [hang] }),
        script([calls([{ name: "hang", arguments: {} }])])
      )
      const agent = lead([hanging])
      const first = yield* Agent.run(agent, "one")
      yield* TestClock.adjust("1 second")
      const { messages, state } = yield* Agent.run(agent, "two", { history: first.messages, state: first.state })
      assert.isTrue(yield* Deferred.isDone(stopped))
      assert.deepStrictEqual(answers(messages).slice(1), [
        "task-1 (hanging) is cancelled.",
        "It is cancelled already; there is nothing to cancel.",
        "task-1 (hanging): cancelled\n\nIt was cancelled.",
        "It is cancelled and can't go on. Start a new one."
      ])
      assert.deepStrictEqual(statuses({ state }), ["task-1:cancelled"])
      assert.deepStrictEqual(notices(messages), [])
    }).pipe(
      Effect.provide([
        BackgroundTasks.layer(),
        script([
          calls([start("hanging", "x")]),
          "begun",
          calls([cancel("task-1")]),
          calls([cancel(" task-1 ")]),
          calls([check("task-1")]),
          calls([update("task-1", "more")]),
          "done"
        ])
      ])
    )
  )

  it.effect("several started in one turn are several; too many at once are refused, of one thread and in all", () =>
    Effect.gen(function* () {
      const agent = lead([worker("slow", 10)])
      const first = yield* Agent.run(agent, "one", { threadId: "a" })
      assert.deepStrictEqual(statuses(first), ["task-1:running", "task-2:running"])
      assert.include(answers(first.messages)[2], "2 tasks run already")
      const other = yield* Agent.run(agent, "two", { threadId: "b" })
      assert.deepStrictEqual(statuses(other), ["task-1:running"])
      assert.include(answers(other.messages)[1], "3 tasks run already")
      yield* TestClock.adjust("10 seconds")
      const again = yield* Agent.run(agent, "three", { threadId: "a" })
      assert.deepStrictEqual(statuses(again), ["task-1:completed", "task-2:completed", "task-3:running"])
    }).pipe(
      Effect.provide([
        threads,
        BackgroundTasks.layer({ maxRunning: 2, maxTotal: 3 }),
        script([
          calls([start("slow", "a"), start("slow", "b"), start("slow", "c")]),
          "begun",
          calls([start("slow", "a"), start("slow", "b")]),
          "begun",
          calls([start("slow", "c")]),
          "begun"
        ])
      ])
    )
  )

  it.effect("update_task steers a running task, and continues a completed one, which is announced anew", () =>
    Effect.gen(function* () {
      const agent = lead([worker("slow", 10)])
      const first = yield* Agent.run(agent, "one")
      yield* TestClock.adjust("5 seconds")
      const second = yield* Agent.run(agent, "two", { history: first.messages, state: first.state })
      // The message came during its first turn: it makes one more.
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(statuses(second), ["task-1:running"])
      yield* TestClock.adjust("10 seconds")
      const third = yield* Agent.run(agent, "three", { history: second.messages, state: second.state })
      assert.strictEqual(notices(third.messages).length, 1)
      const said = answers(third.messages)
      assert.strictEqual(said[1], "task-1 (slow) goes on with your message.")
      assert.include(said[2], "did also that (2)")
      assert.strictEqual(said[3], "task-1 (slow) goes on with your message.")
      assert.deepStrictEqual(statuses(third), ["task-1:running"])
      yield* TestClock.adjust("10 seconds")
      const last = yield* Agent.run(agent, "four", { history: third.messages, state: third.state })
      assert.strictEqual(notices(last.messages).length, 2)
      assert.include(answers(last.messages)[4], "did and this (3)")
      const [task] = Result.getOrThrow(BackgroundSubagents.tasks(last.state))
      assert.strictEqual(task?.usage?.outputTokens, 21)
    }).pipe(
      Effect.provide([
        BackgroundTasks.layer(),
        script([
          calls([start("slow", "this")]),
          "begun",
          calls([update("task-1", "also that")]),
          "said",
          calls([check("task-1")]),
          calls([update("task-1", "and this")]),
          "again",
          calls([check("task-1")]),
          "done"
        ])
      ])
    )
  )

  it.effect("a message that comes too late for a run is one for the next", () =>
    Effect.gen(function* () {
      const nothing = Tool.make("nothing", { description: "", parameters: {}, execute: () => Effect.succeed("") })
      const short = Agent.provide(
        Agent.make({ name: "short", prompt: "", tools: [nothing], maxRounds: 1 }),
        TestChatModel.reactive(({ messages, tools }) =>
          tools.length > 0 && messages.length === 1
            ? calls([{ name: "nothing", arguments: {} }])
            : TestChatModel.text(`heard ${Message.text(messages.at(-1) ?? Message.human(""))}`, { delay: "10 seconds" })
        )
      )
      const agent = lead([short])
      const first = yield* Agent.run(agent, "one")
      // The run is at its last answer, which is made without looking for messages.
      yield* TestClock.adjust("5 seconds")
      const second = yield* Agent.run(agent, "two", { history: first.messages, state: first.state })
      yield* TestClock.adjust("5 seconds")
      yield* TestClock.adjust("10 seconds")
      const third = yield* Agent.run(agent, "three", { history: second.messages, state: second.state })
      assert.include(answers(third.messages)[2], "heard also this")
      assert.strictEqual(notices(third.messages).length, 1)
    }).pipe(
      Effect.provide([
        BackgroundTasks.layer(),
        script([
          calls([start("short", "this")]),
          "begun",
          calls([update("task-1", "also this")]),
          "said",
          calls([check("task-1")]),
          "done"
        ])
      ])
    )
  )

  it.effect("check_task waits as long as it is told; list_tasks filters by how tasks stand now", () =>
    Effect.gen(function* () {
      const agent = lead([worker("slow", 10), worker("slower", 100)])
      const running = yield* Effect.forkChild(Agent.run(agent, "go"))
      yield* TestClock.adjust("10 seconds")
      const { messages } = yield* Fiber.join(running)
      const said = answers(messages).slice(2)
      assert.include(said[0], "task-1 (slow): completed\n\ndid dig")
      assert.include(said[1], "task-2 (slower): running")
      assert.strictEqual(said[2], "- task-2 (slower): running, 10 s. delve")
      assert.strictEqual(said[3], "There are no tasks that are failed.")
      assert.strictEqual(said[4]?.split("\n").length, 2)
      // Told by a result: nothing to announce.
      assert.deepStrictEqual(notices(messages), [])
    }).pipe(
      Effect.provide([
        BackgroundTasks.layer(),
        script([
          calls([start("slow", "dig"), start("slower", "delve")]),
          calls([check("task-1", 60), check("task-2", 5)]),
          calls([list("running"), list("failed"), list()]),
          "done"
        ])
      ])
    )
  )

  it.effect("check_task waits ten minutes at most, for any argument", () =>
    Effect.gen(function* () {
      const running = yield* Effect.forkChild(Agent.run(lead([worker("slow", 3000)]), "go"))
      yield* TestClock.adjust("10 minutes")
      assert.include(answers((yield* Fiber.join(running)).messages)[1], "running")
    }).pipe(
      Effect.provide([
        BackgroundTasks.layer(),
        script([calls([start("slow", "dig")]), calls([check("task-1", 1_000_000)]), "done"])
      ])
    )
  )

  it.effect("list_tasks and its filter go by how tasks stand now, and not when the round began", () =>
    Effect.gen(function* () {
      const wait = Tool.make("wait", {
        description: "",
        parameters: {},
        execute: () => Effect.as(Effect.sleep("20 seconds"), "waited")
      })
      const agent = Agent.make({
        name: "lead",
        prompt: "lead",
        tools: [wait],
        toolConcurrency: 1,
        middleware: [BackgroundSubagents.make({ agents: [worker("slow", 10)] })]
      })
      const running = yield* Effect.forkChild(Agent.run(agent, "go"))
      yield* TestClock.adjust("20 seconds")
      const { messages } = yield* Fiber.join(running)
      assert.strictEqual(answers(messages)[2], "- task-1 (slow): completed, 10 s. dig")
    }).pipe(
      Effect.provide([
        BackgroundTasks.layer(),
        script([calls([start("slow", "dig"), { name: "wait", arguments: {} }, list("completed")]), "done"])
      ])
    )
  )

  it.effect("the same check_task after an announcement is made, and not taken for a repeated round", () =>
    Effect.gen(function* () {
      const wait = Tool.make("wait", {
        description: "",
        parameters: {},
        execute: () => Effect.as(Effect.sleep("20 seconds"), "waited")
      })
      const agent = Agent.make({
        name: "lead",
        prompt: "lead",
        tools: [wait],
        middleware: [BackgroundSubagents.make({ agents: [worker("slow", 10)] })]
      })
      const running = yield* Effect.forkChild(Agent.run(agent, "go"))
      yield* TestClock.adjust("60 seconds")
      const { messages } = yield* Fiber.join(running)
      assert.strictEqual(notices(messages).length, 1)
      assert.include(answers(messages)[1], "running")
      assert.include(answers(messages)[3], "did dig")
    }).pipe(
      Effect.provide([
        BackgroundTasks.layer(),
        script([
          calls([start("slow", "dig")]),
          calls([check("task-1"), { name: "wait", arguments: {} }]),
          calls([check("task-1"), { name: "wait", arguments: {} }]),
          "done"
        ])
      ])
    )
  )

  it.effect("an unknown agent, an unknown task and a task that is nested too deep are told to the model", () =>
    Effect.gen(function* () {
      const inner = Agent.provide(
        Agent.make({
          name: "inner",
          prompt: "",
          middleware: [BackgroundSubagents.make({ agents: [worker("slow", 1)], maxDepth: 1 })]
        }),
        TestChatModel.reactive(({ messages }) =>
          messages.length === 1 ? calls([start("slow", "x")]) : answers(messages).join()
        )
      )
      const running = yield* Effect.forkChild(Agent.run(lead([inner]), "go"))
      yield* TestClock.adjust("1 second")
      const said = answers((yield* Fiber.join(running)).messages)
      assert.include(said[0], `There is no sub-agent "nobody". There are: inner.`)
      assert.include(said[1], `There is no task "task-9". There are none yet.`)
      assert.include(said[3], "can't be nested deeper than 1")
    }).pipe(
      Effect.provide([
        BackgroundTasks.layer(),
        script([
          calls([start("nobody", "x"), check("task-9")]),
          calls([start("inner", "x")]),
          calls([check("task-1", 60)]),
          "done"
        ])
      ])
    )
  )
})

describe("spans", () => {
  it.effect("a task that is started and checked leaves spans of these names", () =>
    Effect.gen(function* () {
      const spans: Array<string> = []
      const tracer = Tracer.make({
        span: (options) => {
          spans.push(options.name)
          return new Tracer.NativeSpan(options)
        }
      })
      const session: BackgroundTasks.Session = {
        begin: () => Effect.succeed(Effect.succeed({ status: "completed", text: "done" } as const)),
        steer: () => Effect.succeed("ended"),
        cancel: Effect.void,
        usage: () => undefined,
        kept: () => undefined
      }
      yield* Effect.gen(function* () {
        const tasks = yield* BackgroundTasks.BackgroundTasks
        const { key } = yield* tasks.start({ group: "g", agent: "a", description: "d", session })
        assert.strictEqual((yield* tasks.check(key, 1_000)).status, "completed")
        yield* Effect.flip(tasks.cancel(key))
      }).pipe(Effect.provide(BackgroundTasks.layer()), Effect.withTracer(tracer))
      assert.deepStrictEqual(spans, ["BackgroundTasks.start", "BackgroundTasks.check", "BackgroundTasks.cancel"])
    })
  )
})
