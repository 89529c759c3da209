import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schema } from "effect"
import { Agent, Approval, Backend, type ChatModel, Message, Middleware, StopWhen, Tool } from "effect-deepagents"
import { MemoryBackend, Permissions } from "effect-deepagents/backends"
import * as Bash from "effect-deepagents/backends/Bash"
import { DeepAgent } from "effect-deepagents/deep"
import { BackgroundSubagents, BackgroundTasks, HumanInTheLoop, Subagents } from "effect-deepagents/middleware"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"

const call = (name: string, args: Record<string, Schema.Json>) => TestChatModel.calls([{ name, arguments: args }])

const task = (description: string) => ({
  name: "task",
  arguments: { subagent_type: DeepAgent.generalPurpose, description }
})

const answers = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))

const names = (request: ChatModel.ModelRequest | undefined) => request?.tools.map((tool) => tool.name) ?? []

describe("DeepAgent", () => {
  it.effect("plans, works on files, and has a sub-agent with the same tools work on the same files", () =>
    Effect.gen(function* () {
      const agent = DeepAgent.make({ name: "deep", prompt: "You do all of it." })
      const result = yield* Agent.run(agent, "Write two files")
      assert.strictEqual(result.text, "all done")
      const backend = yield* Backend.Backend
      const read = yield* backend.read("/by-child.md")
      assert.strictEqual(read.kind === "text" ? read.text : "", "child")
      const [first, child] = yield* TestChatModel.requests
      assert.deepStrictEqual(names(first).toSorted(), [
        "compact_conversation",
        "delete_file",
        "edit_file",
        "glob",
        "grep",
        "ls",
        "move_file",
        "read_file",
        "task",
        "write_file",
        "write_todos"
      ])
      assert.isTrue(first?.systemPrompt.startsWith("You do all of it."))
      // A sub-agent has none of its own.
      const ofChild = (yield* TestChatModel.requests).find((request) => !names(request).includes("task"))
      assert.notStrictEqual(ofChild, undefined)
      assert.notStrictEqual(child, undefined)
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
    }).pipe(
      Effect.provide([
        TestChatModel.reactive((request) => {
          const turns = request.messages.filter((message) => message.role === "ai").length
          if (!request.tools.some((tool) => tool.name === "task")) {
            return turns === 0 ? call("write_file", { file_path: "/by-child.md", content: "child" }) : "child done"
          }
          if (turns === 0) return call("write_todos", { todos: [{ content: "write", status: "in_progress" }] })
          return turns === 1 ? TestChatModel.calls([task("write a file")]) : "all done"
        }),
        MemoryBackend.layer()
      ])
    )
  )

  it.effect("keeps prompt, tools and earlier messages byte-identical from round to round", () =>
    Effect.gen(function* () {
      const agent = DeepAgent.make({ name: "deep", prompt: "p", agentId: "coder" })
      yield* Agent.run(agent, "go")
      const requests = yield* TestChatModel.requests
      assert.strictEqual(requests.length, 4)
      for (const [index, request] of requests.entries()) {
        const next = requests[index + 1]
        if (next === undefined) break
        assert.strictEqual(next.systemPrompt, request.systemPrompt)
        assert.strictEqual(JSON.stringify(next.tools), JSON.stringify(request.tools))
        assert.strictEqual(
          JSON.stringify(next.messages.slice(0, request.messages.length)),
          JSON.stringify(request.messages)
        )
      }
    }).pipe(
      Effect.provide([
        TestChatModel.script([
          call("write_todos", { todos: [{ content: "a", status: "pending" }] }),
          call("write_file", { file_path: "/a", content: "x" }),
          call("ls", { path: "/" }),
          "done"
        ]),
        MemoryBackend.layer({ files: { "/AGENTS.md": "Be brief." } })
      ])
    )
  )

  it.effect("one of the user's with the name of one of ours takes its place; others come in between", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const spy = (name: string) =>
        Middleware.make({
          name,
          beforeAgent: () => Effect.sync(() => void order.push(name)),
          wrapModelCall: (request, next) => next(request)
        })
      const agent = DeepAgent.make({
        name: "deep",
        prompt: "p",
        todos: false,
        generalPurpose: false,
        middleware: [spy("mine"), spy("Summarization")]
      })
      const result = yield* Agent.run(agent, "go")
      assert.deepStrictEqual(order, ["Summarization", "mine"])
      const [request] = yield* TestChatModel.requests
      assert.notInclude(names(request), "compact_conversation")
      assert.notInclude(names(request), "task")
      assert.strictEqual(result.text, "done")
    }).pipe(Effect.provide([TestChatModel.script(["done"]), MemoryBackend.layer()]))
  )

  it.effect("two tools of one name are refused, by name", () =>
    Effect.gen(function* () {
      const clash = Tool.make("read_file", { description: "", parameters: {}, execute: () => Effect.succeed("") })
      const error = yield* Effect.flip(Agent.run(DeepAgent.make({ name: "deep", prompt: "p", tools: [clash] }), "go"))
      assert.include(error.message, '"read_file"')
    }).pipe(Effect.provide([TestChatModel.script([]), MemoryBackend.layer()]))
  )

  it.effect("profiles fit it to the model that it runs on", () =>
    Effect.gen(function* () {
      const agent = DeepAgent.make({
        name: "deep",
        prompt: "mine",
        profiles: [
          { provider: "test", basePrompt: "base", promptSuffix: "suffix", excludedTools: ["task", "grep"] },
          { provider: "other", basePrompt: "no" },
          { model: "scripted", toolDescriptions: { ls: "Lists." } }
        ]
      })
      const { messages } = yield* Agent.run(agent, "go")
      assert.include(answers(messages)[0], "grep")
      assert.isTrue(messages.some((message) => message.role === "tool" && message.isError))
      const [request] = yield* TestChatModel.requests
      assert.notInclude(names(request), "grep")
      // What is not there is not spoken of either.
      assert.notInclude(request?.systemPrompt, "task")
      assert.isTrue(request?.systemPrompt.startsWith("mine\n\nbase\n\nsuffix"))
      assert.notInclude(names(request), "task")
      assert.strictEqual(request?.tools.find((tool) => tool.name === "ls")?.description, "Lists.")
    }).pipe(Effect.provide([TestChatModel.script([call("grep", { pattern: "x" }), "done"]), MemoryBackend.layer()]))
  )

  it.effect("refuses a profile that excludes an unknown tool, and accepts known tools that the agent lacks", () =>
    Effect.gen(function* () {
      const lookup = Tool.make("lookup", { description: "", parameters: {}, execute: () => Effect.succeed("") })
      const agent = (...excludedTools: ReadonlyArray<string>) =>
        DeepAgent.make({ name: "deep", prompt: "p", tools: [lookup], profiles: [{ provider: "other", excludedTools }] })
      const error = yield* Effect.flip(Agent.run(agent("look-up"), "go"))
      assert.include(error.message, 'the tool "look-up", which is not a tool of the agent (ls, read_file')
      const { text } = yield* Agent.run(agent("lookup", "start_task", "execute"), "go")
      assert.strictEqual(text, "done")
    }).pipe(Effect.provide([TestChatModel.script(["done"]), MemoryBackend.layer()]))
  )

  it.effect("approvals hold in the general-purpose sub-agent, and go on after a restart", () =>
    Effect.gen(function* () {
      const agent = DeepAgent.make({
        name: "deep",
        prompt: "p",
        approvals: { tools: { write_file: true } }
      })
      const first = yield* Agent.run(agent, "go")
      assert.strictEqual(first.stopReason, "suspended")
      assert.deepStrictEqual(
        first.pending.map((request) => request.path),
        [["deep", DeepAgent.generalPurpose]]
      )
      const backend = yield* Backend.Backend
      assert.isTrue((yield* backend.download(["/x"]))[0]?.ok === false)
      const result = yield* Agent.resume(agent, {
        checkpoint: first,
        decisions: first.pending.map((request) => Approval.approve(request))
      })
      assert.strictEqual(result.text, "done")
      assert.isTrue((yield* backend.download(["/x"]))[0]?.ok)
      assert.include(answers(result.messages)[0], "child done")
    }).pipe(
      Effect.provide([
        TestChatModel.reactive((request) => {
          const turns = request.messages.filter((message) => message.role === "ai").length
          if (!request.tools.some((tool) => tool.name === "task")) {
            return turns === 0 ? call("write_file", { file_path: "/x", content: "x" }) : "child done"
          }
          return turns === 0 ? TestChatModel.calls([task("write")]) : "done"
        }),
        MemoryBackend.layer()
      ])
    )
  )

  it.effect("several of the user's with the name of one of ours all hold", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const tool = (name: string) =>
        Tool.make(name, {
          description: "",
          parameters: {},
          execute: () => Effect.sync(() => (ran.push(name), "ok"))
        })
      const agent = DeepAgent.make({
        name: "deep",
        prompt: "p",
        tools: [tool("pay"), tool("wipe")],
        approvals: {},
        middleware: [HumanInTheLoop.make({ tools: { pay: true } }), HumanInTheLoop.make({ tools: { wipe: true } })]
      })
      yield* Effect.provideService(Agent.run(agent, "go"), Approval.Approvals, {
        decide: (request) => Effect.succeed(Approval.reject(request))
      })
      assert.deepStrictEqual(ran, [])
    }).pipe(
      Effect.provide([
        TestChatModel.script([
          TestChatModel.calls([
            { name: "pay", arguments: {} },
            { name: "wipe", arguments: {} }
          ]),
          "done"
        ]),
        MemoryBackend.layer()
      ])
    )
  )

  it.effect("a model that hangs is asked again: the limit of time is each try's own", () =>
    Effect.gen(function* () {
      const agent = DeepAgent.make({ name: "deep", prompt: "p" })
      const fiber = yield* Effect.forkChild(Agent.run(agent, "go"))
      yield* TestClock.adjust("130 seconds")
      assert.strictEqual((yield* Fiber.join(fiber)).text, "awake")
    }).pipe(Effect.provide([TestChatModel.script([TestChatModel.hang, "awake"]), MemoryBackend.layer()]))
  )

  it.effect(
    "the general-purpose sub-agent has the skills that there are; memory, middleware and answer are not its own",
    () =>
      Effect.gen(function* () {
        const agent = DeepAgent.make({
          name: "deep",
          prompt: "p",
          agentId: "coder",
          skills: ["/skills"],
          memory: ["/memory.md"],
          middleware: [Middleware.make({ name: "mine", prompt: "Only mine." })],
          output: Schema.Struct({ done: Schema.Boolean }),
          stopWhen: [StopWhen.toolCalled("ls")]
        })
        const { messages, output } = yield* Agent.run(agent, "go")
        assert.deepStrictEqual(output, { done: true })
        assert.deepStrictEqual(answers(messages), ["looked"])
        const [parent, child] = yield* TestChatModel.requests
        for (const request of [parent, child]) {
          assert.include(request?.systemPrompt, "Takes notes.")
          assert.include(request?.systemPrompt, "Draws maps.")
        }
        for (const own of ["Be brief.", "Be kind.", "Only mine."]) {
          assert.include(parent?.systemPrompt, own)
          assert.notInclude(child?.systemPrompt, own)
        }
        assert.isDefined(parent?.outputSchema)
        assert.isUndefined(child?.outputSchema)
      }).pipe(
        Effect.provide([
          TestChatModel.script([
            TestChatModel.calls([task("look")]),
            call("ls", {}),
            "looked",
            JSON.stringify({ done: true })
          ]),
          MemoryBackend.layer({
            files: {
              "/AGENTS.md": "Be brief.",
              "/memory.md": "Be kind.",
              "/agent/skills/notes/SKILL.md": "---\nname: notes\ndescription: Takes notes.\n---\n",
              "/skills/maps/SKILL.md": "---\nname: maps\ndescription: Draws maps.\n---\n"
            }
          })
        ])
      )
  )

  it.effect("summaries are by the model that is meant for them, and keep the todos that are open", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const agent = DeepAgent.make({
        name: "deep",
        prompt: "p",
        summarization: {
          trigger: { messages: 7 },
          tail: { messages: 2 },
          background: false,
          model: TestChatModel.reactive(({ purpose }) => (asked.push(purpose), "It was long."))
        }
      })
      yield* Agent.run(agent, "go")
      assert.deepStrictEqual(asked, ["summary"])
      const requests = yield* TestChatModel.requests
      const summary = requests.at(-1)?.messages.find(({ source }) => source === "summarization")
      const seen = summary === undefined ? "" : Message.text(summary)
      assert.include(seen, "It was long.")
      assert.include(seen, "tidy up")
      assert.isTrue(requests.every(({ purpose }) => purpose === "turn"))
    }).pipe(
      Effect.provide([
        TestChatModel.script([
          call("write_todos", { todos: [{ content: "tidy up", status: "pending" }] }),
          TestChatModel.calls([{ name: "ls", arguments: {} }], { text: "lorem ipsum ".repeat(500) }),
          TestChatModel.calls([{ name: "ls", arguments: { path: "/" } }], { text: "well" }),
          "done"
        ]),
        MemoryBackend.layer()
      ])
    )
  )

  it.effect("commands run as long as is said, of the general-purpose sub-agent too", () =>
    Effect.gen(function* () {
      const agent = DeepAgent.make({
        name: "deep",
        prompt: "p",
        execute: { timeout: "3 seconds", maxTimeout: "7 seconds" }
      })
      yield* Agent.run(agent, "go")
      const [parent, child] = yield* TestChatModel.requests
      for (const request of [parent, child]) {
        const { description, parameters } = request!.tools.find((tool) => tool.name === "execute")!
        assert.match(description + JSON.stringify(parameters), /\b3\b.*\b7\b/s)
      }
    }).pipe(
      Effect.provide([
        TestChatModel.script([TestChatModel.calls([task("look")]), "looked", "done"]),
        Layer.provideMerge(Bash.layer(), MemoryBackend.layer())
      ])
    )
  )

  it.effect("has agents work in the background, beside its other sub-agents", () =>
    Effect.gen(function* () {
      const worker = Agent.make({ name: "worker", description: "works long", prompt: "worker" })
      const agent = DeepAgent.make({ name: "deep", prompt: "p", backgroundSubagents: [worker] })
      const { messages, text } = yield* Agent.run(agent, "go")
      assert.strictEqual(text, "done")
      assert.include(answers(messages)[1], "worked")
      const offered = (yield* TestChatModel.requests).map(names)
      assert.includeMembers(offered[0] ?? [], [...Object.values(BackgroundSubagents.toolNames), "task"])
    }).pipe(
      Effect.provide([
        TestChatModel.reactive((request) => {
          if (request.systemPrompt.startsWith("worker")) return "worked"
          const turns = request.messages.filter((message) => message.role === "ai").length
          if (turns === 0) return call("start_task", { subagent_type: "worker", description: "work" })
          const [, id = ""] = /(\S*task\S*\d\S*)/.exec(answers(request.messages)[0] ?? "") ?? []
          return turns === 1 ? call("check_task", { task_id: id, wait_seconds: 1 }) : "done"
        }),
        MemoryBackend.layer(),
        BackgroundTasks.layer()
      ])
    )
  )

  it.effect("a sub-agent with the name of the general-purpose one takes its place", () =>
    Effect.gen(function* () {
      const own = Agent.make({ name: DeepAgent.generalPurpose, description: "my own", prompt: "own" })
      const agent = DeepAgent.make({ name: "deep", prompt: "p", subagents: [Subagents.fork(own)] })
      yield* Agent.run(agent, "go")
      const [parent, child] = yield* TestChatModel.requests
      const description = parent?.tools.find((tool) => tool.name === "task")?.description ?? ""
      assert.strictEqual(description.split(`- ${DeepAgent.generalPurpose}:`).length, 2)
      assert.include(description, "my own")
      assert.isTrue(child?.systemPrompt.startsWith("own"))
    }).pipe(
      Effect.provide([
        TestChatModel.script([TestChatModel.calls([task("look")]), "looked", "done"]),
        MemoryBackend.layer()
      ])
    )
  )

  it.effect("gives a sub-agent its own backend in place of its parent's", () =>
    Effect.gen(function* () {
      const reader = DeepAgent.subagent({ name: "reader", description: "reads", prompt: "reader" }).pipe(
        Agent.provide(Permissions.layer({ rules: [{ operations: ["write"], paths: ["/**"], ruling: "refuse" }] }))
      )
      const agent = DeepAgent.make({ name: "deep", prompt: "p", subagents: [reader] })
      const { messages } = yield* Agent.run(agent, "go")
      assert.deepStrictEqual(answers(messages).slice(1), ["It says: parent."])
      const statements = (yield* TestChatModel.requests).flatMap((request) => answers(request.messages))
      assert.isTrue(statements.some((text) => text.includes("/b: permission denied")))
      const backend = yield* Backend.Backend
      assert.deepStrictEqual(
        (yield* backend.ls("/")).entries.map(({ path }) => path),
        ["/a"]
      )
    }).pipe(
      Effect.provide([
        TestChatModel.script([
          call("write_file", { file_path: "/a", content: "parent" }),
          TestChatModel.calls([{ name: "task", arguments: { subagent_type: "reader", description: "read" } }]),
          TestChatModel.calls([
            { name: "read_file", arguments: { file_path: "/a" } },
            { name: "write_file", arguments: { file_path: "/b", content: "child" } }
          ]),
          "It says: parent.",
          "done"
        ]),
        MemoryBackend.layer()
      ])
    )
  )
})
