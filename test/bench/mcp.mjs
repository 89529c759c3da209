// MCP: the start of ten servers beside the slowest of them, and a call beside one of the bare SDK.
//   node test/bench/mcp.mjs [rounds]
// Wall time is the least of all rounds, as others use the machine; CPU is that of this process, the median.
// We start a server in a session of its own. Linux schedules sessions apart (sched_autogroup_enabled), which a call on a
// busy machine waits for: so the SDK's server is started in one, too, by setsid. "bare" is without.
import { fileURLToPath } from "node:url"
import { NodeHttpClient, NodeServices } from "@effect/platform-node"
import { Client } from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"
import { Effect, Layer } from "effect"
import { McpServers } from "../../src/mcp/index.ts"

const rounds = Number(process.argv[2] ?? 30)
const file = (path) => fileURLToPath(new URL(path, import.meta.url))
const node = (...args) => ({ type: "stdio", command: process.execPath, args })
const script = file("../mcp/hostile.mjs")
const everything = node(file("../../node_modules/@modelcontextprotocol/server-everything/dist/index.js"))
const layer = (servers) =>
  McpServers.layer(servers).pipe(Layer.provide([NodeServices.layer, NodeHttpClient.layerUndici]))
const least = (numbers) => Math.min(...numbers)
const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]

const apart = ({ args, command }) => ({ command: "setsid", args: [command, ...args] })

const bareClient = async ({ args, command }) => {
  const client = new Client({ name: "bench", version: "1" }, { versionNegotiation: { mode: "legacy" } })
  await client.connect(new StdioClientTransport({ command, args, stderr: "ignore" }))
  await client.listTools()
  return client
}

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
        if (tools.length !== Object.keys(servers).length * 11) throw new Error(`${tools.length} tools`)
        return performance.now() - begun
      })
    )
  )

const startBare = async (servers) => {
  const begun = performance.now()
  const clients = await Promise.all(Object.values(servers).map(bareClient))
  const took = performance.now() - begun
  await Promise.all(clients.map((client) => client.close()))
  return took
}

const slow = [1_500, 1_400, 1_300, 1_200, 1_100, 1_000, 900, 800, 700, 600]
const ten = Object.fromEntries(slow.map((ms) => [`s${ms}`, node(script, `handshake=${ms}`)]))
const slowest = { s1500: node(script, "handshake=1500") }
await start(slowest)
const starts = { one: [], ten: [], bareOne: [], bareTen: [] }
for (let i = 0; i < Math.min(3, rounds); i++) {
  starts.one.push(await start(slowest))
  starts.ten.push(await start(ten))
  starts.bareOne.push(await startBare(slowest))
  starts.bareTen.push(await startBare(ten))
}
const ms = (numbers) => `${least(numbers).toFixed(0)} ms (median ${median(numbers).toFixed(0)})`
console.log(`start: slowest ${ms(starts.one)}, ten ${ms(starts.ten)}`)
console.log(`start, bare SDK: slowest ${ms(starts.bareOne)}, ten ${ms(starts.bareTen)}`)

const count = 300
const calls = async (name, server, tool, args) => {
  const clients = { bare: await bareClient(server), apart: await bareClient(apart(server)) }
  const seen = {}
  await Effect.runPromise(
    Effect.gen(function* () {
      const servers = yield* McpServers.McpServers
      yield* servers.tools
      const direct = (client) => Effect.promise(() => client.callTool({ name: tool, arguments: args }))
      const ways = {
        bare: direct(clients.bare),
        apart: direct(clients.apart),
        ours: servers.call({ server: "s", tool }, args)
      }
      for (let i = 0; i < rounds; i++) {
        for (const [who, call] of Object.entries(ways)) {
          seen[who] ??= { wall: [], cpu: [] }
          const cpu = process.cpuUsage()
          const begun = performance.now()
          for (let j = 0; j < count; j++) yield* call
          const { system, user } = process.cpuUsage(cpu)
          if (i < 2) continue
          seen[who].wall.push(((performance.now() - begun) / count) * 1_000)
          seen[who].cpu.push((system + user) / count)
        }
      }
    }).pipe(Effect.provide(layer({ s: server })))
  )
  for (const client of Object.values(clients)) await client.close()
  const show = (of, how) => {
    const [bare, own, ours] = ["bare", "apart", "ours"].map((who) => how(seen[who][of]))
    return `${bare.toFixed(0)}, ${own.toFixed(0)}, ${ours.toFixed(0)} µs (${(ours / own).toFixed(2)} x)`
  }
  console.log(`call of ${name}; bare, in a session, ours: wall ${show("wall", least)}, CPU ${show("cpu", median)}`)
}
await calls("server-everything", everything, "echo", { message: "x" })
await calls("a server that does nothing", node(script), "echo", { text: "x" })
