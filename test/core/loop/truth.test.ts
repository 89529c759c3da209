import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schema, Stream } from "effect"
import {
  Agent,
  AgentEvent,
  type AgentResult,
  Approval,
  Checkpoint,
  Message,
  MessageLog,
  Middleware,
  Ruling,
  SessionError,
  Tool,
  ToolOutput
} from "effect-deepagents"
import { Budget } from "effect-deepagents/middleware"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import * as TestJournal from "../journal.ts"

const say = (call: string) => TestChatModel.calls([{ name: call, arguments: {} }])
const many = (...names: ReadonlyArray<string>) =>
  TestChatModel.calls(names.map((name) => ({ id: name, name, arguments: {} })))

/** Tools that write down that they ran. */
const ledger = () => {
  const ran: Array<string> = []
  const tool = (name: string, annotations: Tool.Annotations = {}, work: Effect.Effect<void> = Effect.void) =>
    Tool.make(name, {
      description: "",
      parameters: {},
      annotations,
      execute: () =>
        Effect.as(
          Effect.andThen(
            Effect.sync(() => ran.push(name)),
            work
          ),
          `did ${name}`
        )
    })
  return { ran, tool }
}

/** Wants a decision on calls of `ask…`. */
const gate = Middleware.make({
  asks: true,
  name: "gate",
  inherit: true,
  rulings: (_run, calls) =>
    Effect.succeed(
      calls.map(({ name }) => (name.startsWith("ask") ? Ruling.ask("test", { description: "may I?" }) : undefined))
    )
})

const resultsById = (messages: ReadonlyArray<Message.Message>) =>
  Object.fromEntries(
    messages.flatMap((message) => (message.role === "tool" ? [[message.toolCallId, Message.text(message)]] : []))
  )

const invalid = (error: unknown): string => {
  assert(typeof error === "object" && error !== null && "reason" in error)
  const { reason } = error
  assert(typeof reason === "object" && reason !== null && "_tag" in reason && "problem" in reason)
  assert.strictEqual(reason._tag, "InvalidInput")
  return String(reason.problem)
}

