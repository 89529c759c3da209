import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schema, Stream } from "effect"
import { Agent, AgentEvent, Approval, Checkpoint, Message, Middleware, Ruling, Tool } from "effect-deepagents"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"

const ask = (allow?: ReadonlyArray<Approval.Choice>, expiresIn?: number): Ruling.Ask =>
  Ruling.ask("test", { description: "may I?", choices: allow, expiresIn })

/** Wants a decision on every call of `act` with a number below 100. */
const gate = (inherit = false) =>
  Middleware.make({
    asks: true,
    name: "approval",
    inherit,
    rulings: (_run, calls) =>
      Effect.succeed(
        calls.map((call) => (call.name === "act" && Number(call.arguments["n"]) < 100 ? ask() : undefined))
      )
  })

const recorder = (annotations: Tool.Annotations = {}) => {
  const ran: Array<number> = []
  const act = Tool.make("act", {
    description: "Acts",
    parameters: { n: Schema.Int },
    annotations,
    execute: ({ n }) => Effect.sync(() => (ran.push(n), `did ${n}`))
  })
  return { act, ran }
}

const callsOf = (...numbers: ReadonlyArray<number>) =>
  TestChatModel.calls(numbers.map((n) => ({ name: "act", arguments: { n } })))

/** Over the wire and back, as another process would have it. */
const restart = (result: Checkpoint.Checkpoint) =>
  Checkpoint.decode(JSON.parse(JSON.stringify(Checkpoint.encode(result))))

const property = <A, E>(arbitrary: fc.Arbitrary<A>, holds: (value: A) => Effect.Effect<void, E>) =>
  Effect.promise(() =>
    fc.assert(
      fc.asyncProperty(arbitrary, (value) => Effect.runPromise(holds(value))),
      { numRuns: 40 }
    )
  )

const answers = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) => (message.role === "tool" ? [[message.toolCallId, Message.text(message)]] : []))

