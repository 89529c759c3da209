import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import {
  Agent,
  Approval,
  type Checkpoint,
  Message,
  Middleware,
  Ruling,
  Tool,
  ToolContext,
  Usage
} from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"

class Ledger extends Context.Service<Ledger, { readonly find: (order: string) => Effect.Effect<string | undefined> }>()(
  "test/Ledger"
) {}

/** A round that was cut off: two calls, of which nobody knows anything. */
const crashed = (name = "pay"): Checkpoint.Checkpoint => ({
  messages: [
    Message.human("go"),
    Message.ai("", {
      toolCalls: ["1", "2"].map((order) => ({ id: `c${order}`, name, arguments: { order } })),
      stopReason: "toolCalls"
    })
  ],
  state: {},
  usage: Usage.zero,
  rounds: 1
})

const answers = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))

const payment = (
  reconcile: (order: string) => Effect.Effect<Tool.Reconciliation, unknown, Ledger | ToolContext.ToolContext>,
  annotations: Tool.Annotations = {}
) => {
  const ran: Array<string> = []
  const pay = Tool.make("pay", {
    description: "Pays",
    parameters: { order: Schema.String },
    annotations,
    reconcile: ({ order }) => reconcile(order),
    execute: ({ order }) => Effect.sync(() => (ran.push(order), `paid ${order} now`))
  })
  return { pay, ran }
}

const ledger = Layer.succeed(Ledger, {
  find: (order) => Effect.succeed(order === "1" ? "paid 1 before the crash" : undefined)
})

const done = Effect.provide([ledger, TestChatModel.script(["done"])])

describe("a tool that can reconcile its calls", () => {
  it.effect("is asked before its call is called unknown: finished calls are told, calls that never began run", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const { pay, ran } = payment((order) =>
        Effect.gen(function* () {
          asked.push((yield* ToolContext.ToolContext).callId)
          const found = yield* Ledger.use(({ find }) => find(order))
          return found === undefined ? Tool.neverBegan : Tool.completed(found)
        })
      )
      const agent = Agent.make({ name: "a", prompt: "", tools: [pay] })
      const result = yield* Agent.resume(agent, { checkpoint: crashed() })
      assert.deepStrictEqual(asked, ["c1", "c2"])
      assert.deepStrictEqual(ran, ["2"])
      assert.deepStrictEqual(answers(result.messages), ["paid 1 before the crash", "paid 2 now"])
    }).pipe(done)
  )

  it.effect("runs a call that the tool calls repeatable, and leaves a call unknown that it does not know", () =>
    Effect.gen(function* () {
      const { pay, ran } = payment((order) => Effect.succeed(order === "1" ? Tool.repeatable : Tool.unknown))
      const agent = Agent.make({ name: "a", prompt: "", tools: [pay] })
      const result = yield* Agent.resume(agent, { checkpoint: crashed() })
      assert.deepStrictEqual(ran, ["1"])
      assert.include(answers(result.messages)[1], "not known")
    }).pipe(done)
  )

  for (const [how, broken] of [
    ["fails", Effect.fail("the ledger is down")],
    ["dies", Effect.die(new Error("boom"))],
    ["throws", undefined]
  ] as const) {
    it.effect(`that ${how} when it is asked does not know`, () =>
      Effect.gen(function* () {
        const { pay, ran } = payment(() => {
          if (broken === undefined) throw new Error("thrown")
          return broken
        })
        const agent = Agent.make({ name: "a", prompt: "", tools: [pay] })
        const result = yield* Agent.resume(agent, { checkpoint: crashed() })
        assert.deepStrictEqual(ran, [])
        for (const text of answers(result.messages)) assert.include(text, "not known")
      }).pipe(done)
    )
  }

  it.effect("is not asked about a repeatable call, nor in a round without a cut", () =>
    Effect.gen(function* () {
      const { pay, ran } = payment(() => Effect.die("asked"), { idempotent: true })
      const agent = Agent.make({ name: "a", prompt: "", tools: [pay] })
      yield* Agent.resume(agent, { checkpoint: crashed() })
      assert.deepStrictEqual(ran, ["1", "2"])
      const other = payment(() => Effect.die("asked"))
      const fresh = Agent.make({ name: "a", prompt: "", tools: [other.pay] })
      yield* Agent.run(fresh, "go").pipe(
        Effect.provide(
          TestChatModel.script([TestChatModel.calls([{ name: "pay", arguments: { order: "1" } }]), "done"])
        )
      )
      assert.deepStrictEqual(other.ran, ["1"])
    }).pipe(done)
  )

  it.effect("never began: gates decide on it as on any call; it was done: they are not asked", () =>
    Effect.gen(function* () {
      const { pay, ran } = payment((order) =>
        Effect.succeed(order === "1" ? Tool.completed("done before") : Tool.neverBegan)
      )
      const gated: Array<string> = []
      const asking = Middleware.make({
        asks: true,
        name: "asking",
        rulings: (_run, calls) =>
          Effect.sync(() =>
            calls.map(({ id }) => {
              gated.push(id)
              return Ruling.ask("test", { description: "may I?" })
            })
          )
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [pay], middleware: [asking] })
      const first = yield* Agent.resume(agent, { checkpoint: crashed() }).pipe(
        Effect.provide(TestChatModel.script(["never"], { exhaustive: false }))
      )
      assert.deepStrictEqual([first.stopReason, gated, ran], ["suspended", ["c2"], []])
      const result = yield* Agent.resume(agent, {
        checkpoint: first,
        decisions: first.pending.map((request) => Approval.approve(request))
      })
      assert.deepStrictEqual(ran, ["2"])
      assert.deepStrictEqual(answers(result.messages), ["done before", "paid 2 now"])
    }).pipe(done)
  )
})
