/**
 * A protected MCP server on loopback, with the authorisation server whose tokens it takes.
 */
import { createServer } from "node:http"
import { NodeHttpServer, NodeServices } from "@effect/platform-node"
import { Effect, Layer, Schema } from "effect"
import { Tool } from "effect-deepagents"
import { type McpConfig, McpOAuth, McpServers } from "effect-deepagents/mcp"
import { McpAgent } from "effect-deepagents/server"
import { CredentialKey, CredentialStore, Storage } from "effect-deepagents/stores"
import {
  FetchHttpClient,
  type HttpClient,
  HttpRouter,
  HttpServer,
  HttpServerRequest,
  HttpServerResponse
} from "effect/http"
import { oidc } from "./oidc.ts"

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
export const guarded = Effect.gen(function* () {
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
      deviceFlow: { enabled: true, successSource: (context) => void (context.body = "done") },
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
  if (address._tag !== "InetAddressV4") return yield* Effect.die("no port")
  return { ...issued, dead, seen, url: `http://127.0.0.1:${address.port}/mcp` }
})

/** Credentials in memory. */
export const ownCredentials = Layer.provide(CredentialStore.layer, [Storage.layerMemory, CredentialKey.layerRandom])

/** A client of that server, or of one like it, whose user ada signs in so. */
export const signingIn = (
  server: Pick<McpConfig.HttpServer, "url" | "connectTimeout" | "oauth">,
  user: Omit<McpOAuth.Options, "tenant">,
  http: Layer.Layer<HttpClient.HttpClient> = FetchHttpClient.layer,
  credentials: typeof ownCredentials = ownCredentials
) =>
  McpServers.layer({ guarded: { type: "http", ...server } }).pipe(
    Layer.provide(McpOAuth.layer({ tenant: "ada", ...user })),
    Layer.provideMerge(credentials),
    Layer.provide([http, NodeServices.layer])
  )
