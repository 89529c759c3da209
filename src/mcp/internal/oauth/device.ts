/** Signing in by a code that a person types in on another device (RFC 8628), for where no browser can come back to. */
import type {
  AuthorizationServerMetadata,
  OAuthClientProvider,
  OAuthDiscoveryState,
  OAuthTokens,
  StoredOAuthClientInformation
} from "@modelcontextprotocol/client"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as DeviceFlow from "../../../support/http/deviceFlow.ts"
import type { FetchLike } from "../../../support/http/fetchLike.ts"
import { isLoopback } from "../../../support/http/redirect.ts"
import { defined } from "../../../support/json/defined.ts"
import { cut } from "../../../support/text/text.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import type { McpError } from "../../McpError.ts"
import type { Sdk } from "../wire/sdk.ts"
import type { Page } from "./page.ts"

/** The grant of codes that are typed in elsewhere. */
export const grant = "urn:ietf:params:oauth:grant-type:device_code"

/** The address that such a client is registered with: nobody is ever sent there. */
export const nowhere = "http://127.0.0.1/callback"

const Answer = Schema.fromJsonString(
  Schema.Struct({
    device_code: Schema.NonEmptyString.check(Schema.isMaxLength(4_096)),
    user_code: Schema.NonEmptyString,
    verification_uri: Schema.String,
    verification_uri_complete: Schema.optionalKey(Schema.String),
    expires_in: Schema.Finite,
    interval: Schema.optionalKey(Schema.Finite)
  })
)

/** The endpoint where codes are given out, if an authorisation server has one. */
export const endpointOf = (metadata: AuthorizationServerMetadata | undefined): string | undefined =>
  Predicate.hasProperty(metadata, "device_authorization_endpoint") &&
  Predicate.isString(metadata.device_authorization_endpoint)
    ? metadata.device_authorization_endpoint
    : undefined

/** A sign-in whose authorisation server and client are known. */
export interface Asked {
  readonly sdk: Sdk
  readonly server: string
  readonly provider: OAuthClientProvider
  readonly discovery: OAuthDiscoveryState
  readonly client: StoredOAuthClientInformation
  readonly scope: string | undefined
  readonly resource: string | undefined
  readonly fetchFn: FetchLike
  readonly open: (page: Page) => Effect.Effect<void>
  readonly fail: (words: string, cause?: unknown) => McpError
  readonly refused: (error: unknown) => McpError
}

/** Refuses plain HTTP, and other schemes, for what is shown to a person, or asked for with secrets. */
const safe = (address: string | undefined): URL | undefined => {
  const url = address === undefined ? null : URL.parse(address)
  return url !== null && (url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url))) ? url : undefined
}

const authenticate = async (
  { client, discovery, provider, sdk }: Asked,
  to: URL,
  headers: Headers,
  body: URLSearchParams
): Promise<void> => {
  const { authorizationServerMetadata: metadata } = discovery
  const { client_id, client_secret } = client
  if (provider.addClientAuthentication !== undefined) {
    return provider.addClientAuthentication(headers, body, to, metadata)
  }
  if (client_secret === undefined) return
  const method = sdk.selectClientAuthMethod(client, metadata?.token_endpoint_auth_methods_supported ?? [])
  if (method === "client_secret_post") body.set("client_secret", client_secret)
  else if (method === "client_secret_basic")
    headers.set("authorization", `Basic ${btoa(`${client_id}:${client_secret}`)}`)
}

const late = "it did not answer within 25 seconds"

const begin = Effect.fnUntraced(function* (asked: Asked) {
  const { client, discovery, fail, fetchFn, refused, resource, scope, sdk } = asked
  const address = endpointOf(discovery.authorizationServerMetadata)
  const to = safe(address)
  if (to === undefined) {
    return yield* fail(`its endpoint for codes, ${JSON.stringify(cut(address ?? "", 200))}, is no address of https`)
  }
  const text = yield* Effect.tryPromise({
    try: async (signal) => {
      const headers = new Headers({ accept: "application/json" })
      const body = new URLSearchParams(defined({ client_id: client.client_id, scope, resource }))
      await authenticate(asked, to, headers, body)
      // Secrets are not sent on to where an answer points.
      const response = await fetchFn(to, { method: "POST", headers, body, redirect: "manual", signal })
      return response.ok ? response.text() : Promise.reject(await sdk.parseErrorResponse(response))
    },
    catch: refused
  }).pipe(Effect.timeoutOrElse({ duration: "25 seconds", orElse: () => Effect.fail(fail(late)) }))
  const answer = yield* Effect.mapError(Schema.decodeUnknownEffect(Answer)(text), (cause) =>
    fail("what it gave out is no code for a device", cause)
  )
  const page = safe(answer.verification_uri_complete ?? answer.verification_uri)
  if (page === undefined) return yield* fail("its page for the code is no address of https")
  return {
    code: answer.device_code,
    userCode: cut(oneLine(answer.user_code), 100),
    page,
    ...DeviceFlow.bounds(answer.expires_in, answer.interval)
  }
})

/** Gets tokens once the person has typed the code in. Fails when the code, or `most` seconds, are over. */
export const signIn = Effect.fnUntraced(function* (
  asked: Asked,
  most: number
): Effect.fn.Return<OAuthTokens, McpError> {
  const { discovery, fail, fetchFn, provider, refused, resource, sdk, server } = asked
  const { code, interval, page, seconds, userCode } = yield* begin(asked)
  yield* asked.open({ server, url: page.href, origin: page.origin, userCode })
  const lasts = Math.min(seconds, most)
  const over = (): McpError => fail(`nobody typed the code in within ${lasts} seconds`)
  const token = Effect.tryPromise({
    try: (signal) =>
      sdk.fetchToken(
        { ...provider, prepareTokenRequest: () => new URLSearchParams({ grant_type: grant, device_code: code }) },
        discovery.authorizationServerUrl,
        defined({
          metadata: discovery.authorizationServerMetadata,
          resource: resource === undefined ? undefined : new URL(resource),
          fetchFn: (to: string | URL, init?: RequestInit) => fetchFn(to, { ...init, signal })
        })
      ),
    catch: (error) => error
  }).pipe(Effect.timeoutOrElse({ duration: "25 seconds", orElse: () => Effect.fail(new TypeError(late)) }))
  const again = (error: unknown): DeviceFlow.Again | undefined => {
    if (!(error instanceof sdk.OAuthError)) return error instanceof TypeError ? "unavailable" : undefined
    if (error.code === "authorization_pending" || error.code === "slow_down") return error.code
    return error.code === "server_error" || error.code === "temporarily_unavailable" ? "unavailable" : undefined
  }
  const answer = Effect.mapError(DeviceFlow.poll(interval, token, again), (error) => {
    const word = error instanceof sdk.OAuthError ? error.code : undefined
    if (word === "expired_token") return over()
    return word === "access_denied" ? fail("the sign-in was refused: access_denied") : refused(error)
  })
  return yield* Effect.timeoutOrElse(answer, { duration: lasts * 1000, orElse: () => Effect.fail(over()) })
})
