import assert from "node:assert/strict"
import { test } from "node:test"
import { Effect } from "effect"
import { Agent, Message } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"
import { agent } from "../src/agent.ts"

test("it looks an order up before it answers", async () => {
  const model = TestChatModel.script([
    TestChatModel.calls([{ name: "lookup_order", arguments: { number: "42" } }]),
    "Your order was sent on Monday."
  ])
  const result = await Effect.runPromise(Effect.provide(Agent.run(agent, "Where is order 42?"), model))
  const found = result.messages.find((message) => message.role === "tool")
  assert.ok(found !== undefined)
  assert.match(Message.text(found), /was sent on Monday/)
  assert.equal(result.text, "Your order was sent on Monday.")
})
