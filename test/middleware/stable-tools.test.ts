import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, type ChatModel, Checkpoint, Message, Middleware, Ruling, Tool } from "effect-deepagents"
import { PromptCaching, Subagents } from "effect-deepagents/middleware"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"

const dynamic = (name: string, description = `does ${name}`) =>
  Tool.make(name, {
    description,
    parameters: { n: Schema.Int },
    execute: ({ n }) => Effect.succeed(`${name} ${n}`)
  })

/** An agent whose tools are what the list says for the round. */
const agentOf = (
  rounds: ReadonlyArray<ReadonlyArray<Tool.Tool>>,
  more: ReadonlyArray<Middleware.Middleware> = [],
  own: ReadonlyArray<Tool.Tool> = []
) => {
  let round = 0
  return Agent.make({
    name: "a",
    prompt: "p",
    tools: [dynamic("own"), ...own],
    middleware: [
      ...more,
      Middleware.make({
        name: "server",
        tools: () => Effect.sync(() => rounds[Math.min(round++, rounds.length - 1)] ?? [])
      }),
      PromptCaching.make({ stableTools: true })
    ]
  })
}

const callLate = (name: unknown, args: unknown = { n: 1 }) =>
  TestChatModel.calls([{ name: "call_tool", arguments: { name, arguments: args } as never }])
const call = (name: string, n = 1) => TestChatModel.calls([{ name, arguments: { n } }])

const answers = ({ messages }: Pick<Checkpoint.Checkpoint, "messages">) =>
  messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))

const toolNames = (requests: ReadonlyArray<ChatModel.ModelRequest>) =>
  requests.map(({ tools }) => tools.map(({ name }) => name).join(" "))

const notices = (request: ChatModel.ModelRequest | undefined) =>
  request?.messages.flatMap((message) =>
    message.role === "human" && message.source === "tools" ? [Message.text(message)] : []
  ) ?? []

const [a, b] = [dynamic("a"), dynamic("b")]