describe("statements about calls after a crash", () => {
  it.effect("a new input after a crash inside of a tool: nobody says that it was not executed", () => {
    const { ran, tool } = ledger()
    const make = (hang: Effect.Effect<void>) => Agent.make({ name: "a", prompt: "", tools: [tool("pay", {}, hang)] })
    return Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const threads: Record<string, TestJournal.Stored> = {}
      const hang = Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
      const journal = TestJournal.layer(threads)
      const fiber = yield* Effect.forkChild(Effect.provide(Agent.run(make(hang), "pay", { threadId: "t" }), journal))
      yield* Deferred.await(begun)
      const left = TestJournal.stored(threads["t"]?.entries)
      yield* Fiber.interrupt(fiber)
      const result = yield* Effect.provide(
        Agent.run(make(Effect.void), "did you pay?", { threadId: "t" }),
        TestJournal.layer({ t: left })
      )
      assert.deepStrictEqual(ran, ["pay"])
      const text = Object.values(resultsById(result.messages)).join()
      assert.include(text, "not known")
      assert.notInclude(text, "not executed")
    }).pipe(Effect.provide(TestChatModel.script([say("pay"), "I look"])))
  })

  it.effect("an unreadable call never ran, after any crash", () =>
    Effect.gen(function* () {
      const history = [
        Message.human("go"),
        Message.ai("", {
          toolCalls: [{ id: "1", name: "pay", arguments: {} }],
          malformedToolCalls: [{ id: "2", raw: "{", problem: "no JSON", name: "pay" }]
        })
      ]
      const { messages } = yield* Agent.run(Agent.make({ name: "a", prompt: "" }), "?", { history })
      assert.include(resultsById(messages)["1"], "not known")
      assert.include(resultsById(messages)["2"], "not executed")
    }).pipe(Effect.provide(TestChatModel.script(["ok"])))
  )

  it.effect("reports the known results at the crash, and the calls that never began", () => {
    const { ran, tool } = ledger()
    const kid = Agent.make({ name: "kid", description: "", prompt: "kid", tools: [tool("charge"), tool("ask")] })
    const agent = Agent.make({
      name: "a",
      prompt: "",
      tools: [Agent.asTool(kid), tool("pay")],
      middleware: [gate]
    })
    const threads: Record<string, TestJournal.Stored> = {}
    return Effect.gen(function* () {
      const first = yield* Agent.run(agent, "go", { threadId: "t" })
      assert.deepStrictEqual(ran.toSorted(), ["charge", "pay"])
      const { events } = yield* AgentTest.collect(agent, "something else", { threadId: "t" })
      const result = yield* Agent.run(agent, "more", { threadId: "t" })
      const answers = resultsById(result.messages)
      assert.strictEqual(answers["pay"], "did pay")
      assert.include(answers["kid"], "not known")
      assert.notInclude(answers["kid"], "not executed")
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
      // The request is void, visibly.
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "ApprovalResolved" ? [[event.callId, event.decision]] : [])),
        first.pending.map(({ callId }) => [callId, "void"])
      )
      assert.deepStrictEqual(yield* Checkpoint.pending(first), first.pending)
      assert.deepStrictEqual(yield* Checkpoint.pending(result), [])
      assert.isNull(result.state["suspension"])
      const [request] = first.pending
      assert(request !== undefined)
      const late = yield* Effect.flip(Agent.resume(agent, { threadId: "t", decisions: [Approval.approve(request)] }))
      assert.include(invalid(late), "void after a new input")
      assert.deepStrictEqual(ran.toSorted(), ["charge", "pay"])
    }).pipe(
      Effect.provide([
        TestChatModel.reactive((request) => {
          const turns = request.messages.filter(({ role }) => role === "ai").length
          if (request.systemPrompt === "kid") return turns === 0 ? many("charge") : many("ask")
          return turns === 0
            ? TestChatModel.calls([
                { id: "kid", name: "kid", arguments: { task: "t" } },
                { id: "pay", name: "pay", arguments: {} }
              ])
            : "ok"
        }),
        TestJournal.layer(threads)
      ])
    )
  })

  it.effect("a round that waits for a decision, and is left for something else, was not executed", () => {
    const { ran, tool } = ledger()
    const agent = Agent.make({ name: "a", prompt: "", tools: [tool("ask1"), tool("pay")], middleware: [gate] })
    return Effect.gen(function* () {
      const first = yield* Agent.run(agent, "go")
      assert.strictEqual(first.stopReason, "suspended")
      const second = yield* Agent.run(agent, "no", { history: first.messages, state: first.state })
      assert.include(resultsById(second.messages)["ask1"], "not executed: it waited for a decision")
      assert.include(resultsById(second.messages)["pay"], "not executed: it waited for a decision")
      assert.deepStrictEqual(ran, [])
      // Without its state, a history is certain of nothing.
      const third = yield* Agent.run(agent, "no", { history: first.messages })
      assert.include(resultsById(third.messages)["pay"], "not known")
    }).pipe(Effect.provide(TestChatModel.script([many("ask1", "pay"), "ok", "ok"])))
  })

  it.effect("another writer does not say that a running call was not executed", () => {
    const { ran, tool } = ledger()
    const threads: Record<string, TestJournal.Stored> = {}
    const journal = TestJournal.layer(threads)
    const other = Agent.make({ name: "a", prompt: "" })
    const agent: Agent.Agent<string, unknown, never> = Agent.provide(
      Agent.make({
        name: "a",
        prompt: "",
        tools: [
          tool(
            "pay",
            {},
            Effect.orDie(
              Effect.asVoid(
                Agent.run(other, "hello?", { threadId: "t" }).pipe(Effect.provide([model(["hi"]), journal]))
              )
            )
          )
        ]
      }),
      model([many("pay")])
    )
    return Effect.gen(function* () {
      const error = yield* Effect.flip(Agent.run(agent, "go", { threadId: "t" }))
      assert.include(String(error), 'Agent "a" can\'t keep its thread')
      const result = yield* Agent.run(other, "and?", { threadId: "t" }).pipe(Effect.provide(model(["ok"])))
      assert.include(resultsById(result.messages)["pay"], "not known")
      assert.deepStrictEqual(ran, ["pay"])
    }).pipe(Effect.provide(journal))
  })

  const makeLate = (id: string) => Message.tool("paid", { toolCallId: id, toolName: "pay" })
  const open = (id: string) => Message.ai("", { toolCalls: [{ id, name: "pay", arguments: {} }] })

  it.effect("a result that comes late is put in its place, once and for all", () => {
    const threads: Record<string, TestJournal.Stored> = {
      t: TestJournal.stored([Message.human("go"), open("c1")].map((message) => ({ _tag: "Message", message }) as const))
    }
    const agent = Agent.make({ name: "a", prompt: "" })
    const logged: Array<MessageLog.Entry> = []
    return Effect.gen(function* () {
      const before = yield* Agent.run(agent, "hello?", { threadId: "t" })
      assert.include(resultsById(before.messages)["c1"], "not known")
      // As input …
      const { events, messages } = yield* Effect.zipWith(
        AgentTest.collect(agent, [makeLate("c1"), Message.human("so?")], { threadId: "t" }),
        TestChatModel.requests,
        ({ events }, requests) => ({ events, messages: requests.at(-1)?.messages ?? [] })
      )
      assert.strictEqual(resultsById(messages)["c1"], "paid")
      assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
      assert.include(JSON.stringify(events), '"paid"')
      assert.deepStrictEqual(
        logged.filter(({ message }) => message.role === "tool").map(({ message }) => Message.text(message).slice(0, 5)),
        ["The r", "paid"]
      )
      // … and written behind other messages by somebody else.
      threads["t"]?.entries.push(
        { _tag: "Message", message: open("c2") },
        { _tag: "Message", message: Message.human("hm") },
        { _tag: "Message", message: makeLate("c2") },
        { _tag: "Message", message: Message.tool("paid twice?", { toolCallId: "c2", toolName: "pay" }) }
      )
      const after = yield* Agent.run(agent, "and?", { threadId: "t" })
      assert.strictEqual(resultsById(after.messages)["c1"], "paid")
      assert.strictEqual(resultsById(after.messages)["c2"], "paid")
      assert.deepStrictEqual(AgentTest.pairingProblems(after.messages), [])
      const resumed = yield* Agent.resume(agent, { threadId: "t" })
      assert.strictEqual(resultsById(resumed.messages)["c2"], "paid")
    }).pipe(
      Effect.provide([
        TestChatModel.script(["a", "b", "c"]),
        TestJournal.layer(threads),
        MessageLog.layerMemory(logged)
      ])
    )
  })

  it.effect("an input that answers one of two open calls leaves the other one unknown", () =>
    Effect.gen(function* () {
      const two = Message.ai("", { toolCalls: ["c1", "c2"].map((id) => ({ id, name: "pay", arguments: {} })) })
      const result = yield* Agent.run(Agent.make({ name: "a", prompt: "" }), [makeLate("c1")], {
        history: [Message.human("go"), two]
      })
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
      assert.strictEqual(resultsById(result.messages)["c1"], "paid")
      assert.include(resultsById(result.messages)["c2"], "not known")
    }).pipe(Effect.provide(TestChatModel.script(["ok"])))
  )

  it.effect("a late result belongs to the last turn that has its id, and does not take the place of a result", () =>
    Effect.gen(function* () {
      const history = [
        Message.human("go"),
        open("c"),
        Message.human("again"),
        open("c"),
        Message.tool("second", { toolCallId: "c", toolName: "pay" }),
        Message.human("?"),
        Message.tool("third", { toolCallId: "c", toolName: "pay" })
      ]
      const { messages } = yield* Agent.run(Agent.make({ name: "a", prompt: "" }), "!", { history })
      const texts = messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))
      assert.include(texts[0], "not known")
      assert.deepStrictEqual(texts.slice(1), ["second"])
    }).pipe(Effect.provide(TestChatModel.script(["ok"])))
  )
})

