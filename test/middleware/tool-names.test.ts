import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, type Backend, type ChatModel, type Middleware, Tool } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { DeepAgent } from "effect-deepagents/deep"
import { HumanInTheLoop, Subagents, ToolExclusion } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"

const tool = (name: string) =>
  Tool.make(name, { description: "", parameters: {}, execute: () => Effect.succeed(`${name} ran`) })

const agentWith = (middleware: ReadonlyArray<Middleware.Middleware>, ...tools: ReadonlyArray<Tool.Tool>) =>
  Agent.make({ name: "a", prompt: "", tools, middleware })

const problemOf = <O, E extends { readonly message: string }>(
  agent: Agent.Agent<O, E, ChatModel.ChatModel | Backend.Backend>
) =>
  Agent.run(agent, "go").pipe(
    Effect.provide([TestChatModel.script(["done"], { exhaustive: false }), MemoryBackend.layer()]),
    Effect.flip,
    Effect.map((error) => error.message)
  )

const pendingOf = <O, E>(agent: Agent.Agent<O, E, ChatModel.ChatModel>, called: string) =>
  Agent.run(agent, "go").pipe(
    Effect.provide(
      TestChatModel.script([TestChatModel.calls([{ name: called, arguments: {} }]), "done"], { exhaustive: false })
    ),
    Effect.map(({ pending }) => pending.map((request) => request.toolName))
  )

describe("Names of tools that an agent has not are refused", () => {
  const misspelt = [
    ["approvals", HumanInTheLoop.make({ tools: { wirte_file: true } })],
    ["approvals that say never", HumanInTheLoop.make({ tools: { wirte_file: false } })],
    ["exclusions", ToolExclusion.make(["wirte_file"])],
    ["a name of an object's own", HumanInTheLoop.make({ tools: { constructor: true } })]
  ] as const
  it.effect.each(misspelt)("in %s", ([, middleware]) =>
    Effect.gen(function* () {
      const problem = yield* problemOf(agentWith([middleware], tool("write_file")))
      expect(problem).toContain("which is not a tool of the agent (write_file")
    })
  )

  it.effect("in the approvals of a deep agent", () =>
    Effect.gen(function* () {
      const agent = DeepAgent.make({
        name: "a",
        prompt: "",
        approvals: { tools: { write_flie: true } }
      })
      expect(yield* problemOf(agent)).toContain('"write_flie", which is not a tool of the agent')
    })
  )

  it.effect("and so are rules that ask about nothing, and two for one tool", () =>
    Effect.gen(function* () {
      expect(yield* problemOf(agentWith([HumanInTheLoop.make({})], tool("x")))).toContain("ask about nothing")
      const twice = HumanInTheLoop.make({ tools: { write_file: false, "Write-File": true } })
      expect(yield* problemOf(agentWith([twice], tool("write_file")))).toContain("two rules for one tool")
    })
  )

  it.effect("but a name may be spelled as models may spell it", () =>
    Effect.gen(function* () {
      for (const name of ["write_file", "Write-File", "writefile", "WRITE_FILE"]) {
        const asking = agentWith([HumanInTheLoop.make({ tools: { [name]: true } })], tool("write_file"))
        expect(yield* pendingOf(asking, "write_file")).toEqual(["write_file"])
        const without = agentWith([ToolExclusion.make([name])], tool("write_file"))
        const result = yield* Agent.run(without, "go").pipe(
          Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "write_file", arguments: {} }]), "done"]))
        )
        expect(JSON.stringify(result.messages)).not.toContain("write_file ran")
      }
    })
  )

  it.effect("a rule may be about a tool of a sub-agent, and holds there (invariant 14)", () =>
    Effect.gen(function* () {
      const child = Agent.make({ name: "child", description: "works", prompt: "", tools: [tool("send_mail")] })
      const parents = [
        Agent.make({
          name: "parent",
          prompt: "",
          tools: [tool("look")],
          middleware: [
            Subagents.make({ agents: [child] }),
            HumanInTheLoop.make({ tools: { "send-mail": true, look: true } })
          ]
        }),
        Agent.make({
          name: "parent",
          prompt: "",
          tools: [tool("look"), Agent.asTool(child, { name: "task" })],
          middleware: [HumanInTheLoop.make({ tools: { "send-mail": true, look: true } })]
        })
      ]
      for (const parent of parents) {
        const result = yield* Agent.run(parent, "go").pipe(
          Effect.provide(
            TestChatModel.script(
              [
                TestChatModel.calls([
                  { name: "task", arguments: { task: "x", description: "x", subagent_type: "child" } }
                ]),
                TestChatModel.calls([{ name: "send_mail", arguments: {} }]),
                "done"
              ],
              { exhaustive: false }
            )
          )
        )
        expect(result.pending.map((request) => request.toolName)).toEqual(["send_mail"])
      }
    })
  )
})
