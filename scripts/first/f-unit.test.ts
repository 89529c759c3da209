/** Tests of an agent, without a network. */
import assert from "node:assert/strict"
import { test } from "node:test"
import { Effect, Schema } from "effect"
import { Agent, Message, Tool } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"

const lookup = Tool.make("lookup", {
  description: "Finds an order",
  parameters: { id: Schema.String },
  execute: ({ id }) => (id === "42" ? Effect.succeed("shipped") : Effect.fail("no such order"))
})
const agent = Agent.make({ name: "support", prompt: "You help.", tools: [lookup] })

const ask = (...turns: ReadonlyArray<TestChatModel.Turn>) =>
  Effect.runPromise(Effect.provide(Agent.run(agent, "My order?"), TestChatModel.script(turns)))
const call = (id: string) => TestChatModel.calls([{ name: "lookup", arguments: { id } }])

test("it answers", async () => assert.equal((await ask("Which one?")).text, "Which one?"))
test("it looks the order up", async () => {
  const { messages } = await ask(call("42"), "It is on its way.")
  assert.deepEqual(messages.map(Message.text), ["My order?", "", "shipped", "It is on its way."])
})
test("it hears of failures", async () => {
  const { messages } = await ask(call("7"), "There is none.")
  assert.match(messages.map(Message.text).join("\n"), /no such order/)
})
test("it fails when the script is too short", () => assert.rejects(ask(call("42")), /script/))
