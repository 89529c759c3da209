/**
 * The demo's agents: one that writes a report about the workspace, and one that it delegates questions to.
 */
import { Agent, type Backend, type ChatModel, type ModelError } from "effect-deepagents"
import { FileTools } from "effect-deepagents/backends"
import { ModelRetry, ModelTimeout } from "effect-deepagents/middleware"
import { writeTodos } from "./tools.ts"
import { outputRoute } from "./workspace.ts"

/** Where the report goes. */
export const reportPath = `${outputRoute}/report.md`

/** What any real model needs. */
const patience = [ModelRetry.make(), ModelTimeout.make()]

const researcher = Agent.make({
  name: "researcher",
  description: "Answers one question about the code. It searches and reads by itself and starts without any context.",
  prompt: "You answer one question about the code in this folder. Search, read what you found, name your sources.",
  tools: FileTools.make({ only: ["ls", "read_file", "glob", "grep"] }),
  middleware: patience,
  maxIterations: 10
})

/** Its type says all that it needs: a model, and the files that its tools work on. */
export const reporter: Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel | Backend.Backend> = Agent.make({
  name: "reporter",
  prompt: [
    "You write a short report about the code in this folder, with numbers that you have read or counted yourself.",
    "Plan with write_todos first. Call tools that don't need each other's results in one turn.",
    "Delegate questions that need a search of their own to the researcher.",
    `Finish by writing the report to ${reportPath}, the one place that you can write to, then say what you found.`
  ].join("\n"),
  tools: [
    writeTodos,
    ...FileTools.make({ only: ["ls", "read_file", "write_file", "edit_file", "glob", "grep"] }),
    Agent.asTool(researcher)
  ],
  middleware: patience,
  maxIterations: 20
})
