import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Logger, Result, Schema } from "effect"
import {
  Agent,
  type AgentResult,
  Approval,
  type ChatModel,
  Checkpoint,
  Message,
  Middleware,
  Ruling,
  Tool,
  ToolContext,
  ToolOutput
} from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { DeepAgent } from "effect-deepagents/deep"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { scaled } from "../../scale.ts"
import * as TestJournal from "../journal.ts"

/** A tool that asks, and its effects. */
const pay = (needsApproval: Tool.NeedsApproval<{ readonly n: number }> = true) => {
  const ran: Array<number> = []
  const tool = Tool.make("pay", {
    description: "Pays",
    parameters: { n: Schema.Int },
    execute: ({ n }) => Effect.sync(() => (ran.push(n), `paid ${n}`)),
    needsApproval
  }) as Tool.NeedingApproval
  return { tool, ran }
}

const callsOf = (...numbers: ReadonlyArray<number>) =>
  TestChatModel.calls(numbers.map((n) => ({ name: "pay", arguments: { n } })))

/** Decides, and counts its requests. */
const person = (decide: (request: Approval.Request) => Approval.Decision = (request) => Approval.approve(request)) => {
  const asked: Array<Approval.Request> = []
  const layer = Layer.succeed(Approval.Approvals, {
    decide: (request) => Effect.sync(() => (asked.push(request), decide(request)))
  })
  return { asked, layer }
}

const answers = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))

const restart = (result: Checkpoint.Checkpoint) =>
  Checkpoint.decode(JSON.parse(JSON.stringify(Checkpoint.encode(result))))

/** Runs an agent without its services, like a program without types. */
const withoutServices = <O, E, R>(agent: Agent.Agent<O, E, R>) => agent as Agent.Agent<O, E, ChatModel.ChatModel>