describe("a suspended run (invariants 1, 5, 14)", () => {
  it.effect("waits if `Approvals` leaves a request to a later decision, and goes on with its decisions", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      const agent = Agent.make({ name: "a", prompt: "", tools: [act], middleware: [gate()] })
      const isEven = (request: Approval.Request) => Number(request.arguments["n"]) % 2 === 0
      const half = Layer.succeed(Approval.Approvals, {
        defers: (request) => Effect.succeed(isEven(request)),
        decide: (request) => Effect.succeed(isEven(request) ? Approval.reject(request) : Approval.approve(request))
      })
      const program = Effect.gen(function* () {
        const first = yield* Agent.run(agent, "go")
        assert.deepStrictEqual(
          first.pending.map((one) => one.arguments),
          [{ n: 2 }]
        )
        assert.deepStrictEqual(ran, [])
        const decisions = first.pending.map((one) => Approval.approve(one))
        yield* Agent.run(agent, Checkpoint.resume(yield* restart(first), { decisions }))
        assert.deepStrictEqual(ran, [1, 2, 3])
      })
      yield* program.pipe(Effect.provide([half, TestChatModel.script([callsOf(1, 2, 3), "done"]).pipe(Layer.fresh)]))
      // Nobody comes later to an attended run: it asks at once.
      const attended = Agent.run(Agent.attended(agent), "go").pipe(
        Effect.provide([half, TestChatModel.script([callsOf(4, 5), "done"]).pipe(Layer.fresh)])
      )
      assert.strictEqual((yield* attended).stopReason, "completed")
      assert.deepStrictEqual(ran, [1, 2, 3, 5])
    })
  )

  it.effect("goes on in another process, and runs approved calls exactly once", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      const agent = Agent.make({ name: "a", prompt: "", tools: [act], middleware: [gate()] })
      const first = yield* Agent.run(agent, "go")
      assert.strictEqual(first.stopReason, "suspended")
      assert.deepStrictEqual(ran, [])
      const checkpoint = yield* restart(first)
      assert.deepStrictEqual(yield* Checkpoint.pending(checkpoint), first.pending)
      const events = yield* AgentTest.events(
        agent,
        Checkpoint.resume(checkpoint, { decisions: first.pending.map((one) => Approval.approve(one)) })
      )
      assert.deepStrictEqual(ran, [1, 2, 100])
      // A crash from here on must not find calls that look as if they had never begun.
      const released = events.findIndex((event) => event._tag === "StateChanged" && event.value === null)
      const begun = events.findIndex((event) => event._tag === "ToolCalled")
      assert.isAtLeast(released, 0)
      assert.isBelow(released, begun)
      const end = events.at(-1)
      assert.strictEqual(end?._tag === "RunCompleted" && end.stopReason, "completed")
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "ApprovalResolved" ? [event.decision] : [])),
        ["approve", "approve"]
      )
    }).pipe(Effect.provide(TestChatModel.script([callsOf(1, 2, 100), "done"]).pipe(Layer.fresh)))
  )

  it.effect("runs nothing until all of a round is decided, and keeps the decisions that came", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      const agent = Agent.make({ name: "a", prompt: "", tools: [act], middleware: [gate()] })
      const first = yield* Agent.run(agent, "go")
      const [one, two] = first.pending
      assert(one !== undefined && two !== undefined)
      const second = yield* Agent.run(
        agent,
        Checkpoint.resume(yield* restart(first), { decisions: [Approval.approve(two)] })
      )
      assert.strictEqual(second.stopReason, "suspended")
      assert.deepStrictEqual(
        second.pending.map((request) => request.id),
        [one.id]
      )
      assert.deepStrictEqual(ran, [])
      const third = yield* Agent.run(
        agent,
        Checkpoint.resume(yield* restart(second), { decisions: [Approval.reject(one, "not that one")] })
      )
      assert.deepStrictEqual(ran, [2])
      assert.strictEqual(third.text, "done")
      assert.deepStrictEqual(answers(third.messages), [
        ["call-1", "This call was refused and not executed: not that one"],
        ["call-2", "did 2"]
      ])
      assert.deepStrictEqual(AgentTest.pairingProblems(third.messages), [])
    }).pipe(Effect.provide(TestChatModel.script([callsOf(1, 2), "done"])))
  )

  it.effect("decodes edited arguments again, and answers in the place of a call", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      const agent = Agent.make({ name: "a", prompt: "", tools: [act], middleware: [gate()] })
      const first = yield* Agent.run(agent, "go")
      const [one, two, three] = first.pending
      assert(one !== undefined && two !== undefined && three !== undefined)
      const decisions = [
        Approval.edit(one, { n: "7" }),
        Approval.edit(two, { n: "seven" }),
        Approval.respond(three, "it is done already")
      ]
      const result = yield* Agent.run(agent, Checkpoint.resume(first, { decisions }))
      assert.deepStrictEqual(ran, [7])
      const told = answers(result.messages)
      assert.deepStrictEqual(told[0], ["call-1", "did 7"])
      assert.include(told[1]?.[1], "n")
      assert.deepStrictEqual(told[2], ["call-3", "it is done already"])
    }).pipe(Effect.provide(TestChatModel.script([callsOf(1, 2, 3), "done"])))
  )

  it.effect("refuses decisions that nobody asked for, and choices that were not offered", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      const only = Middleware.make({
        asks: true,
        name: "only",
        rulings: (_run, calls) => Effect.succeed(calls.map(() => ask(["approve", "reject"])))
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [act], middleware: [only] })
      const first = yield* Agent.run(agent, "go")
      const [one] = first.pending
      assert(one !== undefined)
      const stray = yield* Effect.flip(
        Agent.run(agent, Checkpoint.resume(first, { decisions: [Approval.approve({ id: "nobody" })] }))
      )
      assert.include(stray.message, '"nobody"')
      const edited = yield* Effect.flip(
        Agent.run(agent, Checkpoint.resume(first, { decisions: [Approval.edit(one, { n: 3 })] }))
      )
      assert.include(edited.message, "approve, reject")
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.provide(TestChatModel.script([callsOf(1)])))
  )

  it.effect("asks again about a call whose arguments differ from the decided ones", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      const agent = Agent.make({ name: "a", prompt: "", tools: [act], middleware: [gate()] })
      const first = yield* Agent.run(agent, "go")
      const json = JSON.stringify(Checkpoint.encode(first))
      // Somebody changed the call in the stored history, not the request.
      const changed = yield* Checkpoint.decode(
        JSON.parse(
          json.replace(
            '"toolCalls":[{"id":"call-1","name":"act","arguments":{"n":1}}]',
            '"toolCalls":[{"id":"call-1","name":"act","arguments":{"n":66}}]'
          )
        )
      )
      assert.notStrictEqual(JSON.stringify(changed.messages), JSON.stringify(first.messages))
      const again = yield* Agent.run(
        agent,
        Checkpoint.resume(changed, { decisions: first.pending.map((one) => Approval.approve(one)) })
      )
      assert.strictEqual(again.stopReason, "suspended")
      assert.deepStrictEqual(again.pending[0]?.arguments, { n: 66 })
      assert.notStrictEqual(again.pending[0]?.id, first.pending[0]?.id)
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.provide(TestChatModel.script([callsOf(1)])))
  )

  it.effect("a refusal before the suspension holds after the resume (invariant 14)", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      const hiding = Middleware.make({
        name: "hiding",
        wrapModelCall: (request, next) =>
          next({ ...request, tools: request.tools.filter((tool) => tool.name !== "hidden") })
      })
      const hidden = Tool.make("hidden", {
        description: "",
        parameters: {},
        execute: () => Effect.sync(() => (ran.push(666), "ran"))
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [act, hidden], middleware: [gate(), hiding] })
      const first = yield* Agent.run(agent, "go")
      assert.strictEqual(first.stopReason, "suspended")
      const result = yield* Agent.resume(agent, {
        checkpoint: yield* restart(first),
        decisions: first.pending.map((one) => Approval.approve(one))
      })
      assert.deepStrictEqual(ran, [1])
      assert.include(answers(result.messages)[0]?.[1], 'no tool "hidden"')
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([
            { name: "hidden", arguments: {} },
            { name: "act", arguments: { n: 1 } }
          ]),
          "done"
        ])
      )
    )
  )

  it.effect("takes no decision after the request has expired", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      const soon = Middleware.make({
        asks: true,
        name: "soon",
        rulings: (_run, calls) => Effect.succeed(calls.map(() => ask(undefined, 60_000)))
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [act], middleware: [soon] })
      const first = yield* Agent.run(agent, "go")
      yield* TestClock.adjust("2 minutes")
      const decisions = first.pending.map((one) => Approval.approve(one))
      const again = yield* Agent.run(agent, Checkpoint.resume(first, { decisions }))
      assert.strictEqual(again.stopReason, "suspended")
      assert.notStrictEqual(again.pending[0]?.id, first.pending[0]?.id)
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.provide(TestChatModel.script([callsOf(1)])))
  )

  it.effect("still waits when the run that goes on is interrupted before anything ran", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      const stuck = Middleware.make({ name: "stuck", rulings: () => Effect.never })
      const make = (middleware: ReadonlyArray<Middleware.Middleware>) =>
        Agent.make({ name: "a", prompt: "", tools: [act], middleware: [gate(), ...middleware] })
      const first = yield* Agent.run(make([]), "go")
      const decisions = first.pending.map((one) => Approval.approve(one))
      const messages = yield* Effect.scoped(
        Effect.gen(function* () {
          const handle = yield* Agent.start(make([stuck]), Checkpoint.resume(first, { decisions }))
          yield* Effect.yieldNow
          yield* handle.interrupt
          return yield* handle.messages
        })
      )
      assert.deepStrictEqual(answers(messages), [])
      const result = yield* Agent.run(make([]), Checkpoint.resume({ ...first, messages }, { decisions }))
      assert.strictEqual(result.text, "done")
      assert.deepStrictEqual(ran, [1])
    }).pipe(Effect.provide(TestChatModel.script([callsOf(1), "done"])))
  )
})

