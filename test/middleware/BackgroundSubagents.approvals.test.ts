import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Ref, Result } from "effect"
import { Agent, Approval, Middleware, Tool } from "effect-deepagents"
import { BackgroundSubagents, BackgroundTasks, HumanInTheLoop } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import { answers, check, lead, notices, script, start, statuses, update } from "./BackgroundSubagents.fixtures.ts"

const { calls } = TestChatModel

const danger = (runs: Ref.Ref<number>) =>
  Tool.make("danger", {
    description: "",
    parameters: {},
    annotations: { destructive: true },
    execute: () =>
      Effect.as(
        Ref.update(runs, (count) => count + 1),
        "boom"
      )
  })

const careful = (runs: Ref.Ref<number>, ...middleware: ReadonlyArray<Middleware.Middleware>) =>
  Agent.provide(
    Agent.make({ name: "careful", prompt: "careful", tools: [danger(runs)], middleware }),
    TestChatModel.reactive(({ messages }) =>
      messages.at(-1)?.role === "tool"
        ? `it said ${answers(messages).join()}`
        : calls([{ name: "danger", arguments: {} }])
    )
  )

describe("BackgroundSubagents and approvals", () => {
  it.effect("a task that needs a decision is suspended; no tool of the model decides; a person does", () =>
    Effect.gen(function* () {
      const runs = yield* Ref.make(0)
      const tasks = yield* BackgroundTasks.BackgroundTasks
      const agent = lead([careful(runs, HumanInTheLoop.make({ destructive: true }))])
      const first = yield* Agent.run(agent, "one")
      yield* TestClock.adjust("1 second")
      const second = yield* Agent.run(agent, "two", { history: first.messages, state: first.state })
      assert.deepStrictEqual(statuses(second), ["task-1:suspended"])
      assert.include(notices(second.messages)[0], "task-1 (careful) is suspended. It waits for a decision of a person.")
      const said = answers(second.messages)
      assert.include(said[1], "task-1 (careful): suspended\n\n- danger: danger")
      assert.strictEqual(said[2], "It waits for a decision of a person, not for a message.")
      assert.strictEqual(yield* Ref.get(runs), 0)

      const [record] = Result.getOrThrow(BackgroundSubagents.tasks(second.state))
      const waiting = yield* tasks.check(record?.key ?? "")
      const [request] = waiting.pending
      assert.isDefined(request)
      const refused = yield* Effect.flip(tasks.decide(waiting.key, [Approval.approve({ id: "made up" })]))
      assert.include(refused.message, "made up")
      const other = { ...Approval.approve(request), digest: "of something else" }
      assert.include((yield* Effect.flip(tasks.decide(waiting.key, [other]))).message, "an earlier form of the request")
      assert.strictEqual((yield* tasks.check(waiting.key)).status, "suspended")
      yield* tasks.decide(waiting.key, [Approval.approve(request)])
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Ref.get(runs), 1)
      const third = yield* Agent.run(agent, "three", { history: second.messages, state: second.state })
      assert.strictEqual(notices(third.messages).length, 2)
      assert.include(answers(third.messages).at(-1), "it said boom")
    }).pipe(
      Effect.provide([
        BackgroundTasks.layer(),
        script([
          calls([start("careful", "x")]),
          "begun",
          calls([check("task-1")]),
          calls([update("task-1", "approved, go on")]),
          "waiting",
          calls([check("task-1")]),
          "done"
        ])
      ])
    )
  )

  it.effect("an agent inherits nothing that it has itself", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const gate = Middleware.make({
        name: "gate",
        inherit: true,
        rulings: (run, round) =>
          Effect.sync(() => {
            asked.push(run.agent)
            return round.map(() => undefined)
          })
      })
      const runs = yield* Ref.make(0)
      yield* Agent.run(lead([careful(runs, gate)], gate), "one")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(asked, ["lead", "careful"])
    }).pipe(Effect.provide([BackgroundTasks.layer(), script([calls([start("careful", "x")]), "begun"])]))
  )

  it.effect("inherited middleware holds in the background too, and Approvals answers while the task waits", () =>
    Effect.gen(function* () {
      const runs = yield* Ref.make(0)
      const asked = yield* Ref.make<ReadonlyArray<string>>([])
      const approvals = Layer.succeed(Approval.Approvals, {
        decide: (request) =>
          Effect.as(
            Ref.update(asked, (paths) => [...paths, request.path.join("/")]),
            Approval.reject(request, "not today")
          )
      })
      const agent = lead([careful(runs)], HumanInTheLoop.make({ destructive: true }))
      const chat = Effect.gen(function* () {
        const first = yield* Agent.run(agent, "one")
        yield* TestClock.adjust("1 second")
        return yield* Agent.run(agent, "two", { history: first.messages, state: first.state })
      })
      const { messages } = yield* Effect.provide(chat, approvals)
      assert.include(answers(messages)[1], "not today")
      assert.deepStrictEqual(yield* Ref.get(asked), ["careful"])
      assert.strictEqual(yield* Ref.get(runs), 0)
    }).pipe(
      Effect.provide([
        BackgroundTasks.layer(),
        script([calls([start("careful", "x")]), "begun", calls([check("task-1")]), "done"])
      ])
    )
  )
})
