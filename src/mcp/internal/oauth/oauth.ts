/**
 * The authorisation of one server: tokens that are kept and renewed, and a sign-in where there are none, or too few.
 */
import type {
  DpopSession,
  OAuthClientProvider,
  OAuthDiscoveryState,
  OAuthTokens,
  StoredOAuthClientInformation
} from "@modelcontextprotocol/client"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Scope } from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { makeId } from "../../../core/Message.ts"
import { ApiKey, type CredentialStore, OAuthToken } from "../../../stores/CredentialStore.ts"
import { observed } from "../../../support/effect/observed.ts"
import type { FetchLike } from "../../../support/http/fetchLike.ts"
import { isLoopback, type Redirect } from "../../../support/http/redirect.ts"
import { defined } from "../../../support/json/defined.ts"
import { reveal } from "../../../support/store/redacted.ts"
import { sha256Sync } from "../../../support/store/sha256.ts"
import { cut } from "../../../support/text/text.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import type { HttpServer } from "../../McpConfig.ts"
import { McpError } from "../../McpError.ts"
import { wordsOf } from "../errors.ts"
import type { Sdk } from "../wire/sdk.ts"
import * as Assertion from "./assertion.ts"
import * as Device from "./device.ts"
import type { Page } from "./page.ts"
import { type Key, keyPairOf, takesProofs } from "./proofs.ts"

/** The parts of an authorisation that all servers share. */
export interface Around {
  readonly credentials: CredentialStore["Service"]
  readonly tenant: string
  /** Without it, a code is typed in on another device. */
  readonly redirect: Redirect | undefined
  readonly open: (page: Page) => Effect.Effect<void>
  readonly clientName: string
  readonly clientMetadataUrl: string | undefined
  readonly assertion: Assertion.Assertion | undefined
}

/** A token of a server. */
export type Token = typeof OAuthToken.Type

/** The challenge of a server. */
interface Challenge {
  readonly status: number
  readonly used: string | undefined
  readonly scope: string | undefined
  readonly resourceMetadataUrl: URL | undefined
}

/** The time that a person has, in seconds. */
const patience = 300

const credentialsRequest = (scope?: string): URLSearchParams =>
  new URLSearchParams({ grant_type: "client_credentials", ...defined({ scope }) })

/** Marks a token that is good only with a proof that one has its key (RFC 9449). */
const bound = { tokenType: "DPoP" }

/** Tells whether a token needs a proof. */
export const isBound = ({ metadata }: Token): boolean => metadata?.["tokenType"] === bound.tokenType

/** The server does not let this client ask for so much: it must be registered anew. */
const invalidScope = "invalid_scope"

/** Requests that end with who wants them. */
const until =
  (signal: AbortSignal, fetch: FetchLike): FetchLike =>
  (input, init) =>
    fetch(input, { ...init, signal })