describe("a client that has only the events", () => {
  const overTheWire = Effect.forEach((event: AgentEvent.AgentEvent) =>
    AgentEvent.decode(JSON.parse(JSON.stringify(AgentEvent.encode(event))))
  )

  const watched = <O, E, R>(agent: Agent.Agent<O, E, R>, input: Agent.Input) =>
    Effect.gen(function* () {
      const handle = yield* Agent.start(agent, input)
      const events = yield* Effect.forkChild(Stream.runCollect(handle.events), { startImmediately: true })
      const result = yield* handle.await
      return { result, events: yield* overTheWire(yield* Fiber.join(events)) }
    }).pipe(Effect.scoped)

  it.effect("decides on the requests of two runs of one sub-agent with one path and one call id", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      const child = Agent.make({ name: "child", description: "works", prompt: "child", tools: [act] })
      const parent = Agent.make({
        name: "parent",
        prompt: "parent",
        tools: [Agent.asTool(child)],
        middleware: [gate(true)]
      })
      const { events, result } = yield* watched(parent, "go")
      const runs = new Map(
        events.flatMap((event) => (event._tag === "SubagentStarted" ? [[event.callId, event.childRunId]] : []))
      )
      const requests = events.filter((event) => event._tag === "ApprovalRequested")
      assert.deepStrictEqual(
        requests.map(({ callId, path, runId }) => [callId, path, runId]),
        ["left", "right"].map((call) => ["c1", ["parent", "child"], runs.get(call) ?? "none"])
      )
      // An event of a request is the request.
      const asRequest = Schema.decodeUnknownEffect(Approval.Request)
      assert.deepStrictEqual(yield* Effect.forEach(requests, (event) => asRequest(event)), result.pending)
      const decisions = requests.map((event) =>
        event.runId === runs.get("right") && event.allow.includes("approve")
          ? Approval.approve(event)
          : Approval.reject(event, "not this one")
      )
      const resumed = yield* watched(parent, Checkpoint.resume(yield* restart(result), { decisions }))
      assert.deepStrictEqual(ran, [1])
      assert.deepStrictEqual(
        resumed.result.messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : [])),
        ["This call was refused and not executed: not this one", "did 1"]
      )
      assert.deepStrictEqual(
        resumed.events.flatMap((event) => (event._tag === "ApprovalResolved" ? [[event.id, event.decision]] : [])),
        decisions.map((decision) => [decision.id, Approval.choiceOf(decision)])
      )
    }).pipe(
      Effect.provide(
        TestChatModel.reactive(({ messages, systemPrompt }) => {
          const last = messages.at(-1)
          if (systemPrompt === "child") {
            return last?.role === "tool"
              ? Message.text(last)
              : TestChatModel.calls([{ id: "c1", name: "act", arguments: { n: 1 } }])
          }
          return last?.role === "tool"
            ? "done"
            : TestChatModel.calls(["left", "right"].map((id) => ({ id, name: "child", arguments: { task: id } })))
        })
      )
    )
  )

  it.effect("knows the deadline and the allowed decisions", () =>
    Effect.gen(function* () {
      const { act } = recorder()
      const timed = Middleware.make({
        asks: true,
        name: "timed",
        rulings: (_run, calls) => Effect.succeed(calls.map(() => ask(["reject"], 5_000)))
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [act], middleware: [timed] })
      const events = yield* overTheWire((yield* AgentTest.collect(agent, "go")).events)
      const [request] = events.filter((event) => event._tag === "ApprovalRequested")
      assert.deepInclude(request, { allow: ["reject"], expiresAt: 5_000, description: "may I?", arguments: { n: 1 } })
    }).pipe(Effect.provide(TestChatModel.script([callsOf(1)])))
  )
})

