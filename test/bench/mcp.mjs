// MCP: the start of ten servers beside the slowest of them, and a call beside one of the bare SDK.
//   node test/bench/mcp.mjs
import { fileURLToPath } from "node:url"
import { NodeHttpClient, NodeServices } from "@effect/platform-node"
import { Client } from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"
import { Effect, Layer } from "effect"
import { McpServers } from "../../src/mcp/index.ts"

const script = fileURLToPath(new URL("../mcp/hostile.mjs", import.meta.url))
const server = (...args) => ({ type: "stdio", command: process.execPath, args: [script, ...args] })
const layer = (servers) =>
  McpServers.layer(servers).pipe(Layer.provide([NodeServices.layer, NodeHttpClient.layerUndici]))
const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]

/** Milliseconds until all servers were tried and listed. */
const start = (servers) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const begun = performance.now()
        const context = yield* Layer.build(layer(servers))
        const tools = yield* Effect.provide(
          McpServers.McpServers.use((service) => service.tools),
          context
        )
        if (tools.length !== Object.keys(servers).length * 10) throw new Error(`${tools.length} tools`)
        return performance.now() - begun
      })
    )
  )

const slow = [1_500, 1_400, 1_300, 1_200, 1_100, 1_000, 900, 800, 700, 600]
const ten = Object.fromEntries(slow.map((ms) => [`s${ms}`, server(`handshake=${ms}`)]))
const slowest = { s1500: server("handshake=1500") }
await start(slowest)
const starts = { one: [], ten: [] }
for (let i = 0; i < 5; i++) {
  starts.one.push(await start(slowest))
  starts.ten.push(await start(ten))
}
console.log(`start: slowest ${median(starts.one).toFixed(0)} ms, ten ${median(starts.ten).toFixed(0)} ms`)

const count = 300
const bare = new Client({ name: "bench", version: "1" })
const { args, command } = server()
await bare.connect(new StdioClientTransport({ command, args, stderr: "ignore" }))
await bare.listTools()
const ours = { bare: [], wrapped: [] }
await Effect.runPromise(
  Effect.gen(function* () {
    const servers = yield* McpServers.McpServers
    yield* servers.tools
    const wrapped = servers.call({ server: "s", tool: "echo" }, { text: "x" })
    const direct = Effect.promise(() => bare.callTool({ name: "echo", arguments: { text: "x" } }))
    for (let i = 0; i < 12; i++) {
      for (const [name, call] of [
        ["bare", direct],
        ["wrapped", wrapped]
      ]) {
        const begun = performance.now()
        for (let j = 0; j < count; j++) yield* call
        if (i > 1) ours[name].push((performance.now() - begun) / count)
      }
    }
  }).pipe(Effect.provide(layer({ s: server() })))
)
await bare.close()
const [a, b] = [median(ours.bare), median(ours.wrapped)]
console.log(`call: bare ${a.toFixed(3)} ms, wrapped ${b.toFixed(3)} ms, ${(b / a).toFixed(2)} x`)
