/**
 * Mistakes of models, and answers of tools: a failure is told to the model and ends nothing, arguments are coerced
 * where the schema leaves no doubt, and a tool may give the final answer itself.
 */
import assert from "node:assert/strict"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Schema } from "effect"
import { Agent, Message, Tool, ToolError, ToolOutput } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"

const divide = Tool.make("divide", {
  description: "Divides two numbers",
  parameters: { dividend: Schema.Finite, divisor: Schema.Finite },
  execute: ({ dividend, divisor }) =>
    divisor === 0
      ? Effect.fail(ToolError.make("The divisor is 0; give another one"))
      : Effect.succeed(String(dividend / divisor))
})

const finish = Tool.make("finish", {
  description: "Ends with this result",
  parameters: { result: Schema.String },
  execute: ({ result }) => Effect.succeed(ToolOutput.make(`The result is ${result}.`, { returnDirect: true }))
})

const agent = Agent.make({ name: "calculator", prompt: "You calculate.", tools: [divide, finish] })

const model = TestChatModel.script([
  TestChatModel.calls([
    { name: "divide", arguments: { dividend: "10", divisor: 4 } },
    { name: "divide", arguments: { dividend: 10, divisor: 0 } },
    { name: "divide", arguments: { dividend: 10 } },
    { name: "multiply", arguments: { left: 2, right: 3 } }
  ]),
  TestChatModel.malformed('{ "dividend": 10, ', { name: "divide" }),
  TestChatModel.calls([{ name: "finish", arguments: { result: "2.5" } }])
])

const program = Effect.gen(function* () {
  const { messages, stopReason, text } = yield* Agent.run(agent, "What is 10 / 4?")
  const results = messages.filter((message) => message.role === "tool")
  for (const result of results) {
    yield* Console.log(`${result.isError ? "error " : "ok    "} ${result.toolName}: ${Message.text(result)}`)
  }
  yield* Console.log(`${stopReason}: ${text}`)
  // Every call has its result, in the order of the calls.
  assert.deepEqual(
    results.map((result) => result.isError),
    [false, true, true, true, true, false]
  )
  assert.equal(text, "The result is 2.5.")
})

NodeRuntime.runMain(program.pipe(Effect.provide(model)))
