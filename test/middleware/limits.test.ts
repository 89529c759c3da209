/** Invariants of middleware that bounds: invalid numbers, results that are too large, words of all spellings. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Schedule, Schema } from "effect"
import {
  Agent,
  AgentEvent,
  AgentState,
  Backend,
  type ChatModel,
  Content,
  Message,
  Middleware,
  Tool,
  ToolCall,
  ToolError,
  ToolOutput
} from "effect-deepagents"
import { FileTools, MemoryBackend } from "effect-deepagents/backends"
import { Wait } from "effect-deepagents/durable"
import {
  AskUser,
  BackgroundSubagents,
  BackgroundTasks,
  Budget,
  Filesystem,
  HumanInTheLoop,
  ModelRetry,
  ModelTimeout,
  RemoteAgents,
  Rubric,
  Subagents,
  Summarization,
  Todos,
  ToolRetry,
  ToolTimeout
} from "effect-deepagents/middleware"
import * as ToolSelection from "effect-deepagents/middleware/ToolSelection"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"

const results = (messages: ReadonlyArray<Message.Message>) => messages.filter((message) => message.role === "tool")
const texts = (messages: ReadonlyArray<Message.Message>) => results(messages).map(Message.text)
const call = (name: string, args = {}) => TestChatModel.calls([{ name, arguments: args }])

describe("limits that are no numbers", () => {
  const nothing = { onExhausted: "finalAnswer" } as const
  const bad: ReadonlyArray<readonly [string, string, Middleware.Middleware<unknown, ChatModel.ChatModel>]> = [
    ["Budget", "tokens", Budget.make({ ...nothing, tokens: Number.NaN })],
    ["Budget", "cost", Budget.make({ ...nothing, cost: -1 })],
    ["Budget", "rounds", Budget.make({ ...nothing, rounds: Number.NaN })],
    ["Budget", "toolCalls", Budget.make({ ...nothing, toolCalls: -1 })],
    ["Budget", "time", Budget.make({ ...nothing, time: Number.NaN })],
    ["Budget", "time", Budget.make({ ...nothing, time: -5 })],
    ["ToolTimeout", "default", ToolTimeout.make({ default: Number.NaN })],
    ["ToolTimeout", "slow", ToolTimeout.make({ tools: { slow: -1 } })],
    ["ModelTimeout", "idle", ModelTimeout.make({ idle: Number.NaN })],
    ["ModelRetry", "within", ModelRetry.make({ within: Number.NaN })],
    ["Rubric", "maxRevisions", Rubric.make({ criteria: "", maxRevisions: Number.NaN })],
    ["Summarization", "tokens", Summarization.make({ trigger: { tokens: Number.NaN } })],
    ["Summarization", "fraction", Summarization.make({ tail: { fraction: -1 } })],
    ["Summarization", "contextWindowTokens", Summarization.make({ contextWindowTokens: Number.NaN })],
    ["approvals", "expiresIn", HumanInTheLoop.make({ destructive: true, expiresIn: Number.NaN })],
    ["approvals", "expiresIn", HumanInTheLoop.make({ destructive: true, expiresIn: -1 })],
    ["Wait", "max", Wait.make({ max: Number.NaN })],
    ["Wait", "max", Wait.make({ max: Number.POSITIVE_INFINITY })],
    ["Wait", "max", Wait.make({ max: "10 millis" })]
  ]
  for (const [name, option, middleware] of bad) {
    it.effect(`${name}: ${option} is refused before any model is asked`, () =>
      Effect.gen(function* () {
        const agent = Agent.make({ name: "a", prompt: "", middleware: [middleware] })
        const error = yield* Effect.flip(Agent.run(agent, "go"))
        assert.include(String(error), `${name}: \`${option}\` must be`)
      }).pipe(Effect.provide(TestChatModel.script([])))
    )
  }

  it.effect("Filesystem, ToolSelection, Subagents, and a tool's outputLimit as well", () =>
    Effect.gen(function* () {
      const failureOf = <E>(agent: Agent.Agent<string, E, never> | Agent.Agent<string, E, unknown>) =>
        Effect.map(Effect.flip(Agent.run(agent as Agent.Agent<string, E, never>, "go")), String)
      const files = Agent.make({ name: "a", prompt: "", middleware: [Filesystem.make({ keep: 1.5 })] })
      assert.include(yield* failureOf(files as never), "Filesystem: `keep` must be")
      const selection = Agent.make({ name: "a", prompt: "", middleware: [ToolSelection.make({ limit: 0 })] })
      assert.include(yield* failureOf(selection as never), "ToolSelection: `limit` must be")
      const nested = Agent.make({
        name: "a",
        prompt: "",
        middleware: [Subagents.make({ agents: [], maxDepth: Number.NaN })]
      })
      assert.include(yield* failureOf(nested as never), "Subagents: `maxDepth` must be")
      const tool = Tool.make("t", {
        description: "",
        parameters: {},
        outputLimit: Number.NaN,
        execute: () => Effect.succeed("")
      })
      assert.include(yield* failureOf(Agent.make({ name: "a", prompt: "", tools: [tool] }) as never), "outputLimit")
    }).pipe(Effect.provide([TestChatModel.script([]), MemoryBackend.layer()]))
  )

  it.effect("a supervisor of tasks dies of one, an agent with a worker that has one is refused", () =>
    Effect.gen(function* () {
      for (const options of [{ maxRunning: Number.NaN }, { maxTotal: 0 }, { keep: -1 }, { maxDuration: Number.NaN }]) {
        const exit = yield* Effect.exit(Effect.void.pipe(Effect.provide(BackgroundTasks.layer(options))))
        assert.isTrue(Exit.isFailure(exit) && String(Cause.squash(exit.cause)).includes("BackgroundTasks: `"))
      }
      const remote = RemoteAgents.make({
        name: "far",
        description: "",
        url: "http://localhost",
        agentId: "a",
        pollInterval: Number.NaN
      })
      assert.include(remote.problem, "RemoteAgents: `pollInterval` must be")
      const agent = Agent.make({
        name: "a",
        prompt: "",
        middleware: [BackgroundSubagents.make({ agents: [remote] })]
      })
      const error = yield* Effect.flip(Agent.run(agent as never as Agent.Agent<string, never, never>, "go"))
      assert.include(String(error), "pollInterval")
    }).pipe(Effect.provide(TestChatModel.script([])))
  )

  it.effect("a budget that was used exactly is not exhausted; one call more exhausts it", () =>
    Effect.gen(function* () {
      const tool = Tool.make("t", {
        description: "",
        parameters: { n: Schema.Finite },
        execute: () => Effect.succeed("ok")
      })
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [tool],
        middleware: [Budget.make({ toolCalls: 2, rounds: 3, tokens: 30, onExhausted: "finalAnswer" })]
      })
      const turn = (n: number) => TestChatModel.calls([{ name: "t", arguments: { n } }], { usage: { inputTokens: 10 } })
      const answer = TestChatModel.text("fine", { usage: { inputTokens: 10 } })
      const exact = yield* Agent.run(agent, "go").pipe(Effect.provide(TestChatModel.script([turn(1), turn(2), answer])))
      assert.deepStrictEqual([exact.stopReason, exact.text], ["completed", "fine"])
      const over = yield* Agent.run(agent, "go").pipe(
        Effect.provide(TestChatModel.script([turn(1), turn(2), turn(3), answer]))
      )
      assert.include(over.stopReason, "budget:")
    })
  )
})

describe("large results", () => {
  const large = "x".repeat(90_000)
  const speak = Tool.make("speak", {
    description: "",
    parameters: { direct: Schema.optionalKey(Schema.Boolean) },
    execute: ({ direct = false }) => Effect.succeed(ToolOutput.make(large, { returnDirect: direct }))
  })
  const folder = "/large_results"

  it.effect("a direct answer stays the answer, and nothing is written", () =>
    Effect.gen(function* () {
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [speak, ...FileTools.make()],
        middleware: [Filesystem.make()]
      })
      const { text } = yield* Agent.run(agent, "go")
      assert.strictEqual(text, large)
      const backend = yield* Backend.Backend
      assert.isTrue((yield* Effect.exit(backend.ls(folder)))._tag === "Failure")
    }).pipe(Effect.provide([TestChatModel.script([call("speak", { direct: true })]), MemoryBackend.layer()]))
  )

  it.effect("an agent that can't read files gets head and tail, with inherited middleware too", () =>
    Effect.gen(function* () {
      const kid = Agent.make({ name: "kid", prompt: "", tools: [speak] })
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [Agent.asTool(kid), ...FileTools.make()],
        middleware: [Filesystem.make()]
      })
      const { events } = yield* AgentTest.collect(agent, "go")
      const said = events.flatMap((event) =>
        event._tag === "ToolCompleted" && event.toolName === "speak" ? [event.text] : []
      )
      assert.strictEqual(said.length, 1)
      assert.notInclude(said[0], "read_file")
      assert.notInclude(said[0], folder)
      assert.include(said[0], "10000 of 90000 characters left out")
    }).pipe(
      Effect.provide([
        TestChatModel.script([call("kid", { task: "speak" }), call("speak"), "spoken", "done"]),
        MemoryBackend.layer()
      ])
    )
  )

  it.effect(
    "a tool that is taken out of the request counts as not offered, and a pointer names only present tools",
    () =>
      Effect.gen(function* () {
        const withoutTools = (...names: ReadonlyArray<string>) =>
          Middleware.make({
            name: "without",
            wrapModelCall: (request, next) =>
              next({ ...request, tools: request.tools.filter((tool) => !names.includes(tool.name)) })
          })
        const runHidden = (hidden: Middleware.Middleware) =>
          Effect.map(
            Agent.run(
              Agent.make({
                name: "a",
                prompt: "",
                tools: [speak, ...FileTools.make()],
                middleware: [Filesystem.make(), hidden]
              }),
              "go"
            ),
            ({ messages }) => texts(messages)[0] ?? ""
          ).pipe(Effect.provide(TestChatModel.script([call("speak"), "done"])))
        const none = yield* runHidden(withoutTools("read_file", "grep"))
        assert.notInclude(none, folder)
        const reading = yield* runHidden(withoutTools("grep"))
        assert.include(reading, ": read it in parts with read_file.")
        assert.notInclude(reading, "grep")
      }).pipe(Effect.provide(MemoryBackend.layer()))
  )

  it.effect(
    "a message of the user is measured as a whole; without a way to read it, it is cut and not pointed to",
    () =>
      Effect.gen(function* () {
        const blocks = Message.human(Array.from({ length: 10 }, (_, n) => Content.text(`${n}${"y".repeat(99)}`)))
        for (const tools of [FileTools.make(), []]) {
          const agent = Agent.make({
            name: "a",
            prompt: "",
            tools,
            middleware: [Filesystem.make({ userMessages: 100 })]
          })
          yield* Agent.run(agent, blocks)
          const [request] = (yield* TestChatModel.requests).slice(-1)
          const shown = Message.text(request?.messages[0] ?? blocks)
          assert.strictEqual(shown.includes(folder), tools.length > 0)
          assert.isTrue(tools.length > 0 || shown.includes("600 of 1000 characters left out"))
        }
      }).pipe(Effect.provide([TestChatModel.script(["one", "two"]), MemoryBackend.layer()]))
  )

  it.effect("only files that were put away are dropped, and only as they were", () =>
    Effect.gen(function* () {
      const backend = yield* Backend.Backend
      const digest = "0123456789abcdef".repeat(2)
      const mine = ["/notes/a.txt", "/notes/b.md", `/notes/${digest}.txt`]
      for (const path of mine) yield* backend.write(path, "mine")
      const write = Tool.make("write", {
        description: "",
        parameters: { n: Schema.Finite },
        execute: ({ n }) => Effect.succeed(`${n}`.repeat(1_000))
      })
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [write, ...FileTools.make()],
        middleware: [Filesystem.make({ folder: "/notes", keep: 1, toolResults: 100 })]
      })
      yield* Agent.run(agent, "go")
      const { entries } = yield* backend.ls("/notes")
      const left = entries.map((entry) => entry.path)
      for (const path of mine) assert.include(left, path)
      assert.isBelow(left.length, mine.length + 3)
    }).pipe(
      Effect.provide([
        TestChatModel.script([1, 2, 3, 4].map((n) => call("write", { n })).concat([TestChatModel.text("done")])),
        MemoryBackend.layer()
      ])
    )
  )

  it.effect("a preview parts no character", () =>
    Effect.gen(function* () {
      const faces = Tool.make("faces", {
        description: "",
        parameters: {},
        execute: () => Effect.succeed(`a${"😀".repeat(60_000)}`)
      })
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [faces, ...FileTools.make()],
        middleware: [Filesystem.make()]
      })
      const { messages } = yield* Agent.run(agent, "go")
      assert.isTrue(texts(messages)[0]?.isWellFormed())
    }).pipe(Effect.provide([TestChatModel.script([call("faces"), "done"]), MemoryBackend.layer()]))
  )
})

describe("ToolRetry", () => {
  it.effect("reports the failures that it mends", () =>
    Effect.gen(function* () {
      let tries = 0
      const flaky = Tool.make("flaky", {
        description: "",
        parameters: {},
        annotations: { readOnly: true },
        execute: () =>
          Effect.suspend(() => (++tries < 3 ? Effect.fail(ToolError.make(`try ${tries}`)) : Effect.succeed("ok")))
      })
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [flaky],
        middleware: [ToolRetry.make({ schedule: Schedule.recurs(5) })]
      })
      const { events } = yield* AgentTest.collect(agent, "go")
      const warnings = events.flatMap((event) => (event._tag === "Warning" ? [`${event.code}: ${event.message}`] : []))
      assert.strictEqual(warnings.length, 2)
      assert.include(warnings[0], "tool-retry: flaky failed (try 1); running it again in ")
    }).pipe(Effect.provide(TestChatModel.script([call("flaky"), "done"])))
  )

  it.effect("reports nothing that it does not try again", () =>
    Effect.gen(function* () {
      const fails = Tool.make("fails", {
        description: "",
        parameters: {},
        annotations: { readOnly: true },
        execute: () => Effect.die("no")
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [fails], middleware: [ToolRetry.make()] })
      const { events } = yield* AgentTest.collect(agent, "go")
      assert.isFalse(events.some((event) => event._tag === "Warning"))
    }).pipe(Effect.provide(TestChatModel.script([call("fails"), "done"])))
  )
})

describe("write_todos", () => {
  const agent = Agent.make({ name: "a", prompt: "", middleware: [Todos.make()] })
  const write = (...given: ReadonlyArray<unknown>) =>
    Effect.map(
      Agent.run(agent, "go").pipe(
        Effect.provide(TestChatModel.script([...given.map((args) => call("write_todos", args as {})), "done"]))
      ),
      ({ messages }) => texts(messages)
    )

  it.effect("reads small models' spellings", () =>
    Effect.gen(function* () {
      const readTodos = (todos: unknown) => Effect.map(write({ todos }), ([text]) => text)
      assert.strictEqual(yield* readTodos("one step"), "[ ] 1. one step")
      assert.strictEqual(yield* readTodos(["a", "b"]), "[ ] 1. a\n[ ] 2. b")
      assert.strictEqual(yield* readTodos('[{"content":"a"}]'), "[ ] 1. a")
      assert.strictEqual(yield* readTodos({ task: "a", state: "In-Progress" }), "[>] 1. a")
      assert.strictEqual(
        yield* readTodos([
          { step: "a", status: "Completed" },
          { title: "b", done: true }
        ]),
        "[x] 1. a\n[x] 2. b"
      )
      assert.strictEqual(yield* readTodos([{ id: 7, content: "a", status: "canceled" }]), "[-] 7. a")
      assert.strictEqual(yield* readTodos([{ description: "a", status: "in progress", id: null }]), "[>] 1. a")
    })
  )

  it.effect("merges by id without saying all again", () =>
    Effect.gen(function* () {
      const [, text] = yield* write(
        { todos: ["a", "b"] },
        { merge: true, todos: [{ id: "2", status: "done" }, { id: "3", content: "c" }, "d"] }
      )
      assert.strictEqual(text, "[ ] 1. a\n[x] 2. b\n[ ] 3. c\n[ ] 4. d")
    })
  )

  it.effect("refuses an unreadable list, and leaves the list as it was", () =>
    Effect.gen(function* () {
      const { messages, state } = yield* Agent.run(agent, "go")
      const [, ...told] = texts(messages)
      assert.include(told[0], 'The status "soonish" is none of pending, in_progress, completed, cancelled.')
      assert.include(told[1], "Todo 9 has no content")
      assert.include(told[2], "A todo is an object")
      assert.include(told[3], "Todo 1 has no content")
      assert.isTrue(told.every((text) => text.includes("as it was")))
      const read = AgentState.read(state, Todos.todos)
      assert.strictEqual(read._tag === "Success" ? Todos.render(read.success) : "", "[ ] 1. keep me")
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          call("write_todos", { todos: ["keep me"] }),
          call("write_todos", { todos: [{ content: "a", status: "soonish" }] }),
          call("write_todos", { merge: true, todos: [{ id: "9", status: "completed" }] }),
          call("write_todos", { todos: [5] }),
          call("write_todos", { todos: [{ content: "  ", status: "pending" }] }),
          "done"
        ])
      )
    )
  )
})

describe("Rubric", () => {
  it.effect("reports the grader's findings, and nothing else", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "", middleware: [Rubric.make({ criteria: "good" })] })
      const { events } = yield* AgentTest.collect(agent, "go")
      const found = events.flatMap((event) => (event._tag === "Custom" ? [event.payload] : []))
      assert.deepStrictEqual(found, [{ satisfied: null, revisions: 0 }])
      assert.isTrue(events.some((event) => event._tag === "Warning" && event.code === "rubric-unreadable"))
    }).pipe(Effect.provide(TestChatModel.script(["answer", "I can't say."])))
  )
})

describe("a person's view of a call", () => {
  it.effect("a blank question is not asked", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "", middleware: [AskUser.make()] })
      const result = yield* Agent.run(agent, "go")
      assert.include(texts(result.messages)[0], "expected a question in words")
      assert.strictEqual(result.stopReason, "suspended")
      const [request] = result.pending
      assert.strictEqual(request?.description, "Sure?\\n\\u{001b}[2K\\r? Run ls?\\u{202e}")
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          call("ask_user", { questions: [{ id: "a", label: " \n ", kind: "text" }] }),
          call("ask_user", {
            questions: [{ id: "a", label: "Sure?\n\u001b[2K\r? Run ls?\u202e", kind: "text" }]
          })
        ])
      )
    )
  )

  it("controls nothing, hides nothing, and can't be taken for other arguments", () => {
    const line = ToolCall.describeArguments({
      content: `line1\nline2\u001b[31m${"x".repeat(1_000_000)}`,
      file_path: "/a\u001b[2K\r? Run ls?\u202e\u2066",
      "k\ney": "a, file_path: /safe",
      nothing: ""
    })
    assert.isTrue(line.isWellFormed())
    assert.isFalse(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(line))
    assert.isBelow(line.length, 700)
    assert.isTrue(line.startsWith('file_path: "/a\\u{001b}[2K\\r? Run ls?'), line.slice(0, 80))
    assert.include(line, 'k\\ney: "a, file_path: /safe"')
    assert.include(line, 'nothing: ""')
    assert.include(line, "more…]")
    let deep: unknown = 1
    for (let level = 0; level < 100_000; level++) deep = [deep]
    assert.isBelow(ToolCall.describeArguments({ deep } as never).length, 100)
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`k${n}`, n]))
    assert.include(ToolCall.describeArguments(many), "…970 more")
  })
})

describe("a call that is made again (invariant 8)", () => {
  const polled = (annotations: Tool.Annotations) => {
    let calls = 0
    return Tool.make("status", {
      description: "",
      parameters: {},
      annotations,
      execute: () => Effect.sync(() => `look ${++calls}`)
    })
  }
  const script = (...turns: ReadonlyArray<TestChatModel.Turn | string>) => Effect.provide(TestChatModel.script(turns))

  it.effect("runs if the tool is volatile, as often as the model likes", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "", tools: [polled({ volatile: true })] })
      const { events } = yield* AgentTest.collect(agent, "go").pipe(
        script(call("status"), call("status"), call("status"), "done")
      )
      const transcript = AgentEvent.transcript(events)
      assert.deepStrictEqual(texts(transcript), ["look 1", "look 2", "look 3"])
      assert.isFalse(events.some((event) => event._tag === "Warning"))
      const result = yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [polled({})] }), "go").pipe(
        script(call("status"), call("status"), call("status"), "done")
      )
      assert.strictEqual(result.stopReason, "duplicateRounds")
    })
  )

  it.effect("runs if the failure says that it may pass; other calls of the round do not run again", () =>
    Effect.gen(function* () {
      let tries = 0
      let sent = 0
      const flaky = Tool.make("flaky", {
        description: "",
        parameters: {},
        execute: () =>
          Effect.suspend(() =>
            ++tries < 3 ? Effect.fail(ToolError.make("Try it once more.", { isRetryable: true })) : Effect.succeed("ok")
          )
      })
      const send = Tool.make("send", {
        description: "",
        parameters: {},
        execute: () => Effect.sync(() => `sent ${++sent}`)
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [flaky, send] })
      const both = TestChatModel.calls([
        { name: "send", arguments: {} },
        { name: "flaky", arguments: {} }
      ])
      const { messages, stopReason } = yield* Agent.run(agent, "go").pipe(script(both, both, both, "done"))
      assert.deepStrictEqual([tries, sent, stopReason], [3, 1, "completed"])
      assert.strictEqual(texts(messages).at(-1), "ok")
      assert.include(texts(messages)[2], "its result is above")
      assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
    })
  )

  it.effect("runs for an own error that says so, and not for another one", () =>
    Effect.gen(function* () {
      for (const isRetryable of [true, false]) {
        let tries = 0
        const tool = Tool.make("t", {
          description: "",
          parameters: {},
          execute: () => Effect.suspend(() => Effect.fail({ _tag: "Busy", message: `${++tries}`, isRetryable }))
        })
        yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [tool] }), "go").pipe(
          script(call("t"), call("t"), "done")
        )
        assert.strictEqual(tries, isRetryable ? 2 : 1)
      }
    })
  )
})
