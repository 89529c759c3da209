/**
 * The requests of OAuth, by `oauth4webapi` over the `HttpClient` at hand: what they give, or the reason that they don't.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as OAuth4 from "oauth4webapi"
import { loadPeer } from "../../../support/effect/peer.ts"
import * as DeviceFlow from "../../../support/http/deviceFlow.ts"
import { type FetchLike, fetchLike } from "../../../support/http/fetchLike.ts"
import { isLoopback } from "../../../support/http/redirect.ts"
import { defined } from "../../../support/json/defined.ts"
import { cut } from "../../../support/text/text.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import type { Reason } from "../../OAuthError.ts"

type Library = typeof OAuth4

/** The part of a server's metadata that is kept with a sign-in. */
export const Server = Schema.Struct({
  issuer: Schema.String,
  authorization_endpoint: Schema.optionalKey(Schema.String),
  token_endpoint: Schema.optionalKey(Schema.String),
  device_authorization_endpoint: Schema.optionalKey(Schema.String),
  revocation_endpoint: Schema.optionalKey(Schema.String),
  token_endpoint_auth_methods_supported: Schema.optionalKey(Schema.mutable(Schema.Array(Schema.String))),
  authorization_response_iss_parameter_supported: Schema.optionalKey(Schema.Boolean)
})
export type Server = typeof Server.Type

/** The application, as the server knows it. */
export interface Client {
  readonly id: string
  readonly secret?: Redacted.Redacted | undefined
  readonly authentication?: "basic" | "post" | undefined
}

/** Tokens as a server gave them. `expiresAt` is in milliseconds since the epoch. */
export interface Tokens {
  readonly accessToken: Redacted.Redacted
  readonly refreshToken?: Redacted.Redacted
  readonly expiresAt?: number
  readonly scopes?: ReadonlyArray<string>
}

/** A device that waits for a person who types its code in elsewhere. */
export interface Device {
  readonly code: string
  readonly userCode: string
  readonly url: string
  readonly seconds: number
  readonly interval: number
}

type Parameters = { readonly [name: string]: string }

const scopeOf = (scopes: ReadonlyArray<string>): Parameters => (scopes.length === 0 ? {} : { scope: scopes.join(" ") })

export const over = (seconds: number): Reason => ({ _tag: "Expired", seconds })

/** Failures of a poll after which it goes on. */
const againOf = (reason: Reason): DeviceFlow.Again | undefined => {
  if (reason._tag === "Unavailable") return "unavailable"
  const error = reason._tag === "Refused" ? reason.error : undefined
  return error === "authorization_pending" || error === "slow_down" ? error : undefined
}

const most = 300
const said = (text: string): string => cut(oneLine(text), most)

const unsupported = (problem: string): Reason => ({ _tag: "Unsupported", problem })
const invalid = (problem: string): Reason => ({ _tag: "InvalidResponse", problem })

const library = loadPeer("oauth4webapi", () => import("oauth4webapi"), unsupported)

const refused = (error: string, description: string | undefined): Reason =>
  error === "access_denied"
    ? { _tag: "Declined" }
    : error === "temporarily_unavailable" || error === "server_error"
      ? { _tag: "Unavailable", problem: said(description ?? error) }
      : defined({
          _tag: "Refused",
          error: said(error),
          description: description === undefined ? undefined : said(description)
        })

/** The reason of a failure, in words that are ours, or bounded: whatever a server sends may be in it. */
const reasonOf = (oauth: Library, cause: unknown): Reason => {
  if (cause instanceof oauth.ResponseBodyError || cause instanceof oauth.AuthorizationResponseError) {
    return refused(cause.error, cause.error_description)
  }
  if (cause instanceof oauth.WWWAuthenticateChallengeError) return refused("invalid_client", undefined)
  if (cause instanceof oauth.UnsupportedOperationError) return unsupported(said(cause.message))
  if (cause instanceof oauth.OperationProcessingError) {
    const { cause: inner, code, message } = cause
    const isDown = inner instanceof Response && inner.status >= 500
    if (isDown) return { _tag: "Unavailable", problem: `it answered with status ${inner.status}` }
    return code === oauth.HTTP_REQUEST_FORBIDDEN || code === oauth.REQUEST_PROTOCOL_FORBIDDEN
      ? unsupported("its address is not https")
      : code === oauth.MISSING_SERVER_METADATA
        ? unsupported(said(message))
        : invalid(said(message))
  }
  return { _tag: "Unavailable", problem: "the connection failed" }
}

const mostBytes = 1024 * 1024

