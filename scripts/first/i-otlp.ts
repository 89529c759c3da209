/** Traces and metrics over OTLP, of an agent and its sub-agent. */
import { Effect, Layer } from "effect"
import { Agent } from "effect-deepagents"
import { Telemetry } from "effect-deepagents/middleware"
import { ChatModels } from "effect-deepagents/models"
import { FetchHttpClient } from "effect/http"
import { Otlp } from "effect/observability"

const poet = Agent.make({
  name: "poet",
  description: "Writes a line",
  prompt: "You write.",
  middleware: [Telemetry.make()]
})
const lead = Agent.make({
  name: "lead",
  prompt: "You ask the poet.",
  tools: [Agent.asTool(poet)],
  middleware: [Telemetry.make()]
})

const otlp = Otlp.layerJson({
  baseUrl: process.env["OTLP_URL"] ?? "http://127.0.0.1:4318",
  resource: { serviceName: "shop" }
}).pipe(Layer.provide(FetchHttpClient.layer))

const program = Agent.run(lead, "A line, please.").pipe(
  Effect.withSpan("my program"),
  Effect.provide([otlp, ChatModels.resolve("anthropic:claude-sonnet-5-5")])
)
console.log((await Effect.runPromise(program)).text)
