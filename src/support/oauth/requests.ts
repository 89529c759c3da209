/** The requests of OAuth 2.1, by `oauth4webapi` over a `fetch`. Each succeeds with plain values or fails with a {@link Reason}. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as OAuth4 from "oauth4webapi"
import { loadPeer } from "../effect/peer.ts"
import * as DeviceFlow from "../http/deviceFlow.ts"
import type { FetchLike } from "../http/fetchLike.ts"
import { defined } from "../json/defined.ts"
import { cut } from "../text/text.ts"
import * as Metadata from "./metadata.ts"
import { bounded, expired, invalid, type Reason, unavailable, unsupported } from "./reason.ts"

type Library = typeof OAuth4
type Server = Metadata.Server

/**
 * The application, as the server knows it. It authenticates by a `secret`, a `privateKey` (RFC 7523), or not at all.
 * With `proofs` its tokens are bound to a key (DPoP, RFC 9449).
 */
export interface Client {
  readonly id: string
  readonly secret?: Redacted.Redacted | undefined
  readonly authentication?: "basic" | "post" | undefined
  readonly privateKey?: OAuth4.CryptoKey | undefined
  readonly proofs?: OAuth4.DPoPHandle | undefined
}

/** Tokens of a server. `expiresAt` is in milliseconds since the epoch. */
export interface Tokens {
  readonly accessToken: Redacted.Redacted
  readonly refreshToken?: Redacted.Redacted
  readonly expiresAt?: number
  readonly scopes?: ReadonlyArray<string>
  /** The person, by an ID token whose signature and nonce were checked. */
  readonly subject?: string
  /** Present for a token that needs a proof of possession. */
  readonly metadata?: { readonly tokenType: "DPoP" }
}

/** A device that waits for a person who types its code in elsewhere. */
export interface Device {
  readonly code: string
  readonly userCode: string
  readonly url: string
  readonly seconds: number
  readonly interval: number
}

type Extra = { readonly [name: string]: string }

/** The grant of codes that are typed in on another device (RFC 8628). */
export const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

/** The grant that exchanges one token for another (RFC 8693). */
export const exchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"

const scopeOf = (scopes: ReadonlyArray<string>): Extra => (scopes.length === 0 ? {} : { scope: scopes.join(" ") })

/** Failures of a poll after which it goes on. */
const againOf = (reason: Reason): DeviceFlow.Again | undefined => {
  if (reason._tag === "Unavailable") return "unavailable"
  const error = reason._tag === "Refused" ? reason.error : undefined
  return error === "authorization_pending" || error === "slow_down" ? error : undefined
}

/** Loads the package. */
const library = loadPeer("oauth4webapi", () => import("oauth4webapi"), unsupported)

const refusalOf = (error: string, description: string | undefined): Reason =>
  error === "access_denied"
    ? { _tag: "Declined" }
    : error === "temporarily_unavailable" || error === "server_error"
      ? unavailable(bounded(description ?? error))
      : defined({
          _tag: "Refused",
          error: bounded(error),
          description: description === undefined ? undefined : bounded(description)
        })

/** The reason of a failure. Texts of the server are bounded. */
const reasonOf = (oauth: Library, cause: unknown): Reason => {
  if (cause instanceof oauth.ResponseBodyError || cause instanceof oauth.AuthorizationResponseError) {
    return refusalOf(cause.error, cause.error_description)
  }
  if (cause instanceof oauth.WWWAuthenticateChallengeError) return refusalOf("invalid_client", undefined)
  if (cause instanceof oauth.UnsupportedOperationError) return unsupported(bounded(cause.message))
  if (cause instanceof oauth.OperationProcessingError) {
    const { cause: inner, code, message } = cause
    const isDown = inner instanceof Response && inner.status >= 500
    if (isDown) return unavailable(`it answered with status ${inner.status}`)
    return code === oauth.HTTP_REQUEST_FORBIDDEN || code === oauth.REQUEST_PROTOCOL_FORBIDDEN
      ? unsupported("its address is not https")
      : code === oauth.MISSING_SERVER_METADATA
        ? unsupported(bounded(message))
        : invalid(bounded(message))
  }
  return unavailable("the connection failed")
}

