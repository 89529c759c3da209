/** Routes of MCP Apps: the interfaces of tools that a thread called, each in a sandbox without an origin. */
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Schema from "effect/Schema"
import { JsonObject } from "../../../core/Json.ts"
import { human, text } from "../../../core/Message.ts"
import type { McpError } from "../../../mcp/McpError.ts"
import type { App, ServerTool, Service } from "../../../mcp/McpServers.ts"
import { readTranscript } from "../http/messages.ts"
import { type Failure, Problem } from "../http/problem.ts"
import { json, type Route, route, type TenantCall } from "../http/route.ts"
import type { ThreadRef } from "../tenant.ts"

/** Gives the MCP servers of a thread. */
export type OpenApps = (thread: ThreadRef) => Effect.Effect<Pick<Service, "app" | "tools">>

const missing = new Problem({
  status: 404,
  code: "NotFound",
  detail: "There is no such thread, or no app of this call in it."
})

const toProblem = ({ reason }: McpError): Problem =>
  new Problem({ status: 503, code: reason, detail: "The server of this app does not give it now; try again later." })

/** A call with an interface: its tool, its arguments and its result. */
interface Shown {
  readonly tool: ServerTool
  readonly arguments: JsonObject
  readonly result: { readonly text: string; readonly isError: boolean } | undefined
  readonly app: App
}

/** Finds a call of the thread whose tool has an interface. */
const findCall = Effect.fnUntraced(function* (call: TenantCall, open: OpenApps, callId: string | undefined) {
  const thread = yield* call.thread
  const messages = yield* readTranscript(call.tenant.store, thread.id)
  const toolCall = messages
    .flatMap((message) => (message.role === "ai" ? message.toolCalls : []))
    .findLast(({ id }) => id === callId)
  if (toolCall === undefined) return yield* missing
  const servers = yield* open(thread)
  const tool = (yield* servers.tools).find(({ name }) => name === toolCall.name)
  if (tool?.app === undefined) return yield* missing
  return { messages, toolCall, servers, thread, tool, address: tool.app }
})

/** Reads the interface of a call. */
const readCall = Effect.fnUntraced(function* (call: TenantCall, open: OpenApps): Effect.fn.Return<Shown, Failure> {
  const callId = call.query("call")
  const { address, messages, servers, tool, toolCall } = yield* findCall(call, open, callId)
  const answer = messages.findLast((message) => message.role === "tool" && message.toolCallId === callId)
  return {
    tool,
    arguments: toolCall.arguments,
    result: answer?.role === "tool" ? { text: text(answer), isError: answer.isError } : undefined,
    app: yield* Effect.mapError(servers.app(tool.server, address), toProblem)
  }
})

const list = (open: OpenApps) =>
  route({
    method: "GET",
    path: "/threads/:id/apps",
    summary: "Lists the tools whose results have an interface (MCP Apps), by name.",
    handle: Effect.fnUntraced(function* (call: TenantCall) {
      const servers = yield* open(yield* call.thread)
      return json({ tools: (yield* servers.tools).flatMap(({ app, name }) => (app === undefined ? [] : [name])) })
    })
  })

const query = { call: "The id of a call of the thread" }

const originsOf = ({ connect, resources }: App): ReadonlyArray<string> => [...new Set([...connect, ...resources])]

const describe = (open: OpenApps) =>
  route({
    method: "GET",
    path: "/threads/:id/app",
    summary:
      "Describes the app of a call: its server, its arguments and result, and the origins that it wants to reach.",
    query,
    handle: Effect.fnUntraced(function* (call: TenantCall) {
      const { app, arguments: args, result, tool } = yield* readCall(call, open)
      const { server, tool: name } = tool
      return json({
        server,
        tool: name,
        arguments: args,
        ...(result === undefined ? {} : { result }),
        origins: originsOf(app)
      })
    })
  })

/** The policy of the frame, which the app inside inherits. It has no origin, no cookie, and no way out but `allowed`. */
const policyOf = ({ connect, resources }: App, allowed: ReadonlyArray<string>): string => {
  const from = (origins: ReadonlyArray<string>) => origins.filter((one) => allowed.includes(one))
  const loaded = ["", ...from(resources)].join(" ")
  const targets = from(connect)
  return [
    "sandbox allow-scripts",
    "default-src 'none'",
    `script-src 'unsafe-inline'${loaded}`,
    `style-src 'unsafe-inline'${loaded}`,
    `img-src data: blob:${loaded}`,
    `font-src data:${loaded}`,
    `media-src data: blob:${loaded}`,
    `connect-src ${targets.length === 0 ? "'none'" : targets.join(" ")}`,
    "frame-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'"
  ].join("; ")
}