describe("a service that decides while the run waits", () => {
  it.effect("answers a gate of a middleware that does not suspend", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      const live = Middleware.make({
        asks: true,
        name: "live",
        rulings: (_run, calls) => Effect.succeed(calls.map(() => ask()))
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [act], middleware: [live] })
      const events = yield* AgentTest.events(agent, "go")
      assert.deepStrictEqual(ran, [1])
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "ApprovalResolved" ? [event.decision] : [])),
        ["approve", "reject"]
      )
    }).pipe(
      Effect.provide(TestChatModel.script([callsOf(1, 2), "done"])),
      Effect.provideService(Approval.Approvals, {
        decide: (request) =>
          Effect.succeed(request.arguments["n"] === 1 ? Approval.approve(request) : Approval.reject(request))
      })
    )
  )
})

describe("a service that decides, beside a gate that suspends", () => {
  it.effect("is asked once: its decisions are kept until the rest of the round is decided", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      const asked: Array<unknown> = []
      const live = Middleware.make({
        asks: true,
        name: "live",
        rulings: (_run, calls) => Effect.succeed(calls.map((call) => (call.arguments["n"] === 100 ? ask() : undefined)))
      })
      const timed = Middleware.make({
        asks: true,
        name: "timed",
        rulings: (_run, calls) =>
          Effect.succeed(calls.map((call) => (call.arguments["n"] === 1 ? Ruling.ask(Approval.byTime) : undefined)))
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [act], middleware: [live, timed] })
      const approvals = {
        decide: (request: Approval.Request) => Effect.sync(() => (asked.push(request.id), Approval.approve(request)))
      }
      const result = yield* Effect.gen(function* () {
        const first = yield* Agent.run(agent, "go")
        assert.deepStrictEqual(
          first.pending.map((request) => request.arguments),
          [{ n: 1 }]
        )
        return yield* Agent.resume(agent, {
          checkpoint: yield* restart(first),
          decisions: first.pending.map((one) => Approval.approve(one))
        })
      }).pipe(Effect.provideService(Approval.Approvals, approvals))
      assert.strictEqual(result.text, "done")
      assert.deepStrictEqual(ran, [1, 100])
      assert.strictEqual(asked.length, 1)
    }).pipe(Effect.provide(TestChatModel.script([callsOf(1, 100), "done"])))
  )
})

