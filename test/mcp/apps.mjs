// A server with an interface (MCP Apps): its page is the file of its first argument, and its origins are the second one.
// With the third one, `listed` or `endless`, the origins are in its list of resources alone, whose pages have one each.
import { readFileSync } from "node:fs"
import { createInterface } from "node:readline"

const [, , file, origins = "[]", listing = "read"] = process.argv
const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
const inputSchema = { type: "object" }
const ui = { resourceUri: "ui://shop/view" }
const annotations = { readOnlyHint: true }
let clientExtensions = {}
const tools = [
  { name: "show", description: "Shows the shop", inputSchema, annotations, _meta: { ui } },
  { name: "buy", description: "Buys", inputSchema, annotations: { readOnlyHint: false } },
  { name: "refresh", description: "Looks again", inputSchema, annotations, _meta: { ui: { visibility: ["app"] } } },
  { name: "secret", description: "For models", inputSchema, annotations, _meta: { ui: { visibility: ["model"] } } }
]

const metaOf = () => {
  const connectDomains = JSON.parse(origins)
  return { ui: { csp: { connectDomains, resourceDomains: connectDomains } } }
}

const answer = ({ method, params }) => {
  switch (method) {
    case "initialize":
      clientExtensions = params.capabilities.extensions ?? {}
      return {
        protocolVersion: "2025-11-25",
        capabilities: { tools: {}, resources: {} },
        serverInfo: { name: "shop", version: "1" }
      }
    case "tools/list":
      return { tools }
    case "resources/list": {
      if (listing === "read") return { resources: [] }
      const page = Number(params?.cursor ?? 0)
      const last = page === 2 ? { uri: ui.resourceUri, name: "view", _meta: metaOf() } : undefined
      const isEnd = listing === "listed" && page === 3
      return {
        resources: [last ?? { uri: `ui://shop/${page}`, name: `${page}` }],
        ...(isEnd ? {} : { nextCursor: String(page + 1) })
      }
    }
    case "resources/read": {
      const _meta = listing === "read" ? metaOf() : undefined
      const text = readFileSync(file, "utf8")
      return { contents: [{ uri: params.uri, mimeType: "text/html;profile=mcp-app", text, _meta }] }
    }
    case "tools/call": {
      const said = { tool: params.name, arguments: params.arguments ?? {}, extensions: Object.keys(clientExtensions) }
      return { content: [{ type: "text", text: JSON.stringify(said) }], structuredContent: said }
    }
    default:
      return undefined
  }
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line)
  if (message.id === undefined) return
  const result = answer(message)
  say(
    result === undefined
      ? { id: message.id, error: { code: -32601, message: "no such method" } }
      : { id: message.id, result }
  )
})
