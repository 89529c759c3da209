import { assert, describe, it } from "@effect/vitest"
import { Effect, Ref, Schema } from "effect"
import { Agent, Approval, Checkpoint, Message, Middleware, Ruling, Tool } from "effect-deepagents"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { scaled } from "../../scale.ts"

type AnyTool = Tool.Tool

const tool = (name: string, description = name, annotations: Tool.Annotations = {}): AnyTool =>
  Tool.make(name, {
    description,
    parameters: {},
    annotations,
    execute: () => Effect.succeed(`${name}: ${description}`)
  })

/** A server of tools: what it has is in a Ref, as an MCP client keeps it. */
const server = (tools: Ref.Ref<ReadonlyArray<AnyTool>>) =>
  Middleware.make({ name: "server", tools: () => Ref.get(tools) })

const call = (name: string) => TestChatModel.calls([{ name }])

const answers = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))

const restart = (result: Checkpoint.Checkpoint) =>
  Checkpoint.decode(JSON.parse(JSON.stringify(Checkpoint.encode(result))))

describe("tools that come and go", () => {
  it.effect("are requested before each round; a call is resolved against the tools of its own request", () =>
    Effect.gen(function* () {
      const tools = yield* Ref.make<ReadonlyArray<AnyTool>>([tool("a")])
      const swap = Tool.make("swap", {
        description: "Takes a away and brings b",
        parameters: {},
        execute: () => Effect.as(Ref.set(tools, [tool("b")]), "swapped")
      })
      const agent = Agent.make({
        name: "x",
        prompt: "",
        tools: [swap],
        middleware: [server(tools)],
        toolConcurrency: 1
      })
      const result = yield* Agent.run(agent, "go").pipe(
        Effect.tap(() =>
          Effect.map(TestChatModel.requests, (requests) =>
            assert.deepStrictEqual(
              requests.map((request) => request.tools.map(({ name }) => name)),
              [
                ["swap", "a"],
                ["swap", "b"],
                ["swap", "b"]
              ]
            )
          )
        ),
        Effect.provide(
          TestChatModel.script([
            TestChatModel.calls([{ name: "swap" }, { name: "a" }]),
            TestChatModel.calls([{ name: "a" }, { name: "B" }]),
            "done"
          ])
        )
      )
      assert.deepStrictEqual(answers(result.messages), [
        "swapped",
        "a: a",
        'There is no tool "a" now. There are: swap, b.',
        "b: b"
      ])
    })
  )

  it.effect(
    "through all changes, each request offers the agent's tools, then the dynamic ones in order of arrival, without clashes",
    () => {
      const named = fc.constantFrom("own", "O_W_N", "a", "b", "c", "final_answer", "not a name", "", "x".repeat(65))
      const sets = fc.array(fc.array(fc.tuple(named, fc.nat(1)), { maxLength: 6 }), { minLength: 1, maxLength: 6 })
      return Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(sets, (rounds) =>
            Effect.runPromise(
              Effect.gen(function* () {
                let round = 0
                const dynamic = Middleware.make({
                  name: "dynamic",
                  tools: () =>
                    Effect.sync(() => (rounds[round++] ?? []).map(([name, version]) => tool(name, String(version))))
                })
                const agent = Agent.make({
                  name: "x",
                  prompt: "",
                  tools: [tool("own", "own", { volatile: true })],
                  middleware: [dynamic],
                  output: Schema.Struct({ done: Schema.Boolean })
                })
                const { error } = yield* AgentTest.collect(agent, "go").pipe(
                  Effect.tap(() =>
                    Effect.map(TestChatModel.requests, (requests) => {
                      assert.strictEqual(requests.length, rounds.length)
                      let before: ReadonlyArray<string> = []
                      for (const [index, request] of requests.entries()) {
                        const allowedNames = (rounds[index] ?? [])
                          .map(([name]) => name)
                          .filter((name) => /^[abc]$|^O_W_N$/.test(name))
                        before = [
                          ...new Set([...before.filter((name) => allowedNames.includes(name)), ...allowedNames])
                        ]
                        assert.deepStrictEqual(
                          request.tools.map(({ name }) => name),
                          ["own", ...before, "final_answer"]
                        )
                      }
                    })
                  ),
                  Effect.provide(
                    TestChatModel.script(
                      [
                        ...rounds
                          .slice(1)
                          .map((_, index) => TestChatModel.calls([{ name: index % 2 === 0 ? "Own" : "own" }])),
                        TestChatModel.calls([{ name: "final_answer", arguments: { done: true } }])
                      ],
                      { structuredOutput: "tool" }
                    )
                  )
                )
                assert.isUndefined(error)
              })
            )
          ),
          { numRuns: scaled(100) }
        )
      )
    }
  )

  it.effect("a name that is taken or that models do not take is left out, and told of once a change", () =>
    Effect.gen(function* () {
      const many = Array.from({ length: 5_000 }, () => tool("own", "mine now"))
      const agent = Agent.make({
        name: "x",
        prompt: "",
        tools: [tool("own", "own", { volatile: true })],
        middleware: [Middleware.make({ name: "hostile", tools: () => Effect.succeed(many) })]
      })
      const { events } = yield* AgentTest.collect(agent, "go").pipe(
        Effect.provide(TestChatModel.script([call("own"), call("own"), "done"]))
      )
      const warnings = events.filter((event) => event._tag === "Warning")
      // A new array each time would be a change; this one is the same.
      assert.deepStrictEqual(
        warnings.map(({ code }) => code),
        ["tool-left-out"]
      )
      assert.isBelow(warnings[0]!.message.length, 1_000)
      const completed = events.filter((event) => event._tag === "ToolCompleted")
      assert.deepStrictEqual(
        completed.map(({ text }) => text),
        ["own: own", "own: own"]
      )
    })
  )

  it.effect("tells of a changed tool, in the next run of the conversation too", () =>
    Effect.gen(function* () {
      const tools = yield* Ref.make<ReadonlyArray<AnyTool>>([tool("a", "reads", { readOnly: true })])
      const agent = Agent.make({ name: "x", prompt: "", middleware: [server(tools)] })
      const first = yield* Agent.run(agent, "go").pipe(Effect.provide(TestChatModel.script(["done"])))
      yield* Ref.set(tools, [tool("a", "reads", { readOnly: true })])
      const same = yield* AgentTest.collect(agent, "go", { history: first.messages, state: first.state }).pipe(
        Effect.provide(TestChatModel.script(["done"]))
      )
      assert.notInclude(JSON.stringify(same.events), "tool-changed")
      yield* Ref.set(tools, [tool("a", "reads", { destructive: true })])
      const other = yield* AgentTest.collect(agent, "go", { history: first.messages, state: first.state }).pipe(
        Effect.provide(TestChatModel.script(["done"]))
      )
      assert.include(JSON.stringify(other.events), "tool-changed")
    })
  )

  const asking = Middleware.make({
    asks: true,
    name: "asking",
    rulings: (_run, calls) =>
      Effect.succeed(
        calls.map(({ annotations }) =>
          annotations.readOnly === true ? undefined : Ruling.ask("test", { description: "may I?" })
        )
      )
  })

  const changes: ReadonlyArray<readonly [string, AnyTool | undefined, string]> = [
    ["nothing", tool("a", "acts"), "a: acts"],
    ["its description", tool("a", "acts on everything"), "This tool changed while the call waited"],
    ["its annotations", tool("a", "acts", { idempotent: true }), "This tool changed while the call waited"],
    [
      "its parameters",
      Tool.make("a", {
        description: "acts",
        parameters: { all: Schema.optional(Schema.Boolean) },
        execute: () => Effect.succeed("x")
      }),
      "This tool changed while the call waited"
    ],
    ["all of it: it is gone", undefined, 'There is no tool "a"']
  ]
  for (const isStatic of [false, true]) {
    for (const [what, later, says] of changes) {
      it.effect(
        `an approved call of a ${isStatic ? "deployed" : "served"} tool, of which changed meanwhile: ${what}`,
        () =>
          Effect.gen(function* () {
            const tools = yield* Ref.make<ReadonlyArray<AnyTool>>([tool("a", "acts")])
            const agentOf = (own: ReadonlyArray<AnyTool>) =>
              Agent.make({
                name: "x",
                prompt: "",
                tools: own,
                middleware: isStatic ? [asking] : [server(tools), asking]
              })
            const first = yield* Agent.run(agentOf(isStatic ? [tool("a", "acts")] : []), "go").pipe(
              Effect.provide(TestChatModel.script([call("a")]))
            )
            assert.strictEqual(first.stopReason, "suspended")
            yield* Ref.set(tools, later === undefined ? [] : [later])
            const decisions = first.pending.map((request) => Approval.approve(request))
            const again = yield* Agent.resume(agentOf(isStatic && later !== undefined ? [later] : []), {
              checkpoint: yield* restart(first),
              decisions
            }).pipe(Effect.provide(TestChatModel.script(["done"])))
            assert.include(answers(again.messages)[0], says)
          })
      )
    }
  }

  it.effect("a tool with needsApproval asks, though it was not there when the agent was made", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const pay = Tool.make("pay", {
        description: "Pays",
        parameters: {},
        needsApproval: true,
        execute: () => Effect.sync(() => (ran.push("pay"), "paid"))
      })
      const agent = Agent.make({
        name: "x",
        prompt: "",
        middleware: [Middleware.make({ name: "server", tools: () => Effect.succeed([pay]) })]
      })
      const result = yield* Agent.run(agent, "go").pipe(
        Effect.provideService(Approval.Approvals, {
          decide: (request) => Effect.succeed(Approval.reject(request, "no"))
        }),
        Effect.provide(TestChatModel.script([call("pay"), "done"]))
      )
      assert.deepStrictEqual(ran, [])
      assert.include(answers(result.messages)[0], "refused")
    })
  )

  it.effect("a middleware that can't list its tools ends the run with its own failure", () =>
    Effect.gen(function* () {
      const agent = Agent.make({
        name: "x",
        prompt: "",
        middleware: [Middleware.make({ name: "lost", tools: () => Effect.fail("connection lost" as const) })]
      })
      const error = yield* Effect.flip(Agent.run(agent, "go")).pipe(
        Effect.provide(TestChatModel.script(["never"], { exhaustive: false }))
      )
      assert.strictEqual(error, "connection lost")
    })
  )
})