const mostBytes = 1024 * 1024

/** Reads a body; empty if it is longer than 1 MiB. */
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

/**
 * Mends responses of servers that differ from the protocol: errors with status 200 (GitHub's) become errors, and a
 * device is never polled more often than once a second.
 */
const mended =
  (fetch: FetchLike): FetchLike =>
  async (input, init) => {
    const response = await fetch(input, init)
    const { headers, status } = response
    if (response.body === null) return response
    const text = await textOf(response.body)
    const body = text.replace(/"interval"\s*:\s*(?:0|-[\d.]+)(?=\s*[,}])/, '"interval":1')
    const isJson = headers.get("content-type")?.includes("json") === true
    const isError =
      status === 200 && isJson && /"error"\s*:/.test(body) && !/"(access_token|issuer|device_code)"\s*:/.test(body)
    return new Response(body, { status: isError ? 400 : status, headers })
  }

/** Escapes only what must be, since many servers compare the header as it is. */
const basicAuth =
  (secret: string): OAuth4.ClientAuth =>
  (_server, { client_id }, _body, headers) =>
    headers.set("authorization", `Basic ${btoa(`${encodeURIComponent(client_id)}:${encodeURIComponent(secret)}`)}`)

const authenticationOf = (
  oauth: Library,
  { authentication, privateKey, secret }: Client,
  supported: ReadonlyArray<string> = []
) => {
  if (privateKey !== undefined) return oauth.PrivateKeyJwt(privateKey)
  if (secret === undefined) return oauth.None()
  const isPost =
    authentication === undefined
      ? supported.includes("client_secret_post") && !supported.includes("client_secret_basic")
      : authentication === "post"
  return isPost ? oauth.ClientSecretPost(Redacted.value(secret)) : basicAuth(Redacted.value(secret))
}

