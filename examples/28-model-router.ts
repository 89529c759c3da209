/**
 * Choosing models at run time: a router, a hedge, a circuit breaker and a cache of answers, on scripted models.
 */
import assert from "node:assert/strict"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Stream } from "effect"
import { Agent } from "effect-deepagents"
import { CircuitBreaker, ModelFallback, ModelHedge, ModelRouter, ResponseCache } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { KeyValueStore } from "effect/persistence"

/** Answers with its name; asked to classify, it finds anything with a "prove" in it hard. */
const scripted = (modelId: string, options: { readonly delay?: string; readonly price: number }) =>
  TestChatModel.reactive(
    (request) => {
      const asked = JSON.stringify(request.messages.at(-1)?.content)
      if (request.purpose === "route") return TestChatModel.text(asked.includes("prove") ? "large" : "small")
      return TestChatModel.text(`This is ${modelId}.`, { delay: options.delay === "slow" ? "1 minute" : "1 millis" })
    },
    { modelId, prices: { input: options.price, output: options.price } }
  )

const small = scripted("small", { price: 1 })
const large = scripted("large", { price: 10, delay: "slow" })
const elsewhere = scripted("elsewhere", { price: 10 })

const agent = Agent.make({
  name: "assistant",
  prompt: "You help.",
  middleware: [
    ResponseCache.make({ ttl: "1 day" }),
    ModelFallback.make([elsewhere]),
    ModelRouter.make({
      models: { small, large },
      rules: [
        ModelRouter.byClassifier({ models: { small: "what is easy", large: "proofs" }, by: "small" }),
        ModelRouter.cheapest(["small", "large"])
      ]
    }),
    ModelHedge.make([elsewhere], { after: "50 millis" }),
    CircuitBreaker.make({ failures: 3 })
  ]
})

const ask = Effect.fnUntraced(function* (question: string) {
  let text = ""
  yield* Stream.runForEach(Agent.stream(agent, question), (event) => {
    if (event._tag === "TextDelta") text += event.text
    if (event._tag === "Warning") return Console.log(`  (${event.code}: ${event.message})`)
    return event._tag === "Custom" ? Console.log(`  (${event.name})`) : Effect.void
  })
  yield* Console.log(`${question} ${text}`)
  return text
})

const program = Effect.gen(function* () {
  assert.equal(yield* ask("How are you?"), "This is small.")
  // The large model is slow to begin, and the hedge wins.
  assert.equal(yield* ask("Can you prove it?"), "This is elsewhere.")
  // The same question again asks nobody.
  assert.equal(yield* ask("Can you prove it?"), "This is elsewhere.")
}).pipe(Effect.provide([large, KeyValueStore.layerMemory]))

NodeRuntime.runMain(program)
