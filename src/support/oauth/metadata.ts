/** Metadata of authorization servers (RFC 8414, OpenID Connect) and of protected resources (RFC 9728). */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { FetchLike } from "../http/fetchLike.ts"
import { isLoopback } from "../http/redirect.ts"
import { bounded, invalid, type Reason, unavailable, unsupported } from "./reason.ts"

const strings = Schema.optionalKey(Schema.mutable(Schema.Array(Schema.String)))
const text = Schema.optionalKey(Schema.String)
const flag = Schema.optionalKey(Schema.Boolean)

/** Metadata of an authorization server. */
export const Server = Schema.Struct({
  issuer: Schema.String,
  authorization_endpoint: text,
  token_endpoint: text,
  device_authorization_endpoint: text,
  revocation_endpoint: text,
  jwks_uri: text,
  registration_endpoint: text,
  scopes_supported: strings,
  code_challenge_methods_supported: strings,
  dpop_signing_alg_values_supported: strings,
  id_token_signing_alg_values_supported: strings,
  token_endpoint_auth_methods_supported: strings,
  authorization_response_iss_parameter_supported: flag,
  client_id_metadata_document_supported: flag
})
export type Server = typeof Server.Type

/** Metadata of a protected resource. */
export const Resource = Schema.Struct({
  resource: Schema.String,
  authorization_servers: Schema.optionalKey(Schema.Array(Schema.String)),
  scopes_supported: Schema.optionalKey(Schema.Array(Schema.String))
})
export type Resource = typeof Resource.Type

/** Parses an address that a server names. Plain HTTP is for this machine only. */
export const checkAddress = (address: string | undefined, what: string): Effect.Effect<URL, Reason> => {
  if (address === undefined) return Effect.fail(unsupported(`its server has no ${what}`))
  const url = URL.parse(address)
  if (url === null) return Effect.fail(unsupported(`the ${what} ${JSON.stringify(bounded(address))} is no URL`))
  return url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url))
    ? Effect.succeed(url)
    : Effect.fail(unsupported(`the ${what} of its server, ${JSON.stringify(bounded(address))}, is not https`))
}

const mostHops = 3

/** Requests a document. Redirects stay within the origin. */
const get = async (fetch: FetchLike, url: URL, signal: AbortSignal, hops = 0): Promise<Response> => {
  const response = await fetch(url, { headers: { accept: "application/json" }, redirect: "manual", signal })
  const location = response.headers.get("location")
  const isRedirect = response.status >= 300 && response.status < 400 && location !== null
  const to = isRedirect ? URL.parse(location, url.href) : null
  if (to?.origin !== url.origin || hops === mostHops) return response
  await response.body?.cancel()
  return get(fetch, to, signal, hops + 1)
}

/** The first document that exists; `undefined` without one. */
const first = Effect.fnUntraced(function* <A>(
  fetch: FetchLike,
  schema: Schema.Codec<A, unknown>,
  urls: ReadonlyArray<URL>
): Effect.fn.Return<A | undefined, Reason> {
  for (const url of urls) {
    const request = Effect.tryPromise({
      try: async (signal) => {
        const response = await get(fetch, url, signal)
        return { status: response.status, body: response.ok ? await response.text() : "" }
      },
      catch: () => unavailable("the connection failed")
    })
    const { body, status } = yield* Effect.timeoutOrElse(request, {
      duration: "25 seconds",
      orElse: () => Effect.fail(unavailable("it did not answer within 25 seconds"))
    })
    // 502: a proxy that knows nothing of the path.
    if (status >= 500 && status !== 502) return yield* Effect.fail(unavailable(`it answered with status ${status}`))
    if (status === 200) {
      const decoded = Schema.decodeUnknownEffect(Schema.fromJsonString(schema))(body)
      return yield* Effect.mapError(decoded, () =>
        invalid(`the document at ${bounded(url.href)} is no JSON with metadata`)
      )
    }
  }
  return undefined
})

/** Reads the metadata of a server at a known address. */
export const readServer = Effect.fnUntraced(function* (fetch: FetchLike, address: string) {
  const url = yield* checkAddress(address, "address")
  return yield* first(fetch, Server, [url])
})

/** Discovers the metadata of an issuer; `undefined` if it publishes none. */
export const discoverServer = Effect.fnUntraced(function* (fetch: FetchLike, issuer: string) {
  const { href, origin, pathname } = yield* checkAddress(issuer, "address")
  const path = pathname.replace(/\/$/, "")
  const paths = [
    `/.well-known/oauth-authorization-server${path}`,
    `/.well-known/openid-configuration${path}`,
    ...(path === "" ? [] : [`${path}/.well-known/openid-configuration`])
  ]
  const server = yield* first(
    fetch,
    Server,
    paths.map((one) => new URL(one, origin))
  )
  return server === undefined || URL.parse(server.issuer)?.href === href
    ? server
    : yield* Effect.fail(invalid(`its metadata are of another issuer, ${bounded(server.issuer)}`))
})

/** Discovers the metadata of a resource, at the `address` that its server named or at the well-known places. */
export const discoverResource = (
  fetch: FetchLike,
  resource: URL,
  address: URL | undefined
): Effect.Effect<Resource | undefined, Reason> => {
  const wellKnown = "/.well-known/oauth-protected-resource"
  const path = resource.pathname.replace(/\/$/, "")
  const places = [...new Set([`${wellKnown}${path}${resource.search}`, wellKnown])].map((one) => new URL(one, resource))
  return Effect.catch(first(fetch, Resource, address === undefined ? places : [address]), (reason) =>
    reason._tag === "Unavailable" && reason.problem.includes("status") ? Effect.undefined : Effect.fail(reason)
  )
}

/** True if a resource covers an address: same origin, and a path above it. */
export const covers = (resource: string, address: URL): boolean => {
  const url = URL.parse(resource)
  const pathOf = ({ pathname }: URL) => (pathname.endsWith("/") ? pathname : `${pathname}/`)
  return url !== null && url.origin === address.origin && pathOf(address).startsWith(pathOf(url))
}
