import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import { Agent, AgentState, Approval, type ChatModel, Message, Middleware, Ruling, Tool } from "effect-deepagents"
import { Handoffs } from "effect-deepagents/middleware"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"

const lookup = Tool.make("lookup", { description: "", parameters: {}, execute: () => Effect.succeed("invoice 7") })

const billing = Agent.make({
  name: "billing",
  description: "Invoices and refunds",
  prompt: "BILLING",
  tools: [lookup],
  middleware: [Handoffs.peers({ reception: "Everything else", sales: "Offers" })]
})
const sales = Agent.make({
  name: "sales",
  description: "Offers",
  prompt: "SALES",
  middleware: [Handoffs.peers({ reception: "Everything else", billing: "Bills", nobody: "?" })]
})
const hub = Handoffs.make({ agents: [billing, sales] })
const reception = Agent.make({ name: "reception", prompt: "RECEPTION", middleware: [hub] })

const transfer = (to: string, message?: string) => ({
  name: `transfer_to_${to}`,
  arguments: message === undefined ? {} : { message }
})
const hands = (to: string, message?: string) => TestChatModel.calls([transfer(to, message)])

/** A conversation in short: who said what, and which calls. */
const brief = (messages: ReadonlyArray<Message.Message>) =>
  messages.map((message) => {
    const calls = message.role === "ai" ? message.toolCalls.map((call) => `<${call.name}>`).join("") : ""
    return `${message.role}: ${Message.text(message)}${calls}`
  })

const requestsOf = (prompt: string) =>
  Effect.map(TestChatModel.requests, (requests) =>
    requests.filter(({ systemPrompt }) => systemPrompt.startsWith(prompt)).map(({ messages }) => brief(messages))
  )

const activeIn = (state: AgentState.Snapshot) => Result.getOrThrow(AgentState.read(state, Handoffs.active))

const next = (result: { readonly messages: ReadonlyArray<Message.Message>; readonly state: AgentState.Snapshot }) => ({
  history: result.messages,
  state: result.state
})