/** The text of an answer; none of one that is too long, of which the rest is not read. */
const textOf = async (body: ReadableStream<Uint8Array>): Promise<string> => {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let text = ""
  let size = 0
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    size += part.value.length
    if (size > mostBytes) {
      await reader.cancel()
      return ""
    }
    text += decoder.decode(part.value, { stream: true })
  }
  return text + decoder.decode()
}

/** Errors that are sent as a success (GitHub's) become what they are. An answer without an end is none. */
const honest =
  (fetch: FetchLike): FetchLike =>
  async (input, init) => {
    const response = await fetch(input, init)
    const { headers, status } = response
    if (response.body === null) return response
    const body = await textOf(response.body)
    const isJson = headers.get("content-type")?.includes("json") === true
    const isError =
      status === 200 && isJson && /"error"\s*:/.test(body) && !/"(access_token|issuer|device_code)"\s*:/.test(body)
    return new Response(body, { status: isError ? 400 : status, headers })
  }

/** The endpoint of a server that is used next. It is checked here, since a server may name any. */
const checked = (address: string | undefined, what: string): Effect.Effect<URL, Reason> => {
  if (address === undefined) return Effect.fail(unsupported(`its server has no ${what}`))
  if (!URL.canParse(address)) return Effect.fail(unsupported(`the ${what} ${JSON.stringify(said(address))} is no URL`))
  const url = new URL(address)
  return url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url))
    ? Effect.succeed(url)
    : Effect.fail(unsupported(`the ${what} of its server, ${JSON.stringify(said(address))}, is not https`))
}

const authenticationOf = (
  oauth: Library,
  { authentication, secret }: Client,
  supported: ReadonlyArray<string> = []
) => {
  if (secret === undefined) return oauth.None()
  const isPost =
    authentication === undefined
      ? supported.includes("client_secret_post") && !supported.includes("client_secret_basic")
      : authentication === "post"
  return isPost ? oauth.ClientSecretPost(Redacted.value(secret)) : oauth.ClientSecretBasic(Redacted.value(secret))
}

const tokensOf = Effect.fnUntraced(function* (response: OAuth4.TokenEndpointResponse) {
  const now = yield* Clock.currentTimeMillis
  const { access_token, expires_in, refresh_token, scope } = response
  const tokens: Tokens = defined({
    accessToken: Redacted.make(access_token),
    refreshToken: refresh_token === undefined ? undefined : Redacted.make(refresh_token),
    expiresAt: expires_in === undefined ? undefined : now + expires_in * 1000,
    scopes: scope?.split(/[\s,]+/).filter((one) => one !== "")
  })
  return tokens
})

const randoms = Effect.flatMap(library, (oauth) =>
  Effect.promise(async () => {
    const verifier = oauth.generateRandomCodeVerifier()
    const challenge = await oauth.calculatePKCECodeChallenge(verifier)
    return { verifier, challenge, random: oauth.generateRandomState() }
  })
)

const endpoints = {
  token_endpoint: "token endpoint",
  device_authorization_endpoint: "device flow",
  revocation_endpoint: "revocation endpoint"
} as const

/** All that a request is made of. */
interface Way {
  readonly oauth: Library
  readonly as: Server
  readonly client: OAuth4.Client
  readonly authentication: OAuth4.ClientAuth
  readonly options: { readonly signal: AbortSignal }
}

const late: Reason = { _tag: "Unavailable", problem: "it did not answer within 25 seconds" }

