import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent, Approval, Checkpoint, Message } from "effect-deepagents"
import { BackgroundSubagents, BackgroundTasks, FanOut, HumanInTheLoop, Subagents } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"

const began: Array<string> = []
const worker = Agent.provide(
  Agent.make({ name: "worker", description: "works", prompt: "" }),
  TestChatModel.reactive(({ messages }) => {
    began.push(messages.map(Message.text).join())
    return TestChatModel.text("worked", { usage: { inputTokens: 2_000, outputTokens: began.length === 1 ? 0 : 200 } })
  })
)

const calls = (name: string, ...tasks: ReadonlyArray<string>) =>
  TestChatModel.calls(tasks.map((description) => ({ name, arguments: { subagent_type: "worker", description } })))

const suspending = Agent.make({
  name: "lead",
  prompt: "",
  middleware: [FanOut.make({ above: 2 }), Subagents.make({ agents: [worker] })]
})

describe("FanOut", () => {
  it.effect("asks about each call beyond the limit before any runs, with an estimate by the finished ones", () =>
    Effect.gen(function* () {
      began.length = 0
      const first = yield* Agent.run(suspending, "go")
      assert.strictEqual(first.stopReason, "suspended")
      // Two ran in the round before, none of this one.
      assert.deepStrictEqual(began, ["a", "b"])
      assert.deepStrictEqual(
        first.pending.map(({ arguments: args, byPerson, rule }) => [args["description"], rule, byPerson]),
        [
          ["e", "FanOut", true],
          ["f", "FanOut", true]
        ]
      )
      const [request] = first.pending
      assert.match(request?.description ?? "", /4 sub-agents would work at once; more than 2 need a decision/)
      assert.match(
        request?.description ?? "",
        /Estimate by 2 earlier: about 2,100 tokens for this one; about 8,400 tokens if all 4/
      )
      // In another process, and one by one.
      const checkpoint = yield* Checkpoint.decode(JSON.parse(JSON.stringify(Checkpoint.encode(first))))
      const [e, f] = first.pending
      assert(e !== undefined && f !== undefined)
      const second = yield* Agent.resume(suspending, { checkpoint, decisions: [Approval.reject(e, "enough")] })
      assert.deepStrictEqual(
        second.pending.map(({ id }) => id),
        [f.id]
      )
      const third = yield* Agent.resume(suspending, {
        checkpoint: second,
        decisions: [Approval.approve(f, { always: true })]
      })
      assert.deepStrictEqual(began.slice(2).toSorted(), ["c", "d", "f", "g", "h", "i"])
      assert.strictEqual(third.text, "done")
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          calls("task", "a", "b"),
          calls("task", "c", "d", "e", "f"),
          calls("task", "g", "h", "i"),
          "done"
        ])
      )
    )
  )

  it.effect("counts unfinished background tasks, and says so if no estimate is possible", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const person = Layer.succeed(Approval.Approvals, {
        decide: (request) =>
          Effect.sync(() => {
            asked.push(request.description)
            return Approval.reject(request, "no")
          })
      })
      const slow = Agent.provide(
        Agent.make({ name: "worker", description: "works", prompt: Effect.as(Effect.sleep("1 minute"), "") }),
        TestChatModel.reactive(() => "worked")
      )
      const lead = Agent.make({
        name: "lead",
        prompt: "",
        middleware: [FanOut.make({ above: 2 }), BackgroundSubagents.make({ agents: [slow] })]
      })
      const result = yield* Agent.run(lead, "go").pipe(Effect.provide(person))
      assert.strictEqual(asked.length, 1)
      assert.include(asked[0], "3 sub-agents would work at once")
      assert.include(asked[0], "there is no estimate")
      yield* TestClock.adjust("2 minutes")
      const next = yield* Agent.run(lead, "more", { history: result.messages, state: result.state }).pipe(
        Effect.provide(person)
      )
      // They are over, so two more may begin.
      assert.strictEqual(asked.length, 1)
      assert.strictEqual(next.text, "done")
    }).pipe(
      Effect.provide(BackgroundTasks.layer()),
      Effect.provide(
        TestChatModel.script([
          calls("start_task", "a"),
          calls("start_task", "b", "c"),
          "waiting",
          calls("start_task", "d", "e"),
          "done"
        ])
      )
    )
  )

  it.effect("a refusal holds for a call that was asked about, though others of its round were refused before", () =>
    Effect.gen(function* () {
      began.length = 0
      const lead = Agent.make({
        name: "lead",
        prompt: "",
        middleware: [
          FanOut.make({ above: 1 }),
          HumanInTheLoop.make({ tools: { task: ({ description }) => description === "a" } }),
          Subagents.make({ agents: [worker] })
        ]
      })
      const first = yield* Agent.run(lead, "go")
      const of = (task: string) => first.pending.filter(({ arguments: args }) => args["description"] === task)
      const rejectAll = (task: string) => of(task).map((request) => Approval.reject(request, "no"))
      const second = yield* Agent.resume(lead, { checkpoint: first, decisions: rejectAll("a") })
      const third = yield* Agent.resume(lead, { checkpoint: second, decisions: rejectAll("b") })
      assert.deepStrictEqual([of("a").length, of("b").length, third.text, began], [1, 1, "done", []])
    }).pipe(Effect.provide(TestChatModel.script([calls("task", "a", "b"), "done"])))
  )

  it.effect("a limit that is no number is refused", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "lead", prompt: "", middleware: [FanOut.make({ above: Number.NaN })] })
      const error = yield* Effect.flip(Agent.run(agent, "go"))
      assert.include(error.message, "FanOut: `above` must be a whole number of at least 0, not NaN")
    }).pipe(Effect.provide(TestChatModel.script([])))
  )
})