/** A model of its own for one of several processes. */
const model = (turns: ReadonlyArray<TestChatModel.Turn | string>) => TestChatModel.script(turns)

describe("a turn that was cut off and is taken up", () => {
  const turn = Message.ai("", {
    id: "turn",
    toolCalls: ["pay", "send"].map((name) => ({ id: name, name, arguments: {} }))
  })
  const checkpoint: Checkpoint.Checkpoint = {
    messages: [Message.human("go"), turn],
    state: {},
    usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
    rounds: 1
  }
  const suspends = Middleware.make({ asks: true, name: "suspends" })

  it.effect("is left open when the run that takes it up is ended before anything of it ran", () => {
    const { ran, tool } = ledger()
    const stuck = Middleware.make({ name: "stuck", rulings: () => Effect.never })
    const agent = Agent.make({
      name: "a",
      prompt: "",
      tools: [tool("pay", { idempotent: true }), tool("send")],
      middleware: [stuck]
    })
    return Effect.gen(function* () {
      const handle = yield* Agent.start(agent, Checkpoint.resume(checkpoint))
      yield* Effect.yieldNow
      yield* Effect.yieldNow
      yield* handle.interrupt
      const messages = yield* handle.messages
      assert.deepStrictEqual(resultsById(messages), {})
      const next = yield* Agent.run(Agent.make({ name: "a", prompt: "" }), "?", { history: messages })
      for (const text of Object.values(resultsById(next.messages))) assert.include(text, "not known")
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.scoped, Effect.provide(TestChatModel.script(["ok"])))
  })

  it.effect("reports calls that it does not repeat as unknown, not as unexecuted", () => {
    const { ran, tool } = ledger()
    const forbids = Middleware.make({
      name: "forbids",
      rulings: (_run, calls) => Effect.succeed(calls.map(() => Ruling.refuse("test", "Forbidden.")))
    })
    // `send` is no tool any more.
    const agent = Agent.make({
      name: "a",
      prompt: "",
      tools: [tool("pay", { idempotent: true })],
      middleware: [forbids]
    })
    return Effect.gen(function* () {
      const { messages } = yield* Agent.run(agent, Checkpoint.resume(checkpoint))
      assert.include(resultsById(messages)["pay"], "not known")
      assert.include(resultsById(messages)["pay"], "Forbidden.")
      assert.include(resultsById(messages)["send"], "not known")
      assert.include(resultsById(messages)["send"], 'no tool "send"')
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.provide(TestChatModel.script(["ok"])))
  })

  it.effect("keeps known results in their place, for any order of messages", () => {
    const { ran, tool } = ledger()
    const agent = Agent.make({ name: "a", prompt: "", tools: [tool("pay"), tool("send")] })
    const messages = [...checkpoint.messages, Message.tool("sent", { toolCallId: "send", toolName: "send" })]
    return Effect.gen(function* () {
      const result = yield* Agent.run(agent, Checkpoint.resume({ ...checkpoint, messages }))
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
      assert.include(resultsById(result.messages)["pay"], "not known")
      assert.strictEqual(resultsById(result.messages)["send"], "sent")
      assert.deepStrictEqual(ran, [])
      // Nor is it said that it was not executed, where the turn is declined as a whole.
      const cut = messages.map((message) =>
        message.role === "ai" ? { ...message, stopReason: "length" as const } : message
      )
      const declined = yield* Agent.run(agent, Checkpoint.resume({ ...checkpoint, messages: cut }))
      assert.strictEqual(resultsById(declined.messages)["send"], "sent")
    }).pipe(Effect.provide(TestChatModel.script(["ok", "ok"])))
  })

  it.effect("drops a partial answer without an end, and asks again from the messages before", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "" })
      const partial = Message.ai("I was about", { stopReason: "interrupted" })
      for (const messages of [
        [Message.human("go")],
        [Message.human("go"), partial],
        [Message.human("go"), turn, partial]
      ]) {
        const result = yield* Agent.run(agent, Checkpoint.resume({ ...checkpoint, messages }))
        assert.strictEqual(Message.text(result.messages[0] ?? partial), "go")
        assert.notInclude(JSON.stringify(result.messages), "I was about")
        assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
      }
      const none = yield* Effect.flip(Agent.run(agent, Checkpoint.resume({ ...checkpoint, messages: [partial] })))
      assert.include(invalid(none), "no messages")
    }).pipe(Effect.provide(TestChatModel.script(["ok", "ok", "ok"])))
  )

  it.effect("interrupted while one of it runs again, does not say of the next that it was not executed", () => {
    const { ran, tool } = ledger()
    return Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const hang = Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [tool("pay", { idempotent: true }, hang), tool("send", { idempotent: true })],
        toolConcurrency: 1
      })
      const handle = yield* Agent.start(agent, Checkpoint.resume(checkpoint))
      yield* Deferred.await(begun)
      yield* handle.interrupt
      const texts = resultsById(yield* handle.messages)
      assert.include(texts["pay"], "interrupted")
      assert.include(texts["send"], "not known")
      assert.deepStrictEqual(ran, ["pay"])
    }).pipe(Effect.scoped, Effect.provide(TestChatModel.script([])))
  })

  it.effect("passes on a reconciled result as it is", () => {
    const { tool } = ledger()
    const agent = Agent.make({ name: "a", prompt: "", tools: [tool("pay"), tool("send")] })
    return Effect.gen(function* () {
      const { messages } = yield* Agent.run(
        agent,
        Checkpoint.resume(checkpoint, {
          unknownOutcome: () => Effect.succeed(ToolOutput.make("it failed", { isError: true }))
        })
      )
      assert.deepStrictEqual(resultsById(messages), { pay: "it failed", send: "it failed" })
    }).pipe(Effect.provide(TestChatModel.script(["ok"])))
  })

  it.effect("`ask`: approved calls run again, rejected ones do not, and nothing runs until all are decided", () => {
    const { ran, tool } = ledger()
    const agent = Agent.make({ name: "a", prompt: "", tools: [tool("pay"), tool("send")], middleware: [suspends] })
    return Effect.gen(function* () {
      const first = yield* Agent.run(agent, Checkpoint.resume(checkpoint, { unknownOutcome: "ask" }))
      assert.deepStrictEqual(
        first.pending.map(({ toolName }) => toolName),
        ["pay", "send"]
      )
      const [pay, send] = first.pending
      assert(pay !== undefined && send !== undefined)
      assert.include(pay.description, "may have taken effect")
      const second = yield* Agent.resume(agent, { checkpoint: first, decisions: [Approval.approve(pay)] })
      assert.strictEqual(second.stopReason, "suspended")
      assert.deepStrictEqual(second.pending, [send])
      assert.deepStrictEqual(ran, [])
      const third = yield* Agent.resume(agent, { checkpoint: second, decisions: [Approval.reject(send, "no")] })
      assert.deepStrictEqual(ran, ["pay"])
      assert.strictEqual(resultsById(third.messages)["pay"], "did pay")
      assert.include(resultsById(third.messages)["send"], "not known")
      assert.include(resultsById(third.messages)["send"], "refused: no")
      assert.notInclude(resultsById(third.messages)["send"], "not executed")
      // Instead of deciding, somebody says something else.
      const other = yield* Agent.run(agent, "?", { history: second.messages, state: second.state })
      for (const text of Object.values(resultsById(other.messages))) {
        assert.include(text, "not known")
        assert.notInclude(text, "not executed")
      }
    }).pipe(Effect.provide(TestChatModel.script(["ok", "ok"])))
  })

  it.effect("`ask` without anybody to ask tells the model", () => {
    const { ran, tool } = ledger()
    const agent = Agent.make({ name: "a", prompt: "", tools: [tool("pay"), tool("send")] })
    return Effect.gen(function* () {
      const { messages } = yield* Agent.run(agent, Checkpoint.resume(checkpoint, { unknownOutcome: "ask" }))
      for (const text of Object.values(resultsById(messages))) assert.include(text, "not known")
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.provide(TestChatModel.script(["ok"])))
  })

  it.effect("does not take a call that the output limit cut for an executed one", () => {
    const { ran, tool } = ledger()
    const agent = Agent.make({ name: "a", prompt: "", tools: [tool("pay", { idempotent: true }), tool("send")] })
    const messages = [Message.human("go"), { ...turn, stopReason: "length" as const }]
    return Effect.gen(function* () {
      const result = yield* Agent.run(agent, Checkpoint.resume({ ...checkpoint, messages }))
      for (const text of Object.values(resultsById(result.messages))) {
        assert.match(text, /^Not executed: your turn was cut/)
      }
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.provide(TestChatModel.script(["ok"])))
  })

  it.effect("a suspended round whose release could not be stored still waits", () => {
    const { ran, tool } = ledger()
    const threads: Record<string, TestJournal.Stored> = { t: TestJournal.stored() }
    const agent = Agent.make({ name: "a", prompt: "", tools: [tool("ask1")], middleware: [gate] })
    return Effect.gen(function* () {
      const first = yield* Agent.run(agent, "go", { threadId: "t" })
      const decisions = first.pending.map((one) => Approval.approve(one))
      let appends = 0
      Object.assign(threads["t"] ?? {}, {
        onAppend: Effect.suspend(() =>
          ++appends === 2
            ? Effect.fail(SessionError.make("append", "t", { _tag: "Unavailable", problem: "away" }))
            : Effect.void
        )
      })
      yield* Effect.flip(Agent.resume(agent, { threadId: "t", decisions }))
      assert.deepStrictEqual(ran, [])
      const result = yield* Agent.resume(agent, { threadId: "t", decisions })
      assert.deepStrictEqual(ran, ["ask1"])
      assert.strictEqual(result.text, "done")
    }).pipe(Effect.provide([TestChatModel.script([many("ask1"), "done"]), TestJournal.layer(threads)]))
  })
})

