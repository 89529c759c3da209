/** Lines of the loop that no other test would miss. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Schema, Stream } from "effect"
import {
  Agent,
  AgentState,
  Approval,
  type ChatModel,
  Checkpoint,
  Message,
  Middleware,
  Ruling,
  Tool,
  Usage
} from "effect-deepagents"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"

const step = Tool.make("step", {
  description: "One step",
  parameters: { n: Schema.Int },
  execute: ({ n }) => Effect.succeed(`did ${n}`)
})

const stepCall = (n: number) => TestChatModel.calls([{ name: "step", arguments: { n } }])

const toolTexts = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))

describe("between two turns", () => {
  it.effect("delivers all steering messages at once, and follow-ups one at a time", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const waiting = Tool.make("wait", {
        description: "",
        parameters: {},
        execute: () => Effect.as(Deferred.await(gate), "waited")
      })
      const handle = yield* Agent.start(Agent.make({ name: "a", prompt: "", tools: [waiting] }), "go")
      yield* Effect.yieldNow
      yield* handle.steer("left")
      yield* handle.steer("right")
      yield* Deferred.succeed(gate, undefined)
      const { messages } = yield* handle.await
      assert.deepStrictEqual(messages.map(Message.text), ["go", "", "waited", "left", "right", "done"])
    }).pipe(
      Effect.scoped,
      Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "wait", arguments: {} }]), "done"]))
    )
  )

  it.effect("a middleware that answers itself may call a tool that it hid from the model a round before", () =>
    Effect.gen(function* () {
      const hiding = Middleware.make({
        name: "hiding",
        wrapModelCall: (request, next) =>
          request.messages.length === 1
            ? next({ ...request, tools: [] })
            : request.messages.length === 3
              ? Stream.make<[ChatModel.TurnPart]>({
                  _tag: "TurnDone",
                  message: Message.ai("", {
                    toolCalls: [{ id: "own", name: "step", arguments: { n: 2 } }],
                    stopReason: "toolCalls"
                  })
                })
              : next(request)
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [step], middleware: [hiding] })
      const { messages } = yield* Agent.run(agent, "go")
      assert.deepStrictEqual(toolTexts(messages), [
        'There is no tool "step", nor any other now. Answer without tools.',
        "did 2"
      ])
    }).pipe(Effect.provide(TestChatModel.script([stepCall(1), "done"])))
  )
})

describe("an answer that is forced", () => {
  const Weather = Schema.Struct({ city: Schema.String, degrees: Schema.Finite })

  it.effect("is sent back with its problem, like any other", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "", output: Weather, tools: [step], maxRounds: 1 })
      const { messages, output, stopReason } = yield* Agent.run(agent, "go")
      assert.deepStrictEqual([output, stopReason], [{ city: "Bern", degrees: 1 }, "maxRounds"])
      assert.include(messages.map(Message.text).join("\n"), "`degrees` is missing")
    }).pipe(
      Effect.provide(
        TestChatModel.script([stepCall(1), '{"city":"Bern"}', stepCall(2), '{"city":"Bern","degrees":1}'], {
          structuredOutput: "native"
        })
      )
    )
  )
})

describe("a new input", () => {
  it.effect("voids a suspension that can't be read, and leaves all other state", () =>
    Effect.gen(function* () {
      const count = AgentState.slot("count", { schema: Schema.Int, initial: 0 })
      const agent = Agent.make({ name: "a", prompt: "", tools: [step] })
      const { state } = yield* Agent.run(agent, "go", {
        history: [Message.human("hello"), Message.ai("hi")],
        state: { suspension: { requests: "what?" }, [count.name]: 7 }
      })
      assert.strictEqual(state[count.name], 7)
      assert.isNotOk(state["suspension"])
    }).pipe(Effect.provide(TestChatModel.script(["done"])))
  )
})

describe("a call of which nobody knows whether it ran", () => {
  it.effect("is asked about once, in one question with the rules that ask", () =>
    Effect.gen(function* () {
      const ran: Array<number> = []
      const act = Tool.make("act", {
        description: "Acts",
        parameters: { n: Schema.Int },
        execute: ({ n }) => Effect.sync(() => (ran.push(n), `did ${n}`))
      })
      const careful = Middleware.make({
        asks: true,
        name: "careful",
        rulings: (_run, calls) =>
          Effect.succeed(
            calls.map((call) =>
              Number(call.arguments["n"]) < 100 ? Ruling.ask("careful", { description: "may I?" }) : undefined
            )
          )
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [act], middleware: [careful] })
      const turn = Message.ai("", {
        toolCalls: [{ id: "c", name: "act", arguments: { n: 1 } }],
        stopReason: "toolCalls"
      })
      const usage = { inputTokens: 5, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }
      const crashed = { messages: [Message.human("go"), turn], state: {}, usage, rounds: 1 }
      const first = yield* Agent.run(agent, Checkpoint.resume(crashed, { unknownOutcome: "ask" }))
      assert.deepStrictEqual(
        first.pending.map(({ description, rule }) => [description, rule]),
        [['"act" may have taken effect before the run was cut off. Run it again?\nmay I?', "unknownOutcome, careful"]]
      )
      const again = first.pending.map((request) => Approval.edit(request, { n: 50 }))
      const second = yield* Agent.run(agent, Checkpoint.resume(first, { decisions: again, unknownOutcome: "ask" }))
      assert.deepStrictEqual([second.stopReason, second.pending, ran], ["completed", [], [50]])
    }).pipe(Effect.provide(TestChatModel.script(["done"])))
  )

  it.effect("rounds that repeat themselves end a run with a handle as they end any other", () =>
    Effect.gen(function* () {
      const once = Tool.make("once", { description: "", parameters: {}, execute: () => Effect.succeed("done once") })
      const handle = yield* Agent.start(Agent.make({ name: "a", prompt: "", tools: [once] }), "go")
      assert.strictEqual((yield* handle.await).stopReason, "duplicateRounds")
    }).pipe(
      Effect.scoped,
      Effect.provide(
        TestChatModel.script([...Array.from({ length: 3 }, () => TestChatModel.calls([{ name: "once" }])), "the end"])
      )
    )
  )

  it.effect("repeats a reading call after a crash, like a repeatable one", () =>
    Effect.gen(function* () {
      for (const annotations of [{ readOnly: true }, { idempotent: true }]) {
        let ran = 0
        const look = Tool.make("look", {
          description: "",
          parameters: {},
          annotations,
          execute: () => Effect.sync(() => `looked ${++ran}`)
        })
        const turn = Message.ai("", { toolCalls: [{ id: "c1", name: "look", arguments: {} }], stopReason: "toolCalls" })
        yield* Agent.resume(Agent.make({ name: "a", prompt: "", tools: [look] }), {
          checkpoint: { messages: [Message.human("go"), turn], state: {}, usage: Usage.zero, rounds: 1 }
        }).pipe(Effect.provide(TestChatModel.script(["done"])))
        assert.strictEqual(ran, 1)
      }
    })
  )

  it.effect("a waiting sub-agent resumes at its place, though a gate asks anew about its outer call", () =>
    Effect.gen(function* () {
      let asks = 0
      const again = Middleware.make({
        asks: true,
        name: "again",
        rulings: (_run, calls) =>
          Effect.sync(() => {
            asks++
            // Nothing at first; when the run resumes, a person is asked about the call as well.
            return calls.map(() => (asks === 2 ? Ruling.ask("test", { description: "once more?" }) : undefined))
          })
      })
      const ran: Array<string> = []
      const pay = Tool.make("pay", {
        description: "",
        parameters: {},
        execute: () => Effect.sync(() => (ran.push("pay"), "paid"))
      })
      const careful = Middleware.make({
        asks: true,
        name: "careful",
        rulings: (_run, calls) => Effect.succeed(calls.map(() => Ruling.ask("test", { description: "pay?" })))
      })
      const child = Agent.make({ name: "child", description: "", prompt: "child", tools: [pay], middleware: [careful] })
      const parent = Agent.make({ name: "parent", prompt: "parent", tools: [Agent.asTool(child)], middleware: [again] })
      const first = yield* Agent.run(parent, "go")
      const resumed = (result: typeof first) =>
        Agent.resume(parent, { checkpoint: result, decisions: result.pending.map((one) => Approval.approve(one)) })
      const second = yield* resumed(first)
      assert.deepStrictEqual([second.stopReason, second.pending.length, ran], ["suspended", 1, []])
      let result = yield* resumed(second)
      // What the sub-agent waited for may be asked once more: it is the same question, of the same turn.
      if (result.stopReason === "suspended") result = yield* resumed(result)
      assert.deepStrictEqual([result.text, ran], ["all done", ["pay"]])
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([{ name: "child", arguments: { task: "pay" } }]),
          TestChatModel.calls([{ name: "pay" }]),
          "paid it",
          "all done"
        ])
      )
    )
  )

  it.effect("a suspension that is over is over once, however many rounds follow", () =>
    Effect.gen(function* () {
      let asks = 0
      const once = Middleware.make({
        asks: true,
        name: "once",
        rulings: (_run, calls) =>
          Effect.sync(() => calls.map(() => (asks++ === 0 ? Ruling.ask("test", { description: "may I?" }) : undefined)))
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [step], middleware: [once] })
      const first = yield* Agent.run(agent, "go")
      const decisions = first.pending.map((one) => Approval.approve(one))
      const events = yield* AgentTest.events(agent, Checkpoint.resume(first, { decisions }))
      const over = events.filter((event) => event._tag === "StateChanged" && event.value === null)
      assert.strictEqual(over.length, 1)
    }).pipe(Effect.provide(TestChatModel.script([stepCall(1), stepCall(2), stepCall(3), "done"])))
  )

  it.effect("is refused with the unknown parts if a sub-agent waits in it", () =>
    Effect.gen(function* () {
      let asks = 0
      const later = Middleware.make({
        name: "later",
        rulings: (_run, calls) =>
          Effect.sync(() => calls.map(() => (asks++ === 0 ? undefined : Ruling.refuse("test", "not any more"))))
      })
      const careful = Middleware.make({
        asks: true,
        name: "careful",
        rulings: (_run, calls) => Effect.succeed(calls.map(() => Ruling.ask("test", { description: "step?" })))
      })
      const child = Agent.make({ name: "child", description: "", prompt: "", tools: [step], middleware: [careful] })
      const suspends = Middleware.make({ asks: true, name: "suspends" })
      const parent = Agent.make({ name: "p", prompt: "", tools: [Agent.asTool(child)], middleware: [later, suspends] })
      const first = yield* Agent.run(parent, "go")
      const decisions = first.pending.map((one) => Approval.approve(one))
      const { messages } = yield* Agent.resume(parent, { checkpoint: first, decisions })
      const [text] = toolTexts(messages)
      assert.match(text ?? "", /not known.*not any more/s)
    }).pipe(
      Effect.provide(
        TestChatModel.script([TestChatModel.calls([{ name: "child", arguments: { task: "x" } }]), stepCall(1), "done"])
      )
    )
  )

  it.effect("an approved call runs, though a middleware passes on a copy of its arguments", () =>
    Effect.gen(function* () {
      const pay = Tool.make("pay", {
        description: "",
        parameters: { n: Schema.Int },
        needsApproval: true,
        execute: ({ n }) => Effect.succeed(`paid ${n}`)
      })
      const copying = Middleware.make({
        name: "copying",
        wrapToolCall: (call, next) => next({ ...call, arguments: { ...call.arguments } })
      })
      const { messages } = yield* Agent.run(
        Agent.make({ name: "a", prompt: "", tools: [pay], middleware: [copying] }),
        "go"
      ).pipe(
        Effect.provideService(Approval.Approvals, { decide: (request) => Effect.succeed(Approval.approve(request)) })
      )
      assert.deepStrictEqual(toolTexts(messages), ["paid 1"])
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "pay", arguments: { n: 1 } }]), "done"])))
  )

  it.effect("a result without details has none in its event; pending calls are not asked about again", () =>
    Effect.gen(function* () {
      const careful = Middleware.make({
        asks: true,
        name: "careful",
        rulings: (_run, calls) => Effect.succeed(calls.map(() => Ruling.ask("test", { description: "step?" })))
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [step], middleware: [careful] })
      const first = yield* Agent.run(agent, "go")
      const still = yield* AgentTest.events(agent, Checkpoint.resume(first))
      assert.deepStrictEqual(
        still.filter((event) => event._tag === "ApprovalRequested"),
        []
      )
      const decisions = first.pending.map((one) => Approval.approve(one))
      const events = yield* AgentTest.events(agent, Checkpoint.resume(first, { decisions }))
      const completed = events.filter((event) => event._tag === "ToolCompleted")
      assert.deepStrictEqual(
        completed.map((event) => "details" in event),
        [false]
      )
    }).pipe(Effect.provide(TestChatModel.script([stepCall(1), "done"])))
  )
})
