/** Later code resumes a suspended run: through any changes of tools, gates and names, a person's decisions hold, and the model reads the truth. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, SchemaTransformation } from "effect"
import { Agent, AgentState, Approval, Checkpoint, Message, Middleware, Tool, ToolContext } from "effect-deepagents"
import { HumanInTheLoop, Subagents } from "effect-deepagents/middleware"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"

const ran: Array<unknown> = []

const act = (change: { readonly description?: string; readonly annotations?: Tool.Annotations } = {}) =>
  Tool.make("act", {
    description: change.description ?? "Acts",
    parameters: { on: Schema.String },
    annotations: change.annotations,
    execute: (args) => Effect.sync(() => (ran.push(args), `acted on ${args.on}`))
  })

const renamed = Tool.make("perform", {
  description: "Acts",
  parameters: { on: Schema.String },
  execute: (args) => Effect.sync(() => (ran.push(args), "performed"))
})

const other = Tool.make("act", {
  description: "Acts",
  parameters: { target: Schema.Finite },
  execute: (args) => Effect.sync(() => (ran.push(args), "acted"))
})

const asks = HumanInTheLoop.make({ tools: { act: true } })
const mayAsk = HumanInTheLoop.make({ destructive: true })
const never = HumanInTheLoop.make({ tools: { act: false } })
const opens = Middleware.make({
  name: "opens",
  rulings: (_, calls) => Effect.succeed(calls.map(() => undefined))
})

type Code = readonly [
  tools: ReadonlyArray<Tool.Tool>,
  ...middleware: ReadonlyArray<Middleware.Middleware<never, never>>
]

/** Code that may run the call if that was approved, and code that may not. */
const same: { readonly [what: string]: Code } = {
  "the same code": [[act()], asks],
  "a policy that does not ask any more": [[act()], never],
  "a policy without the tool's name": [[act()], mayAsk],
  "other gates": [[act()], opens],
  "no gate at all": [[act()]],
  "more tools": [[renamed, act()], asks]
}
const changed: { readonly [what: string]: Code } = {
  "no tool at all": [[], mayAsk],
  "no tool and no gate": [[]],
  "a tool that was renamed": [[renamed], mayAsk],
  "a tool of another description": [[act({ description: "Deletes" })], asks],
  "a tool with other parameters": [[other], asks],
  "a tool with other parameters and no gate": [[other]],
  "a tool that reads only now, about which nobody is asked": [[act({ annotations: { readOnly: true } })], never],
  "a tool that destroys now": [[act({ annotations: { destructive: true } })], asks]
}

const agentOf = ([tools, ...middleware]: Code, name = "old") => Agent.make({ name, prompt: "p", tools, middleware })

const call = TestChatModel.calls([{ name: "act", arguments: { on: "a" } }])

/** A run that waits, as another process finds it. */
const waiting = Effect.gen(function* () {
  ran.length = 0
  const first = yield* Agent.run(agentOf([[act()], asks]), "go").pipe(Effect.provide(TestChatModel.script([call])))
  assert.strictEqual(first.stopReason, "suspended")
  const json = JSON.stringify(Checkpoint.encode(first))
  const checkpoint = yield* Checkpoint.decode(JSON.parse(json))
  const [request] = yield* Checkpoint.pending(checkpoint)
  return { checkpoint, request: request ?? assert.fail("nothing waits") }
})

/** The results of a later version: the answer for the model, and the reports about requests. */
const later = Effect.fnUntraced(function* (
  code: Code,
  decide: (request: Approval.Request) => ReadonlyArray<Approval.Decision>,
  name?: string
) {
  const { checkpoint, request } = yield* waiting
  const input = Checkpoint.resume(checkpoint, { decisions: decide(request) })
  const { events } = yield* AgentTest.collect(agentOf(code, name), input).pipe(
    Effect.provide(TestChatModel.script(["done"], { exhaustive: false }))
  )
  const messages = events.flatMap((event) => (event._tag === "MessageAppended" ? [event.message] : []))
  const tools = messages.filter((message) => message.role === "tool")
  return {
    ran: ran.slice(),
    answers: tools.map(Message.text),
    failed: tools.some(({ isError }) => isError),
    resolved: events.flatMap((event) => (event._tag === "ApprovalResolved" ? [event.decision] : [])),
    pending: events.flatMap((event) => (event._tag === "RunCompleted" ? [event.stopReason] : [])).includes("suspended")
  }
})

