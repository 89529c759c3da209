/** The client that the protocol's conformance suite drives: it does all that a server offers, once. */
import { NodeHttpClient, NodeServices } from "@effect/platform-node"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type { JsonObject } from "../../../src/core/Json.ts"
import { McpOAuth, McpServers } from "../../../src/mcp/index.ts"
import * as LoopbackRedirect from "../../../src/net/LoopbackRedirect.ts"
import { CredentialKey, CredentialStore, Storage } from "../../../src/stores/index.ts"

const url = process.argv.at(-1) ?? ""

/** A value for each parameter that is wanted; for an object, a schema as it came here. */
const argumentsOf = (schema: JsonObject, received: JsonObject): JsonObject => {
  const properties = (schema["properties"] ?? {}) as { readonly [name: string]: JsonObject }
  const values: { readonly [type: string]: JsonObject[string] } = {
    number: 2,
    integer: 2,
    boolean: true,
    array: [],
    object: received
  }
  return Object.fromEntries(
    Object.entries(properties).map(([name, one]) => [
      name,
      values[typeof one["type"] === "string" ? one["type"] : ""] ?? "text"
    ])
  )
}

interface Planned {
  readonly client_id?: string
  readonly client_secret?: string
  readonly private_key_pem?: string
  readonly signing_algorithm?: string
  readonly valid_jwt?: string
  readonly idp_client_id?: string
  readonly idp_id_token?: string
  readonly idp_issuer?: string
  readonly idp_token_endpoint?: string
  readonly toolCalls?: ReadonlyArray<{ readonly name: string; readonly arguments: JsonObject }>
}

const planned = JSON.parse(process.env["MCP_CONFORMANCE_CONTEXT"] ?? "{}") as Planned

const isSigningIn = process.env["MCP_CONFORMANCE_SCENARIO"]?.startsWith("auth/") === true

/** The token that a workload has, or that the provider of an identity exchanges for another. */
const assertion: McpOAuth.Assertion | undefined =
  planned.valid_jwt !== undefined
    ? () => Effect.succeed(Redacted.make(planned.valid_jwt ?? ""))
    : planned.idp_id_token !== undefined
      ? McpOAuth.byIdentityProvider({
          issuer: planned.idp_issuer ?? "",
          tokenEndpoint: planned.idp_token_endpoint,
          clientId: planned.idp_client_id ?? "",
          idToken: Effect.succeed(Redacted.make(planned.idp_id_token))
        })
      : undefined

/** The page of the suite sends the browser back at once. */
const authorization = McpOAuth.layer({
  tenant: "conformance",
  assertion,
  redirect: LoopbackRedirect.redirect,
  clientMetadataUrl: "https://conformance-test.local/client-metadata.json",
  open: (page) => Effect.promise(() => fetch(page.url).then((response) => response.text()))
}).pipe(Layer.provide(Layer.provide(CredentialStore.layer, [Storage.layerMemory, CredentialKey.layerRandom])))

const isAlone = process.env["MCP_CONFORMANCE_SCENARIO"]?.startsWith("auth/client-credentials") === true

const oauth =
  planned.client_id === undefined
    ? {}
    : {
        oauth: {
          clientId: planned.client_id,
          clientSecret: planned.client_secret,
          privateKey: planned.private_key_pem,
          algorithm: planned.signing_algorithm,
          ...(isAlone ? { grant: "client_credentials" as const } : {}),
          ...(assertion === undefined ? {} : { grant: "jwt-bearer" as const })
        }
      }

const program = Effect.gen(function* () {
  const servers = yield* McpServers.McpServers
  const tools = yield* servers.tools
  const [status] = yield* servers.status
  if (status?.state !== "connected") return yield* status?.error ?? Effect.die("no status")
  const calls =
    planned.toolCalls ??
    tools.map(({ parameters, tool }) => ({
      name: tool,
      arguments: argumentsOf(parameters, tools[0]?.parameters ?? {})
    }))
  for (const one of calls) {
    yield* Effect.ignore(
      servers.call({ server: "s", tool: one.name }, one.arguments, {
        onQuestion: () => Effect.succeed({ action: "accept", content: {} }),
        onSample: () => Effect.succeed({ text: "sampled", model: "test", stopReason: "endTurn" })
      })
    )
  }
  for (const prompt of yield* servers.prompts) {
    yield* Effect.ignore(prompt.get(Object.fromEntries(prompt.arguments.map(({ name }) => [name, "text"]))))
  }
  for (const resource of yield* servers.resources("s")) {
    if (!resource.isTemplate) yield* Effect.ignore(servers.read("s", resource.uri))
  }
  return undefined
}).pipe(
  Effect.provide(
    McpServers.layer(
      { s: { type: "http", url, sampling: "allow", connectTimeout: 250_000, ...oauth } },
      { roots: ["/tmp"] }
    ).pipe(
      Layer.provide(isSigningIn ? authorization : Layer.empty),
      Layer.provide([NodeServices.layer, NodeHttpClient.layerUndici])
    )
  ),
  Effect.timeout("290 seconds")
)

await Effect.runPromise(program)
