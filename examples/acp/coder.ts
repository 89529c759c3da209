/** A coder behind the Agent Client Protocol, as editors start one. Its sessions lie in the folder of its argument. */
import { join } from "node:path"
import { NodeRuntime, NodeStdio } from "@effect/platform-node"
import { Layer } from "effect"
import { Agent } from "effect-deepagents"
import { AcpServer } from "effect-deepagents/acp"
import { FileTools } from "effect-deepagents/backends"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { TestChatModel } from "effect-deepagents/testing"

const coder = Agent.make({
  name: "coder",
  prompt: "You write code.",
  tools: FileTools.make(),
  middleware: [HumanInTheLoop.make({ tools: { write_file: true } })]
})

const model = TestChatModel.reactive(({ messages }) =>
  messages.at(-1)?.role === "tool"
    ? "The greeting is written."
    : TestChatModel.calls([{ name: "write_file", arguments: { file_path: "greeting.ts", content: "export {}\n" } }])
)

const server = AcpServer.layer({ agents: { coder } }).pipe(
  Layer.provide([NodeStdio.layer, SqliteSessions.layer({ file: join(process.argv[2] ?? ".", "threads.db") }), model])
)

NodeRuntime.runMain(Layer.launch(server))
