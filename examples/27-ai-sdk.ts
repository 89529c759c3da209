/**
 * Any model of the AI SDK as the model of an agent; here its own mock, so that the example runs without a key.
 */
import assert from "node:assert/strict"
import type { LanguageModelV4StreamPart } from "@ai-sdk/provider"
import { NodeRuntime } from "@effect/platform-node"
import { MockLanguageModelV4, simulateReadableStream } from "ai/test"
import { Console, Effect, Schema } from "effect"
import { Agent, Sources, Tool } from "effect-deepagents"
import * as AiSdkChatModel from "effect-deepagents/models/bridges/AiSdkChatModel"

const answers: ReadonlyArray<Array<LanguageModelV4StreamPart>> = [
  [
    { type: "tool-call", toolCallId: "1", toolName: "weather", input: '{"city":"Ulm"}' },
    {
      type: "finish",
      finishReason: { unified: "tool-calls", raw: "tool_calls" },
      usage: {
        inputTokens: { total: 100, noCache: 100, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 20, text: 20, reasoning: 0 }
      }
    }
  ],
  [
    { type: "source", sourceType: "url", id: "1", url: "https://example.com/ulm", title: "Weather of Ulm" },
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: "It is sunny " },
    { type: "text-delta", id: "1", delta: "in Ulm." },
    { type: "text-end", id: "1" },
    {
      type: "finish",
      finishReason: { unified: "stop", raw: "stop" },
      usage: {
        inputTokens: { total: 150, noCache: 50, cacheRead: 100, cacheWrite: 0 },
        outputTokens: { total: 10, text: 10, reasoning: 0 }
      }
    }
  ]
]

// In the place of `mistral("mistral-large-latest")`, `google("gemini-3.5-flash")` …
const model = new MockLanguageModelV4({
  provider: "acme.chat",
  modelId: "acme-large",
  doStream: answers.map((chunks) => ({ stream: simulateReadableStream({ chunks }) }))
})

const weather = Tool.make("weather", {
  description: "Tells the weather of a city",
  parameters: { city: Schema.String },
  execute: ({ city }) => Effect.succeed(`sunny in ${city}`)
})

const agent = Agent.make({ name: "meteorologist", prompt: "You tell the weather.", tools: [weather] })

const program = Effect.gen(function* () {
  const result = yield* Agent.run(agent, "How is the weather in Ulm?")
  yield* Console.log(result.text)
  yield* Console.log(Sources.render(Sources.of(result)))
  yield* Console.log(`${result.usage.inputTokens} tokens in, ${result.usage.cost} dollars`)
  assert.equal(result.text, "It is sunny in Ulm.")
  assert.equal(Sources.of(result).length, 1)
}).pipe(Effect.provide(AiSdkChatModel.layer(model, { prices: { input: 1, output: 4 } })))

NodeRuntime.runMain(program)