describe("a step that could not be stored while the run was interrupted", () => {
  it.effect("is stored with the end of the run", () => {
    const { tool } = ledger()
    const threads: Record<string, TestJournal.Stored> = { t: TestJournal.stored() }
    const agent = Agent.make({ name: "a", prompt: "", tools: [tool("pay")] })
    return Effect.gen(function* () {
      const waits = yield* Deferred.make<void>()
      const away = yield* Deferred.make<void>()
      let appends = 0
      Object.assign(threads["t"] ?? {}, {
        onAppend: Effect.suspend(() =>
          ++appends === 2
            ? Deferred.succeed(waits, undefined).pipe(
                Effect.andThen(Deferred.await(away)),
                Effect.andThen(SessionError.make("append", "t", { _tag: "Unavailable", problem: "away" }))
              )
            : Effect.void
        )
      })
      const fiber = yield* Effect.forkChild(Agent.run(agent, "go", { threadId: "t" }))
      yield* Deferred.await(waits)
      const interrupting = yield* Effect.forkChild(Fiber.interrupt(fiber), { startImmediately: true })
      yield* Deferred.succeed(away, undefined)
      yield* Fiber.join(interrupting)
      const roles = threads["t"]?.entries.flatMap((entry) => (entry._tag === "Message" ? [entry.message.role] : []))
      assert.deepStrictEqual(roles, ["human", "ai", "tool"])
    }).pipe(Effect.provide([TestChatModel.script([many("pay")]), TestJournal.layer(threads)]))
  })
})