describe("a tool that needs approval (invariant 14)", () => {
  it.effect("is asked about while the run waits, and runs the approved call", () =>
    Effect.gen(function* () {
      const { ran, tool } = pay()
      const agent = Agent.make({ name: "a", prompt: "", tools: [tool] })
      const { asked, layer } = person((request) =>
        request.arguments["n"] === 2 ? Approval.reject(request, "too much") : Approval.approve(request)
      )
      const result = yield* Effect.provide(Agent.run(agent, "go"), layer)
      assert.deepStrictEqual(ran, [1])
      assert.deepStrictEqual(
        asked.map((one) => [one.toolName, one.description, one.allow.length]),
        [
          ["pay", "pay n: 1", 4],
          ["pay", "pay n: 2", 4]
        ]
      )
      assert.deepStrictEqual(answers(result.messages), ["paid 1", "This call was refused and not executed: too much"])
    }).pipe(Effect.provide(TestChatModel.script([callsOf(1, 2), "done"])))
  )

  it.effect("is refused if there is nobody to ask", () =>
    Effect.gen(function* () {
      const { ran, tool } = pay()
      const result = yield* Agent.run(withoutServices(Agent.make({ name: "a", prompt: "", tools: [tool] })), "go")
      assert.deepStrictEqual(ran, [])
      assert.deepStrictEqual(answers(result.messages), [
        "This call needs a decision that nobody here can give, so it was not executed."
      ])
      assert.strictEqual(result.text, "done")
    }).pipe(Effect.provide(TestChatModel.script([callsOf(1), "done"])))
  )

  it.effect("is refused if there is nobody to ask, as a tool of a middleware, and of a JSON Schema", () =>
    Effect.gen(function* () {
      const ran: Array<unknown> = []
      const tool = Tool.dynamic("pay", {
        description: "Pays",
        parameters: { type: "object" },
        execute: (args) => Effect.sync(() => (ran.push(args), "paid")),
        needsApproval: (args) => args["n"] !== 1
      })
      const agent = Agent.make({
        name: "a",
        prompt: "",
        middleware: [Middleware.make({ name: "payments", tools: [tool] })]
      })
      yield* Agent.run(withoutServices(agent), "go")
      assert.deepStrictEqual(ran, [{ n: 1 }])
    }).pipe(Effect.provide(TestChatModel.script([callsOf(1, 2), "done"])))
  )

  it.effect("says of which arguments, with services and the context of the call", () =>
    Effect.gen(function* () {
      class Limit extends Context.Service<Limit, number>()("test/Limit") {}
      const seen: Array<string> = []
      const { ran, tool } = pay(({ n }) =>
        Effect.gen(function* () {
          const { callId } = yield* ToolContext.ToolContext
          seen.push(callId)
          return n > (yield* Limit)
        })
      )
      const { asked, layer } = person()
      yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [tool] }), "go").pipe(
        Effect.provide([layer, Layer.succeed(Limit, 1)])
      )
      assert.deepStrictEqual(ran, [1, 2])
      assert.deepStrictEqual(seen, ["call-1", "call-2"])
      assert.deepStrictEqual(
        asked.map((one) => one.arguments),
        [{ n: 2 }]
      )
    }).pipe(Effect.provide(TestChatModel.script([callsOf(1, 2), "done"])))
  )

  const unclear: ReadonlyArray<readonly [string, unknown]> = [
    ["throws", () => Result.getOrThrow(Result.fail("boom"))],
    ["dies", () => Effect.die("boom")],
    ["fails", () => Effect.fail("boom")],
    ["gives nothing", () => undefined],
    ["gives no boolean", () => Effect.succeed(0)],
    ["gives a promise", () => Promise.resolve(false)],
    ["gives a promise that fails", () => Promise.reject(new Error("boom"))]
  ]
  for (const [name, need] of unclear) {
    it.effect(`asks where its question ${name}`, () =>
      Effect.gen(function* () {
        const { ran, tool } = pay(need as true)
        const agent = Agent.make({ name: "a", prompt: "", tools: [tool] })
        const { asked, layer } = person((request) => Approval.reject(request))
        yield* Effect.provide(Agent.run(agent, "go"), layer)
        assert.deepStrictEqual(ran, [])
        assert.strictEqual(asked.length, 1)
      }).pipe(Effect.provide([TestChatModel.script([callsOf(1), "done"]), Logger.layer([])]))
    )
  }

  it.effect("suspends a run that can be suspended, and goes on with the decision in another process", () =>
    Effect.gen(function* () {
      const { ran, tool } = pay()
      const agent = Agent.make({ name: "a", prompt: "", tools: [tool], middleware: [HumanInTheLoop.make({})] })
      const first = yield* Agent.run(agent, "go")
      assert.strictEqual(first.stopReason, "suspended")
      assert.deepStrictEqual(ran, [])
      const [one, two] = first.pending
      assert(one !== undefined && two !== undefined)
      const checkpoint = yield* restart(first)
      const last = yield* Agent.resume(agent, {
        checkpoint,
        decisions: [Approval.approve(one), Approval.edit(two, { n: 3 })]
      })
      assert.deepStrictEqual(ran, [1, 3])
      assert.strictEqual(last.text, "done")
    }).pipe(Effect.provide(TestChatModel.script([callsOf(1, 2), "done"])))
  )

  const rules: ReadonlyArray<readonly [string, HumanInTheLoop.Options, number]> = [
    ["a rule", { tools: { Pay: true } }, 1],
    ["a rule that does not hold for the call", { tools: { pay: ({ n }) => n !== 1 } }, 0],
    ["a rule that says never", { tools: { pay: false } }, 0],
    ["rules for others", { tools: { other: true } }, 1],
    ["no rule", {}, 1]
  ]
  const other = Tool.make("other", { description: "", parameters: {}, execute: () => Effect.succeed("x") })
  for (const [name, options, times] of rules) {
    it.effect(`is asked about ${times === 0 ? "not at all" : "once"} under approvals with ${name}`, () =>
      Effect.gen(function* () {
        const { ran, tool } = pay()
        const { asked, layer } = person()
        const waiting = Agent.make({
          name: "a",
          prompt: "",
          tools: [tool, other],
          middleware: [HumanInTheLoop.make(options)]
        })
        yield* Effect.provide(Agent.run(waiting, "go"), layer)
        assert.strictEqual(asked.length, times)
        assert.deepStrictEqual(ran, [1])
        const suspending = Agent.make({
          name: "a",
          prompt: "",
          tools: [tool, other],
          middleware: [HumanInTheLoop.make(options)]
        })
        const first = yield* Agent.run(suspending, "go")
        assert.strictEqual(first.pending.length, times)
        if (times === 0) return
        const decisions = first.pending.map((request) => Approval.approve(request))
        const last = yield* Agent.resume(suspending, { checkpoint: yield* restart(first), decisions })
        assert.strictEqual(last.text, "done")
        assert.deepStrictEqual(ran, [1, 1])
      }).pipe(
        Effect.provide(
          TestChatModel.reactive(({ messages }) => (messages.at(-1)?.role === "tool" ? "done" : callsOf(1)))
        )
      )
    )
  }

  it.effect("is not asked about again after an approval for good", () =>
    Effect.gen(function* () {
      const { ran, tool } = pay()
      const { asked, layer } = person((request) => Approval.approve(request, { always: true }))
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [tool],
        middleware: [HumanInTheLoop.make({ tools: { pay: { likeness: () => "any" } } })]
      })
      yield* Effect.provide(Agent.run(agent, "go"), layer)
      assert.deepStrictEqual([ran, asked.length], [[1, 2], 1])
    }).pipe(Effect.provide(TestChatModel.script([callsOf(1), callsOf(2), "done"])))
  )

  it.effect("is asked about a call that another source approved for good, unless that source takes its place", () =>
    Effect.gen(function* () {
      for (const [settles, times] of [
        [undefined, 2],
        [true, 1]
      ] as const) {
        const { ran, tool } = pay(({ n }) => n > 1)
        const { asked, layer } = person((request) => Approval.approve(request, { always: true }))
        const watch = Middleware.make({
          name: "watch",
          asks: true,
          rulings: (_run, calls) => Effect.succeed(calls.map(() => Ruling.ask("watch", { likeness: "any", settles })))
        })
        const agent = Agent.make({ name: "a", prompt: "", tools: [tool], middleware: [watch] })
        yield* Agent.run(agent, "go").pipe(
          Effect.provide(layer),
          Effect.provide(TestChatModel.script([callsOf(1), callsOf(2), "done"]))
        )
        assert.deepStrictEqual([ran, asked.length], [[1, 2], times])
      }
    })
  )

  it.effect("suspends a sub-agent and its parents, and a deep agent's general-purpose agent", () =>
    Effect.gen(function* () {
      const { ran, tool } = pay()
      const agent = DeepAgent.make({ name: "a", prompt: "", tools: [tool], approvals: {} })
      const model = TestChatModel.reactive(({ messages, tools }) => {
        if (messages.at(-1)?.role === "tool") return "done"
        return tools.some((one) => one.name === "task")
          ? TestChatModel.calls([{ name: "task", arguments: { description: "pay", subagent_type: "general-purpose" } }])
          : callsOf(7)
      })
      const program = Effect.gen(function* () {
        const first = yield* Agent.run(agent, "go")
        assert.strictEqual(first.stopReason, "suspended")
        assert.deepStrictEqual(ran, [])
        const [one] = first.pending
        assert.deepStrictEqual(one?.path, ["a", "general-purpose"])
        assert(one !== undefined)
        const decisions = [Approval.approve(one)]
        yield* Agent.resume(agent, { checkpoint: yield* restart(first), decisions })
        assert.deepStrictEqual(ran, [7])
      })
      yield* Effect.provide(program, [model, MemoryBackend.layer()])
    })
  )

  it.effect("does not run with arguments that came after the decision", () =>
    Effect.gen(function* () {
      const { ran, tool } = pay(({ n }) => n > 1)
      const { layer } = person()
      const changing = (n: number) =>
        Middleware.make({ name: "changing", wrapToolCall: (call, next) => next({ ...call, arguments: { n } }) })
      const agentOf = (n: number) => Agent.make({ name: "a", prompt: "", tools: [tool], middleware: [changing(n)] })
      const result = yield* Effect.provide(Agent.run(agentOf(3), "go"), layer)
      assert.deepStrictEqual(ran, [])
      assert.include(answers(result.messages)[0], "changed after it was decided on")
      yield* Effect.provide(Agent.run(agentOf(0), "go"), layer)
      assert.deepStrictEqual(ran, [0, 0])
    }).pipe(
      Effect.provide(
        TestChatModel.reactive(({ messages }) => (messages.at(-1)?.role === "tool" ? "done" : callsOf(1, 2)))
      )
    )
  )
})