describe("a round that was cut off by a crash", () => {
  const crashed = (act: Tool.Tool) => {
    const agent = Agent.make({ name: "a", prompt: "", tools: [act] })
    const turn = Message.ai("", {
      toolCalls: [1, 2].map((n) => ({ id: `c${n}`, name: "act", arguments: { n } })),
      stopReason: "toolCalls"
    })
    const checkpoint: Checkpoint.Checkpoint = {
      messages: [Message.human("go"), turn, Message.tool("did 1", { toolCallId: "c1", toolName: "act" })],
      state: {},
      usage: { inputTokens: 5, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
      rounds: 1
    }
    return { agent, checkpoint }
  }

  it.effect("repeats repeatable calls", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder({ idempotent: true })
      const { agent, checkpoint } = crashed(act)
      const result = yield* Agent.run(agent, Checkpoint.resume(checkpoint))
      assert.deepStrictEqual(ran, [2])
      assert.deepStrictEqual(answers(result.messages), [
        ["c1", "did 1"],
        ["c2", "did 2"]
      ])
      assert.isAtLeast(result.usage.inputTokens, 5)
      assert.strictEqual(result.rounds, 2)
    }).pipe(Effect.provide(TestChatModel.script(["done"])))
  )

  it.effect("says of the rest that nobody knows", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      const { agent, checkpoint } = crashed(act)
      const result = yield* Agent.run(agent, Checkpoint.resume(checkpoint))
      assert.deepStrictEqual(ran, [])
      assert.include(answers(result.messages)[1]?.[1], "not known")
    }).pipe(Effect.provide(TestChatModel.script(["done"])))
  )

  it.effect("asks about a call if the agent can suspend", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      const { checkpoint } = crashed(act)
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [act],
        middleware: [Middleware.make({ asks: true, name: "asks" })]
      })
      const first = yield* Agent.run(agent, Checkpoint.resume(checkpoint, { unknownOutcome: "ask" }))
      assert.strictEqual(first.stopReason, "suspended")
      assert.deepStrictEqual(ran, [])
      const decisions = first.pending.map((one) => Approval.approve(one))
      yield* Agent.run(agent, Checkpoint.resume(yield* restart(first), { decisions }))
      assert.deepStrictEqual(ran, [2])
    }).pipe(Effect.provide(TestChatModel.script(["done"])))
  )

  it.effect("a run that was done says its answer again, without the model", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "" })
      const first = yield* Agent.run(agent, "go")
      const again = yield* Agent.run(agent, Checkpoint.resume(yield* restart(first)))
      assert.strictEqual(again.text, "the answer")
      assert.strictEqual(again.rounds, 1)
    }).pipe(Effect.provide(TestChatModel.script(["the answer"])))
  )
})