describe("decisions", () => {
  it.effect("that contradict each other, or earlier ones, are refused; a repeated one is not", () => {
    const { ran, tool } = ledger()
    const agent = Agent.make({ name: "a", prompt: "", tools: [tool("ask1"), tool("ask2")], middleware: [gate] })
    return Effect.gen(function* () {
      const first = yield* Agent.run(agent, "go")
      const [one, two] = first.pending
      assert(one !== undefined && two !== undefined)
      const both = yield* Effect.flip(
        Agent.resume(agent, { checkpoint: first, decisions: [Approval.approve(one), Approval.reject(one)] })
      )
      assert.include(invalid(both), "contradict")
      const second = yield* Agent.resume(agent, {
        checkpoint: first,
        decisions: [Approval.approve(one), Approval.approve(one)]
      })
      const other = yield* Effect.flip(
        Agent.resume(agent, { checkpoint: second, decisions: [Approval.reject(one), Approval.approve(two)] })
      )
      assert.include(invalid(other), '"approve", then "reject"')
      assert.deepStrictEqual(ran, [])
      yield* Agent.resume(agent, { checkpoint: second, decisions: [Approval.approve(one), Approval.approve(two)] })
      assert.deepStrictEqual(ran, ["ask1", "ask2"])
    }).pipe(Effect.provide(TestChatModel.script([many("ask1", "ask2"), "done"])))
  })

  it.effect("on requests that the thread has passed are refused, and nothing is pending there", () => {
    const { ran, tool } = ledger()
    const threads: Record<string, TestJournal.Stored> = {}
    const agent = Agent.make({ name: "a", prompt: "", tools: [tool("ask1"), tool("ask2")], middleware: [gate] })
    return Effect.gen(function* () {
      const first = yield* Agent.run(agent, "go", { threadId: "t" })
      const decisions = first.pending.map((one) => Approval.approve(one))
      const entries = threads["t"]?.entries ?? []
      const at = entries.length
      const answer = (id: string) => Message.tool("mine", { toolCallId: id, toolName: id })
      // Somebody answered in the place of both, or said something else.
      for (const messages of [[answer("ask1"), answer("ask2")], [Message.human("hello?")]]) {
        entries.splice(at, 9, ...messages.map((message) => ({ _tag: "Message", message }) as const))
        const left = TestJournal.checkpointOf(entries)
        assert(left !== undefined)
        assert.deepStrictEqual(yield* Checkpoint.pending(left), [])
        assert.include(
          invalid(yield* Effect.flip(Agent.resume(agent, { threadId: "t", decisions }))),
          "no request waits"
        )
      }
      // One of two is answered: the other still waits.
      entries.splice(at, 9, { _tag: "Message", message: answer("ask2") })
      const left = TestJournal.checkpointOf(entries)
      assert.strictEqual((left && (yield* Checkpoint.pending(left)))?.length, 2)
      const result = yield* Agent.resume(agent, { threadId: "t", decisions })
      assert.deepStrictEqual(resultsById(result.messages), { ask1: "did ask1", ask2: "mine" })
      assert.deepStrictEqual(ran, ["ask1"])
    }).pipe(Effect.provide([TestChatModel.script([many("ask1", "ask2"), "done"]), TestJournal.layer(threads)]))
  })

  it.effect("leave nothing behind: without a request, or in a run that goes on behind a void request", () => {
    const { tool } = ledger()
    const agent = Agent.make({ name: "a", prompt: "", tools: [tool("pay"), tool("ask1")], middleware: [gate] })
    return Effect.gen(function* () {
      const free = yield* Agent.run(agent, "go")
      assert.isUndefined(free.state["suspension"])
      const first = yield* Agent.run(agent, "go")
      const messages = [...first.messages, Message.human("hello?")]
      const { events } = yield* AgentTest.collect(agent, Checkpoint.resume({ ...first, messages }))
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "ApprovalResolved" ? [event.decision] : [])),
        ["void"]
      )
      const last = events.findLast((event) => event._tag === "StateChanged")
      assert.isNull(last?.value)
    }).pipe(Effect.provide(TestChatModel.script([many("pay"), "done", many("ask1"), "hi"])))
  })

  it.effect("that wait in a form that can't be read are void with the next input, and refuse to be decided on", () =>
    Effect.gen(function* () {
      const { tool } = ledger()
      const agent = Agent.make({ name: "a", prompt: "", tools: [tool("ask1")], middleware: [gate] })
      const first = yield* Agent.run(agent, "go")
      const state = { ...first.state, suspension: { of: "another version" } }
      assert.strictEqual(
        (yield* Effect.flip(Agent.resume(agent, { checkpoint: { ...first, state } }))).reason._tag,
        "InvalidState"
      )
      const next = yield* Agent.run(agent, "hello?", { history: first.messages, state })
      assert.strictEqual(next.text, "hi")
      assert.isNull(next.state["suspension"])
      assert.include(resultsById(next.messages)["ask1"], "not known")
    }).pipe(Effect.provide(TestChatModel.script([many("ask1"), "hi"])))
  )

  const live = (expiresIn?: number) =>
    Middleware.make({
      asks: true,
      name: "live",
      rulings: (_run, calls) =>
        Effect.succeed(calls.map(() => Ruling.ask("test", { description: "may I?", expiresIn })))
    })

  it.effect("on another request, or too late, run nothing while the run waits either", () => {
    const { ran, tool } = ledger()
    const make = (expiresIn?: number) =>
      Agent.make({ name: "a", prompt: "", tools: [tool("pay"), tool("send")], middleware: [live(expiresIn)] })
    let first: Approval.Request | undefined
    const approvals = {
      decide: (request: Approval.Request) => Effect.sync(() => Approval.approve((first ??= request)))
    }
    return Effect.gen(function* () {
      const { events } = yield* AgentTest.collect(make(), "go")
      assert.deepStrictEqual(ran, ["pay"])
      assert.include(resultsById(AgentEvent.transcript(events))["send"], "on another request")
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "ApprovalResolved" ? [event.decision] : [])),
        ["approve", "void"]
      )
      first = undefined
      const late = yield* Agent.run(make(0), "go")
      assert.deepStrictEqual(ran, ["pay"])
      assert.include(resultsById(late.messages)["pay"], "came too late")
    }).pipe(
      Effect.provide(TestChatModel.script([many("pay", "send"), "done", many("pay"), "done"])),
      Effect.provideService(Approval.Approvals, approvals)
    )
  })
})

