import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Agent, Tool } from "effect-deepagents"
import { BackgroundSubagents, BackgroundTasks, Budget } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { answers, cancel, check, notices, script, start, statuses, update } from "./BackgroundSubagents.fixtures.ts"
import { analyst, live, over, remoteLead, makeAnswer, toldOf, until } from "./RemoteAgents.fixtures.ts"
import { server } from "./RemoteAgents.server.ts"

const { calls } = TestChatModel

describe("RemoteAgents", () => {
  it.live("a task is a thread on the server, its end is announced, and a follow-up is a run on it", () =>
    Effect.gen(function* () {
      const there = yield* server
      const agent = remoteLead(analyst(there, { headers: { "x-api-key": Redacted.make("the secret key") } }))
      const first = yield* Agent.run(agent, "one", { threadId: "t" })
      assert.deepStrictEqual(statuses(first), ["task-1:running"])
      there.finish(
        makeAnswer([
          { type: "text", text: "There are 42." },
          { type: "image_url", image_url: "x" }
        ])
      )
      yield* over
      const second = yield* Agent.run(agent, "two", { threadId: "t" })
      assert.include(notices(second.messages)[0], "task-1 (analyst) is completed")
      assert.strictEqual(answers(second.messages)[1], "task-1 (analyst): completed\n\nThere are 42.")
      there.finish(makeAnswer("Sorry, 43."))
      yield* over
      const third = yield* Agent.run(agent, "three", { threadId: "t" })
      assert.strictEqual(notices(third.messages).length, 2)
      assert.include(answers(third.messages)[3], "Sorry, 43.")
      assert.deepStrictEqual(
        there.requests.filter(({ method }) => method === "POST").map(({ body, path }) => [path, body]),
        [
          ["/threads", {}],
          [
            "/threads/thread-1/runs",
            { assistant_id: "analyst", input: { messages: [{ role: "user", content: "count" }] } }
          ],
          [
            "/threads/thread-1/runs",
            { assistant_id: "analyst", input: { messages: [{ role: "user", content: "sure?" }] } }
          ]
        ]
      )
      assert.isTrue(there.requests.every(({ headers }) => headers["x-api-key"] === "the secret key"))
    }).pipe(
      Effect.provide([
        live,
        BackgroundTasks.layer(),
        script([
          calls([start("analyst", "count")]),
          "begun",
          calls([check("task-1")]),
          calls([update("task-1", "sure?")]),
          "asked",
          calls([check("task-1")]),
          "done"
        ])
      ])
    )
  )

  it.live("a message while it runs takes the run's place, and the interrupted one does not count", () =>
    Effect.gen(function* () {
      const there = yield* server
      const agent = remoteLead(analyst(there))
      const first = yield* Agent.run(agent, "one")
      there.delayAnswers(60)
      const second = yield* Agent.run(agent, "two", { history: first.messages, state: first.state })
      assert.deepStrictEqual(
        there.runs.map(({ status }) => status),
        ["interrupted", "running"]
      )
      assert.deepInclude(there.requests.findLast(({ method }) => method === "POST")?.body, {
        multitask_strategy: "interrupt"
      })
      // Who waits for its end is not told of the end of the run before.
      assert.include(answers(second.messages)[2], "task-1 (analyst): running")
      const tasks = yield* BackgroundTasks.BackgroundTasks
      assert.deepStrictEqual(
        (yield* tasks.list()).map(({ status }) => status),
        ["running"]
      )
      // Nobody looks at the run before any more.
      const looked = there.requests.length
      while (there.requests.length < looked + 4) yield* Effect.sleep(10)
      assert.isTrue(there.requests.slice(-4).every(({ path }) => path.endsWith("/runs/run-3")))
      there.finish(makeAnswer("both"))
      assert.strictEqual((yield* over).text, "both")
      assert.deepStrictEqual(statuses(second), ["task-1:running"])
    }).pipe(
      Effect.provide([
        live,
        BackgroundTasks.layer(),
        script([
          calls([start("analyst", "count")]),
          "begun",
          calls([update("task-1", "and weigh"), check("task-1", 0.3)]),
          "said"
        ])
      ])
    )
  )

  it.live("cancel_task cancels the run on the server", () =>
    Effect.gen(function* () {
      const there = yield* server
      const { messages, state } = yield* Agent.run(remoteLead(analyst(there)), "one")
      assert.deepStrictEqual(
        there.runs.map(({ status }) => status),
        ["interrupted"]
      )
      assert.include(answers(messages)[1], "task-1 (analyst) is cancelled")
      assert.deepStrictEqual(statuses({ state }), ["task-1:cancelled"])
    }).pipe(
      Effect.provide([
        live,
        BackgroundTasks.layer(),
        script([calls([start("analyst", "count")]), calls([cancel("task-1")]), "done"])
      ])
    )
  )

  it.live("several messages in one turn go on one after the other", () =>
    Effect.gen(function* () {
      const there = yield* server
      const agent = remoteLead(analyst(there))
      const first = yield* Agent.run(agent, "one")
      there.finish(makeAnswer("done"))
      yield* over
      there.delayAnswers(30)
      const { messages } = yield* Agent.run(agent, "two", { history: first.messages, state: first.state })
      assert.deepStrictEqual(answers(messages).slice(1), [
        "task-1 (analyst) goes on with your message.",
        "task-1 (analyst) goes on with your message."
      ])
      assert.deepStrictEqual(
        there.runs.map(({ status }) => status),
        ["success", "interrupted", "running"]
      )
    }).pipe(
      Effect.provide([
        live,
        BackgroundTasks.layer(),
        script([
          calls([start("analyst", "count")]),
          "begun",
          calls([update("task-1", "and weigh"), update("task-1", "and measure")]),
          "asked"
        ])
      ])
    )
  )

  it.live("cancelling a run that is over there is no failure", () =>
    Effect.gen(function* () {
      const there = yield* server
      const agent = remoteLead(analyst(there, { pollInterval: "1 hour" }))
      const first = yield* Agent.run(agent, "one")
      yield* until("a look", () => there.requests.at(-1)?.method === "GET")
      there.finish(makeAnswer("done"))
      const { messages } = yield* Agent.run(agent, "two", { history: first.messages, state: first.state })
      assert.include(answers(messages)[1], "task-1 (analyst) is cancelled")
    }).pipe(
      Effect.provide([
        live,
        BackgroundTasks.layer(),
        script([calls([start("analyst", "count")]), "begun", calls([cancel("task-1")]), "done"])
      ])
    )
  )

  it.live("a process that ends leaves the run alone, and the next one takes it up again", () =>
    Effect.gen(function* () {
      const there = yield* server
      const agent = remoteLead(analyst(there))
      const chat = (input: string) => Agent.run(agent, input, { threadId: "t" })
      yield* Effect.provide(chat("one"), BackgroundTasks.layer())
      assert.deepStrictEqual(
        there.runs.map(({ status }) => status),
        ["running"]
      )
      assert.isFalse(there.requests.some(({ path }) => path.includes("cancel")))
      const third = yield* Effect.gen(function* () {
        const second = yield* chat("two")
        assert.deepStrictEqual(statuses(second), ["task-1:running"])
        there.finish(makeAnswer("still here"))
        yield* over
        return yield* chat("three")
      }).pipe(Effect.provide(BackgroundTasks.layer()))
      assert.strictEqual(notices(third.messages).length, 1)
      assert.include(answers(third.messages)[1], "still here")
      // A completed task goes on too, in yet another process.
      const fourth = yield* Effect.provide(chat("four"), BackgroundTasks.layer())
      assert.include(answers(fourth.messages)[2], "goes on with your message")
      assert.strictEqual(there.runs.length, 2)
      assert.strictEqual(there.runs[0]?.thread, there.runs[1]?.thread)
    }).pipe(
      Effect.provide([
        live,
        script([
          calls([start("analyst", "count")]),
          "begun",
          "and?",
          calls([check("task-1")]),
          "done",
          calls([update("task-1", "once more")]),
          "asked"
        ])
      ])
    )
  )

  it.live("a run that waits for a person is suspended, is decided on there, and check_task sees that it was", () =>
    Effect.gen(function* () {
      const there = yield* server
      const agent = remoteLead(analyst(there))
      const first = yield* Agent.run(agent, "one")
      const thread = there.threads.get("thread-1")
      if (thread !== undefined) thread.interrupts = { x: [{ id: "i", value: { question: "May I delete it?" } }] }
      there.finish(undefined, "interrupted")
      yield* over
      const second = yield* Agent.run(agent, "two", { history: first.messages, state: first.state })
      assert.include(notices(second.messages)[0], "is suspended")
      assert.include(answers(second.messages)[1], "May I delete it?")
      assert.include(answers(second.messages)[2], "waits for a decision of a person")
      if (thread !== undefined) {
        thread.interrupts = {}
        thread.messages.push(makeAnswer("deleted"))
      }
      const third = yield* Agent.run(agent, "three", { history: second.messages, state: second.state })
      assert.include(answers(third.messages)[3], "task-1 (analyst): completed\n\ndeleted")
      assert.strictEqual(notices(third.messages).length, 1)
    }).pipe(
      Effect.provide([
        live,
        BackgroundTasks.layer(),
        script([
          calls([start("analyst", "clean")]),
          "begun",
          calls([check("task-1")]),
          calls([update("task-1", "yes, delete it")]),
          "waiting",
          calls([check("task-1")]),
          "done"
        ])
      ])
    )
  )

  it.live("failures there are told as failures; a run that was stopped there is cancelled", () =>
    Effect.gen(function* () {
      for (const [status, expected, text] of [
        ["error", "failed", "It failed on its server: out of figures"],
        ["timeout", "failed", "It took too long on its server: out of figures"],
        ["interrupted", "cancelled", "It was stopped on its server."]
      ] as const) {
        const there = yield* server
        const { ended } = yield* toldOf(
          analyst(there),
          Effect.sync(() => there.finish(undefined, status, "out of figures"))
        )
        assert.deepInclude(ended, { status: expected, text })
      }
    }).pipe(Effect.provide(live))
  )

  it.live("what its server says it used is on the budget of the run: no task begins when that is used up", () =>
    Effect.gen(function* () {
      const there = yield* server
      const finish = Tool.make("finish", {
        description: "Has the run there end",
        parameters: {},
        execute: Effect.fnUntraced(function* () {
          // An invalid number of tokens counts for nothing.
          const usage_metadata = { input_tokens: 900, output_tokens: -5, input_token_details: { cache_read: "many" } }
          there.finish({ ...makeAnswer("42"), usage_metadata })
          const { usage } = yield* over
          return JSON.stringify(usage)
        })
      })
      const agent = Agent.make({
        name: "lead",
        prompt: "lead",
        tools: [finish],
        toolConcurrency: 1,
        middleware: [
          Budget.make({ tokens: 800, onExhausted: "finalAnswer" }),
          BackgroundSubagents.make({ agents: [analyst(there)] })
        ]
      })
      const result = yield* Agent.run(agent, "one")
      const [, finished, refused] = answers(result.messages)
      assert.deepInclude(JSON.parse(finished ?? ""), { inputTokens: 900, outputTokens: 0, cacheReadTokens: 0 })
      assert.include(refused, "It was not begun: the budget of 800 tokens is used up.")
      assert.strictEqual(there.runs.length, 1)
      assert.strictEqual(result.stopReason, "budget:tokens")
      assert.strictEqual(result.text, "in short")
    }).pipe(
      Effect.provide([
        live,
        BackgroundTasks.layer(),
        script([
          calls([start("analyst", "count")]),
          calls([{ name: "finish", arguments: {} }, start("analyst", "count again")]),
          "in short"
        ])
      ])
    )
  )

  it.live("the Agent Protocol has other addresses, and a message there cancels the run before", () =>
    Effect.gen(function* () {
      const there = yield* server
      const agent = remoteLead(analyst({ url: `${there.url}/` }, { protocol: "agent-protocol" }))
      yield* Agent.run(agent, "one")
      there.finish({ role: "assistant", content: "by the book" })
      assert.strictEqual((yield* over).text, "by the book")
      assert.deepStrictEqual(
        there.requests.filter(({ method }) => method === "POST").map(({ path }) => path),
        ["/threads", "/runs", "/runs/run-2/cancel?wait=false&action=interrupt", "/runs"]
      )
      assert.isTrue(there.requests.some(({ method, path }) => method === "GET" && path === "/runs/run-3"))
    }).pipe(
      Effect.provide([
        live,
        BackgroundTasks.layer(),
        script([calls([start("analyst", "count")]), calls([update("task-1", "again")]), "begun"])
      ])
    )
  )
})