const tokensOf = Effect.fnUntraced(function* (response: OAuth4.TokenEndpointResponse, subject?: string) {
  const now = yield* Clock.currentTimeMillis
  const { access_token, expires_in, refresh_token, scope, token_type } = response
  const tokens: Tokens = defined({
    accessToken: Redacted.make(access_token),
    refreshToken: refresh_token === undefined ? undefined : Redacted.make(refresh_token),
    expiresAt: expires_in === undefined ? undefined : now + expires_in * 1000,
    scopes: scope?.split(/[\s,]+/).filter((one) => one !== ""),
    subject,
    metadata: token_type === "dpop" ? { tokenType: "DPoP" as const } : undefined
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
  revocation_endpoint: "revocation endpoint",
  registration_endpoint: "endpoint for dynamic client registration"
} as const

const decodeRegistered = Schema.decodeUnknownEffect(
  Schema.fromJsonString(
    Schema.Struct({
      client_id: Schema.NonEmptyString,
      client_secret: Schema.optionalKey(Schema.RedactedFromValue(Schema.String)),
      token_endpoint_auth_method: Schema.optionalKey(Schema.String)
    })
  )
)

/** The arguments of the library's functions. */
interface Call {
  readonly oauth: Library
  readonly as: Server
  readonly client: OAuth4.Client
  readonly authentication: OAuth4.ClientAuth
  readonly options: { readonly signal: AbortSignal; readonly DPoP?: OAuth4.DPoPHandle }
}

const timeoutReason = unavailable("it did not answer within 25 seconds")

/** The proof that a client has the key of its tokens. Without a `key` it makes one. */
export const proofsOf = (key: OAuth4.CryptoKeyPair | undefined) =>
  Effect.flatMap(library, (oauth) =>
    Effect.promise(async () => {
      const pair = key ?? (await oauth.generateKeyPair("ES256", { extractable: true }))
      return { pair, proofs: oauth.DPoP({}, pair) }
    })
  )

/** The page of the sign-in, and the values that its callback is checked with. */
const authorization = Effect.fnUntraced(function* (
  server: Server,
  client: Client,
  signIn: { readonly redirect: string; readonly state: string; readonly scopes: ReadonlyArray<string> },
  parameters: Extra
) {
  const url = yield* Metadata.checkAddress(server.authorization_endpoint, "authorization endpoint")
  if (server.code_challenge_methods_supported?.includes("S256") === false) {
    return yield* Effect.fail(unsupported("its server does not take code challenges (PKCE) by S256"))
  }
  const { challenge, random, verifier } = yield* randoms
  const state = `${signIn.state}.${random}`
  const query = {
    ...parameters,
    ...scopeOf(signIn.scopes),
    response_type: "code",
    client_id: client.id,
    redirect_uri: signIn.redirect,
    state,
    code_challenge: challenge,
    code_challenge_method: "S256"
  }
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  return { state, url: url.href, verifier }
})

/** Sends requests to the endpoints of a server. */
const senderOf = (fetch: FetchLike) => {
  const request = <A>(
    url: URL,
    proofs: OAuth4.DPoPHandle | undefined,
    work: (oauth: Library, options: Call["options"]) => Promise<A>
  ): Effect.Effect<A, Reason> =>
    Effect.flatMap(library, (oauth) => {
      const own = { [oauth.customFetch]: fetch, [oauth.allowInsecureRequests]: url.protocol === "http:" }
      const attempt = Effect.tryPromise({
        try: (signal) => {
          const send = () => work(oauth, { signal, ...own, ...(proofs === undefined ? {} : { DPoP: proofs }) })
          // The failed attempt told the nonce to put into the next proof.
          return send().catch((cause: unknown) => (oauth.isDPoPNonceError(cause) ? send() : Promise.reject(cause)))
        },
        catch: (cause) => reasonOf(oauth, cause)
      })
      return Effect.timeoutOrElse(attempt, { duration: "25 seconds", orElse: () => Effect.fail(timeoutReason) })
    })

  return <A>(
    endpoint: keyof typeof endpoints,
    server: Server,
    client: Client,
    work: (call: Call) => Promise<A>
  ): Effect.Effect<A, Reason> =>
    Effect.flatMap(Metadata.checkAddress(server[endpoint], endpoints[endpoint]), (url) =>
      request(url, client.proofs, (oauth, options) => {
        const authentication = authenticationOf(oauth, client, server.token_endpoint_auth_methods_supported)
        return work({ oauth, as: server, client: { client_id: client.id }, authentication, options })
      })
    )
}

/** Makes the requests over a `fetch`. */
export const make = (connection: FetchLike) => {
  const fetch = mended(connection)
  const at = senderOf(fetch)

  /** Requests tokens by a grant. */
  const grant = (server: Server, own: Client, type: string, parameters: Extra): Effect.Effect<Tokens, Reason> =>
    Effect.flatMap(
      at("token_endpoint", server, own, async ({ as, authentication: by, client, oauth, options }) => {
        const response = oauth.genericTokenEndpointRequest(as, client, by, type, parameters, options)
        const recognizedTokenTypes = type === exchangeGrant ? { n_a: () => undefined } : {}
        return oauth.processGenericTokenEndpointResponse(as, client, await response, { recognizedTokenTypes })
      }),
      (response) => tokensOf(response)
    )

  /**
   * Exchanges a callback for tokens, after a check of its state and issuer. With a `nonce` the tokens must come with an ID
   * token of this sign-in: its signature, issuer, audience, expiry and nonce are checked.
   */
  const exchange = (
    server: Server,
    own: Client,
    callback: URL,
    signIn: {
      readonly state: string
      readonly verifier: string
      readonly redirect: string
      readonly nonce?: string | undefined
    },
    parameters: Extra = {}
  ): Effect.Effect<Tokens, Reason> =>
    Effect.flatMap(
      at("token_endpoint", server, own, async ({ as, authentication: by, client, oauth, options }) => {
        const answer = oauth.validateAuthResponse(as, client, callback, signIn.state)
        const { nonce: expectedNonce, redirect, verifier } = signIn
        const more = { ...options, additionalParameters: parameters }
        const response = await oauth.authorizationCodeGrantRequest(as, client, by, answer, redirect, verifier, more)
        if (expectedNonce === undefined) {
          return { result: await oauth.processAuthorizationCodeResponse(as, client, response) }
        }
        const expected = { expectedNonce, requireIdToken: true }
        const result = await oauth.processAuthorizationCodeResponse(as, client, response, expected)
        await oauth.validateApplicationLevelSignature(as, response, options)
        return { result, subject: oauth.getValidatedIdTokenClaims(result)?.sub }
      }),
      ({ result, subject }) => tokensOf(result, subject)
    )

  const device = Effect.fnUntraced(function* (
    server: Server,
    own: Client,
    scopes: ReadonlyArray<string>,
    parameters: Extra
  ) {
    const deviceRequest = at(
      "device_authorization_endpoint",
      server,
      own,
      async ({ as, authentication: by, client, oauth, options }) => {
        const query = { ...parameters, ...scopeOf(scopes) }
        const response = oauth.deviceAuthorizationRequest(as, client, by, query, options)
        return oauth.processDeviceAuthorizationResponse(as, client, await response)
      }
    )
    const response = yield* deviceRequest
    const page = yield* Metadata.checkAddress(
      response.verification_uri_complete ?? response.verification_uri,
      "page for the code"
    )
    const result: Device = {
      code: response.device_code,
      userCode: cut(bounded(response.user_code), 100),
      url: page.href,
      ...DeviceFlow.bounds(response.expires_in, response.interval)
    }
    return result
  })

  /** Polls until the person has typed in the code, or the server says that it expired. */
  const poll = Effect.fnUntraced(function* (
    server: Server,
    own: Client,
    { code, interval, seconds: lasts }: Device,
    parameters: Extra = {}
  ) {
    const attempt = grant(server, own, deviceGrant, { ...parameters, device_code: code })
    const answer = Effect.mapError(DeviceFlow.poll(interval, attempt, againOf), (reason) =>
      reason._tag === "Refused" && reason.error === "expired_token" ? expired(lasts) : reason
    )
    return yield* answer
  })

  const refresh = (
    server: Server,
    own: Client,
    token: Redacted.Redacted,
    parameters: Extra = {}
  ): Effect.Effect<Tokens, Reason> =>
    grant(server, own, "refresh_token", { ...parameters, refresh_token: Redacted.value(token) })

  const revoke = (
    server: Server,
    own: Client,
    token: Redacted.Redacted,
    parameters: Extra = {}
  ): Effect.Effect<void, Reason> =>
    at("revocation_endpoint", server, own, async ({ as, authentication: by, client, oauth, options }) => {
      const more = { ...options, additionalParameters: parameters }
      const response = oauth.revocationRequest(as, client, by, Redacted.value(token), more)
      return oauth.processRevocationResponse(await response)
    })

  /** Registers the application (RFC 7591). */
  const register = Effect.fnUntraced(function* (
    server: Server,
    metadata: Parameters<Library["dynamicClientRegistrationRequest"]>[1]
  ) {
    const text = yield* at("registration_endpoint", server, { id: "" }, async ({ as, oauth, options }) => {
      const response = await oauth.dynamicClientRegistrationRequest(as, metadata, options)
      // Servers forget the status 201 and the end of a secret.
      return response.ok
        ? response.text()
        : JSON.stringify(await oauth.processDynamicClientRegistrationResponse(response))
    })
    const registered = yield* Effect.mapError(decodeRegistered(text), () => invalid("its registration is of no client"))
    const { client_id: id, client_secret: secret, token_endpoint_auth_method: method } = registered
    const client: Client = defined({
      id,
      secret: method === "none" ? undefined : secret,
      authentication: method === "client_secret_post" ? "post" : method === "client_secret_basic" ? "basic" : undefined
    })
    return client
  })

  const metadata = {
    discoverServer: (issuer: string) => Metadata.discoverServer(fetch, issuer),
    readServer: (address: string) => Metadata.readServer(fetch, address),
    discoverResource: (resource: URL, address: URL | undefined) => Metadata.discoverResource(fetch, resource, address)
  }
  return { ...metadata, authorization, exchange, device, poll, refresh, revoke, grant, register }
}

/** The requests over one `fetch`. */
export type Requests = ReturnType<typeof make>