describe("a person's edit", () => {
  const act = () => {
    const ran: Array<number> = []
    const tool = Tool.make("act", {
      description: "",
      parameters: { n: Schema.Int },
      execute: ({ n }) => Effect.sync(() => (ran.push(n), `did ${n}`))
    })
    return { ran, tool }
  }
  const policy = (seen: Array<unknown>) =>
    Middleware.make({
      name: "policy",
      rulings: (_run, calls) =>
        Effect.sync(() =>
          calls.map(({ arguments: args }) => {
            seen.push(args["n"])
            return Number(args["n"]) > 100 ? Ruling.refuse("test", "Too much.") : undefined
          })
        )
    })
  const human = Middleware.make({
    asks: true,
    name: "human",
    rulings: (_run, calls) => Effect.succeed(calls.map(() => Ruling.ask("test", { description: "may I?" })))
  })
  const call = (n: number) => TestChatModel.calls([{ id: `c${n}`, name: "act", arguments: { n } }])

  it.effect("is seen by gates that were asked before, and the person is not asked again", () => {
    const { ran, tool } = act()
    const seen: Array<unknown> = []
    const agent = Agent.make({ name: "a", prompt: "", tools: [tool], middleware: [policy(seen), human] })
    return Effect.gen(function* () {
      for (const [n, expected] of [
        [1000, "Too much."],
        [7, "did 7"]
      ] as const) {
        const first = yield* Agent.run(agent, "go")
        const [request] = first.pending
        assert(request !== undefined)
        const result = yield* Agent.resume(agent, { checkpoint: first, decisions: [Approval.edit(request, { n })] })
        assert.strictEqual(result.stopReason, "completed")
        assert.strictEqual(resultsById(result.messages)["c1"], expected)
      }
      assert.deepStrictEqual(ran, [7])
      assert.deepStrictEqual(seen, [1, 1, 1000, 1, 1, 7])
    }).pipe(Effect.provide(TestChatModel.script([call(1), "done", call(1), "done"])))
  })

  it.effect("is still one call of a budget that is asked again", () =>
    Effect.gen(function* () {
      const { ran, tool } = act()
      const budget = Budget.make({ toolCalls: 1, onExhausted: "finalAnswer" })
      const agent = Agent.make({ name: "a", prompt: "", tools: [tool], middleware: [budget, human] })
      const first = yield* Agent.run(agent, "go")
      const [request] = first.pending
      assert(request !== undefined)
      yield* Agent.resume(agent, { checkpoint: first, decisions: [Approval.edit(request, { n: 5 })] })
      assert.deepStrictEqual(ran, [5])
    }).pipe(Effect.provide(TestChatModel.script([call(1), "done"])))
  )

  it.effect("answers all rules that asked, in one question", () => {
    const { ran, tool } = act()
    const asks = (name: string) =>
      Middleware.make({
        asks: true,
        name,
        rulings: (_run, calls) => Effect.succeed(calls.map(() => Ruling.ask(name, { description: name })))
      })
    const agent = Agent.make({ name: "a", prompt: "", tools: [tool], middleware: [asks("first"), asks("second")] })
    return Effect.gen(function* () {
      let result: AgentResult.AgentResult<string | undefined> = yield* Agent.run(agent, "go")
      const described: Array<string> = []
      for (let n = 2; result.stopReason === "suspended"; n++) {
        assert.isBelow(n, 10)
        const [request] = result.pending
        assert(request !== undefined)
        described.push(`${request.description} ${JSON.stringify(request.arguments)}`)
        const decision = n < 4 ? Approval.edit(request, { n }) : Approval.approve(request)
        result = yield* Agent.resume(agent, { checkpoint: result, decisions: [decision] })
      }
      assert.deepStrictEqual(ran, [2])
      assert.deepStrictEqual(described, ['first\nsecond {"n":1}'])
    }).pipe(Effect.provide(TestChatModel.script([call(1), "done"])))
  })

  it.effect("two services that change each other's arguments for ever are stopped", () => {
    const { ran, tool } = act()
    const asks = (name: string, rest: number) =>
      Middleware.make({
        asks: true,
        name,
        rulings: (_run, calls) =>
          Effect.succeed(calls.map((one) => (Number(one.arguments["n"]) % 2 === rest ? Ruling.ask(name) : undefined)))
      })
    const middleware = [asks("odd", 1), asks("even", 0)]
    const agent = Agent.make({ name: "a", prompt: "", tools: [tool], middleware })
    return Effect.gen(function* () {
      const result = yield* Agent.run(agent, "go")
      assert.deepStrictEqual(ran, [])
      assert.include(resultsById(result.messages)["c1"], "again and again")
    }).pipe(
      Effect.provide(TestChatModel.script([call(1), "done"])),
      Effect.provideService(Approval.Approvals, {
        decide: (request) => Effect.succeed(Approval.edit(request, { n: Number(request.arguments["n"]) + 1 }))
      })
    )
  })
})