/** Passes messages between the page and the app, and nothing from elsewhere. */
const relay = `const app = document.querySelector("iframe")
addEventListener("message", ({ data, source }) => {
  if (source === parent) app.contentWindow.postMessage(data, "*")
  else if (source === app.contentWindow) parent.postMessage(data, "*")
})`

/**
 * Takes WebRTC away from an app: no browser has a policy for it. Frames in the app would have it anew, so they go before
 * they load, also those in shadow trees. It keeps the functions that it uses, since an app may replace them.
 */
const guard = `(() => {
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "mozRTCPeerConnection", "WebTransport"]) delete window[name]
  const own = Function.prototype.bind.bind(Function.prototype.call)
  const [Observer, observe, remove] = [MutationObserver, own(MutationObserver.prototype.observe), own(Element.prototype.remove)]
  const watch = (root, find) => {
    const clear = () => {
      for (let one; (one = find(root, "iframe, frame, object, embed, fencedframe")) !== null; ) remove(one)
    }
    observe(new Observer(clear), root, { childList: true, subtree: true })
  }
  const [attach, findIn] = [own(Element.prototype.attachShadow), own(DocumentFragment.prototype.querySelector)]
  Element.prototype.attachShadow = function (options) {
    const root = attach(this, options)
    watch(root, findIn)
    return root
  }
  for (const owner of [Element.prototype, ShadowRoot.prototype]) delete owner.setHTMLUnsafe
  delete Document.parseHTMLUnsafe
  for (const name of ["write", "writeln", "open"]) delete Document.prototype[name]
  watch(document, own(Document.prototype.querySelector))
})()`

/** The page of an app with its guard. Shadow trees of the markup would be closed to the guard. */
const guarded = (html: string): string =>
  `<!doctype html><script>${guard}</script>${html.replaceAll(/shadowrootmode/gi, "data-shadow")}`

const escapeAttribute = (html: string): string => html.replaceAll("&", "&amp;").replaceAll('"', "&quot;")

const frameOf = (html: string): string =>
  `<!doctype html><meta charset="utf-8"><title>App</title><style>html,body,iframe{margin:0;border:0;width:100%;height:100%;display:block}</style><iframe title="App" sandbox="allow-scripts" referrerpolicy="no-referrer" srcdoc="${escapeAttribute(guarded(html))}"></iframe><script>${relay}</script>`

const frame = (open: OpenApps) =>
  route({
    method: "GET",
    path: "/threads/:id/app/frame",
    summary: "Gives the app of a call in a sandboxed frame, for the page of this server only.",
    query: { ...query, allow: "An origin that the app may reach, of those that it wants; may come more than once" },
    returns: "text/html",
    handle: Effect.fnUntraced(function* (call: TenantCall) {
      const { app } = yield* readCall(call, open)
      return HttpServerResponse.text(frameOf(app.html), {
        contentType: "text/html; charset=utf-8",
        headers: {
          "content-security-policy": policyOf(app, call.queryAll("allow")),
          "cross-origin-resource-policy": "same-origin",
          "referrer-policy": "no-referrer",
          "x-content-type-options": "nosniff",
          "x-dns-prefetch-control": "off",
          "cache-control": "no-store"
        }
      })
    })
  })

const busy = new Problem({
  status: 409,
  code: "Busy",
  detail: "The agent is at work, or waits for a decision; an app calls nothing meanwhile."
})

const Body = Schema.Struct({
  call: Schema.String,
  agent: Schema.String,
  tool: Schema.String,
  arguments: JsonObject,
  id: Schema.String
})

const start = (open: OpenApps) =>
  route({
    method: "POST",
    path: "/threads/:id/app",
    summary:
      "Takes a call of an app: a tool of its own server. It passes the gates of the agent, as a call of the model does.",
    body: Body,
    status: 202,
    handle: Effect.fnUntraced(function* (call) {
      const { agent, arguments: args, call: callId, id, tool: wanted } = call.body
      const { runs } = call.door
      const { servers, thread, tool } = yield* findCall(call, open, callId)
      const target = (yield* servers.tools).find(
        (one) => one.server === tool.server && one.tool === wanted && (one.callers?.includes("app") ?? true)
      )
      if (target === undefined) return yield* missing
      // An input would take back the requests that wait for a person.
      if ((yield* runs.state(thread)) !== "idle") return yield* busy
      const { name, server } = target
      const run = yield* runs.start(thread, {
        agent,
        id,
        busy: "refuse",
        input: human(`The app of the MCP server "${server}", which a person has open, calls the tool "${name}".`),
        call: { server, name, arguments: args }
      })
      return json({ runId: run.id, position: run.position, isNew: run.isNew }, 202)
    })
  })

/** Makes the routes of apps. */
export const makeAppRoutes = (open: OpenApps): ReadonlyArray<Route> => [
  list(open),
  describe(open),
  frame(open),
  start(open)
]
