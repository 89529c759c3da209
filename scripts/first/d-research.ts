/** Research: sub-agents read side by side what they can't change, and the lead writes a file. */
import { Console, Effect, Layer, Stream } from "effect"
import { Agent, AgentEvent } from "effect-deepagents"
import { CompositeBackend, Permissions } from "effect-deepagents/backends"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import { DeepAgent } from "effect-deepagents/deep"
import { ChatModels } from "effect-deepagents/models"

const researcher = DeepAgent.subagent({
  name: "researcher",
  description: "Answers one question from the documents",
  prompt: "You answer one question, with the paths of your sources.",
  files: ["ls", "read_file", "glob", "grep"]
})

const lead = DeepAgent.make({
  name: "lead",
  prompt: "Give each part of the question to a researcher, all at once. Write the report to /report.md.",
  subagents: [researcher]
})

const files = CompositeBackend.layer({
  default: FilesystemBackend.layer({ root: "." }),
  routes: {
    "/documents": Permissions.layer({
      rules: [{ operations: ["write"], paths: ["/**"], ruling: "refuse" }]
    }).pipe(Layer.provide(FilesystemBackend.layer({ root: "documents" })))
  }
})

const program = Agent.stream(lead, "When does the bus run, and what does it cost?").pipe(
  AgentEvent.filter(["ToolCalled"]),
  Stream.runForEach((event) => Console.log(event.path.join(" > "), event.toolName)),
  Effect.provide([files, ChatModels.resolve("anthropic:claude-sonnet-5-5")])
)

await Effect.runPromise(program)