describe("parameters of a tool", () => {
  class Place extends Schema.Class<Place>("Place")({ city: Schema.String }) {}
  const made = {
    fields: Tool.make("where", {
      description: "",
      parameters: { city: Schema.String },
      execute: ({ city }) => Effect.succeed(city)
    }),
    struct: Tool.make("where", {
      description: "",
      parameters: Schema.Struct({ city: Schema.String }),
      execute: ({ city }) => Effect.succeed(city)
    }),
    class: Tool.make("where", {
      description: "",
      parameters: Place,
      execute: (place) => Effect.succeed(place instanceof Place ? place.city : "none")
    })
  }
  for (const [name, tool] of Object.entries(made)) {
    it.effect(`are ${name}`, () =>
      Effect.gen(function* () {
        assert.strictEqual(tool.parameters["type"], "object")
        assert.deepStrictEqual(tool.parameters["properties"], { city: { type: "string" } })
        assert.deepStrictEqual(tool.parameters["required"], ["city"])
        assert.strictEqual(ToolOutput.text(yield* Tool.run(tool, { city: "Oslo" })), "Oslo")
        assert.strictEqual((yield* Effect.flip(Tool.run(tool, {}))).reason, "InvalidArguments")
      })
    )
  }
})

/** The middleware around the tool. */
const layersOf = {
  allow: Middleware.make({
    name: "allow",
    rulings: (_run, calls) => Effect.succeed(calls.map(() => undefined))
  }),
  raise: Middleware.make({
    name: "raise",
    rewriteArguments: (_run, calls) =>
      Effect.succeed(
        calls.map((call) => {
          const n = Number(call.arguments["n"])
          return n < 10 ? { n: n + 10 } : undefined
        })
      )
  }),
  late: Middleware.make({
    name: "late",
    wrapToolCall: (call, next) => next({ ...call, arguments: { n: Number(call.arguments["n"]) + 100 } })
  }),
  twice: Middleware.make({ name: "twice", wrapToolCall: (call, next) => Effect.andThen(next(call), next(call)) }),
  ask: HumanInTheLoop.make({ tools: { pay: true } }),
  askOdd: HumanInTheLoop.make({ destructive: true }),
  suspend: HumanInTheLoop.make({}),
  suspendRule: HumanInTheLoop.make({ tools: { pay: true } })
}

