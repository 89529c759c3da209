/** Talks at the terminal. The conversation is kept in chat.db: stop at any time, and go on later. */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, Stream, Terminal } from "effect"
import { AgentEvent } from "effect-deepagents"
import { Chat } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { Printer } from "effect-deepagents/view"
import { agent } from "./agent.ts"
import { model } from "./model.ts"

const program = Effect.gen(function* () {
  const terminal = yield* Terminal.Terminal
  const chat = yield* Chat.make(agent, "me")
  const turn = Effect.gen(function* () {
    yield* terminal.display("\n> ")
    const line = yield* terminal.readLine
    const words = chat.stream(line).pipe(AgentEvent.textDeltas)
    yield* Stream.runForEach(words, (text) => terminal.display(text))
  })
  yield* Console.log("Ask about order 42. Ctrl-D ends.")
  yield* Effect.forever(turn)
}).pipe(
  Effect.catchTag("QuitError", () => Console.log("\nGoodbye.")),
  Effect.provide([model, SqliteSessions.layer({ file: "chat.db" }), NodeServices.layer]),
  Printer.orExit
)

NodeRuntime.runMain(program)
