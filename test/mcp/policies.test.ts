import { assert, it } from "@effect/vitest"
import { Effect, Result, Stream } from "effect"
import { Agent, Message } from "effect-deepagents"
import { Mcp, McpServers } from "effect-deepagents/mcp"
import { Policy } from "effect-deepagents/rules"
import { TestChatModel } from "effect-deepagents/testing"
import { type Behaviour, plain, scripted } from "./scripted.ts"

const long = `delete_all_the_${"very_".repeat(12)}important_files`

it.live(
  "rules for a server's tools match the server's own names, whatever names models see",
  () =>
    Effect.gen(function* () {
      const called: Array<unknown> = []
      const behaviour: Behaviour = (message, side) => {
        if (message.method !== "tools/call") return
        called.push(message.params?.["name"])
        side.reply({ content: [{ type: "text", text: "done" }] })
      }
      const names = ["delete.all", "Delete__all", long, "look"]
      const { layer } = scripted(
        plain(false, () => names, behaviour),
        { approval: "never" }
      )
      const policy = Result.getOrThrow(
        Policy.compile([
          { name: "p", servers: { s: { tools: { "delete.all": "refuse", Delete__all: "refuse", [long]: "refuse" } } } }
        ])
      )
      const agent = Agent.make({
        name: "clerk",
        prompt: "You work.",
        middleware: [Mcp.make(), ...policy.middleware]
      })
      yield* Effect.gen(function* () {
        const tools = yield* McpServers.McpServers.use((servers) => servers.tools)
        const calls = tools.map(({ name }) => ({ name, arguments: {} }))
        const model = TestChatModel.script([TestChatModel.calls(calls), "It is done."])
        const { messages } = yield* Effect.provide(Agent.run(agent, "Delete all"), model)
        const results = messages.filter(({ role }) => role === "tool").map(Message.text)
        assert.lengthOf(
          results.filter((text) => text.includes("a policy does not allow it")),
          3,
          results.join("\n")
        )
      }).pipe(Effect.provide(layer))
      assert.deepStrictEqual(called, ["look"])
    }),
  60_000
)

it.live("warns of a misspelt server or tool with a suggestion", () =>
  Effect.gen(function* () {
    const { layer } = scripted(
      plain(
        false,
        () => ["delete_all"],
        (message, side) => (message.method === "tools/call" ? side.reply({ content: [] }) : undefined)
      ),
      { approval: "never" }
    )
    const servers = {
      S: { default: "refuse" },
      s: { tools: { delet_all: "refuse" } },
      elsewhere: { default: "refuse" }
    } as const
    const policy = Result.getOrThrow(Policy.compile([{ name: "p", servers }]))
    const agent = Agent.make({
      name: "clerk",
      prompt: "You work.",
      middleware: [Mcp.make(), ...policy.middleware]
    })
    const model = TestChatModel.script([
      TestChatModel.calls([{ name: "s__delete_all", arguments: {} }]),
      TestChatModel.calls([{ name: "s__delete_all", arguments: {} }]),
      "It is done."
    ])
    const events = yield* Stream.runCollect(Agent.stream(agent, "Delete all")).pipe(Effect.provide([layer, model]))
    const warnings = events.flatMap((event) =>
      event._tag === "Warning" && event.code === "policy" ? [event.message] : []
    )
    assert.deepStrictEqual(warnings, [
      'p: servers.S is written otherwise than "s", so its rules restrict that, and allow nothing.',
      'p: servers.s.tools.delet_all is for nothing that is here, so its rules hold for no call. Did you mean "delete_all"?'
    ])
  })
)