describe("a call that waits for a decision, and later code", () => {
  for (const [what, code] of Object.entries(same)) {
    it.effect(`approved, with ${what}: it runs, once`, () =>
      Effect.gen(function* () {
        const outcome = yield* later(code, (request) => [Approval.approve(request)])
        assert.deepStrictEqual(outcome.ran, [{ on: "a" }])
        assert.deepStrictEqual([outcome.answers, outcome.resolved], [["acted on a"], ["approve"]])
      })
    )

    it.effect(`not decided on, with ${what}: it waits if it is still asked about, else it runs`, () =>
      Effect.gen(function* () {
        const outcome = yield* later(code, () => [])
        const isAsked = code.includes(asks)
        assert.strictEqual(outcome.pending, isAsked)
        assert.deepStrictEqual([outcome.ran, outcome.resolved], isAsked ? [[], []] : [[{ on: "a" }], ["void"]])
      })
    )

    it.effect(`edited, with ${what}: it runs with the person's arguments`, () =>
      Effect.gen(function* () {
        const outcome = yield* later(code, (request) => [Approval.edit(request, { on: "b" })])
        assert.deepStrictEqual([outcome.ran, outcome.resolved], [[{ on: "b" }], ["edit"]])
      })
    )
  }

  for (const [what, code] of Object.entries({ ...same, ...changed })) {
    it.effect(`refused, with ${what}: it does not run, and the model reads the reason`, () =>
      Effect.gen(function* () {
        const outcome = yield* later(code, (request) => [Approval.reject(request, "Not on Sundays")])
        assert.deepStrictEqual([outcome.ran, outcome.resolved, outcome.failed], [[], ["reject"], true])
        assert.strictEqual(outcome.answers.length, 1)
        assert.include(outcome.answers[0], "Not on Sundays")
      })
    )

    it.effect(`answered by the person, with ${what}: it does not run, and the model reads the answer`, () =>
      Effect.gen(function* () {
        const outcome = yield* later(code, (request) => [Approval.respond(request, "I did it")])
        assert.deepStrictEqual([outcome.ran, outcome.resolved, outcome.answers], [[], ["respond"], ["I did it"]])
      })
    )
  }

  for (const [what, code] of Object.entries(changed)) {
    for (const [how, decide] of Object.entries({
      approved: (request: Approval.Request) => [Approval.approve(request)],
      edited: (request: Approval.Request) => [Approval.edit(request, { on: "b" })],
      "not decided on": () => []
    })) {
      it.effect(`${how}, with ${what}: it does not run, and the model reads why`, () =>
        Effect.gen(function* () {
          const outcome = yield* later(code, decide)
          assert.deepStrictEqual([outcome.ran, outcome.resolved, outcome.failed], [[], ["void"], true])
          assert.isFalse(outcome.pending)
          assert.strictEqual(outcome.answers.length, 1)
          const isGone = code[0].every(({ name }) => name !== "act")
          assert.match(outcome.answers[0] ?? "", isGone ? /^There is no tool "act"/ : /^This tool changed/)
          assert.match(outcome.answers[0] ?? "", /waited for a decision.* not executed/)
        })
      )
    }
  }

  it.effect("an agent of another name goes on with it", () =>
    Effect.gen(function* () {
      const outcome = yield* later([[act()], asks], (request) => [Approval.approve(request)], "new")
      assert.deepStrictEqual(outcome.answers, ["acted on a"])
    })
  )

  it.effect("a refusal that waits for another decision is not forgotten by code that would allow the call", () =>
    Effect.gen(function* () {
      ran.length = 0
      const both = TestChatModel.calls([
        { name: "act", arguments: { on: "a" } },
        { name: "act", arguments: { on: "b" } }
      ])
      const first = yield* Agent.run(agentOf([[act()], asks]), "go").pipe(Effect.provide(TestChatModel.script([both])))
      const [a, b] = first.pending
      if (a === undefined || b === undefined) return assert.fail("two wait")
      const none = Effect.provide(TestChatModel.script([]))
      const second = yield* Agent.resume(agentOf([[act()], asks]), {
        checkpoint: first,
        decisions: [Approval.reject(a)]
      }).pipe(none)
      const third = yield* Agent.resume(
        agentOf([[act()], HumanInTheLoop.make({ tools: { act: ({ on }) => on === "b" } })]),
        {
          checkpoint: second
        }
      ).pipe(none)
      assert.deepStrictEqual(
        third.pending.map(({ id }) => id),
        [b.id]
      )
      const last = yield* Agent.resume(agentOf([[act()]]), {
        checkpoint: third,
        decisions: [Approval.approve(b)]
      }).pipe(Effect.provide(TestChatModel.script(["done"])))
      assert.deepStrictEqual(ran, [{ on: "b" }])
      assert.deepStrictEqual(AgentTest.pairingProblems(last.messages), [])
    })
  )
})

