/** Agents as files: the tools that a file chooses, and its mistakes. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, Tool } from "effect-deepagents"
import { AgentFile } from "effect-deepagents/agents"

const lookup = Tool.make("lookup", {
  description: "",
  parameters: {},
  annotations: { aliases: ["Search"] },
  execute: () => Effect.succeed("")
})

const parse = (matter: string, claude = false) =>
  AgentFile.parse(`---\ndescription: Works\n${matter}\n---\nYou work.`, { path: "folder/a.md", claude })

const compile = (matter: string, claude = false, agents: ReadonlyArray<AgentFile.AgentFile> = []) =>
  Effect.flatMap(parse(matter, claude), (file) => AgentFile.compile(file, { tools: [lookup], agents }))

const problemOf = <A>(made: Effect.Effect<A, AgentFile.InvalidAgentFile>) =>
  Effect.map(Effect.flip(made), ({ problem }) => problem)

const shell = /^policy.files can't hold beside a shell/

describe("AgentFile", () => {
  it.effect("has all tools, or the named ones in any spelling, without the disallowed ones", () =>
    Effect.gen(function* () {
      const all = Agent.toolNames(yield* compile("name: b"))
      for (const name of ["ls", "execute", "lookup"]) assert.isTrue(all.has(name), name)
      const some = Agent.toolNames(yield* compile("tools: [ls, Write-File, lookup]\ndisallowedTools: [Search]"))
      const names = ["ls", "write_file", "execute", "lookup"]
      assert.deepStrictEqual(
        names.map((name) => some.has(name)),
        [true, true, false, false]
      )
    })
  )

  it.effect("takes the files of Claude Code, without their rules about arguments and their own fields", () =>
    Effect.gen(function* () {
      const file = yield* parse("tools: Read, Bash(git add:*), Task\nmodel: opus\ncolor: red", true)
      assert.deepStrictEqual([file.name, file.model, file.tools], ["a", "anthropic:claude-opus-5-5", ["Read", "Bash"]])
      const tools = Agent.toolNames(yield* AgentFile.compile(file))
      const names = ["ls", "read_file", "execute", "write_file"]
      assert.deepStrictEqual(
        names.map((name) => tools.has(name)),
        [true, true, true, false]
      )
    })
  )

  it.effect("has no rules for files beside a shell of any name", () =>
    Effect.gen(function* () {
      const rules = "policy: { files: { rules: [{ operations: [read], paths: [/secrets/**], ruling: refuse }] } }"
      assert.match(yield* problemOf(compile(rules)), shell)
      assert.match(yield* problemOf(compile(`${rules}\ntools: [ls, Execute]`)), shell)
      assert.match(yield* problemOf(compile(`${rules}\ntools: Read, Bash`, true)), shell)
      yield* compile(`${rules}\ntools: [ls]`)
      yield* compile(`${rules}\ndisallowedTools: [execute]`)
      yield* compile(`${rules}\nreadOnly: true`)
    })
  )

  it.effect("says which field is wrong, and which name is near", () =>
    Effect.gen(function* () {
      assert.include(yield* problemOf(parse("toools: []")), '"tools"')
      assert.include(yield* problemOf(parse("maxTurns: 0")), "maxTurns is 0")
      assert.include(yield* problemOf(parse("tools: [")), "not valid YAML")
      assert.include(yield* problemOf(AgentFile.parse("You work.", { path: "a.md" })), "should begin with")
      assert.include(yield* problemOf(AgentFile.parse("---\nname: a\n---\nx", { path: "a.md" })), "description")
      assert.include(yield* problemOf(compile("tools: [lookupp]")), "lookup")
      assert.include(yield* problemOf(compile("mcp: [mail]")), "there is no server")
      assert.include(yield* problemOf(compile("subagents: [c]")), "there is no agent")
      const a = yield* parse("subagents: [a]")
      assert.strictEqual(yield* problemOf(compile("subagents: [a]", false, [a])), "subagents go in a circle: a > a")
    })
  )
})