describe("a handle whose run is ended before its first step", () => {
  const agent = Agent.make({ name: "a", prompt: "" })

  it.effect("ends its readers with one terminal event, takes no more, and returns its queued messages", () =>
    Effect.gen(function* () {
      const handle = yield* Agent.start(agent, "go")
      const reading = yield* Effect.forkChild(Stream.runCollect(handle.events), { startImmediately: true })
      yield* handle.steer("one")
      yield* handle.followUp("two")
      yield* handle.interrupt
      const events = yield* Fiber.join(reading)
      assert.deepStrictEqual(
        events.map(({ _tag }) => _tag),
        ["RunInterrupted"]
      )
      assert.deepStrictEqual([...(yield* Stream.runCollect(handle.events))], events)
      assert.strictEqual((yield* Effect.flip(handle.steer("three")))._tag, "RunEnded")
      assert.strictEqual((yield* Effect.flip(handle.followUp("four")))._tag, "RunEnded")
      assert.deepStrictEqual(
        (yield* handle.undelivered).map((message) => Message.text(message)),
        ["one", "two"]
      )
      const exit = yield* Effect.exit(handle.await)
      assert.strictEqual(exit._tag, "Failure")
      assert.deepStrictEqual(yield* TestChatModel.requests, [])
    }).pipe(Effect.scoped, Effect.provide(TestChatModel.script([])))
  )

  it.effect("does so too when its scope is closed", () =>
    Effect.gen(function* () {
      const { handle, reading } = yield* Effect.scoped(
        Effect.gen(function* () {
          const handle = yield* Agent.start(agent, "go")
          const reading = yield* Effect.forkDetach(Stream.runCollect(handle.events), { startImmediately: true })
          yield* handle.steer("one")
          return { handle, reading }
        })
      )
      const events = yield* Fiber.join(reading)
      assert.deepStrictEqual(
        events.map(({ _tag }) => _tag),
        ["RunInterrupted"]
      )
      assert.strictEqual((yield* handle.undelivered).length, 1)
      assert.strictEqual((yield* Effect.flip(handle.steer("two")))._tag, "RunEnded")
    }).pipe(Effect.provide(TestChatModel.script([])))
  )

  it.effect("reports steering as undelivered when the run ends while it waits for a slow reader", () =>
    Effect.gen(function* () {
      const handle = yield* Agent.start(agent, "go")
      const reading = Stream.runForEach(handle.events, () => Effect.never)
      yield* Effect.forkScoped(reading, { startImmediately: true })
      const sent = Array.from({ length: 100 }, (_, n) => `message ${n}`)
      for (const text of sent) yield* handle.steer(text)
      for (let turn = 0; turn < 50; turn++) yield* Effect.yieldNow
      yield* handle.interrupt
      const delivered = (yield* handle.messages).slice(1)
      const undelivered = yield* handle.undelivered
      assert.isAbove(delivered.length, 0)
      assert.isAbove(undelivered.length, 0)
      assert.deepStrictEqual(
        [...delivered, ...undelivered].map((one) => Message.text(one)),
        sent
      )
    }).pipe(Effect.scoped, Effect.provide(TestChatModel.script([])))
  )
})

