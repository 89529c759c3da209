// A server by HTTP whose results are as long as it is asked for: as one body, or as an event (the argument "events").
import { createServer } from "node:http"

const isEvents = process.argv.includes("events")
const megabyte = "x".repeat(1_000_000)

const answer = async (request, response) => {
  if (request.method !== "POST") return response.writeHead(405).end()
  const parts = []
  for await (const part of request) parts.push(part)
  const { id, method, params } = JSON.parse(Buffer.concat(parts).toString())
  if (id === undefined) return response.writeHead(202).end()
  const open = () => {
    response.writeHead(200, { "content-type": isEvents ? "text/event-stream" : "application/json" })
    if (isEvents) response.write("event: message\ndata: ")
  }
  const say = (message) => {
    open()
    response.end(`${JSON.stringify({ jsonrpc: "2.0", id, ...message })}${isEvents ? "\n\n" : ""}`)
  }
  const capabilities = { tools: {} }
  if (method === "initialize") {
    return say({ result: { protocolVersion: "2025-11-25", capabilities, serverInfo: { name: "huge", version: "1" } } })
  }
  const tool = { name: "text", inputSchema: { type: "object" } }
  if (method === "tools/list") return say({ result: { tools: [tool] } })
  if (method !== "tools/call") return say({ error: { code: -32601, message: "Method not found" } })
  open()
  response.setMaxListeners(0)
  response.write(`{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`)
  for (let left = params.arguments.megabytes; left > 0 && !response.closed; left--) {
    if (!response.write(megabyte))
      await new Promise((resolve) => response.once("drain", resolve).once("close", resolve))
  }
  response.end(`"}]}}${isEvents ? "\n\n" : ""}`)
}

const server = createServer((request, response) => void answer(request, response))

server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/mcp`))