describe("calls of sub-agents", () => {
  it.effect("suspend the whole tree, and only the waiting calls go on", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      const child = Agent.make({ name: "child", description: "works", prompt: "child", tools: [act] })
      const parent = Agent.make({
        name: "parent",
        prompt: "parent",
        tools: [act, Agent.asTool(child)],
        middleware: [gate(true)]
      })
      const first = yield* Agent.run(parent, "go")
      assert.strictEqual(first.stopReason, "suspended")
      assert.deepStrictEqual(ran, [100, 200])
      assert.deepStrictEqual(
        first.pending.map(({ path, arguments: args }) => [path, args]),
        [[["parent", "child"], { n: 1 }]]
      )
      const result = yield* Agent.run(
        parent,
        Checkpoint.resume(yield* restart(first), { decisions: first.pending.map((one) => Approval.approve(one)) })
      )
      assert.strictEqual(result.text, "all done")
      assert.deepStrictEqual(ran, [100, 200, 1])
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
    }).pipe(
      Effect.provide(
        TestChatModel.reactive((request) => {
          const turns = request.messages.filter((message) => message.role === "ai").length
          if (request.systemPrompt === "child") {
            return turns === 0 ? callsOf(200) : turns === 1 ? callsOf(1) : "child done"
          }
          return turns === 0
            ? TestChatModel.calls([
                { name: "act", arguments: { n: 100 } },
                { name: "child", arguments: { task: "work" } }
              ])
            : "all done"
        })
      )
    )
  )

  const scenario = fc.record({
    // What each sub-agent does, round by round: numbers below 100 need a decision.
    children: fc.array(
      fc.array(fc.array(fc.boolean(), { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 }),
      { minLength: 1, maxLength: 3 }
    ),
    approvals: fc.infiniteStream(fc.boolean()),
    portions: fc.infiniteStream(fc.integer({ min: 1, max: 3 }))
  })

  it.live("each approved call runs exactly once and no denied one, in any order of decisions, over restarts", () =>
    property(scenario, ({ approvals, children, portions }) =>
      Effect.gen(function* () {
        const ran: Array<string> = []
        const act = Tool.make("act", {
          description: "Acts",
          parameters: { id: Schema.String, n: Schema.Int },
          execute: ({ id }) => Effect.sync(() => (ran.push(id), `did ${id}`))
        })
        const child = Agent.make({ name: "child", description: "works", prompt: "child", tools: [act] })
        const middle = Agent.make({
          name: "middle",
          description: "passes on",
          prompt: "middle",
          tools: [Agent.asTool(child)]
        })
        const parent = Agent.make({
          name: "parent",
          prompt: "parent",
          tools: [Agent.asTool(middle)],
          middleware: [gate(true)]
        })
        const model = TestChatModel.reactive((request) => {
          const turns = request.messages.filter((message) => message.role === "ai").length
          const task = Message.text(request.messages[0] ?? Message.human(""))
          if (request.systemPrompt === "parent") {
            return turns > 0
              ? "end"
              : TestChatModel.calls(
                  children.map((_, index) => ({ name: "middle", arguments: { task: String(index) } }))
                )
          }
          if (request.systemPrompt === "middle") {
            return turns > 0 ? `middle ${task} done` : TestChatModel.calls([{ name: "child", arguments: { task } }])
          }
          const round = children[Number(task)]?.[turns]
          return round === undefined
            ? "child done"
            : TestChatModel.calls(
                round.map((asks, index) => ({
                  name: "act",
                  arguments: { id: `${task}.${turns}.${index}`, n: asks ? 1 : 100 }
                }))
              )
        })
        const denied = new Set<string>()
        const asked = new Set<string>()
        let result = yield* Agent.run(parent, "go").pipe(Effect.provide(model))
        for (let restarts = 0; result.stopReason === "suspended"; restarts++) {
          assert.isBelow(restarts, 60)
          const checkpoint = yield* restart(result)
          const some = result.pending.slice(0, portions.next().value ?? 1)
          assert.isAbove(some.length, 0)
          const decisions = some.map((request) => {
            const id = JSON.stringify(request.arguments["id"])
            assert.isFalse(asked.has(id), `${id} was asked about twice`)
            asked.add(id)
            if (approvals.next().value === true) return Approval.approve(request)
            denied.add(id)
            return Approval.reject(request)
          })
          result = yield* Agent.run(parent, Checkpoint.resume(checkpoint, { decisions })).pipe(Effect.provide(model))
        }
        assert.strictEqual(result.text, "end")
        const all = children.flatMap((rounds, task) =>
          rounds.flatMap((round, turn) => round.map((_, index) => `${task}.${turn}.${index}`))
        )
        assert.deepStrictEqual(ran.toSorted(), all.filter((id) => !denied.has(JSON.stringify(id))).toSorted())
        assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
      })
    )
  )

  it.effect("can't suspend a parent that can't; the sub-agent's model is told", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      const child = Agent.make({ name: "child", description: "", prompt: "child", tools: [act], middleware: [gate()] })
      const parent = Agent.make({ name: "parent", prompt: "parent", tools: [Agent.asTool(child)] })
      const result = yield* Agent.run(parent, "go")
      assert.strictEqual(result.stopReason, "completed")
      assert.include(answers(result.messages)[0]?.[1], "decision")
      assert.deepStrictEqual(ran, [])
    }).pipe(
      Effect.provide(
        TestChatModel.reactive((request) =>
          request.messages.length > 1
            ? Message.text(request.messages.at(-1) ?? Message.human(""))
            : request.systemPrompt === "child"
              ? callsOf(1)
              : TestChatModel.calls([{ name: "child", arguments: { task: "t" } }])
        )
      )
    )
  )
})