describe("input that nobody can answer", () => {
  const agent = Agent.make({ name: "a", prompt: "" })

  it.effect(
    "refuses an empty input on a thread, and an input that ends with the model's own words, at the start",
    () => {
      const threads: Record<string, TestJournal.Stored> = {}
      return Effect.gen(function* () {
        yield* Agent.run(agent, "hello", { threadId: "t" })
        const before = threads["t"]?.entries.length
        for (const input of ["", "  \n", [], Message.human(""), [Message.human(" ")]]) {
          const error = yield* Effect.flip(Agent.run(agent, input, { threadId: "t" }))
          assert.include(invalid(error), "Agent.resume")
        }
        for (const input of [[Message.ai("I say")], [Message.human("you"), Message.ai("I")]]) {
          const error = yield* Effect.flip(Agent.run(agent, input, { threadId: "t" }))
          assert.include(invalid(error), "input ends with an ai message")
        }
        const history = [Message.human("hello"), Message.ai("hi")]
        const error = yield* Effect.flip(Agent.run(agent, [], { history }))
        assert.include(invalid(error), "history ends with an ai message")
        assert.strictEqual(threads["t"]?.entries.length, before)
        assert.strictEqual((yield* TestChatModel.requests).length, 1)
        // A picture without words says something.
        yield* Agent.run(agent, Message.human("", { images: [{ url: "https://example.com/a.png" }] }), {
          threadId: "t"
        })
      }).pipe(Effect.provide([TestChatModel.script(["hi", "a cat"]), TestJournal.layer(threads)]))
    }
  )
})
