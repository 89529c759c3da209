import { assert, describe, it } from "@effect/vitest"
import { Effect, type Schema } from "effect"
import { Agent, Approval, Backend, type ChatModel, Message, Middleware, Tool } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { DeepAgent } from "effect-deepagents/deep"
import { HumanInTheLoop, Summarization } from "effect-deepagents/middleware"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"

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

  it.effect("prompt, tools and what was said are the same bytes from round to round", () =>
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
      assert.notInclude(names(request), Summarization.compactTool)
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

  it.effect("approvals hold in the general-purpose sub-agent, and go on after a restart", () =>
    Effect.gen(function* () {
      const agent = DeepAgent.make({
        name: "deep",
        prompt: "p",
        approvals: { mode: "suspend", tools: { write_file: true } }
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
        approvals: { mode: "ask" },
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
})