describe("Handoffs", () => {
  it.effect("another agent answers in this one's place, with the conversation and without the transfer", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(reception, "My bill is wrong", {
        history: [Message.human("Hi"), Message.ai("Hello")]
      })
      assert.strictEqual(result.text, "It is mended.")
      assert.strictEqual(result.stopReason, "completed")
      assert.strictEqual(activeIn(result.state), "billing")
      assert.deepStrictEqual(yield* requestsOf("BILLING"), [["human: Hi", "ai: Hello", "human: My bill is wrong"]])
      // Reception was asked once: the answer is not its to repeat.
      assert.strictEqual((yield* requestsOf("RECEPTION")).length, 1)
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
      const [request] = yield* TestChatModel.requests
      assert.deepStrictEqual(
        request?.tools.map(({ name }) => name),
        ["transfer_to_billing", "transfer_to_sales"]
      )
      assert.include(request?.tools[0]?.description, "Invoices and refunds")
    }).pipe(Effect.provide(TestChatModel.script([hands("billing"), "It is mended."])))
  )

  it.effect("a note goes along; a conversation that ends with an answer is asked to go on", () =>
    Effect.gen(function* () {
      const looks = Agent.make({ name: "looks", prompt: "LOOKS", tools: [lookup], middleware: [hub] })
      yield* Agent.run(looks, "Go")
      assert.deepStrictEqual((yield* requestsOf("BILLING"))[0], [
        "human: Go",
        "ai: <lookup>",
        "tool: invoice 7",
        "human: The conversation was handed over to you, with this note: it is invoice 7"
      ])
      const onlyAnswers = Handoffs.make({
        agents: [sales],
        filter: (history) => history.filter((message) => message.role === "ai")
      })
      yield* Agent.run(Agent.make({ name: "filters", prompt: "FILTERS", middleware: [onlyAnswers] }), "Go", {
        history: [Message.human("Hi"), Message.ai("Hello")]
      })
      assert.deepStrictEqual(yield* requestsOf("SALES"), [
        ["ai: Hello", "human: The conversation was handed over to you. Go on with it."]
      ])
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([{ name: "lookup", arguments: {} }]),
          hands("billing", "it is invoice 7"),
          "fine",
          hands("sales"),
          "fine"
        ])
      )
    )
  )

  it.effect("later runs go on with it, without asking the first one's model, and with all that it did before", () =>
    Effect.gen(function* () {
      const first = yield* Agent.run(reception, "My bill is wrong")
      const second = yield* Agent.run(reception, "And the other?", next(first))
      const third = yield* Agent.run(reception, "Thanks", next(second))
      assert.deepStrictEqual([first.text, second.text, third.text], ["It is mended.", "That one too.", "Bye."])
      assert.strictEqual((yield* requestsOf("RECEPTION")).length, 1)
      assert.deepStrictEqual((yield* requestsOf("BILLING")).at(-1), [
        "human: My bill is wrong",
        "ai: <lookup>",
        "tool: invoice 7",
        "ai: It is mended.",
        "human: And the other?",
        "ai: That one too.",
        "human: Thanks"
      ])
      assert.deepStrictEqual(AgentTest.pairingProblems(third.messages), [])
      // A handover that nobody asked for costs nothing.
      assert.strictEqual(third.rounds, 1)
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          hands("billing"),
          TestChatModel.calls([{ name: "lookup", arguments: {} }]),
          "It is mended.",
          "That one too.",
          "Bye."
        ])
      )
    )
  )

  it.effect("keeps text beside a transfer; a filter sees a history without the transfers", () => {
    const seen: Array<ReadonlyArray<string>> = []
    const agent = Agent.make({
      name: "reception",
      prompt: "RECEPTION",
      middleware: [
        Handoffs.make({
          agents: [billing],
          filter: (history) => {
            seen.push(brief(history))
            return history
          }
        })
      ]
    })
    return Effect.gen(function* () {
      const first = yield* Agent.run(agent, "Go")
      yield* Agent.run(agent, "More", next(first))
      assert.deepStrictEqual(seen, [["human: Go"], ["human: Go", "ai: One moment.", "ai: Here.", "human: More"]])
    }).pipe(
      Effect.provide(
        TestChatModel.script([TestChatModel.calls([transfer("billing")], { text: "One moment." }), "Here.", "There."])
      )
    )
  })

  it.effect("going on with an agent is not a transfer: it does not count", () =>
    Effect.gen(function* () {
      const agent = Agent.make({
        name: "reception",
        prompt: "RECEPTION",
        middleware: [Handoffs.make({ agents: [billing, sales], maxTransfers: 1 })]
      })
      const first = yield* Agent.run(agent, "Go")
      const second = yield* Agent.run(agent, "More", next(first))
      assert.strictEqual(second.text, "An offer.")
      assert.strictEqual((yield* requestsOf("SALES")).length, 1)
    }).pipe(Effect.provide(TestChatModel.script([hands("billing"), "Here.", hands("sales"), "An offer."])))
  )

  it.effect("it can be handed on, and back: then the first agent goes on, and later runs are with it", () =>
    Effect.gen(function* () {
      const first = yield* Agent.run(reception, "My bill is wrong")
      assert.strictEqual(first.text, "An offer.")
      assert.strictEqual(activeIn(first.state), "sales")
      assert.deepStrictEqual(yield* requestsOf("SALES"), [
        [
          "human: My bill is wrong",
          "ai: <lookup>",
          "tool: invoice 7",
          "human: The conversation was handed over to you, with this note: wants a discount"
        ]
      ])
      const second = yield* Agent.run(reception, "Where is the toilet?", next(first))
      assert.strictEqual(second.text, "Upstairs.")
      assert.strictEqual(activeIn(second.state), null)
      const told = second.newMessages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))
      assert.deepStrictEqual(told, [
        '"sales" handed the conversation back to you. It says: not an offer Go on with it.'
      ])
      const third = yield* Agent.run(reception, "Thanks", next(second))
      assert.strictEqual(third.text, "Bye.")
      assert.strictEqual((yield* requestsOf("RECEPTION")).length, 3)
      for (const { messages } of [first, second, third]) assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          hands("billing"),
          TestChatModel.calls([{ name: "lookup", arguments: {} }]),
          hands("sales", "wants a discount"),
          "An offer.",
          hands("reception", "not an offer"),
          "Upstairs.",
          "Bye."
        ])
      )
    )
  )

  it.effect("a name that is not known hands the conversation back, and says so", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(reception, "Go")
      assert.strictEqual(result.text, "I do it.")
      assert.include(brief(result.messages)[2], 'to "nobody", who is not here, so it is yours')
    }).pipe(Effect.provide(TestChatModel.script([hands("sales"), hands("nobody"), "I do it."])))
  )

  it.effect("transfers in one run are bounded; then the first agent answers", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(
        Agent.make({
          name: "reception",
          prompt: "RECEPTION",
          middleware: [Handoffs.make({ agents: [billing, sales], maxTransfers: 3 })]
        }),
        "Go"
      )
      assert.strictEqual(result.text, "Enough.")
      assert.strictEqual((yield* requestsOf("BILLING")).length + (yield* requestsOf("SALES")).length, 3)
      assert.include(brief(result.messages)[2], "handed over 3 times")
      assert.strictEqual(activeIn(result.state), null)
    }).pipe(
      Effect.provide(
        TestChatModel.reactive((request: ChatModel.ModelRequest) => {
          if (request.systemPrompt.startsWith("BILLING")) return hands("sales")
          if (request.systemPrompt.startsWith("SALES")) return hands("billing")
          return request.messages.length === 1 ? hands("billing") : "Enough."
        })
      )
    )
  )

  it.effect("an agent that hands on to itself is bounded like any other", () =>
    Effect.gen(function* () {
      const billing = Agent.make({
        name: "billing",
        description: "Bills",
        prompt: "BILLING",
        middleware: [Handoffs.peers({ billing: "Bills" })]
      })
      const reception = Agent.make({
        name: "reception",
        prompt: "RECEPTION",
        middleware: [Handoffs.make({ agents: [billing], maxTransfers: 2 })]
      })
      const result = yield* Agent.run(reception, "go")
      assert.strictEqual(result.text, "I do it.")
      assert.isBelow((yield* TestChatModel.requests).length, 10)
    }).pipe(
      Effect.provide(
        TestChatModel.reactive((request) =>
          request.systemPrompt.startsWith("BILLING") || request.messages.length === 1 ? hands("billing") : "I do it."
        )
      )
    )
  )

  it.effect("the bound holds over several transfers of the first agent, and for each run anew", () =>
    Effect.gen(function* () {
      const bounded = Agent.make({
        name: "reception",
        prompt: "RECEPTION",
        middleware: [Handoffs.make({ agents: [sales], maxTransfers: 2 })]
      })
      const first = yield* Agent.run(bounded, "Go")
      assert.strictEqual((yield* requestsOf("SALES")).length, 2)
      yield* Agent.run(bounded, "Go", next(first))
      assert.strictEqual((yield* requestsOf("SALES")).length, 4)
    }).pipe(
      Effect.provide(
        TestChatModel.reactive((request: ChatModel.ModelRequest) => {
          if (request.systemPrompt.startsWith("SALES")) return hands("reception", `n${request.messages.length}`)
          const last = request.messages.at(-1)
          return last !== undefined && Message.text(last).includes("nobody else takes it over")
            ? "Enough."
            : hands("sales", `m${request.messages.length}`)
        })
      )
    )
  )

  it.effect("one transfer a turn; other calls beside it run, and stay in the conversation", () =>
    Effect.gen(function* () {
      const busy = Agent.make({ name: "busy", prompt: "BUSY", tools: [lookup], middleware: [hub] })
      const first = yield* Agent.run(busy, "Go")
      assert.strictEqual(first.text, "Mine.")
      assert.deepStrictEqual(yield* requestsOf("SALES"), [])
      assert.include(brief(first.messages)[3], "can be handed over once a turn")
      yield* Agent.run(busy, "More", next(first))
      assert.deepStrictEqual((yield* requestsOf("BILLING")).at(-1), [
        "human: Go",
        "ai: One moment.<transfer_to_sales><lookup>",
        "tool: Not executed: a conversation can be handed over once a turn.",
        "tool: invoice 7",
        "ai: Mine.",
        "human: More"
      ])
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([transfer("billing"), transfer("sales"), { name: "lookup", arguments: {} }], {
            text: "One moment."
          }),
          "Mine.",
          "Still mine."
        ])
      )
    )
  )

  it.effect("a failure is told to the first agent's model, which goes on; the other stays with the conversation", () =>
    Effect.gen(function* () {
      const broken = Agent.make({
        name: "broken",
        prompt: Effect.fail({ _tag: "NoPrompt", message: "no prompt today" } as const)
      })
      const silent = Agent.make({ name: "silent", prompt: "SILENT" })
      const agent = Agent.make({
        name: "reception",
        prompt: "RECEPTION",
        middleware: [Handoffs.make({ agents: [broken, silent] })]
      })
      const result = yield* Agent.run(agent, "Go")
      assert.strictEqual(result.text, "I do it.")
      const told = result.messages.flatMap((message) => (message.role === "tool" ? [message] : []))
      assert.include(Message.text(told[0]!), "NoPrompt: no prompt today")
      assert.include(Message.text(told[1]!), '"silent" ended without an answer')
      assert.deepStrictEqual(
        told.map(({ isError }) => isError),
        [true, true]
      )
      assert.strictEqual(activeIn(result.state), "silent")
    }).pipe(Effect.provide(TestChatModel.script([hands("broken"), hands("silent"), "", "I do it."])))
  )

  it.effect("an agent with an output schema gives its answer in it", () =>
    Effect.gen(function* () {
      const counter = Agent.make({
        name: "counter",
        prompt: "COUNTER",
        output: Schema.Struct({ count: Schema.Finite }),
        middleware: [Handoffs.make({ agents: [billing] })]
      })
      const result = yield* Agent.run(counter, "How many?")
      assert.deepStrictEqual(result.output, { count: 3 })
    }).pipe(Effect.provide(TestChatModel.script([hands("billing"), "three", '{"count": 3}'])))
  )

  it.effect(
    "an approval inside of it suspends the run; each agent goes on at its place, and nothing is asked twice",
    () => {
      let refunds = 0
      const refund = Tool.make("refund", {
        description: "",
        parameters: {},
        execute: () => Effect.sync(() => `refunded ${++refunds}`)
      })
      const ask = Middleware.make({
        asks: true,
        name: "ask",
        inherit: true,
        rulings: (_run, calls) =>
          Effect.succeed(
            calls.map(({ name }) => (name === "refund" ? Ruling.ask("test", { description: "refund?" }) : undefined))
          )
      })
      const cashier = Agent.make({ name: "cashier", description: "", prompt: "CASHIER", tools: [refund] })
      const desk = Agent.make({
        name: "desk",
        description: "",
        prompt: "DESK",
        middleware: [Handoffs.peers({ cashier: "Money" })]
      })
      const agent = Agent.make({
        name: "reception",
        prompt: "RECEPTION",
        middleware: [ask, Handoffs.make({ agents: [desk, cashier] })]
      })
      return Effect.gen(function* () {
        const first = yield* Agent.run(agent, "Money back")
        assert.strictEqual(first.stopReason, "suspended")
        assert.strictEqual(refunds, 0)
        const result = yield* Agent.resume(agent, {
          checkpoint: first,
          decisions: first.pending.map((request) => Approval.approve(request))
        })
        assert.strictEqual(result.text, "Done.")
        assert.strictEqual(refunds, 1)
        assert.strictEqual(activeIn(result.state), "cashier")
        assert.strictEqual((yield* requestsOf("DESK")).length, 1)
        const last = yield* Agent.run(agent, "Thanks", next(result))
        assert.strictEqual(last.text, "Bye.")
        assert.deepStrictEqual((yield* requestsOf("CASHIER")).at(-1), [
          "human: Money back",
          "human: The conversation was handed over to you, with this note: pay",
          "ai: <refund>",
          "tool: refunded 1",
          "ai: Done.",
          "human: Thanks"
        ])
      }).pipe(
        Effect.provide(
          TestChatModel.script([
            hands("desk"),
            hands("cashier", "pay"),
            TestChatModel.calls([{ name: "refund", arguments: {} }]),
            "Done.",
            "Bye."
          ])
        )
      )
    }
  )

  it.effect("refuses undecidable calls to the agent that has the conversation", () => {
    const ask = Middleware.make({
      asks: true,
      name: "ask",
      rulings: (_run, calls) => Effect.succeed(calls.map(() => Ruling.ask("test", { description: "may it?" })))
    })
    const waiting = Agent.make({ name: "waiting", prompt: "WAITING", tools: [lookup], middleware: [ask] })
    const agent = Agent.make({ name: "reception", prompt: "R", middleware: [Handoffs.make({ agents: [waiting] })] })
    return Effect.gen(function* () {
      const result = yield* Agent.run(agent, "Go")
      assert.strictEqual(result.text, "Sorry.")
      assert.strictEqual(activeIn(result.state), "waiting")
    }).pipe(
      Effect.provide(
        TestChatModel.script([hands("waiting"), TestChatModel.calls([{ name: "lookup", arguments: {} }]), "Sorry."])
      )
    )
  })

  it.effect("an agent that is gone leaves the conversation to the first one", () =>
    Effect.gen(function* () {
      const first = yield* Agent.run(reception, "Go")
      const alone = Agent.make({ name: "reception", prompt: "ALONE", middleware: [Handoffs.make({ agents: [sales] })] })
      const second = yield* Agent.run(alone, "Go on", next(first))
      assert.strictEqual(second.text, "I am here.")
    }).pipe(Effect.provide(TestChatModel.script([hands("billing"), "Mine.", "I am here."])))
  )

  it.effect("an agent with peers that runs by itself ends its run, and the next one is its own again", () =>
    Effect.gen(function* () {
      const first = yield* Agent.run(billing, "Go")
      assert.strictEqual(first.text, 'The conversation goes on with "sales".')
      const second = yield* Agent.run(billing, "Go on", next(first))
      assert.strictEqual(second.text, "Still me.")
    }).pipe(Effect.provide(TestChatModel.script([hands("sales"), "Still me."])))
  )
})
