/**
 * Signing in to a protected MCP server, against a real authorisation server.
 */
import { createServer } from "node:http"
import { NodeHttpServer, NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Tool } from "effect-deepagents"
import { McpAgent, McpOAuth, McpServers } from "effect-deepagents/mcp"
import { CredentialKey, CredentialStore, Storage } from "effect-deepagents/stores"
import * as LoopbackRedirect from "effect-deepagents/tools/LoopbackRedirect"
import { FetchHttpClient, HttpRouter, HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { browse, oidc } from "../servers/oidc.ts"
import { until } from "./servers.ts"

const echo = (name: string) =>
  Tool.make(name, {
    description: name,
    parameters: { text: Schema.String },
    annotations: { readOnly: true },
    execute: ({ text }) => Effect.succeed(text)
  })

const scopesOf = (bearer: string): ReadonlyArray<string> => {
  const [, body = ""] = bearer.split(".")
  const claims: unknown = JSON.parse(Buffer.from(body, "base64url").toString() || "{}")
  const scope = typeof claims === "object" && claims !== null && "scope" in claims ? claims.scope : ""
  return typeof scope === "string" ? scope.split(" ") : []
}

/** An authorisation server, and an MCP server that takes its tokens: all but those in `dead`. */
const world = Effect.gen(function* () {
  const dead = new Set<string>()
  const seen: Array<string> = []
  const issued = yield* oidc(() => ({
    scopes: ["openid", "offline_access", "read", "write"],
    clientDefaults: {
      token_endpoint_auth_method: "none",
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"]
    },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: (_, __, one) => (Array.isArray(one) ? (one[0] ?? "") : (one ?? "")),
        useGrantedResource: () => true,
        getResourceServerInfo: (_, resource) => ({ scope: "read write", audience: resource, accessTokenFormat: "jwt" })
      }
    },
    rotateRefreshToken: () => true
  }))
  const guard = HttpRouter.middleware((app) =>
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const bearer = (request.headers["authorization"] ?? "").replace(/^Bearer /, "")
      const metadata = `http://${request.headers["host"]}/.well-known/oauth-protected-resource/mcp`
      const refuse = (status: number, more: string) =>
        HttpServerResponse.empty({
          status,
          headers: { "www-authenticate": `Bearer ${more}, resource_metadata="${metadata}"` }
        })
      if (!seen.includes(bearer)) seen.push(bearer)
      const scopes = scopesOf(bearer)
      if (dead.has(bearer) || !scopes.includes("read")) return refuse(401, 'error="invalid_token", scope="read"')
      const body = yield* Effect.orDie(request.text)
      const isWriting = body.includes('"name":"write"')
      if (isWriting && !scopes.includes("write")) return refuse(403, 'error="insufficient_scope", scope="write"')
      return yield* app
    })
  ).layer
  const mcp = McpAgent.layerHttp({ name: "guarded", version: "1", path: "/mcp", tools: [echo("look"), echo("write")] })
  const metadata = HttpRouter.add("GET", "/.well-known/oauth-protected-resource/mcp", (request) => {
    const resource = `http://${request.headers["host"]}/mcp`
    return HttpServerResponse.json({
      resource,
      authorization_servers: [issued.issuer],
      scopes_supported: ["read"]
    }).pipe(Effect.orDie)
  })
  const context = yield* Layer.build(
    HttpRouter.serve(Layer.mergeAll(Layer.provide(mcp, guard), metadata), {
      disableLogger: true,
      disableListenLog: true
    }).pipe(
      Layer.provideMerge(
        NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1", gracefulShutdownTimeout: "50 millis" })
      )
    )
  )
  const { address } = yield* Effect.provide(HttpServer.HttpServer, context)
  if (address._tag !== "InetAddressV4") return assert.fail("no port")
  return { ...issued, dead, seen, url: `http://127.0.0.1:${address.port}/mcp` }
})

type Page = Parameters<McpOAuth.Options["open"]>[0]

