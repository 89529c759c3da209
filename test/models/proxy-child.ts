/** Sends one request to one model, by the environment alone: the proxy test runs it in a process of its own. */
import { Effect, Redacted } from "effect"
import { Agent } from "effect-deepagents"
import * as AnthropicChatModel from "effect-deepagents/models/AnthropicChatModel"
import * as OpenAiCompatibleChatModel from "effect-deepagents/models/OpenAiCompatibleChatModel"

const apiKey = Redacted.make("none")
const layer =
  process.argv[2] === "anthropic"
    ? AnthropicChatModel.layer({ model: "claude-x", apiKey, baseURL: "http://model.invalid" })
    : OpenAiCompatibleChatModel.layer({ model: "x", apiKey, baseURL: "http://model.invalid/v1" })

const program = Agent.run(Agent.make({ name: "a", prompt: "" }), "hello").pipe(Effect.provide(layer))

Effect.runPromise(program).then(
  ({ text }) => console.log(text),
  (error: unknown) => console.log(String(error))
)
