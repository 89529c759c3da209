/** The tools of an MCP server. */
import { NodeHttpClient, NodeServices } from "@effect/platform-node"
import { Console, Effect, Layer } from "effect"
import { Agent, Approval } from "effect-deepagents"
import { Mcp, McpServers } from "effect-deepagents/mcp"
import { ChatModels } from "effect-deepagents/models"

const servers = McpServers.layer({
  everything: { type: "stdio", command: "node", args: [process.env["MCP_SERVER"] ?? "server.js"] }
}).pipe(Layer.provide([NodeServices.layer, NodeHttpClient.layerUndici]))

const yes = Layer.succeed(Approval.Approvals, { decide: (request) => Effect.succeed(Approval.approve(request)) })
const agent = Agent.make({ name: "clerk", prompt: "You do sums.", middleware: [Mcp.make()] })

const program = Effect.gen(function* () {
  const { text } = yield* Agent.run(agent, "How much is 2 and 3?")
  yield* Console.log(text)
}).pipe(Effect.provide([servers, yes, ChatModels.resolve("anthropic:claude-sonnet-5-5")]))

await Effect.runPromise(program)