describe("a call that a crash cut off, and later code", () => {
  const cut: Checkpoint.Checkpoint = {
    messages: [Message.human("go"), Message.ai("", { toolCalls: [{ id: "1", name: "act", arguments: { on: "a" } }] })],
    state: {},
    usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
    rounds: 1
  }
  for (const [what, code] of Object.entries({ ...changed, ...same })) {
    it.effect(`with ${what}: it may have taken effect, and nobody says otherwise`, () =>
      Effect.gen(function* () {
        ran.length = 0
        const result = yield* Agent.resume(agentOf(code), { checkpoint: cut }).pipe(
          Effect.provide(TestChatModel.script(["done"]))
        )
        const answer = result.messages.find((message) => message.role === "tool") ?? assert.fail("no answer")
        const isRepeated = ran.length === 1
        assert.strictEqual(
          isRepeated,
          code[0].some(({ annotations, name }) => name === "act" && annotations.readOnly === true)
        )
        if (!isRepeated) assert.match(Message.text(answer), /^This call was begun, or about to be.*not known/)
        assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
      })
    )
  }
})

describe("a sub-agent that waits, and was renamed", () => {
  const worker = (name: string) =>
    Agent.make({ name, description: "Works", prompt: "p", tools: [act()], middleware: [asks] })
  const task = (name: string) =>
    TestChatModel.calls([{ name: "task", arguments: { subagent_type: name, description: "Act" } }])
  const ofTask = (name: string) =>
    Agent.make({ name: "lead", prompt: "p", middleware: [Subagents.make({ agents: [worker(name)] }), never] })
  const ofTool = (name: string) =>
    Agent.make({
      name: "lead",
      prompt: "p",
      tools: [Agent.asTool(worker(name), { name: "work" })],
      middleware: [never]
    })
  const ways = {
    "by the tool task": [ofTask, task("old")],
    "by a tool of its own": [ofTool, TestChatModel.calls([{ name: "work", arguments: { task: "Act" } }])]
  } as const
  for (const [what, [leadOf, asked]] of Object.entries(ways)) {
    const suspended = Effect.gen(function* () {
      ran.length = 0
      const first = yield* Agent.run(leadOf("old"), "go").pipe(Effect.provide(TestChatModel.script([asked, call])))
      const checkpoint = yield* Checkpoint.decode(JSON.parse(JSON.stringify(Checkpoint.encode(first))))
      return { checkpoint, decisions: first.pending.map((request) => Approval.approve(request)) }
    })

    it.effect(`${what}: nothing of it is carried out by another, and the model reads that it had begun`, () =>
      Effect.gen(function* () {
        const result = yield* Agent.resume(leadOf("new"), yield* suspended).pipe(
          Effect.provide(TestChatModel.script(["did something else", "done"], { exhaustive: false }))
        )
        const [answer] = result.messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))
        assert.match(answer ?? "", /^An earlier run of this call .*"old" was begun.*not known/s)
        assert.deepStrictEqual(ran, [])
        assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
      })
    )

    it.effect(`${what}, which is gone: the model reads that nobody knows how much was done`, () =>
      Effect.gen(function* () {
        const none = Agent.make({ name: "lead", prompt: "p" })
        const { events } = yield* AgentTest.collect(none, Checkpoint.resume((yield* suspended).checkpoint)).pipe(
          Effect.provide(TestChatModel.script(["done"]))
        )
        const answers = events.flatMap((event) =>
          event._tag === "MessageAppended" && event.message.role === "tool" ? [Message.text(event.message)] : []
        )
        assert.strictEqual(answers.length, 1)
        assert.match(answers[0] ?? "", /not known.*There is no tool/)
        assert.deepStrictEqual(ran, [])
      })
    )

    it.effect(`${what}, of the same name: it goes on without a notice`, () =>
      Effect.gen(function* () {
        const result = yield* Agent.resume(leadOf("old"), yield* suspended).pipe(
          Effect.provide(TestChatModel.script(["worked", "done"]))
        )
        const [answer] = result.messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))
        assert.deepStrictEqual([answer, ran], ["worked", [{ on: "a" }]])
      })
    )
  }
})

