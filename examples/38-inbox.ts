/**
 * An inbox over all threads: two customers' threads wait for a decision, finance is told once, one decides, and the
 * threads go on; the audit says who decided what.
 */
import assert from "node:assert/strict"
import { Console, Effect, Layer, Schema, Stream } from "effect"
import { Agent, Approval, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Audit, Inbox, Notify } from "effect-deepagents/rules"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"

const refund = Tool.make("refund", {
  description: "Refunds an order",
  parameters: { order: Schema.String, amount: Schema.Int },
  execute: ({ amount, order }) => Effect.succeed(`order ${order}: ${amount} refunded`)
})

const clerk = Agent.make({
  name: "clerk",
  prompt: "You look after orders.",
  tools: [refund],
  middleware: [
    HumanInTheLoop.make({
      tools: HumanInTheLoop.on(refund, {
        name: "large refunds",
        when: ({ amount }) => amount > 100,
        deciders: ["role:finance"]
      })
    })
  ]
})

const model = TestChatModel.reactive(({ messages }) =>
  messages.at(-1)?.role === "tool"
    ? "It is done."
    : TestChatModel.calls([{ name: "refund", arguments: { order: `${messages.length}`, amount: 250 } }])
)

const sessions = SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))
const inbox = Inbox.layer({ deliver: Inbox.toAgents([clerk]) }).pipe(
  Layer.provideMerge(Layer.mergeAll(sessions, model, Notify.terminal))
)

const program = Effect.gen(function* () {
  const { claim, decide, list, notify } = yield* Inbox.Inbox
  yield* Agent.run(clerk, "My order is broken", { threadId: "ada" })
  yield* Agent.run(clerk, "Mine, too", { threadId: "bob" })

  assert.equal((yield* notify).length, 2)
  assert.equal((yield* notify).length, 0)

  const by = { id: "eve", roles: ["finance"] }
  const [first, second] = yield* list({ kinds: ["approval"] })
  assert(first !== undefined && second !== undefined)
  yield* claim(first.id, { by })
  const refused = yield* Effect.flip(decide([Approval.approve(second.request)], { by: { id: "mallory" } }))
  yield* Console.log(refused.message)
  yield* decide([Approval.approve(first.request), Approval.reject(second.request, "look at it first")], { by })
  assert.equal((yield* list()).length, 0)

  const records = yield* Stream.runCollect(Audit.records())
  for (const { decision, request, threadId } of records) {
    yield* Console.log(`${threadId}: ${request.rule}: ${decision?._tag} by ${decision?.by?.id}`)
  }
})

await Effect.runPromise(Effect.provide(program, inbox))
