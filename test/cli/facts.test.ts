/** New tools, and every side that has to know their facts: by their annotations, without a list of names. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent, Message, type Middleware, Tool, ToolOutput } from "effect-deepagents"
import { AgentFile } from "effect-deepagents/agents"
import { FanOut, HumanInTheLoop, Skills, Taint } from "effect-deepagents/middleware"
import { TestBackend, TestChatModel } from "effect-deepagents/testing"
import { LspDiagnostics } from "effect-deepagents/workspace"
import * as FileSystem from "effect/FileSystem"
import { approvalsOf } from "../../src/cli/internal/approvals/defaults.ts"
import { automatic } from "../../src/cli/internal/approvals/desk.ts"
import { makePermits } from "../../src/cli/internal/approvals/permits.ts"
import { findAgents } from "../../src/cli/internal/config/agents.ts"
import { noProject } from "../../src/cli/internal/config/items.ts"
import { placesOf } from "../../src/cli/internal/config/places.ts"
import { compiled } from "../../src/cli/internal/config/policies.ts"

const make = (name: string, annotations: Tool.Annotations) =>
  Tool.make(name, {
    description: "",
    parameters: {},
    annotations,
    execute: () => Effect.succeed(ToolOutput.make(`${name} ran`, { details: { path: "/a.ts" } }))
  })

const writing = make("rename_symbol", { editsFiles: true, aliases: ["Rename"] })
const reading = make("outline", { readOnly: true, aliases: ["Outline"] })
const background = make("watch_build", { delegates: true, untrusted: true, runsCommands: true })
const lasting = make("pin_note", { lasting: true })
const tools = [writing, reading, background, lasting]

/** Tools of the program that its first agent names, to leave them out. */
const disallowed = ["git_commit", "git_branch", "git_branches", "git_worktree", "git_worktrees"].map((name) =>
  make(name, {})
)

/** Runs an agent with the new tools, one turn of calls after the other. */
const run = <E, R>(
  middleware: ReadonlyArray<Middleware.Middleware<E, R>>,
  ...turns: ReadonlyArray<ReadonlyArray<{ readonly name: string; readonly arguments?: { readonly name: string } }>>
) =>
  Agent.run(Agent.make({ name: "a", prompt: "", tools, middleware }), "go").pipe(
    Effect.provide(
      TestChatModel.script([...turns.map((calls) => TestChatModel.calls(calls)), "done"], { exhaustive: false })
    )
  )

const askedTools = ({ pending }: { readonly pending: ReadonlyArray<{ readonly toolName: string }> }) =>
  pending.map(({ toolName }) => toolName)

