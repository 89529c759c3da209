/** An agent with an MCP server that has an interface, for tests of the server and of the page. */
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Context, Effect, Layer } from "effect"
import { Agent, type ChatModel } from "effect-deepagents"
import { Mcp, McpServers } from "effect-deepagents/mcp"
import { Server } from "effect-deepagents/server"
import { TestChatModel } from "effect-deepagents/testing"
import { TestRunner } from "effect/cluster"
import { layer } from "../mcp/servers.ts"

/** Makes the runs of an agent that shows the shop, and the servers for its apps. */
export const makeShop = Effect.fnUntraced(function* (
  html: string,
  origins: ReadonlyArray<string> = [],
  listing: "endless" | "listed" | "read" = "read"
) {
  const file = join(mkdtempSync(join(tmpdir(), "shop-")), "view.html")
  writeFileSync(file, html)
  const args = [fileURLToPath(new URL("../mcp/apps.mjs", import.meta.url)), file, JSON.stringify(origins), listing]
  const shop = { type: "stdio", command: process.execPath, args } as const
  const services = yield* Layer.build(layer({ shop, other: shop }, { apps: true }))
  const servers = Context.get(services, McpServers.McpServers)
  const requests: Array<ChatModel.ModelRequest> = []
  const model = TestChatModel.reactive((request) => {
    requests.push(request)
    const last = request.messages.at(-1)
    return last?.role === "human" && last.source === undefined
      ? TestChatModel.calls([{ name: "shop__show", arguments: { size: 3 } }])
      : "Here is the shop."
  })
  const helper = Agent.make({ name: "helper", prompt: "You help.", middleware: [Mcp.make()] })
  const needs = Layer.merge(model, Layer.succeed(McpServers.McpServers, servers))
  const runs = Server.layer({ helper }).pipe(Layer.provide(needs))
  /** The runs on a cluster of this process, whose messages are encoded as between two. */
  const clusteredRuns = Server.layerCluster({ helper }).pipe(Layer.provide([needs, TestRunner.layer]))
  return { runs, clusteredRuns, requests, options: { apps: () => Effect.succeed(servers) } }
})
