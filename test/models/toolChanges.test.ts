/** Tools that come and go inside of a conversation, in the words of the provider, with messages as the way back. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, Middleware, Tool } from "effect-deepagents"
import { PromptCaching } from "effect-deepagents/middleware"
import { claude } from "./anthropic/asking.ts"
import { responses } from "./openai/asking.ts"
import { functionCall, message, responseEvents } from "./openai/wire.ts"
import * as Claude from "./servers/anthropic.ts"
import * as Server from "./servers/openai.ts"

const dynamic = (name: string) =>
  Tool.make(name, {
    description: `does ${name}`,
    parameters: { n: Schema.Int },
    execute: ({ n }) => Effect.succeed(`${name} ${n}`)
  })

/** In the second round there is a tool `a`, and it goes again. */
const agentOf = () => {
  let round = 0
  return Agent.make({
    name: "worker",
    prompt: "You work.",
    tools: [dynamic("own")],
    middleware: [
      Middleware.make({
        name: "server",
        tools: () => Effect.sync(() => ([[], [dynamic("a")], [], []] as const)[round++] ?? [])
      }),
      PromptCaching.make({ stableTools: true })
    ]
  })
}

const answersOf = ({ messages }: { readonly messages: ReadonlyArray<{ readonly role: string }> }) =>
  messages.flatMap((one) => (one.role === "tool" ? [JSON.stringify(one)] : []))

describe("changes of the tools inside of a conversation", () => {
  const turns = [
    [functionCall("c1", "own", '{"n":1}')],
    [functionCall("c2", "a", '{"n":2}')],
    [functionCall("c3", "a", '{"n":3}')],
    [message("done")]
  ].map((items) => Server.events(responseEvents(items)))

  it.live("go to OpenAI as items, and the model calls the tool itself", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(...turns)
      const result = yield* Agent.run(agentOf(), "Go.").pipe(
        Effect.provide(responses(server, { abilities: ["toolChanges"] }))
      )
      const bodies = server.seen.map(({ body }) => body)
      // The tools in front stay the same bytes.
      assert.strictEqual(new Set(bodies.map(({ tools }) => JSON.stringify(tools))).size, 1)
      const added = bodies[1].input.at(-1)
      assert.deepStrictEqual([added.type, added.role, added.tools[0].name], ["additional_tools", "developer", "a"])
      assert.deepStrictEqual(bodies[2].input.at(-1), {
        role: "system",
        content: "You can't call these tools any more: a."
      })
      // Sent messages stay in front of new ones.
      for (const [at, body] of bodies.slice(1).entries()) {
        assert.deepStrictEqual(body.input.slice(0, bodies[at].input.length), bodies[at].input)
      }
      const answers = answersOf(result)
      assert.include(answers[1], "a 2")
      assert.include(answers[2], "no tool")
    })
  )

  it.live("are told in messages if the server refuses them, and then for good", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const [first, ...others] = turns
      const refusal = Server.plain(400, {
        error: { message: "Invalid value: 'additional_tools'", type: "invalid_request_error" }
      })
      server.reply(first ?? assert.fail("no turn"), refusal, ...others)
      const result = yield* Agent.run(agentOf(), "Go.").pipe(
        Effect.provide(responses(server, { abilities: ["toolChanges"] }))
      )
      assert.strictEqual(result.text, "done")
      const isNative = server.seen.map(({ text }) => text.includes("additional_tools"))
      assert.deepStrictEqual(isNative, [false, true, false, false, false])
      assert.include(server.seen[2]?.text, "You can call these, by call_tool")
    })
  )

  it.live("go to Claude as blocks of a system message", () =>
    Effect.gen(function* () {
      const replies = [
        Claude.answer([{ call: "own", id: "t1", input: { n: 1 } }]),
        Claude.answer([{ call: "a", id: "t2", input: { n: 2 } }]),
        Claude.answer([{ text: "done" }])
      ].map((events) => Claude.stream(events))
      const server = yield* Claude.serveBy(() => [])(...replies)
      const result = yield* Agent.run(agentOf(), "Go.").pipe(
        Effect.provide(claude(server, { abilities: ["toolChanges"] }))
      )
      assert.strictEqual(result.text, "done")
      const [, second, third] = server.requests
      assert.include(second?.headers["anthropic-beta"], "mid-conversation-tool-changes-2026-07-01")
      const change = second?.body.messages.at(-1)
      assert.deepStrictEqual(
        [change.role, change.content[0].type, change.content[0].tool.definition.name],
        ["system", "tool_addition", "a"]
      )
      assert.deepStrictEqual(third?.body.messages.at(-1), {
        role: "system",
        content: [{ type: "tool_removal", tool: { type: "tool_reference", name: "a" } }]
      })
      assert.strictEqual(JSON.stringify(third?.body.tools), JSON.stringify(second?.body.tools))
      // The last message before a change carries the breakpoint.
      assert.include(JSON.stringify(third?.body.messages.at(-2)), "cache_control")
    })
  )
})
