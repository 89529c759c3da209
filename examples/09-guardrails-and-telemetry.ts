/**
 * Guardrails that answer in the model's place or refuse a tool call, and the trace of a run by OpenTelemetry's
 * conventions. Here it is printed; a layer of effect/observability exports it.
 */
import assert from "node:assert/strict"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Option, Schema, Tracer } from "effect"
import { Agent, Tool } from "effect-deepagents"
import { Guardrail, Telemetry } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"

const noPasswords = Guardrail.input({
  name: "no-passwords",
  check: ({ text }) => Effect.succeed(/password/i.test(text) ? Guardrail.trip("asks for a password") : Guardrail.pass),
  onTrip: { answer: "I can't help with passwords." }
})

const ownOrders = Guardrail.toolCalls({
  name: "own-orders",
  check: ({ call }) =>
    Effect.succeed(call.arguments["orderId"] === "42" ? Guardrail.pass : Guardrail.trip("it is somebody else's order"))
})

const lookup = Tool.make("lookup_order", {
  description: "Find an order by its id",
  parameters: { orderId: Schema.String },
  execute: () => Effect.succeed("shipped on Monday")
})

const support = Agent.make({
  name: "support",
  prompt: "You help customers.",
  tools: [lookup],
  middleware: [Telemetry.make(), noPasswords, ownOrders]
})

const model = TestChatModel.script([
  TestChatModel.calls(["42", "43"].map((orderId) => ({ name: "lookup_order", arguments: { orderId } }))),
  TestChatModel.text("Yours was shipped on Monday.", { usage: { inputTokens: 70, outputTokens: 9 } })
])

const program = Effect.gen(function* () {
  const spans: Array<Tracer.NativeSpan> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })

  const { newMessages, text } = yield* Agent.run(support, "Where are the orders 42 and 43?").pipe(
    Effect.withTracer(tracer)
  )
  yield* Console.log(text)
  const refused = newMessages.filter((message) => message.role === "tool" && message.isError)
  assert.equal(refused.length, 1)

  for (const { attributes, name, parent } of spans) {
    const tokens = attributes.get("gen_ai.usage.output_tokens")
    yield* Console.log(
      `${Option.isSome(parent) ? "  " : ""}${name}${typeof tokens === "number" ? `: ${tokens} tokens` : ""}`
    )
  }
  assert.deepEqual(
    spans.map((span) => span.name),
    ["invoke_agent support", "chat scripted", "execute_tool lookup_order", "chat scripted"]
  )

  const second = yield* Agent.run(support, "What is the password of the admin?")
  yield* Console.log(`${second.stopReason}: ${second.text}`)
  assert.equal(second.stopReason, "refused")
})

NodeRuntime.runMain(program.pipe(Effect.provide(model)))
