import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Duration, Effect, Fiber, Result, Schema } from "effect"
import { Agent, Message, Run, Tool, ToolContext } from "effect-deepagents"
import { BackgroundSubagents, BackgroundTasks, Subagents } from "effect-deepagents/middleware"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import {
  answers,
  broken,
  check,
  lead,
  notices,
  script,
  start,
  statuses,
  threads,
  transcript,
  update,
  worker
} from "./BackgroundSubagents.fixtures.ts"

const { calls } = TestChatModel

describe("BackgroundSubagents", () => {
  it.effect("a task goes on between two runs of a thread, and its end is told once, at the next seam", () =>
    Effect.gen(function* () {
      const agent = lead([worker("slow", 10)])
      const first = yield* Agent.run(agent, "one", { threadId: "t" })
      assert.deepStrictEqual(statuses(first), ["task-1:running"])
      assert.include(answers(first.messages)[0], "Started task-1 (slow)")
      yield* TestClock.adjust("10 seconds")
      const second = yield* Agent.run(agent, "two", { threadId: "t" })
      assert.strictEqual(second.text, "it is done")
      assert.deepStrictEqual(statuses(second), ["task-1:completed"])
      assert.strictEqual(notices(second.messages).length, 1)
      assert.include(notices(second.messages)[0], "task-1 (slow) is completed")
      // What a sub-agent said stands in no message that could pass for the user's.
      assert.notInclude(notices(second.messages)[0], "did dig")
      assert.include(answers(second.messages)[1], "did dig")
      yield* Agent.run(agent, "three", { threadId: "t" })
      const messages = yield* transcript("t")
      assert.strictEqual(notices(messages).length, 1)
      assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
    }).pipe(
      Effect.provide([
        threads,
        BackgroundTasks.layer(),
        script([
          calls([start("slow", "dig")]),
          "begun",
          (request) => {
            assert.strictEqual(notices(request.messages).length, 1)
            return calls([check("task-1")])
          },
          "it is done",
          "nothing new"
        ])
      ])
    )
  )

  it.effect("an end that comes during a run is told before the next round; after an answer, in the next run", () =>
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
      const running = yield* Effect.forkChild(AgentTest.collect(agent, "go"))
      yield* TestClock.adjust("20 seconds")
      const { events } = yield* Fiber.join(running)
      const said = events.flatMap((event) => (event._tag === "MessageAppended" ? [event.message] : []))
      assert.deepStrictEqual(
        said.map((message) => (message.role === "human" ? (message.source ?? "user") : message.role)),
        ["user", "ai", "tool", "ai", "tool", BackgroundSubagents.source, "ai"]
      )
      const told = events.flatMap((event) =>
        event._tag === "Custom" && event.name === "background-task" ? [event.payload] : []
      )
      assert.deepStrictEqual(
        told.map((payload) => Schema.decodeUnknownSync(Schema.Struct({ status: Schema.String }))(payload).status),
        ["running", "completed"]
      )
      assert.deepInclude(told[1], { id: "task-1", agent: "slow" })
      assert.include(JSON.stringify(told[1]), `"outputTokens":7`)
    }).pipe(
      Effect.provide([
        BackgroundTasks.layer(),
        script([calls([start("slow", "dig")]), calls([{ name: "wait", arguments: {} }]), "done"])
      ])
    )
  )

  it.effect("without a thread, the state of a result carries the tasks on; usage is in it", () =>
    Effect.gen(function* () {
      const agent = lead([worker("slow", 10)])
      const first = yield* Agent.run(agent, "one")
      yield* TestClock.adjust("10 seconds")
      const second = yield* Agent.run(agent, "two", { history: first.messages, state: first.state })
      const [task] = Result.getOrThrow(BackgroundSubagents.tasks(second.state))
      assert.strictEqual(task?.status, "completed")
      assert.strictEqual(task?.usage?.outputTokens, 7)
      // A run of its own: not the parent's.
      assert.strictEqual(first.usage.outputTokens + second.usage.outputTokens, 0)
    }).pipe(Effect.provide([BackgroundTasks.layer(), script([calls([start("slow", "dig")]), "begun", "ok"])]))
  )

  it.effect("a task of a process that is gone is lost, and told so once", () =>
    Effect.gen(function* () {
      const agent = lead([worker("slow", 10)])
      const chat = (input: string) =>
        Effect.provide(Agent.run(agent, input, { threadId: "t" }), BackgroundTasks.layer())
      yield* chat("one")
      const second = yield* chat("two")
      assert.deepStrictEqual(statuses(second), ["task-1:lost"])
      assert.include(notices(second.messages)[0], "task-1 (slow) is lost")
      const said = answers(second.messages)
      assert.include(said[1], "task-1 (slow): lost")
      assert.include(said[1], "process is gone")
      assert.include(said[2], "no such task here")
      yield* chat("three")
      assert.strictEqual(notices(yield* transcript("t")).length, 1)
    }).pipe(
      Effect.provide([
        threads,
        script([
          calls([start("slow", "dig")]),
          "begun",
          calls([check("task-1")]),
          calls([update("task-1", "faster")]),
          "so be it",
          "yes"
        ])
      ])
    )
  )

  it.effect("a task's outcome outlives the process once the thread knows of it", () =>
    Effect.gen(function* () {
      const agent = lead([worker("slow", 10)])
      yield* Effect.gen(function* () {
        yield* Agent.run(agent, "one", { threadId: "t" })
        yield* TestClock.adjust("10 seconds")
        yield* Agent.run(agent, "two", { threadId: "t" })
      }).pipe(Effect.provide(BackgroundTasks.layer()))
      const third = yield* Effect.provide(Agent.run(agent, "three", { threadId: "t" }), BackgroundTasks.layer())
      assert.include(answers(third.messages)[1], "did dig")
      assert.deepStrictEqual(statuses(third), ["task-1:completed"])
    }).pipe(
      Effect.provide([
        threads,
        script([calls([start("slow", "dig")]), "begun", "ok", calls([check("task-1")]), "done"])
      ])
    )
  )

  it.effect("closing the supervisor interrupts running tasks", () =>
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
      yield* Effect.provide(
        Effect.andThen(Agent.run(lead([hanging]), "go"), TestClock.adjust("1 second")),
        BackgroundTasks.layer()
      )
      assert.isTrue(yield* Deferred.isDone(stopped))
    }).pipe(Effect.provide(script([calls([start("hanging", "x")]), "begun"])))
  )

  it.effect("a failure is told as one, and ends nothing", () =>
    Effect.gen(function* () {
      const dying = Agent.provide(
        Agent.make({ name: "dying", prompt: Effect.die(new Error("a bug")) }),
        TestChatModel.reactive(() => "")
      )
      const agent = lead([broken, dying])
      const first = yield* Agent.run(agent, "one")
      yield* TestClock.adjust("1 second")
      const { messages, state } = yield* Agent.run(agent, "two", { history: first.messages, state: first.state })
      assert.deepStrictEqual(statuses({ state }), ["task-1:failed", "task-2:failed"])
      assert.include(notices(messages)[0], "task-1 (broken) is failed. check_task says why.")
      const [, , first_, second_] = answers(messages)
      assert.include(first_, "overloaded")
      assert.include(second_, "a bug")
    }).pipe(
      Effect.provide([
        BackgroundTasks.layer(),
        script([
          calls([start("broken", "x"), start("dying", "y")]),
          "begun",
          calls([check("task-1"), check("task-2")]),
          "done"
        ])
      ])
    )
  )

  it.effect("tasks of a sub-agent are stopped when it answers: nobody could ask for them any more", () =>
    Effect.gen(function* () {
      const tasks = yield* BackgroundTasks.BackgroundTasks
      const middle = Agent.provide(
        Agent.make({
          name: "middle",
          description: "Delegates",
          prompt: "",
          middleware: [BackgroundSubagents.make({ agents: [worker("slow", 1000)] })]
        }),
        TestChatModel.reactive(({ messages }) =>
          messages.length === 1 ? calls([start("slow", "x")]) : answers(messages).join()
        )
      )
      const agent = Agent.make({ name: "top", prompt: "", middleware: [Subagents.make({ agents: [middle] })] })
      const { messages } = yield* Agent.run(agent, "go")
      assert.include(answers(messages)[0], "It is stopped when you give your answer")
      assert.deepStrictEqual(
        (yield* tasks.list()).map(({ status }) => status),
        ["cancelled"]
      )
    }).pipe(
      Effect.provide([
        BackgroundTasks.layer(),
        script([calls([{ name: "task", arguments: { subagent_type: "middle", description: "x" } }]), "done"])
      ])
    )
  )

  it.effect("a fork begins with the conversation", () =>
    Effect.gen(function* () {
      const twin = Agent.make({ name: "twin", prompt: "twin" })
      const agent = lead([Subagents.fork(twin)])
      yield* Agent.run(agent, "the goal", { history: [Message.human("before"), Message.ai("yes")] })
      yield* TestClock.adjust("1 second")
      const twinRequest = (yield* TestChatModel.requests).find(({ systemPrompt }) => systemPrompt === "twin")
      assert.deepStrictEqual(twinRequest?.messages.map(Message.text), ["before", "yes", "the goal", "part"])
    }).pipe(
      Effect.provide([
        BackgroundTasks.layer(),
        TestChatModel.reactive(({ messages, systemPrompt }) =>
          systemPrompt === "twin" || messages.at(-1)?.role === "tool" ? "ok" : calls([start("twin", "part")])
        )
      ])
    )
  )

  it.effect("a task has nothing of its call, and the services of that time", () =>
    Effect.gen(function* () {
      class Shop extends Context.Service<Shop, string>()("Shop") {}
      const seen: Array<unknown> = []
      const look = Effect.gen(function* () {
        const shop = yield* Shop
        const call = yield* Effect.serviceOption(ToolContext.ToolContext)
        const run = yield* Run.CurrentRun
        seen.push([shop, call._tag, run?.agent])
        return shop
      })
      const agent = lead([Agent.make({ name: "clerk", prompt: look })])
      const first = yield* Effect.provideService(Agent.run(agent, "one"), Shop, "the first")
      yield* TestClock.adjust("1 second")
      const options = { history: first.messages, state: first.state }
      yield* Effect.provideService(Agent.run(agent, "two", options), Shop, "the second")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(seen, [
        ["the first", "None", "clerk"],
        ["the first", "None", "clerk"]
      ])
    }).pipe(
      Effect.provide([
        BackgroundTasks.layer(),
        TestChatModel.reactive(({ messages, systemPrompt }) => {
          if (!systemPrompt.startsWith("lead") || messages.at(-1)?.role === "tool") return "ok"
          return messages.length === 1 ? calls([start("clerk", "x")]) : calls([update("task-1", "y")])
        })
      ])
    )
  )

  it.effect("a task that takes too long is stopped and fails", () =>
    Effect.gen(function* () {
      const agent = lead([worker("slow", 100)])
      const first = yield* Agent.run(agent, "one")
      yield* TestClock.adjust("30 seconds")
      const { messages } = yield* Agent.run(agent, "two", { history: first.messages, state: first.state })
      assert.include(answers(messages)[1], "took longer than 30 seconds")
    }).pipe(
      Effect.provide([
        BackgroundTasks.layer({ maxDuration: "30 seconds" }),
        script([calls([start("slow", "x")]), "begun", calls([check("task-1")]), "done"])
      ])
    )
  )

  it.effect("a worker may have a limit of its own for the time of a task", () =>
    Effect.gen(function* () {
      const tasks = yield* BackgroundTasks.BackgroundTasks
      const session = (maxDuration: BackgroundTasks.Session["maxDuration"]): BackgroundTasks.Session => ({
        begin: () => Effect.succeed(Effect.as(Effect.sleep("1 minute"), { status: "completed", text: "done" })),
        steer: () => Effect.succeed("ended"),
        cancel: Effect.void,
        usage: () => undefined,
        kept: () => undefined,
        maxDuration
      })
      const request = { group: "g", agent: "slow", description: "x" }
      const own = yield* tasks.start({ ...request, session: session(Duration.infinity) })
      const usual = yield* tasks.start({ ...request, session: session(undefined) })
      yield* TestClock.adjust("2 minutes")
      assert.strictEqual((yield* tasks.check(own.key)).status, "completed")
      assert.strictEqual((yield* tasks.check(usual.key)).status, "failed")
    }).pipe(Effect.provide(BackgroundTasks.layer({ maxDuration: "30 seconds" })))
  )

  it.effect("the model is given nothing at all when there are no agents", () =>
    Effect.gen(function* () {
      yield* Agent.run(lead([]), "go")
      const [request] = yield* TestChatModel.requests
      assert.deepStrictEqual(request?.tools, [])
      assert.strictEqual(request?.systemPrompt, "lead")
    }).pipe(Effect.provide([BackgroundTasks.layer(), script(["ok"])]))
  )

  it.effect("a worker whose task is data has a tool of its own, and gets the JSON of its arguments", () =>
    Effect.gen(function* () {
      const given: Array<string> = []
      const survey: BackgroundTasks.Worker = {
        name: "survey",
        description: "Surveys folders",
        parameters: { folder: Schema.String, depth: Schema.optionalKey(Schema.Int) },
        reopen: undefined,
        open: Effect.succeed({
          begin: (ask) =>
            Effect.succeed(
              Effect.sync(() => {
                given.push(ask._tag === "Start" ? ask.description : ask._tag)
                return { status: "completed" as const, text: "surveyed" }
              })
            ),
          steer: () => Effect.succeed("ended" as const),
          cancel: Effect.void,
          usage: () => undefined,
          kept: () => undefined
        })
      }
      const agent = Agent.make({
        name: "lead",
        prompt: "",
        middleware: [BackgroundSubagents.make({ agents: [survey] })]
      })
      // No other worker takes a text.
      assert.isFalse(Agent.toolNames(agent).has("start_task"))
      const result = yield* Agent.run(agent, "go", { threadId: "t" })
      assert.deepStrictEqual(given, ['{"folder":"src"}'])
      assert.include(answers(result.messages)[0], "folder")
      assert.include(answers(result.messages)[1], "Started task-1 (survey)")
      assert.include(answers(result.messages)[2], "surveyed")
    }).pipe(
      Effect.provide([
        threads,
        BackgroundTasks.layer(),
        script([
          calls([{ name: "survey", arguments: { depth: 1 } }]),
          calls([{ name: "survey", arguments: { folder: "src" } }]),
          calls([check("task-1")]),
          "done"
        ])
      ])
    )
  )
})
