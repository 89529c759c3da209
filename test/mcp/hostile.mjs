// A server that speaks the protocol by hand, and misbehaves as its arguments say.
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"

const does = new Set(process.argv.slice(2))
const value = (name) => process.argv.find((one) => one.startsWith(`${name}=`))?.slice(name.length + 1)
const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`
const sayDeep = (before, after) => process.stdout.write(`{"jsonrpc":"2.0",${before}${deep}${after}}\n`)
let tools = [
  { name: "echo", description: "Says it again", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } }
]
const count = Number(value("tools") ?? 0)
for (let i = 0; i < count; i++) {
  tools.push({
    name: `tool_${i}`,
    description: `Number ${i}`,
    inputSchema: { type: "object", properties: { a: { type: "string" } } },
    outputSchema: { type: "object" }
  })
}
for (const name of [
  "die",
  "huge",
  "slow",
  "rename",
  "bad",
  "structured",
  "grandchild",
  "progress",
  "storm",
  "ticking"
]) {
  tools.push({ name, inputSchema: { type: "object" } })
}
if (does.has("banner")) console.log('Welcome to the best server in the world!\n{"not": "json-rpc"}\n{broken')
if (does.has("stubborn")) process.on("SIGTERM", () => undefined)
if (does.has("grandchild")) {
  const child = spawn("sleep", ["1000"], { stdio: "inherit" })
  process.stderr.write(`grandchild ${child.pid}\n`)
}
process.stderr.write(`pid ${process.pid}\n`)
if (does.has("env")) process.stderr.write(`${JSON.stringify(process.env)}\n`)
if (does.has("noise")) for (let i = 0; i < 2000; i++) process.stderr.write(`noise ${i} ${"x".repeat(100)}\n`)

const call = (id, name, args, meta) => {
  const text = (of) => say({ id, result: { content: [{ type: "text", text: of }] } })
  switch (name) {
    case "echo":
      return text(String(args.text ?? "nothing"))
    case "die":
      return process.kill(process.pid, "SIGKILL")
    case "huge":
      return text("x".repeat(Number(args.size)))
    case "deepId":
      sayDeep('"id":', ',"result":{}')
      return text("done")
    case "deepResult":
      return sayDeep(`"id":${id},"result":`, "")
    case "slow":
      return undefined
    case "rename":
      tools = tools.map((tool) =>
        tool.name === "rename" ? { ...tool, name: "renamed", description: "Another" } : tool
      )
      say({ method: "notifications/tools/list_changed" })
      return text("renamed")
    case "storm":
      for (let i = 0; i < 1000; i++) say({ method: "notifications/tools/list_changed" })
      return text("storm")
    case "ticking":
      for (let i = 1; i < args.times; i++) {
        const tell = () =>
          say({ method: "notifications/progress", params: { progressToken: meta?.progressToken, progress: i } })
        setTimeout(tell, i * args.every)
      }
      return void setTimeout(() => text("done"), args.times * args.every)
    case "bad":
      return say({ id, result: args.result ?? { content: "nonsense" } })
    case "structured":
      return say({ id, result: { content: [], structuredContent: { a: 1 } } })
    case "progress":
      for (let i = 1; i <= 3; i++) {
        say({
          method: "notifications/progress",
          params: { progressToken: meta?.progressToken, progress: i, total: 3, message: `step ${i}` }
        })
      }
      say({ method: "notifications/message", params: { level: "warning", logger: "l", data: "careful" } })
      return text("done")
    default:
      return say({ id, error: { code: -32602, message: `Tool ${name} not found` } })
  }
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line)
  if (does.has("mute")) return
  if (method === "server/discover" && does.has("exits")) process.exit(1)
  if (method === "initialize") {
    const begun = () =>
      say({
        id,
        result: {
          protocolVersion: "2025-11-25",
          capabilities: { tools: { listChanged: true }, logging: {} },
          serverInfo: { name: "hostile", version: "1" }
        }
      })
    return void setTimeout(begun, Number(value("handshake") ?? 0))
  }
  if (method === "tools/list") {
    if (does.has("deepSchema")) {
      const tool = '{"name":"deep","inputSchema":{"type":"object","properties":{"a":{"enum":'
      return sayDeep(`"id":${id},"result":{"tools":[${tool}`, "}}}}]}")
    }
    if (does.has("endless")) return say({ id, result: { tools, nextCursor: "again" } })
    const size = Number(value("page") ?? tools.length)
    const from = Number(params?.cursor ?? 0)
    const next = from + size < tools.length ? { nextCursor: String(from + size) } : {}
    return say({ id, result: { tools: tools.slice(from, from + size), ...next } })
  }
  if (method === "tools/call") return call(id, params.name, params.arguments ?? {}, params._meta)
  if (method === "notifications/cancelled") return process.stderr.write(`cancelled ${JSON.stringify(params)}\n`)
  if (id !== undefined) say({ id, error: { code: -32601, message: "Method not found" } })
})
