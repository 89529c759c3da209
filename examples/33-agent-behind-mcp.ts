/**
 * An agent behind a server of the Model Context Protocol, called by the official client: before a file is deleted, the
 * client's user is asked.
 */
import { createServer } from "node:http"
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { Console, Effect, Layer, Schema } from "effect"
import { Agent, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { McpAgent } from "effect-deepagents/server"
import { TestChatModel } from "effect-deepagents/testing"
import { HttpRouter, HttpServer } from "effect/http"

const files = new Set(["notes.md", "old.log"])

const remove = Tool.make("remove_file", {
  description: "Deletes a file for good",
  parameters: { name: Schema.String },
  annotations: { destructive: true },
  execute: ({ name }) => Effect.sync(() => (files.delete(name) ? `${name} is deleted.` : `There is no ${name}.`))
})

const janitor = Agent.make({
  name: "janitor",
  description: "Tidies up the files",
  prompt: "You delete what is not needed any more.",
  tools: [remove],
  middleware: [HumanInTheLoop.make({ destructive: true })]
})

const model = TestChatModel.script([
  TestChatModel.calls([{ name: "remove_file", arguments: { name: "old.log" } }]),
  TestChatModel.text("The old log is gone.")
])

const server = HttpRouter.serve(
  McpAgent.layerHttp({ name: "office", version: "1.0.0", path: "/mcp", agents: [janitor] }),
  { disableListenLog: true, disableLogger: true }
).pipe(Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" })), Layer.provide(model))

const connect = (url: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Client({ name: "editor", version: "1.0.0" }, { capabilities: { elicitation: { form: {} } } })
      client.setRequestHandler("elicitation/create", ({ params }) => {
        console.log(`The server asks:\n${params.message}`)
        return { action: "accept", content: { decision: "approve" } }
      })
      await client.connect(new StreamableHTTPClientTransport(new URL(url)))
      return client
    }),
    (client) => Effect.promise(() => client.close())
  )

const program = Effect.gen(function* () {
  const { address } = yield* HttpServer.HttpServer
  if (address._tag !== "InetAddressV4") return
  const client = yield* connect(`http://127.0.0.1:${address.port}/mcp`)
  const task = "Delete the old log"
  const result = yield* Effect.promise(() => client.callTool({ name: "janitor", arguments: { task } }))
  for (const block of result.content) if (block.type === "text") yield* Console.log(block.text)
  yield* Console.log(`Left: ${[...files].join(", ")}`)
})

NodeRuntime.runMain(Effect.scoped(Effect.provide(program, server)))