/** Makes the authorisation of a server, for one connection after the other. */
export const make = Effect.fnUntraced(function* (
  sdk: Sdk,
  around: Around,
  server: { readonly name: string; readonly config: HttpServer }
) {
  const { credentials, tenant } = around
  const { oauth, url } = server.config
  const serverUrl = reveal(url)
  const base = `mcp ${cut(new URL(serverUrl).origin, 150)} ${sha256Sync(serverUrl).slice(0, 16)}`
  const tokensName = `${base} tokens`
  const lock = Semaphore.makeUnsafe(1)

  const unauthorized = (words: string, cause?: unknown): McpError =>
    new McpError(
      defined({
        server: server.name,
        reason: "Unauthorized",
        message: `the MCP server "${server.name}": ${words}`,
        cause
      })
    )
  const refused = (error: unknown): McpError => unauthorized(`it could not be signed in to: ${wordsOf(error)}`, error)
  const ours = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, McpError> => Effect.mapError(effect, refused)

  const tokens = Effect.map(ours(credentials.get(tenant, tokensName)), (found) =>
    found?._tag === "OAuthToken" ? found : undefined
  )

  const tokenOf = Effect.fnUntraced(function* (given: OAuthTokens, old?: Token) {
    const now = yield* Clock.currentTimeMillis
    return OAuthToken.make(
      defined({
        accessToken: Redacted.make(given.access_token),
        refreshToken: given.refresh_token === undefined ? old?.refreshToken : Redacted.make(given.refresh_token),
        expiresAt: given.expires_in === undefined ? undefined : now + given.expires_in * 1000,
        scopes: given.scope?.split(" ") ?? old?.scopes,
        metadata: given.token_type.toLowerCase() === "dpop" ? bound : undefined
      })
    )
  })

  /** Data that the client of the protocol wants kept, as it gave it. */
  const keep = (kind: string, value: unknown) =>
    credentials.set(tenant, `${base} ${kind}`, ApiKey.make({ key: Redacted.make(JSON.stringify(value)) }))
  const kept = <A>(kind: string): Effect.Effect<A | undefined, McpError> =>
    Effect.map(ours(credentials.get(tenant, `${base} ${kind}`)), (found) =>
      // It was sealed by `keep`: nobody else can have written it.
      found?._tag === "ApiKey" ? (JSON.parse(Redacted.value(found.key)) as A) : undefined
    )
  const forget = (kind: string) => ours(credentials.remove(tenant, `${base} ${kind}`))

  const configured: StoredOAuthClientInformation | undefined =
    oauth?.clientId === undefined
      ? undefined
      : defined({
          client_id: oauth.clientId,
          client_secret: oauth.clientSecret && reveal(oauth.clientSecret),
          issuer: oauth.issuer
        })
  const isAsserting = oauth?.grant === "jwt-bearer"
  const isAlone = isAsserting || oauth?.grant === "client_credentials"
  const privateKey = oauth?.privateKey && reveal(oauth.privateKey)
  const authentication =
    privateKey === undefined || oauth?.clientId === undefined
      ? {}
      : {
          addClientAuthentication: sdk.createPrivateKeyJwtAuth({
            issuer: oauth.clientId,
            subject: oauth.clientId,
            privateKey,
            alg: oauth.algorithm ?? "ES256"
          })
        }

  /** The key that tokens are bound to. It is kept as they are. */
  const dpopSession = Effect.gen(function* () {
    const old = yield* kept<Key>("key")
    const pair = yield* Effect.tryPromise({ try: () => keyPairOf(sdk, old), catch: refused })
    if (old === undefined) {
      const privateJwk = yield* Effect.tryPromise({
        try: () => crypto.subtle.exportKey("jwk", pair.privateKey),
        catch: refused
      })
      yield* ours(keep("key", { privateJwk, publicJwk: pair.publicJwk, thumbprint: pair.thumbprint }))
    }
    return yield* Effect.promise(() => sdk.DpopSession.create({ keyPair: pair }))
  })
  const dpop = yield* Effect.cached(dpopSession)
  const proofsOf = (state: OAuthDiscoveryState | undefined): Effect.Effect<DpopSession | undefined, McpError> =>
    takesProofs(state?.authorizationServerMetadata) ? dpop : Effect.undefined

  /** The metadata that the configuration names, in the place of those that are looked for. */
  const given = Effect.fnUntraced(function* (
    url: string,
    resourceMetadataUrl: URL | undefined,
    fetchFn: FetchLike
  ): Effect.fn.Return<OAuthDiscoveryState, McpError> {
    const to = URL.parse(url)
    if (to === null || (to.protocol !== "https:" && !isLoopback(to))) {
      return yield* unauthorized(
        `authServerMetadataUrl must be an address of https, not ${JSON.stringify(cut(url, 200))}`
      )
    }
    const metadata = yield* Effect.tryPromise({
      try: (signal) =>
        fetchFn(to, { headers: { accept: "application/json" }, signal }).then((response): Promise<unknown> =>
          response.json()
        ),
      catch: refused
    })
    if (!sdk.isSpecType.OAuthMetadata(metadata)) {
      return yield* unauthorized(`there are no metadata of an authorisation server at ${to.href}`)
    }
    return {
      authorizationServerUrl: String(metadata.issuer),
      authorizationServerMetadata: metadata,
      ...defined({ resourceMetadataUrl: resourceMetadataUrl?.href })
    }
  })

  /** A secret is told to the authorisation server that it is for, and to no other that an MCP server may name. */
  const ofIssuer = (client: StoredOAuthClientInformation, issuer: string | undefined) =>
    client.issuer === undefined || issuer === undefined || client.issuer === issuer
      ? Effect.succeed({ ...client, ...defined({ issuer: client.issuer ?? issuer }) })
      : Effect.fail(
          unauthorized(`its client is one of ${client.issuer}, but it sends to ${cut(oneLine(issuer), 200)} to sign in`)
        )

  /** Renews the token that was refused, once for all who ask; `false` if only a person can help. */
  const renew = Effect.fnUntraced(function* (used: string | undefined, fetchFn: FetchLike) {
    const state = yield* kept<OAuthDiscoveryState>("discovery")
    const client = configured ?? (yield* kept<StoredOAuthClientInformation>("client"))
    if (state === undefined || client === undefined) return false
    // The configuration may have come to name another authorisation server since this one was signed in to.
    const issuer = state.authorizationServerMetadata?.issuer ?? state.authorizationServerUrl
    if (client.issuer !== undefined && client.issuer !== issuer) return false
    const proofs = yield* proofsOf(state)
    const renewed = credentials.refreshed(tenant, tokensName, {
      isExpired: (one) => one._tag === "OAuthToken" && Redacted.value(one.accessToken) === used,
      refresh: Effect.fnUntraced(function* (old) {
        if (old._tag !== "OAuthToken" || old.refreshToken === undefined) return old
        const refreshToken = Redacted.value(old.refreshToken)
        const given = yield* Effect.tryPromise({
          try: (signal) =>
            sdk.refreshAuthorization(
              state.authorizationServerUrl,
              defined({
                metadata: state.authorizationServerMetadata,
                clientInformation: client,
                refreshToken,
                resource: state.resourceMetadata?.resource,
                fetchFn: until(signal, fetchFn),
                ...authentication,
                dpop: proofs
              })
            ),
          catch: (error) => (error instanceof sdk.OAuthError ? ("refused" as const) : refused(error))
        })
        return yield* tokenOf(given, old)
      })
    })
    return yield* Effect.matchEffect(renewed, {
      onSuccess: () => Effect.succeed(true),
      onFailure: (error) =>
        error === "refused" ? Effect.succeed(false) : Effect.fail(error instanceof McpError ? error : refused(error))
    })
  })

  /** Signs in by a code in the place of the page. */
  const byCode = Effect.fnUntraced(function* (
    provider: OAuthClientProvider,
    discovery: OAuthDiscoveryState | undefined,
    asked: URLSearchParams,
    fetchFn: FetchLike
  ): Effect.fn.Return<void, McpError | typeof invalidScope> {
    const issuer = discovery?.authorizationServerMetadata?.issuer ?? discovery?.authorizationServerUrl ?? ""
    const client = yield* Effect.tryPromise({
      try: async () => provider.clientInformation({ issuer }),
      catch: refused
    })
    if (client === undefined || discovery === undefined) return yield* unauthorized("it knows no client of ours")
    const given = yield* Device.signIn(
      {
        sdk,
        server: server.name,
        provider,
        discovery,
        client,
        scope: asked.get("scope") ?? undefined,
        resource: asked.get("resource") ?? undefined,
        fetchFn,
        open: around.open,
        fail: unauthorized,
        refused
      },
      patience
    ).pipe(
      Effect.mapError((error) =>
        error.cause instanceof sdk.OAuthError && error.cause.code === invalidScope ? invalidScope : error
      )
    )
    yield* Effect.tryPromise({ try: async () => provider.saveTokens({ ...given, issuer }, { issuer }), catch: refused })
  })

  const signIn = Effect.fnUntraced(function* (
    { resourceMetadataUrl }: Challenge,
    scope: string | undefined,
    fetchFn: FetchLike
  ): Effect.fn.Return<void, McpError | typeof invalidScope, Scope> {
    const context = yield* Effect.context()
    const run = <A, E>(effect: Effect.Effect<A, E>): Promise<A> => observed(Effect.runPromiseWith(context)(effect))
    const arrived = yield* Deferred.make<
      { readonly authorizationCode: string; readonly iss?: string },
      McpError | typeof invalidScope
    >()
    const state = `${makeId()}${makeId()}`
    const receive = Effect.fnUntraced(function* (callback: string) {
      const given = new URL(callback).searchParams
      const [code, error, iss] = [given.get("code"), given.get("error"), given.get("iss")]
      const end =
        given.get("state") !== state
          ? Deferred.fail(arrived, unauthorized("what came back from its page is not of this sign-in"))
          : error === invalidScope
            ? Deferred.fail(arrived, invalidScope)
            : code === null
              ? Deferred.fail(
                  arrived,
                  unauthorized(`the sign-in was refused: ${cut(oneLine(error ?? "no code"), 100)}`)
                )
              : Deferred.succeed(arrived, defined({ authorizationCode: code, iss: iss ?? undefined }))
      yield* end
      return "You can close this page."
    })
    if (isAsserting && (configured === undefined || around.assertion === undefined)) {
      return yield* unauthorized("jwt-bearer needs a clientId, and the `assertion` of McpOAuth.layer")
    }
    const hasSecret = (configured?.client_secret ?? privateKey) !== undefined
    if (isAlone && !isAsserting && (configured === undefined || !hasSecret)) {
      return yield* unauthorized("client_credentials need a clientId, and a clientSecret or a privateKey")
    }
    const { redirect } = around
    const isDevice = !isAlone && redirect === undefined
    const back = isAlone
      ? undefined
      : redirect === undefined
        ? Device.nowhere
        : yield* Effect.mapError(redirect.open(receive, oauth?.callbackPort), (problem) => unauthorized(problem))
    let verifier = ""
    let page: URL | undefined
    let discovery: OAuthDiscoveryState | undefined =
      oauth?.authServerMetadataUrl === undefined
        ? undefined
        : yield* given(oauth.authServerMetadataUrl, resourceMetadataUrl, fetchFn)
    const asserted = Effect.fnUntraced(function* (wanted: string | undefined) {
      const issuer = discovery?.authorizationServerMetadata?.issuer ?? discovery?.authorizationServerUrl ?? ""
      const resource = discovery?.resourceMetadata?.resource ?? serverUrl
      const audience = { server: server.name, issuer, resource, scope: wanted, fetch: fetchFn }
      const assertion = around.assertion?.(audience) ?? Effect.fail(new Error("there is no assertion"))
      return Assertion.request(yield* Effect.mapError(assertion, refused), wanted)
    })
    const provider: OAuthClientProvider = {
      redirectUrl: back,
      ...authentication,
      ...(isAlone
        ? { prepareTokenRequest: (wanted) => (isAsserting ? run(asserted(wanted)) : credentialsRequest(wanted)) }
        : {}),
      dpop: () => run(proofsOf(discovery)),
      ...defined({ clientMetadataUrl: around.clientMetadataUrl }),
      clientMetadata: {
        client_name: around.clientName,
        redirect_uris: back === undefined ? [] : [back],
        grant_types: isAlone
          ? [isAsserting ? Assertion.grant : "client_credentials"]
          : ["authorization_code", "refresh_token", ...(isDevice ? [Device.grant] : [])],
        response_types: ["code"],
        token_endpoint_auth_method: "none",
        application_type: "native"
      },
      state: () => state,
      clientInformation: (context) =>
        isDevice && Device.endpointOf(discovery?.authorizationServerMetadata) === undefined
          ? run(Effect.fail(unauthorized("its authorisation server gives out no codes to type in elsewhere")))
          : configured !== undefined
            ? run(ofIssuer(configured, context?.issuer))
            : run(
                Effect.map(kept<StoredOAuthClientInformation>("client"), (found) => {
                  // A client that was registered with another address would be refused with this one.
                  const known = found !== undefined && "redirect_uris" in found ? found.redirect_uris : undefined
                  return Array.isArray(known) && back !== undefined && !known.includes(back) ? undefined : found
                })
              ),
      saveClientInformation: (client) => (configured === undefined ? run(keep("client", client)) : undefined),
      // Renewing was tried before: a person is asked now.
      tokens: () => undefined,
      saveTokens: (given) =>
        run(
          Effect.flatMap(tokenOf({ ...defined({ scope }), ...given }), (token) =>
            credentials.set(tenant, tokensName, token)
          )
        ),
      redirectToAuthorization: (to) => {
        page = to
      },
      saveCodeVerifier: (made) => {
        verifier = made
      },
      codeVerifier: () => verifier,
      saveDiscoveryState: (found) => {
        discovery = found
        return run(keep("discovery", found))
      },
      discoveryState: () => discovery,
      invalidateCredentials: (what) =>
        what === "all" || what === "client" ? run(Effect.asVoid(forget("client"))) : undefined
    }
    const options = { serverUrl, forceReauthorization: true, ...defined({ scope, resourceMetadataUrl }) }
    const auth = (more: object) =>
      Effect.tryPromise({
        try: (signal) => sdk.auth(provider, { ...options, ...more, fetchFn: until(signal, fetchFn) }),
        catch: refused
      })
    if ((yield* auth({})) === "AUTHORIZED") return
    if (page === undefined) return yield* unauthorized("it has no page to sign in at")
    if (isDevice) return yield* byCode(provider, discovery, page.searchParams, fetchFn)
    yield* around.open({ server: server.name, url: page.href, origin: page.origin })
    const answer = yield* Effect.timeoutOrElse(Deferred.await(arrived), {
      duration: patience * 1000,
      orElse: () => Effect.fail(unauthorized(`nobody signed in within ${patience} seconds`))
    })
    yield* auth(answer)
  })

  /** One flight for all requests that find the same token refused. */
  const authorised = (challenge: Challenge, fetchFn: FetchLike): Effect.Effect<void, McpError> =>
    lock.withPermits(1)(
      Effect.gen(function* () {
        const had = yield* tokens
        if (had !== undefined && Redacted.value(had.accessToken) !== challenge.used) return
        const isMissing = challenge.status === 401
        if (isMissing && had?.refreshToken !== undefined && (yield* renew(challenge.used, fetchFn))) return
        const first = challenge.scope ?? oauth?.scopes?.join(" ")
        const scope = isMissing ? first : sdk.computeScopeUnion(had?.scopes?.join(" "), challenge.scope)
        const attempt = Effect.scoped(signIn(challenge, scope, fetchFn))
        yield* Effect.catch(attempt, (error) =>
          error === invalidScope
            ? Effect.catch(Effect.andThen(forget("client"), attempt), (again) =>
                Effect.fail(
                  again === invalidScope ? unauthorized("it does not give the scopes that it asks for") : again
                )
              )
            : Effect.fail(error)
        )
      })
    )

  return { authorised, tokens, dpop }
})
