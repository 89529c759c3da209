/** The client that the protocol's conformance suite drives: it does all that a server offers, once. */
import { NodeHttpClient, NodeServices } from "@effect/platform-node"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type { JsonObject } from "../../src/core/Json.ts"
import { McpOAuth, McpServers } from "../../src/mcp/index.ts"
import * as LoopbackRedirect from "../../src/net/LoopbackRedirect.ts"
import { CredentialKey, CredentialStore, Storage } from "../../src/stores/index.ts"

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

/** A scenario that the suite asks of a client. */
export interface Asked {
  readonly url: string
  readonly scenario: string
  /** The secrets and settings of the client, as JSON. */
  readonly context: string
}

/** The token that a workload has, or that the provider of an identity exchanges for another. */
const assertionOf = (planned: Planned): McpOAuth.Assertion | undefined =>
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
const authorization = (assertion: McpOAuth.Assertion | undefined) =>
  McpOAuth.layer({
    tenant: "conformance",
    assertion,
    redirect: LoopbackRedirect.redirect,
    clientMetadataUrl: "https://conformance-test.local/client-metadata.json",
    open: (page) => Effect.promise(() => fetch(page.url).then((response) => response.text()))
  }).pipe(Layer.provide(Layer.provide(CredentialStore.layer, [Storage.layerMemory, CredentialKey.layerRandom])))

const oauthOf = (scenario: string, planned: Planned) =>
  planned.client_id === undefined
    ? {}
    : {
        oauth: {
          clientId: planned.client_id,
          clientSecret: planned.client_secret,
          privateKey: planned.private_key_pem,
          algorithm: planned.signing_algorithm,
          ...(scenario.startsWith("auth/client-credentials") ? { grant: "client_credentials" as const } : {}),
          ...(assertionOf(planned) === undefined ? {} : { grant: "jwt-bearer" as const })
        }
      }

const useServer = Effect.fnUntraced(function* (planned: Planned) {
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
})

/** Does all that the server of a scenario offers. */
export const useAll = ({ context, scenario, url }: Asked) => {
  const planned: Planned = JSON.parse(context)
  const server = { type: "http" as const, url, sampling: "allow" as const, connectTimeout: 250_000 }
  const servers = McpServers.layer({ s: { ...server, ...oauthOf(scenario, planned) } }, { roots: ["/tmp"] }).pipe(
    Layer.provide(scenario.startsWith("auth/") ? authorization(assertionOf(planned)) : Layer.empty),
    Layer.provide([NodeServices.layer, NodeHttpClient.layerUndici])
  )
  return useServer(planned).pipe(Effect.provide(servers), Effect.timeout("290 seconds"))
}
