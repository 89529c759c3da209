/**
 * An answer with a type: the agent's output is decoded with a Schema, and an answer that does not decode goes back to
 * the model with what is wrong.
 */
import assert from "node:assert/strict"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Schema } from "effect"
import { Agent } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"

const Ticket = Schema.Struct({
  title: Schema.String,
  priority: Schema.Literals(["low", "high"]),
  due: Schema.DateFromString
})

const triage = Agent.make({ name: "triage", prompt: "Turn what the user writes into a ticket.", output: Ticket })

const model = TestChatModel.script([
  '{ "title": "Login fails", "priority": "urgent", "due": "2027-01-15" }',
  '{ "title": "Login fails", "priority": "high", "due": "2027-01-15" }'
])

const program = Effect.gen(function* () {
  const { newMessages, output } = yield* Agent.run(triage, "Nobody can log in! Fix it by the 15th of January.")
  yield* Console.log(`${output.title} (${output.priority}), due in ${output.due.getFullYear()}`)
  assert.equal(output.priority, "high")
  assert(output.due instanceof Date)
  yield* Console.log(`${newMessages.length} messages: ${newMessages.map((message) => message.role).join(", ")}`)
  const [request] = yield* TestChatModel.requests
  assert.equal(request?.outputSchema?.["type"], "object")
})

NodeRuntime.runMain(program.pipe(Effect.provide(model)))