/** The requests, with the client that is at hand now. */
export const protocol = Effect.gen(function* () {
  const fetch = honest(yield* fetchLike)

  const request = <A>(
    url: URL,
    work: (oauth: Library, options: Way["options"]) => Promise<A>
  ): Effect.Effect<A, Reason> =>
    Effect.flatMap(library, (oauth) => {
      const own = { [oauth.customFetch]: fetch, [oauth.allowInsecureRequests]: url.protocol === "http:" }
      const asked = Effect.tryPromise({
        try: (signal) => work(oauth, { signal, ...own }),
        catch: (cause) => reasonOf(oauth, cause)
      })
      return Effect.timeoutOrElse(asked, { duration: "25 seconds", orElse: () => Effect.fail(late) })
    })

  const at = <A>(
    endpoint: keyof typeof endpoints,
    server: Server,
    client: Client,
    work: (way: Way) => Promise<A>
  ): Effect.Effect<A, Reason> =>
    Effect.flatMap(checked(server[endpoint], endpoints[endpoint]), (url) =>
      request(url, (oauth, options) => {
        const authentication = authenticationOf(oauth, client, server.token_endpoint_auth_methods_supported)
        return work({ oauth, as: server, client: { client_id: client.id }, authentication, options })
      })
    )

  /** The metadata that a server publishes, as OpenID Connect has it or as OAuth has it. */
  const discover = Effect.fnUntraced(function* (issuer: string) {
    const url = yield* checked(issuer, "address")
    const by = (algorithm: "oidc" | "oauth2") =>
      request(url, async (oauth, options) =>
        oauth.processDiscoveryResponse(url, await oauth.discoveryRequest(url, { ...options, algorithm }))
      )
    return yield* Effect.catch(by("oidc"), (reason) =>
      reason._tag === "InvalidResponse" ? by("oauth2") : Effect.fail(reason)
    )
  })

  /** The page that a person is sent to, and what its answer is checked with. */
  const authorization = Effect.fnUntraced(function* (
    server: Server,
    client: Client,
    asked: { readonly redirect: string; readonly state: string; readonly scopes: ReadonlyArray<string> },
    parameters: Parameters
  ) {
    const url = yield* checked(server.authorization_endpoint, "authorization endpoint")
    const { challenge, random, verifier } = yield* randoms
    const state = `${asked.state}.${random}`
    const query = {
      ...parameters,
      ...scopeOf(asked.scopes),
      response_type: "code",
      client_id: client.id,
      redirect_uri: asked.redirect,
      state,
      code_challenge: challenge,
      code_challenge_method: "S256"
    }
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    return { state, url: url.href, verifier }
  })

  /** Tokens for what came back from the page: its state and its issuer are checked before anything is sent. */
  const exchange = (
    server: Server,
    own: Client,
    callback: URL,
    kept: { readonly state: string; readonly verifier: string; readonly redirect: string }
  ): Effect.Effect<Tokens, Reason> =>
    Effect.flatMap(
      at("token_endpoint", server, own, async ({ as, authentication: by, client, oauth, options }) => {
        const given = oauth.validateAuthResponse(as, client, callback, kept.state)
        const { redirect, verifier } = kept
        const response = oauth.authorizationCodeGrantRequest(as, client, by, given, redirect, verifier, options)
        return oauth.processAuthorizationCodeResponse(as, client, await response)
      }),
      tokensOf
    )

  const device = Effect.fnUntraced(function* (
    server: Server,
    own: Client,
    scopes: ReadonlyArray<string>,
    parameters: Parameters
  ) {
    const asked = at(
      "device_authorization_endpoint",
      server,
      own,
      async ({ as, authentication: by, client, oauth, options }) => {
        const query = { ...parameters, ...scopeOf(scopes) }
        const response = oauth.deviceAuthorizationRequest(as, client, by, query, options)
        return oauth.processDeviceAuthorizationResponse(as, client, await response)
      }
    )
    const response = yield* asked
    const page = yield* checked(response.verification_uri_complete ?? response.verification_uri, "page for the code")
    const found: Device = {
      code: response.device_code,
      userCode: said(response.user_code),
      url: page.href,
      ...DeviceFlow.bounds(response.expires_in, response.interval)
    }
    return found
  })

  /** Asks until the person has typed in the code, or the server says that it is over. */
  const poll = Effect.fnUntraced(function* (server: Server, own: Client, { code, interval, seconds: lasts }: Device) {
    const asked = at("token_endpoint", server, own, async ({ as, authentication: by, client, oauth, options }) =>
      oauth.processDeviceCodeResponse(as, client, await oauth.deviceCodeGrantRequest(as, client, by, code, options))
    )
    const answer = Effect.mapError(DeviceFlow.poll(interval, asked, againOf), (reason) =>
      reason._tag === "Refused" && reason.error === "expired_token" ? over(lasts) : reason
    )
    return yield* Effect.flatMap(answer, tokensOf)
  })

  const refresh = (server: Server, own: Client, token: Redacted.Redacted): Effect.Effect<Tokens, Reason> =>
    Effect.flatMap(
      at("token_endpoint", server, own, async ({ as, authentication: by, client, oauth, options }) => {
        const response = oauth.refreshTokenGrantRequest(as, client, by, Redacted.value(token), options)
        return oauth.processRefreshTokenResponse(as, client, await response)
      }),
      tokensOf
    )

  const revoke = (server: Server, own: Client, token: Redacted.Redacted): Effect.Effect<void, Reason> =>
    at("revocation_endpoint", server, own, async ({ as, authentication: by, client, oauth, options }) =>
      oauth.processRevocationResponse(await oauth.revocationRequest(as, client, by, Redacted.value(token), options))
    )

  return { discover, authorization, exchange, device, poll, refresh, revoke }
})