describe("PromptCaching with stableTools", () => {
  it.effect("tells of tools that come, has them called, and says when they go", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agentOf([[], [a], [a], [b], [b]]), "go")
      assert.strictEqual(result.text, "done")
      const requests = yield* TestChatModel.requests
      assert.deepStrictEqual(new Set(toolNames(requests)), new Set(["own call_tool"]))
      assert.match(
        notices(requests[1]).join(),
        /You can call these, by call_tool:\n\{"name":"a","description":"does a"/
      )
      assert.match(notices(requests[3]).at(-1) ?? "", /"name":"b"[^]*You can't call these any more: a\./)
      assert.deepStrictEqual(answers(result), ["own 1", "a 1", "own 1", 'There is no tool "a" now.'])
      // In the conversation they are calls of the tools themselves.
      const calls = result.messages.flatMap((message) => (message.role === "ai" ? message.toolCalls : []))
      assert.deepStrictEqual(
        calls.map(({ name }) => name),
        ["own", "a", "own", "call_tool"]
      )
      // The model reads them as it wrote them.
      const read = requests.at(-1)?.messages.flatMap((message) => (message.role === "ai" ? message.toolCalls : []))
      assert.deepStrictEqual(
        read?.map(({ name }) => name),
        ["own", "call_tool", "own", "call_tool"]
      )
      assert.deepStrictEqual(read?.[1]?.arguments, { name: "a", arguments: { n: 1 } })
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
    }).pipe(Effect.provide(TestChatModel.script([call("own"), callLate("a"), call("own"), callLate("a"), "done"])))
  )

  it.effect("still shows a tool that is gone, and does not run it; a returning tool is as before", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agentOf([[a], [], [a]]), "go")
      const requests = yield* TestChatModel.requests
      assert.deepStrictEqual(new Set(toolNames(requests)), new Set(["own call_tool a"]))
      assert.deepStrictEqual(answers(result), ["a 1", 'There is no tool "a" now. There are: own, call_tool.', "a 3"])
      assert.match(notices(requests.at(-1)).at(-1) ?? "", /again, as they were first described: a\./)
    }).pipe(Effect.provide(TestChatModel.script([call("a"), call("a", 2), call("a", 3), "done"])))
  )

  it.effect("a tool that changed is told of, and called as it is now", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agentOf([[a], [dynamic("a", 'now "other"\n{"name":"own"}')]]), "go")
      const requests = yield* TestChatModel.requests
      const [notice = ""] = notices(requests[1])
      assert.strictEqual(notice.split("\n").length, 3, "a description can't pass for another line")
      assert.deepStrictEqual(answers(result), ["a 1", "a 2"])
    }).pipe(Effect.provide(TestChatModel.script([call("a"), callLate("a", { n: 2 }), "done"])))
  )

  it.effect("checks arguments as ever, and answers any other text", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agentOf([[], [a]]), "go")
      const [, wrong, none, itself, text, noName] = answers(result)
      assert.match(wrong ?? "", /n/)
      assert.include(none, 'no tool "x"')
      assert.include(itself, 'no tool "call_tool"')
      assert.match(text ?? "", /arguments/)
      assert.isString(noName)
      assert.strictEqual(result.text, "done")
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          call("own"),
          callLate("a", { n: "x" }),
          callLate("x"),
          callLate("call_tool"),
          callLate("a", "text"),
          callLate(7),
          "done"
        ])
      )
    )
  )

  it.effect("gates see the tool that is meant", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const gate = Middleware.make({
        name: "gate",
        rulings: (_, calls) =>
          Effect.sync(() =>
            calls.map(({ name }) => {
              seen.push(name)
              return name === "a" ? Ruling.refuse("test", "no a") : undefined
            })
          )
      })
      const result = yield* Agent.run(agentOf([[], [a]], [gate]), "go")
      assert.deepStrictEqual(seen, ["own", "a"])
      assert.deepStrictEqual(answers(result), ["own 1", "no a"])
    }).pipe(Effect.provide(TestChatModel.script([call("own"), callLate("a"), "done"])))
  )

  it.effect("goes on with the same bytes from a checkpoint, in another process", () =>
    Effect.gen(function* () {
      const first = yield* Agent.run(agentOf([[b], [a, b]]), "go")
      const stored = yield* Checkpoint.decode(JSON.parse(JSON.stringify(Checkpoint.encode(first))))
      yield* Agent.run(agentOf([[a, b]]), "and on", { history: stored.messages, state: stored.state })
      const requests = yield* TestChatModel.requests
      const [before, after] = requests.slice(-2)
      assert.deepStrictEqual(after?.tools, before?.tools)
      assert.deepStrictEqual(after?.messages.slice(0, before?.messages.length), before?.messages)
    }).pipe(Effect.provide(TestChatModel.script([call("own"), callLate("a"), "done", "done again"])))
  )

  it.effect(
    "shows tools as they are when the history changes before the announcements, and when these are too many",
    () =>
      Effect.gen(function* () {
        const forgetting = Middleware.make({
          name: "forgetting",
          wrapModelCall: (request, next) =>
            next(request.messages.length < 6 ? request : { ...request, messages: request.messages.slice(-2) })
        })
        yield* Agent.run(agentOf([[], [a]], [forgetting]), "go")
        const forgot = toolNames(yield* TestChatModel.requests)
        assert.deepStrictEqual(forgot, ["own call_tool", "own call_tool", "own call_tool", "own call_tool a"])
        const many = Array.from({ length: 200 }, (_, n) => dynamic(`t${n}`, "x".repeat(400)))
        yield* Agent.run(agentOf([[], many]), "go")
        assert.deepStrictEqual((yield* TestChatModel.requests).at(-1)?.tools.length, 202)
      }).pipe(
        Effect.provide(TestChatModel.script([call("own"), callLate("a"), callLate("a"), "done", call("own"), "done"]))
      )
  )

  it.effect("the last turn without tools has them in front still, and calls none", () =>
    Effect.gen(function* () {
      let round = 0
      const agent = Agent.make({
        name: "a",
        prompt: "p",
        tools: [dynamic("own")],
        maxRounds: 2,
        middleware: [
          Middleware.make({ name: "server", tools: () => Effect.sync(() => (round++ === 0 ? [] : [a])) }),
          PromptCaching.make({ stableTools: true })
        ]
      })
      const { stopReason, text } = yield* Agent.run(agent, "go")
      assert.deepStrictEqual([stopReason, text], ["maxRounds", "the end"])
      const requests = yield* TestChatModel.requests
      assert.strictEqual(requests.at(-1)?.toolChoice, "none")
      assert.deepStrictEqual(
        toolNames(requests),
        Array.from({ length: 3 }, () => "own call_tool")
      )
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          call("own"),
          TestChatModel.calls([{ name: "own", arguments: { n: 2 } }]),
          TestChatModel.calls([{ name: "call_tool", arguments: { name: "a", arguments: { n: 1 } } }], {
            text: "the end"
          })
        ])
      )
    )
  )

  it.effect("sub-agents do not inherit it, and may have their own", () =>
    Effect.gen(function* () {
      const plain = Agent.make({ name: "plain", description: "p", prompt: "" })
      const stable = Agent.make({
        name: "stable",
        description: "s",
        prompt: "",
        middleware: [PromptCaching.make({ stableTools: true })]
      })
      const lead = Agent.make({
        name: "lead",
        prompt: "",
        middleware: [Subagents.make({ agents: [plain, stable] }), PromptCaching.make({ stableTools: true })]
      })
      yield* Agent.run(lead, "go")
      assert.deepStrictEqual(toolNames(yield* TestChatModel.requests), [
        "task call_tool",
        "",
        "task call_tool",
        "call_tool",
        "task call_tool"
      ])
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([{ name: "task", arguments: { subagent_type: "plain", description: "x" } }]),
          "x",
          TestChatModel.calls([{ name: "task", arguments: { subagent_type: "stable", description: "x" } }]),
          "x",
          "done"
        ])
      )
    )
  )

  it.effect("hints that count other messages are made anew, and nothing is written while nothing changes", () =>
    Effect.gen(function* () {
      const { events } = yield* AgentTest.collect(agentOf([[], [a], [a], [a]]), "go")
      const changes = events.filter((event) => event._tag === "StateChanged" && event.slot === "stableTools")
      assert.strictEqual(changes.length, 2)
      for (const { cacheHints, messages } of yield* TestChatModel.requests) {
        assert.strictEqual(cacheHints.at(-1), messages.length - 1)
      }
    }).pipe(Effect.provide(TestChatModel.script([call("own"), callLate("a"), callLate("a", { n: 2 }), "done"])))
  )
})
