/** The authorization server of an MCP server, and the client that this program is for it. */
import * as Effect from "effect/Effect"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Redacted from "effect/Redacted"
import { isLoopback } from "../../../support/http/redirect.ts"
import { defined } from "../../../support/json/defined.ts"
import { covers } from "../../../support/oauth/metadata.ts"
import { bounded, type Reason } from "../../../support/oauth/reason.ts"
import { type Client, deviceGrant, type Requests } from "../../../support/oauth/requests.ts"
import { reveal } from "../../../support/store/redacted.ts"
import type { McpError } from "../../McpError.ts"
import { wordsOf } from "../errors.ts"
import * as Assertion from "./assertion.ts"
import type { Place } from "./kept.ts"
import type { Subject } from "./subject.ts"

/** Finds the authorization server: by the configuration, by the server's metadata, else at the server's own origin. */
export const locate = Effect.fnUntraced(function* (
  { fail, oauth, url }: Subject,
  requests: Requests,
  resourceMetadataUrl: URL | undefined
): Effect.fn.Return<Place, McpError | Reason> {
  const address = oauth.authServerMetadataUrl
  const configured = URL.parse(address ?? "")
  if (address !== undefined && (configured === null || (configured.protocol !== "https:" && !isLoopback(configured)))) {
    return yield* fail(`authServerMetadataUrl must be an address of https, not ${JSON.stringify(bounded(address))}`)
  }
  const resource = yield* requests.discoverResource(new URL(url), resourceMetadataUrl)
  const issuer = resource?.authorization_servers?.[0] ?? new URL("/", url).href
  const metadata = yield* address === undefined ? requests.discoverServer(issuer) : requests.readServer(address)
  if (resource !== undefined && !covers(resource.resource, new URL(url))) {
    return yield* fail(`its metadata are of another resource, ${JSON.stringify(bounded(resource.resource))}`)
  }
  if (metadata === undefined && address !== undefined) {
    return yield* fail(`there are no metadata of an authorisation server at ${address}`)
  }
  // The revision 2025-03-26 of MCP has fixed endpoints for servers without metadata.
  const endpoint = (path: string) => new URL(path, issuer).href
  const server = metadata ?? {
    issuer,
    authorization_endpoint: endpoint("/authorize"),
    token_endpoint: endpoint("/token"),
    registration_endpoint: endpoint("/register")
  }
  return defined({ server, resource: resource?.resource, scopes: resource?.scopes_supported })
})

const algorithmOf = (
  name: string
):
  | string
  | { readonly name: string; readonly namedCurve: string }
  | { readonly name: string; readonly hash: string } => {
  const size = name.slice(2)
  if (name.startsWith("ES")) return { name: "ECDSA", namedCurve: size === "512" ? "P-521" : `P-${size}` }
  if (name.startsWith("RS")) return { name: "RSASSA-PKCS1-v1_5", hash: `SHA-${size}` }
  return name.startsWith("PS") ? { name: "RSA-PSS", hash: `SHA-${size}` } : "Ed25519"
}

/** The client of the configuration. Its secret is for one authorization server only. */
const configuredClient = Effect.fnUntraced(function* ({ fail, oauth }: Subject, id: string, issuer: string) {
  if (oauth.issuer !== undefined && oauth.issuer !== issuer) {
    return yield* fail(`its client is one of ${oauth.issuer}, but it sends to ${bounded(issuer)} to sign in`)
  }
  const { algorithm = "ES256", clientSecret, privateKey } = oauth
  const client: Client = defined({
    id,
    secret: clientSecret === undefined ? undefined : Redacted.make(reveal(clientSecret))
  })
  if (privateKey === undefined) return client
  const noKey = (error: unknown) => fail(`its privateKey is no key of ${algorithm} (PKCS#8, in PEM): ${wordsOf(error)}`)
  // Keys in a setting are often base64url, without padding.
  const text = reveal(privateKey).replaceAll(/-----[^-]+-----|[\s=]/g, "")
  const der = yield* Effect.mapError(
    Effect.fromResult(Base64Url.decode(text.replaceAll("+", "-").replaceAll("/", "_"))),
    noKey
  )
  const key = yield* Effect.tryPromise({
    try: () => crypto.subtle.importKey("pkcs8", new Uint8Array(der), algorithmOf(algorithm), false, ["sign"]),
    catch: noKey
  })
  return { ...client, privateKey: key }
})

const withProofs = (subject: Subject, { server }: Place, client: Client): Effect.Effect<Client, McpError> =>
  server.dpop_signing_alg_values_supported?.includes("ES256") === true
    ? Effect.map(subject.proofs, (proofs) => ({ ...client, proofs }))
    : Effect.succeed(client)

/** The client that is known already: of the configuration, or registered at the same issuer for the same redirect. */
export const knownClient = Effect.fnUntraced(function* (subject: Subject, place: Place, redirect?: string) {
  const { clientId } = subject.oauth
  const { issuer } = place.server
  if (clientId !== undefined) {
    return yield* withProofs(subject, place, yield* configuredClient(subject, clientId, issuer))
  }
  const client = yield* subject.records.client.get
  const isOther = redirect !== undefined && client?.redirect !== undefined && client.redirect !== redirect
  return client === undefined || client.issuer !== issuer || isOther
    ? undefined
    : yield* withProofs(subject, place, client)
})

/** The known client, else the client's metadata document, else a new registration. */
export const clientOf = Effect.fnUntraced(function* (
  subject: Subject,
  requests: Requests,
  place: Place,
  redirect: string,
  scope: string | undefined
): Effect.fn.Return<Client, McpError | Reason> {
  const storedClient = yield* knownClient(subject, place, redirect)
  if (storedClient !== undefined) return storedClient
  const { clientMetadataUrl, clientName, redirect: canRedirect } = subject.around
  const { issuer, client_id_metadata_document_supported: takesDocuments } = place.server
  if (clientMetadataUrl !== undefined && takesDocuments === true) {
    if (URL.parse(clientMetadataUrl)?.protocol !== "https:") {
      return yield* subject.fail(`clientMetadataUrl must be an address of https, not ${bounded(clientMetadataUrl)}`)
    }
    yield* subject.records.client.set({ id: clientMetadataUrl, issuer })
    return yield* withProofs(subject, place, { id: clientMetadataUrl })
  }
  const deviceGrants = canRedirect === undefined ? [deviceGrant] : []
  const client = yield* requests.register(place.server, {
    client_name: clientName,
    redirect_uris: [redirect],
    grant_types: ["authorization_code", "refresh_token", ...deviceGrants],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
    application_type: "native",
    ...defined({ scope })
  })
  yield* subject.records.client.set(defined({ ...client, issuer, redirect }))
  return yield* withProofs(subject, place, client)
})

/** The parameters of a grant in which nobody sees a page. */
export const ownGrant = Effect.fnUntraced(function* (
  { around, fail, name, oauth, url }: Subject,
  { resource, server }: Place,
  scope: string | undefined,
  fetch: Assertion.Audience["fetch"]
) {
  if (oauth.grant !== "jwt-bearer") return { type: "client_credentials", parameters: {} }
  const audience = { server: name, issuer: server.issuer, resource: resource ?? url, scope, fetch }
  const assertion = around.assertion?.(audience) ?? Effect.fail(new Error("there is no assertion"))
  const token = yield* Effect.mapError(assertion, (error) =>
    fail(`it could not be signed in to: ${wordsOf(error)}`, error)
  )
  return { type: Assertion.grant, parameters: { assertion: Redacted.value(token) } }
})