describe("a slot whose schema changed", () => {
  const state = { "notes.all": ["a"], "notes/1": ["b"] }
  const asked = TestChatModel.calls([{ name: "note", arguments: {} }])
  const slots = {
    "of a dotted name": AgentState.slot("notes.all", { schema: Schema.Array(Schema.Finite), initial: [] }),
    "of a family": AgentState.family("notes/", { schema: Schema.Array(Schema.Finite), initial: [] })("1"),
    shared: AgentState.slot("notes.all", {
      schema: Schema.Array(Schema.Finite),
      initial: [],
      shared: { merge: (current, incoming) => [...current, ...incoming] }
    })
  }
  for (const [what, slot] of Object.entries(slots)) {
    const note = Tool.make("note", {
      description: "Notes",
      parameters: {},
      execute: Effect.fnUntraced(function* () {
        const { state } = yield* ToolContext.ToolContext
        yield* state.update(slot, (all) => [...all, 1])
        return "noted"
      })
    })
    const declares = Middleware.make({ name: "declares", state: [slot] })
    for (const [how, middleware] of Object.entries({ declared: [declares], "found by a tool": [] })) {
      it.effect(`${what}, ${how}: a typed failure names it and says what to do`, () =>
        Effect.gen(function* () {
          const agent = Agent.make({ name: "a", prompt: "p", tools: [note], middleware })
          const error = yield* Effect.flip(Agent.run(agent, "go", { state })).pipe(
            Effect.provide(TestChatModel.script([asked, "done"], { exhaustive: false }))
          )
          if (error._tag !== "AgentError" || error.reason._tag !== "InvalidState") return assert.fail(error.message)
          assert.strictEqual(error.reason.slot, slot.name)
          assert.include(error.message, `"${slot.name}"`)
          assert.match(error.message, /schema.*earlier.*another name/s)
        })
      )
    }
  }

  it.effect("a slot that also reads its earlier form goes on with it", () =>
    Effect.gen(function* () {
      const Lengths = Schema.Array(Schema.Finite)
      const lengthsOf = SchemaTransformation.transform<ReadonlyArray<number>, ReadonlyArray<string>>({
        decode: (texts) => texts.map((text) => text.length),
        encode: (lengths) => lengths.map((length) => " ".repeat(length))
      })
      const earlier = Schema.Array(Schema.String).pipe(Schema.decodeTo(Lengths, lengthsOf))
      const slot = AgentState.slot("notes.all", { schema: Schema.Union([Lengths, earlier]), initial: [] })
      assert.deepStrictEqual(yield* Effect.fromResult(AgentState.read(state, slot)), [1])
    })
  )
})
