/** A model that a server on this machine serves. */
import { Console, Effect } from "effect"
import { Agent } from "effect-deepagents"
import { ModelRetry } from "effect-deepagents/middleware"
import { ChatModels } from "effect-deepagents/models"

const agent = Agent.make({ name: "helper", prompt: "You help.", middleware: [ModelRetry.make()] })

const model = ChatModels.resolve("vllm:Qwen/Qwen3-32B", {
  baseURL: process.env["VLLM_URL"] ?? "http://127.0.0.1:8000/v1",
  contextWindowTokens: 40_960
})

const program = Effect.gen(function* () {
  const { text } = yield* Agent.run(agent, "Why is the sky blue?")
  yield* Console.log(text)
})

await Effect.runPromise(Effect.provide(program, model))