const isCallback = (url: URL) => url.pathname === "/callback"

/** The layers of a client whose user signs in at once, by `change` of the address that the browser ends at. */
const client = (url: string, pages: Array<Page>, change = (callback: string) => callback) =>
  McpServers.layer({ guarded: { type: "http", url, connectTimeout: 20_000 } }).pipe(
    Layer.provide(
      McpOAuth.layer({
        tenant: "ada",
        redirect: LoopbackRedirect.redirect,
        open: (page) =>
          Effect.gen(function* () {
            pages.push(page)
            const callback = change(yield* browse(page.url, isCallback))
            yield* Effect.promise(() => fetch(callback).then((response) => response.text()))
          })
      })
    ),
    Layer.provideMerge(Layer.provide(CredentialStore.layer, [Storage.layerMemory, CredentialKey.layerRandom])),
    Layer.provide([FetchHttpClient.layer, NodeServices.layer])
  )

const call = (tool: string, text = "hello") =>
  McpServers.McpServers.use((servers) => servers.call({ server: "guarded", tool }, { text }))

it.live(
  "signs in, renews once for all calls, and widens in the middle of a call",
  () =>
    Effect.gen(function* () {
      const { dead, issuer, requests, seen, url } = yield* world
      const pages: Array<Page> = []
      const count = (path: string) => requests.filter((one) => one === `POST ${path}`).length
      yield* Effect.gen(function* () {
        assert.include(JSON.stringify(yield* call("look")), "hello")
        assert.lengthOf(pages, 1)
        assert.strictEqual(pages[0]?.origin, issuer)
        assert.strictEqual(pages[0]?.server, "guarded")
        const first = count("/token")
        for (const bearer of seen) dead.add(bearer)
        const results = yield* Effect.all(
          Array.from({ length: 20 }, (_, index) => call("look", `${index}`)),
          { concurrency: "unbounded" }
        )
        assert.lengthOf(results, 20)
        assert.strictEqual(count("/token"), first + 1)
        assert.lengthOf(pages, 1)
        assert.include(JSON.stringify(yield* call("write", "written")), "written")
        assert.isAtLeast(pages.length, 2)
        const asked = new URL(pages.at(-1)?.url ?? "").searchParams.get("scope")?.split(" ") ?? []
        assert.includeMembers(asked, ["read", "write"])
      }).pipe(Effect.provide(client(url, pages)))
    }),
  30_000
)

it.live(
  "takes no callback of another state or another server",
  () =>
    Effect.gen(function* () {
      const { requests, url } = yield* world
      const bad: ReadonlyArray<readonly [string, string]> = [
        ["state", "other"],
        ["iss", "https://evil.example"]
      ]
      const tried = Effect.fnUntraced(function* ([name, value]: (typeof bad)[number]) {
        const change = (callback: string) => {
          const changed = new URL(callback)
          changed.searchParams.set(name, value)
          return changed.href
        }
        const pages: Array<Page> = []
        yield* Effect.gen(function* () {
          const [first, second] = yield* Effect.all([Effect.flip(call("look")), Effect.flip(call("look"))]).pipe(
            // Nobody waits for what only a person can mend.
            Effect.timeout("5 seconds")
          )
          assert.strictEqual(first.reason, "Unauthorized", name)
          assert.strictEqual(second.reason, "Unauthorized", name)
          assert.lengthOf(pages, 1, "the page is shown once")
          const servers = yield* McpServers.McpServers
          const [status] = yield* servers.status
          assert.strictEqual(status?.state, "failed")
          assert.notProperty(status, "retryAt")
          yield* servers.reconnect("guarded")
          yield* until("guarded", () => pages.length === 2)
        }).pipe(Effect.provide(client(url, pages, change)))
      })
      yield* Effect.forEach(bad, tried, { concurrency: 2 })
      assert.isFalse(requests.includes("POST /token"))
    }),
  30_000
)