describe("a new tool is known by its annotations", () => {
  it.effect("to agents of files: one that only reads gets the tools that only read, Claude's names are found", () =>
    Effect.gen(function* () {
      const toolsOf = Effect.fnUntraced(function* (matter: string, claude: boolean) {
        const text = `---\ndescription: Works\n${matter}\n---\nYou work.`
        const agent = yield* AgentFile.compile(yield* AgentFile.parse(text, { path: "a.md", claude }), { tools })
        return Agent.toolNames(agent)
      })
      const read = yield* toolsOf("readOnly: true", false)
      assert.deepStrictEqual(
        ["outline", "grep", "rename_symbol", "watch_build", "pin_note", "write_file", "execute"].map((name) =>
          read.has(name)
        ),
        [true, true, false, false, false, false, false]
      )
      const named = yield* toolsOf("tools: Outline, Rename, TodoWrite", true)
      assert.deepStrictEqual(
        tools.map(({ name }) => named.has(name)),
        [true, true, false, false]
      )
    })
  )

  it.effect("to the agents of the program that change nothing", () =>
    Effect.gen(function* () {
      const { agents } = yield* findAgents({ config: "/none", project: "/none", data: "/none" }, noProject, [])
      const compiled = yield* Effect.forEach(agents, (agent) =>
        Effect.map(AgentFile.compile(agent, { agents, tools: [...tools, ...disallowed] }), (one) => ({
          isReader: agent.readOnly === true,
          names: Agent.toolNames(one)
        }))
      )
      for (const { isReader, names } of compiled) {
        if (!isReader) assert.deepStrictEqual([names.has("rename_symbol"), names.has("outline")], [true, true])
      }
      const readers = compiled.flatMap(({ isReader, names }) => (isReader ? [names] : []))
      assert.isAbove(readers.length, 1)
      for (const reader of readers) {
        assert.isTrue(reader.has("outline"))
        for (const name of ["rename_symbol", "watch_build", "pin_note", "execute"]) assert.isFalse(reader.has(name))
      }
    }).pipe(Effect.provide(FileSystem.layerNoop({})))
  )

  it.effect("to approvals and the modes of a chat", () =>
    Effect.gen(function* () {
      const all = [[{ name: "outline" }, { name: "rename_symbol" }]]
      const ask = yield* run([HumanInTheLoop.make(approvalsOf("ask", tools, "/notes"))], ...all)
      assert.deepStrictEqual(askedTools(ask), ["rename_symbol"])
      const edit = yield* run([HumanInTheLoop.make(approvalsOf("auto-edit", tools, "/notes"))], ...all)
      assert.deepStrictEqual(askedTools(edit), [])
      const [request] = ask.pending
      assert(request !== undefined)
      assert.strictEqual(automatic(request, "auto-edit", makePermits("/p", tools), [])?._tag, "Approve")
      assert.isUndefined(automatic(request, "ask", makePermits("/p", tools), []))
      assert.isUndefined(automatic({ ...request, editsFiles: false }, "auto-edit", makePermits("/p", tools), []))
    })
  )

  it.effect("to policies that run no commands", () =>
    Effect.gen(function* () {
      const policy = yield* compiled(
        [{ from: "user", file: "policy.yaml", policy: { sandbox: "noCommands" } }],
        tools,
        placesOf("/work"),
        []
      )
      assert.deepStrictEqual(
        tools.map(({ name }) => policy?.explain({ name }).ruling._tag),
        ["Allow", "Allow", "Refuse", "Allow"]
      )
    })
  )

  it.effect("to Taint, FanOut, Skills and LspDiagnostics", () =>
    Effect.gen(function* () {
      const marked = yield* run([Taint.make()], [{ name: "watch_build" }], [{ name: "pin_note" }])
      assert.deepStrictEqual(askedTools(marked), ["pin_note"])
      const clean = yield* run([Taint.make()], [{ name: "outline" }], [{ name: "pin_note" }])
      assert.deepStrictEqual(askedTools(clean), [])
      const begun = yield* run([FanOut.make({ above: 1 })], [{ name: "watch_build" }, { name: "watch_build" }])
      assert.deepStrictEqual(askedTools(begun), ["watch_build"])
      const skill = "---\nname: look\ndescription: Looks.\nallowed-tools: Outline\n---\n\nLook."
      const server = Layer.succeed(LspDiagnostics.LanguageServer, {
        diagnose: () => Effect.succeed([{ line: 1, column: 1, severity: "error" as const, message: "bad" }])
      })
      const lsp = yield* run([LspDiagnostics.make()], [{ name: "rename_symbol" }, { name: "outline" }]).pipe(
        Effect.provide([server, TestBackend.layer({ files: { "/a.ts": "x" } })])
      )
      const answers = lsp.messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))
      assert.deepStrictEqual(
        answers.map((text) => text.includes("1:1 error bad")),
        [true, false]
      )
      const narrowed = yield* run(
        [Skills.make({ sources: ["/skills"] })],
        [{ name: "use_skill", arguments: { name: "look" } }],
        [{ name: "outline" }, { name: "rename_symbol" }]
      ).pipe(Effect.provide(TestBackend.layer({ files: { "/skills/look/SKILL.md": skill } })))
      const [, outline, rename] = narrowed.messages.flatMap((message) => (message.role === "tool" ? [message] : []))
      assert.deepStrictEqual([outline?.isError, rename?.isError], [false, true])
    })
  )
})
