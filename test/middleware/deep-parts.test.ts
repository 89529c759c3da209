import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import { Agent, AgentState, Approval, type ChatModel, type Json, Message, Tool } from "effect-deepagents"
import { AskUser, PromptCaching, Rubric, Todos, ToolExclusion } from "effect-deepagents/middleware"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"

const answers = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))

const write = (args: Record<string, unknown>) =>
  TestChatModel.calls([{ name: "write_todos", arguments: args as never }])

describe("Todos", () => {
  const agent = Agent.make({ name: "a", prompt: "", middleware: [Todos.make()] })

  it.effect("replaces the list, or merges by id, and gives it back to the model", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agent, "go")
      assert.deepStrictEqual(answers(result.messages), [
        "[>] 1. look\n[ ] 2. write",
        "[x] 1. look\n[ ] 2. write\n[ ] 3. send",
        "[-] x. other"
      ])
      const list = Result.getOrThrow(AgentState.read(result.state, Todos.todos))
      assert.deepStrictEqual(list, [{ id: "x", content: "other", status: "cancelled" }])
      assert.deepStrictEqual(Todos.open(list), [])
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          write({
            todos: [
              { content: "look", status: "in_progress" },
              { content: "write", status: "pending" }
            ]
          }),
          write({
            merge: true,
            todos: [
              { id: "1", content: "look", status: "completed" },
              { content: "send", status: "pending" }
            ]
          }),
          write({ todos: [{ id: "x", content: "other", status: "cancelled" }] }),
          "done"
        ])
      )
    )
  )

  it.effect("two calls of one round both count; an invalid list changes nothing, and says why", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agent, "go")
      const list = Result.getOrThrow(AgentState.read(result.state, Todos.todos))
      assert.deepStrictEqual(
        list.map(({ content }) => content),
        ["a", "b"]
      )
      const told = answers(result.messages)
      assert.include(told[2], "at most 100")
      assert.include(told[3], "1001 characters")
      assert.include(told[4], 'id "1"')
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([
            { name: "write_todos", arguments: { merge: true, todos: [{ id: "a", content: "a", status: "pending" }] } },
            { name: "write_todos", arguments: { merge: true, todos: [{ id: "b", content: "b", status: "pending" }] } }
          ]),
          write({ todos: Array.from({ length: 101 }, () => ({ content: "x", status: "pending" })) }),
          write({ todos: [{ content: "x".repeat(1_001), status: "pending" }] }),
          write({
            todos: [
              { id: "1", content: "x", status: "pending" },
              { id: "1", content: "y", status: "pending" }
            ]
          }),
          "done"
        ])
      )
    )
  )

  it("given ids are kept and new ones never clash, for any merges", () => {
    const todo = fc.record(
      { id: fc.constantFrom("1", "2", "3", "x"), content: fc.string({ maxLength: 5 }), status: fc.constant("pending") },
      { requiredKeys: ["content", "status"] }
    )
    return fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ merge: fc.boolean(), todos: fc.uniqueArray(todo, { selector: (one) => one.id ?? {} }) }), {
          maxLength: 4
        }),
        (calls) =>
          Effect.runPromise(
            Effect.gen(function* () {
              const result = yield* Agent.run(agent, "go")
              const list = Result.getOrThrow(AgentState.read(result.state, Todos.todos))
              assert.strictEqual(new Set(list.map(({ id }) => id)).size, list.length)
            }).pipe(Effect.provide(TestChatModel.script([...calls.map((args, n) => write({ ...args, n })), "done"])))
          )
      ),
      { numRuns: 30 }
    )
  })
})

describe("ToolExclusion", () => {
  it.effect("an excluded tool is neither offered nor run, by a sub-agent neither, in any spelling", () =>
    Effect.gen(function* () {
      let ran = 0
      const wipe = Tool.make("wipe_disk", {
        description: "",
        parameters: {},
        execute: () => Effect.sync(() => `${++ran}`)
      })
      const child = Agent.make({ name: "child", description: "", prompt: "child", tools: [wipe] })
      const parent = Agent.make({
        name: "parent",
        prompt: "parent",
        tools: [wipe, Agent.asTool(child)],
        middleware: [ToolExclusion.make(["wipe_disk"])]
      })
      const result = yield* Agent.run(parent, "go")
      assert.strictEqual(ran, 0)
      assert.include(answers(result.messages)[0], 'no tool "wipe_disk"')
      const offered = (yield* TestChatModel.requests).map((request) => request.tools.map((tool) => tool.name))
      assert.deepStrictEqual(offered, [["child"], [], [], ["child"]])
    }).pipe(
      Effect.provide(
        TestChatModel.reactive((request) => {
          const turns = request.messages.filter((message) => message.role === "ai").length
          if (turns > 0) return "done"
          return request.systemPrompt === "child"
            ? TestChatModel.calls([{ name: "WIPE-DISK", arguments: {} }])
            : TestChatModel.calls([
                { name: "wipe_disk", arguments: {} },
                { name: "child", arguments: { task: "wipe" } }
              ])
        })
      )
    )
  )
})

describe("PromptCaching", () => {
  it.effect("marks the end of each request, and the end of the one before it", () =>
    Effect.gen(function* () {
      const step = Tool.make("step", {
        description: "",
        parameters: { n: Schema.Int },
        execute: () => Effect.succeed("ok")
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [step], middleware: [PromptCaching.make()] })
      yield* Agent.run(agent, "go")
      const requests = yield* TestChatModel.requests
      assert.deepStrictEqual(
        requests.map((request) => request.cacheHints),
        [[0], [0, 3], [3, 5]]
      )
      // Each request begins with the one before, byte for byte.
      const bytes = ({ messages, systemPrompt, tools }: ChatModel.ModelRequest, length: number) =>
        JSON.stringify([systemPrompt, tools, messages.slice(0, length)])
      for (const [index, request] of requests.entries()) {
        const next = requests[index + 1]
        const length = (request.cacheHints.at(-1) ?? 0) + 1
        if (next !== undefined) assert.strictEqual(bytes(next, length), bytes(request, length))
      }
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([
            { name: "step", arguments: { n: 1 } },
            { name: "step", arguments: { n: 2 } }
          ]),
          TestChatModel.calls([{ name: "step", arguments: { n: 3 } }]),
          "done"
        ])
      )
    )
  )
})

