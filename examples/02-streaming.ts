/**
 * Watching a run: everything that happens is one stream of events. Leaving the stream ends the run.
 */
import assert from "node:assert/strict"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Match, Schema, Stream } from "effect"
import { Agent, AgentEvent, Tool, ToolCall } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"

const weather = Tool.make("weather", {
  description: "Tells the weather of a city",
  parameters: { city: Schema.String },
  execute: ({ city }) => Effect.succeed(city === "Oslo" ? "snow, -3 °C" : "sun, 21 °C")
})

const agent = Agent.make({ name: "forecaster", prompt: "You know the weather.", tools: [weather] })

const model = TestChatModel.reactive((request) =>
  request.messages.some((message) => message.role === "tool")
    ? TestChatModel.text(["Oslo has snow, ", "Rome has sun."], { usage: { inputTokens: 60, outputTokens: 8 } })
    : TestChatModel.calls(
        [
          { name: "weather", arguments: { city: "Oslo" } },
          { name: "weather", arguments: { city: "Rome" } }
        ],
        { usage: { inputTokens: 40, outputTokens: 12 } }
      )
)

const show = Match.type<AgentEvent.AgentEvent>().pipe(
  Match.tags({
    TextDelta: (event) => Console.log(`text    ${event.text}`),
    ToolCalled: (event) => Console.log(`call    ${event.toolName} (${ToolCall.describeArguments(event.arguments)})`),
    ToolCompleted: (event) => Console.log(`result  ${event.text}`),
    RunCompleted: (event) => Console.log(`end     ${event.stopReason} after ${event.rounds} rounds`)
  }),
  Match.orElse(() => Effect.void)
)

const program = Effect.gen(function* () {
  const events = yield* Agent.stream(agent, "How is it in Oslo and Rome?").pipe(Stream.tap(show), Stream.runCollect)
  const usage = AgentEvent.usageOf(events)
  yield* Console.log(`usage   ${usage.inputTokens} tokens in, ${usage.outputTokens} out`)
  assert.deepEqual([usage.inputTokens, usage.outputTokens], [100, 20])
  // The conversation can be rebuilt from the events alone.
  assert.deepEqual(
    AgentEvent.transcript(events).map((message) => message.role),
    ["human", "ai", "tool", "tool", "ai"]
  )

  const first = yield* Agent.stream(agent, "How is it in Oslo and Rome?").pipe(
    AgentEvent.filter("ToolCompleted"),
    Stream.runHead
  )
  assert(first._tag === "Some" && first.value.text === "snow, -3 °C")
})

NodeRuntime.runMain(program.pipe(Effect.provide(model)))