const script = fc.record({
  stack: fc.uniqueArray(fc.constantFrom(...(Object.keys(layersOf) as Array<keyof typeof layersOf>))),
  inside: fc.boolean(),
  annotations: fc.record({ readOnly: fc.boolean(), destructive: fc.boolean() }),
  calls: fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 1, maxLength: 3 }),
  /** The decisions, one after the other. */
  decisions: fc.infiniteStream(fc.oneof(fc.constantFrom("approve" as const, "reject" as const), fc.nat(30))),
  /** The places where the thread of each try is cut off. */
  cuts: fc.array(fc.nat(30), { maxLength: 3 }),
  outcome: fc.constantFrom("tell" as const, "ask" as const)
})

describe("no call of a tool that needs approval runs without a decision on its arguments (invariant 14)", () => {
  it.effect("in any order of middleware, with edits, suspensions and crashes", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(script, ({ annotations, calls, cuts, decisions, inside, outcome, stack }) => {
          const ran: Array<number> = []
          const approved: Array<number> = []
          const decide = (request: Approval.Request): Approval.Decision => {
            const { value } = decisions.next()
            if (value === "reject") return Approval.reject(request)
            const n = value === "approve" || value === undefined ? Number(request.arguments["n"]) : value
            approved.push(n)
            return value === "approve" ? Approval.approve(request) : Approval.edit(request, { n })
          }
          const tool = Tool.make("pay", {
            description: "Pays",
            parameters: { n: Schema.Int },
            annotations,
            execute: ({ n }) => Effect.sync(() => (ran.push(n), `paid ${n}`)),
            needsApproval: true
          })
          const payer = Agent.make({
            name: "payer",
            prompt: "",
            tools: [tool],
            middleware: stack.map((one) => layersOf[one])
          })
          const agent = inside
            ? Agent.make({
                name: "parent",
                prompt: "",
                tools: [Agent.asTool(payer)],
                middleware: [HumanInTheLoop.make({ tools: {} })]
              })
            : payer
          const model = TestChatModel.reactive(({ messages, tools }) => {
            if (messages.at(-1)?.role === "tool") return "done"
            return tools.some((one) => one.name === "payer")
              ? TestChatModel.calls([{ name: "payer", arguments: { task: "pay" } }])
              : callsOf(...calls)
          })
          const threads: Record<string, TestJournal.Stored> = {}
          const program = Effect.gen(function* () {
            let input: Agent.Input = "go"
            for (let round = 0; round < 8; round++) {
              const result: AgentResult.AgentResult<unknown> = yield* Agent.run(agent, input, { threadId: "t" })
              const entries = threads["t"]?.entries ?? []
              const cut = cuts[round]
              if (cut !== undefined && cut < entries.length && cut > 1) {
                // As if the process had ended there.
                threads["t"] = TestJournal.stored(entries.slice(0, cut))
                input = Checkpoint.resume(undefined, { unknownOutcome: outcome })
              } else if (result.stopReason === "suspended") {
                input = Checkpoint.resume(undefined, { decisions: result.pending.map(decide), unknownOutcome: outcome })
              } else return
            }
          }).pipe(
            Effect.exit,
            Effect.provide([
              model,
              TestJournal.layer(threads),
              Layer.succeed(Approval.Approvals, { decide: (one) => Effect.sync(() => decide(one)) })
            ])
          )
          return Effect.runPromise(
            Effect.map(program, () => {
              for (const n of ran) assert.include(approved, n)
            })
          )
        }),
        { numRuns: scaled(2_000) }
      )
    )
  )
})