describe("AskUser", () => {
  const colour = { id: "colour", label: "Which colour?", kind: "one", options: ["red", "blue"] }
  const extras = { id: "extras", label: "Which extras?", kind: "many", options: ["lid", "bag"], required: false }
  const name = { id: "name", label: "For whom?", kind: "text" }
  const asks = (...questions: ReadonlyArray<Json.JsonObject>) =>
    TestChatModel.calls([{ name: "ask_user", arguments: { questions } }])
  const agent = Agent.make({ name: "a", prompt: "", middleware: [AskUser.make()] })

  it.effect("ends the run until there are answers that fit", () =>
    Effect.gen(function* () {
      const first = yield* Agent.run(agent, "go")
      const [request] = first.pending
      assert(request !== undefined)
      assert.deepStrictEqual(
        [request.description, request.arguments["questions"], request.allow],
        ["Which colour?\nWhich extras?\nFor whom?", [colour, extras, name], ["respond", "reject"]]
      )
      assert.deepInclude(request.answer, { type: "object", required: ["colour", "name"] })
      const wrong = yield* Effect.flip(
        Agent.resume(agent, {
          checkpoint: first,
          decisions: [Approval.respond(request, { colour: "green", name: "me" })]
        })
      )
      assert.include(wrong.message, "colour")
      const result = yield* Agent.resume(agent, {
        checkpoint: first,
        decisions: [Approval.respond(request, { colour: "blue", name: "me" })]
      })
      assert.deepStrictEqual(answers(result.messages), [
        "Which colour?\nblue\n\nWhich extras?\n(no answer)\n\nFor whom?\nme"
      ])
    }).pipe(Effect.provide(TestChatModel.script([asks(colour, extras, name), "done"])))
  )

  it.effect("asks while the run waits", () =>
    Effect.gen(function* () {
      const waiting = Agent.make({ name: "a", prompt: "", middleware: [AskUser.make()] })
      const result = yield* Effect.provideService(Agent.run(waiting, "go"), Approval.Approvals, {
        decide: (request) => Effect.succeed(Approval.reject(request, "nobody is here"))
      })
      assert.include(answers(result.messages)[0], "nobody is here")
    }).pipe(Effect.provide(TestChatModel.script([asks(colour), "done"])))
  )

  it.effect("questions that can't be told apart, or have nothing to choose from, are not asked", () =>
    Effect.gen(function* () {
      const { messages, pending } = yield* Agent.run(agent, "go")
      assert.deepStrictEqual(pending, [])
      assert.include(answers(messages)[0], 'Two questions have the id "name"')
      assert.include(answers(messages)[1], '"colour" needs at least two options')
    }).pipe(Effect.provide(TestChatModel.script([asks(name, name), asks({ ...colour, options: ["red"] }), "done"])))
  )
})

describe("Rubric", () => {
  const grading = (verdicts: ReadonlyArray<string>, answersOf: ReadonlyArray<string>) => {
    let grades = 0
    let turns = 0
    return TestChatModel.reactive((request) =>
      request.purpose === "grade" ? (verdicts[grades++] ?? "no verdict left") : (answersOf[turns++] ?? "no answer left")
    )
  }

  it.effect("sends the agent back with the missing points, until they are met", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "", middleware: [Rubric.make({ criteria: "has a number" })] })
      const result = yield* Agent.run(agent, "go")
      assert.strictEqual(result.text, "two: 2")
      const sent = result.messages.filter((message) => message.source === "rubric").map(Message.text)
      assert.strictEqual(sent.length, 1)
      assert.include(sent[0], "no digit")
      const grades = (yield* TestChatModel.requests).filter((request) => request.purpose === "grade")
      assert.include(Message.text(grades[0]?.messages[0] ?? Message.human("")), "has a number")
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
    }).pipe(
      Effect.provide(
        grading(['Sure: {"satisfied": false, "feedback": "no digit"}', '```{"satisfied": true}```'], ["two", "two: 2"])
      )
    )
  )

  it.effect("at most three times; then the answer stands, with a warning", () =>
    Effect.gen(function* () {
      const agent = Agent.make({
        name: "a",
        prompt: "",
        middleware: [Rubric.graded({ grade: () => Effect.succeed(Rubric.needsRevision("never good")) })]
      })
      const events = yield* AgentTest.events(agent, "go")
      const warnings = events.flatMap((event) => (event._tag === "Warning" ? [event.code] : []))
      assert.deepStrictEqual(warnings, ["rubric-unmet"])
      const end = events.at(-1)
      assert.deepStrictEqual(end?._tag === "RunCompleted" && [end.stopReason, end.rounds], ["completed", 4])
    }).pipe(Effect.provide(TestChatModel.script(["1", "2", "3", "4"])))
  )

  it.effect("a verdict that can't be read lets the answer stand, and warns", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "", middleware: [Rubric.make({ criteria: "any" })] })
      const events = yield* AgentTest.events(agent, "go")
      assert.isTrue(events.some((event) => event._tag === "Warning" && event.code === "rubric-unreadable"))
    }).pipe(Effect.provide(grading(["I like it"], ["fine"])))
  )
})
