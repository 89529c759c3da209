/** A chat at the terminal, kept in SQLite. */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, Stream, Terminal } from "effect"
import { Agent, AgentEvent } from "effect-deepagents"
import { ChatModels } from "effect-deepagents/models"
import { Chat } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"

const agent = Agent.make({ name: "helper", prompt: "You help." })

const program = Effect.gen(function* () {
  const terminal = yield* Terminal.Terminal
  const chat = yield* Chat.make(agent, "me")
  yield* Console.log(`${(yield* chat.history).length} messages so far`)
  while (true) {
    yield* terminal.display("> ")
    const words = AgentEvent.textDeltas(chat.stream(yield* terminal.readLine))
    yield* Stream.runForEach(words, (text) => terminal.display(text))
  }
}).pipe(
  Effect.catchTag("QuitError", () => Console.log("\nGoodbye.")),
  Effect.provide([SqliteSessions.layer({ file: "chat.db" }), ChatModels.resolve("anthropic:claude-sonnet-5-5")]),
  Effect.provide(NodeServices.layer)
)

NodeRuntime.runMain(program)
