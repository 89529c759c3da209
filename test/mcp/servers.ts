import { fileURLToPath } from "node:url"
/** The servers that tests start: servers from npm, and a small scripted one. */
import { NodeHttpClient, NodeServices } from "@effect/platform-node"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { type McpConfig, McpServers } from "../../src/mcp/index.ts"

const packaged = (name: string) =>
  fileURLToPath(new URL(`../../node_modules/@modelcontextprotocol/${name}/dist/index.js`, import.meta.url))

export const everything: McpConfig.StdioServer = {
  type: "stdio",
  command: process.execPath,
  args: [packaged("server-everything")]
}

export const filesystem = (...roots: ReadonlyArray<string>): McpConfig.StdioServer => ({
  type: "stdio",
  command: process.execPath,
  args: [packaged("server-filesystem"), ...roots]
})

export const hostile = (...behaviour: ReadonlyArray<string>): McpConfig.StdioServer => ({
  type: "stdio",
  command: process.execPath,
  args: [fileURLToPath(new URL("./hostile.mjs", import.meta.url)), ...behaviour]
})

export const platform = Layer.mergeAll(NodeServices.layer, NodeHttpClient.layerUndici)

export const layer = (servers: McpConfig.Servers, options?: McpServers.Options) =>
  Layer.provide(McpServers.layer(servers, options), platform)

/** Waits until a server is in a state. */
export const until = (name: string, is: (status: McpServers.Status) => boolean) =>
  McpServers.McpServers.use(({ changes }) =>
    changes.pipe(
      Stream.filter((all) => all.some((one) => one.name === name && is(one))),
      Stream.runHead
    )
  ).pipe(Effect.timeout("20 seconds"))
