/** Answers a question from the files in `documents`: npm start -- "What changed between the two years?" */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Config, Console, Effect, Layer, Stdio, Stream } from "effect"
import { Agent, AgentEvent } from "effect-deepagents"
import { CompositeBackend, Permissions } from "effect-deepagents/backends"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import { ChatModels } from "effect-deepagents/models"
import { agent } from "./agent.ts"

const model = Layer.unwrap(
  Effect.map(Config.String("MODEL").pipe(Config.withDefault("anthropic:claude-sonnet-5-5")), (spec) =>
    ChatModels.resolve(spec)
  )
)

/** The documents can only be read; whatever the agent writes goes to `output`. */
const files = CompositeBackend.layer({
  default: FilesystemBackend.layer({ root: "output" }),
  routes: {
    "/documents": Permissions.layer({
      rules: [{ operations: ["read"], paths: ["/**"], ruling: "allow" }],
      default: "refuse"
    }).pipe(Layer.provide(FilesystemBackend.layer({ root: "documents" })))
  }
})

const program = Effect.gen(function* () {
  const [question = "What is in the documents?"] = yield* (yield* Stdio.Stdio).args
  const events = Agent.stream(agent, question)
  yield* Stream.runForEach(AgentEvent.filter(events, ["ToolCalled", "MessageAppended"]), (event) => {
    if (event._tag === "ToolCalled") return Console.error(`${"  ".repeat(event.path.length)}→ ${event.toolName}`)
    const { message, path } = event
    const text = message.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("")
    return message.role === "ai" && path.length === 1 && text !== "" ? Console.log(text) : Effect.void
  })
}).pipe(
  Effect.provide([model, files, NodeServices.layer]),
  Effect.tapError((error) => Console.error(error.message))
)

NodeRuntime.runMain(program, { disableErrorReporting: true })
