/** The authorization of one server: keeps tokens, renews them, and signs in again when it must. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Scope } from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { OAuthToken } from "../../../stores/CredentialStore.ts"
import type { FetchLike } from "../../../support/http/fetchLike.ts"
import { defined } from "../../../support/json/defined.ts"
import type { Reason } from "../../../support/oauth/reason.ts"
import type * as Requests from "../../../support/oauth/requests.ts"
import type { HttpServer } from "../../McpConfig.ts"
import type { McpError } from "../../McpError.ts"
import { clientOf, knownClient, locate, ownGrant } from "./client.ts"
import type { Place, Token } from "./kept.ts"
import { type Around, errorOf, make as makeSubject, type Subject } from "./subject.ts"

/** The challenge of a server: the refused token, and the terms of the next one. */
export interface Challenge {
  readonly status: number
  readonly used: string | undefined
  readonly scope: string | undefined
  readonly resourceMetadataUrl: URL | undefined
}

/** A connection: its requests of OAuth, and the `fetch` below them. */
export interface Connection {
  readonly requests: Requests.Requests
  readonly fetch: FetchLike
}

/** The time that a person has, in seconds. */
const patience = 300

/** The address that a client of the device flow is registered with: nobody is ever sent there. */
const nowhere = "http://127.0.0.1/callback"

/** Tells whether a token needs a proof (RFC 9449). */
export const isBound = ({ metadata }: Token): boolean => metadata?.["tokenType"] === "DPoP"

const isAlone = ({ oauth }: Subject): boolean => oauth.grant === "jwt-bearer" || oauth.grant === "client_credentials"

const wordsIn = (scope: string | undefined): ReadonlyArray<string> => scope?.split(/\s+/).filter((one) => one) ?? []

const textOf = (scopes: ReadonlyArray<string>): string | undefined =>
  scopes.length === 0 ? undefined : [...new Set(scopes)].join(" ")

const tokenOf = (
  tokens: Requests.Tokens,
  scopes: ReadonlyArray<string> | undefined,
  refreshToken?: Redacted.Redacted
): Token => OAuthToken.make({ ...defined({ scopes, refreshToken }), ...tokens })

/** The scope to ask for: of the challenge, else of the server's metadata, and with it a token to renew by. */
const scopeOf = (subject: Subject, { scopes, server }: Place, wanted: string | undefined): string | undefined => {
  const scope = wanted ?? textOf(scopes ?? [])
  const canRenew = !isAlone(subject) && server.scopes_supported?.includes("offline_access") === true
  return scope !== undefined && canRenew ? textOf([...wordsIn(scope), "offline_access"]) : scope
}

/** Renews the refused token, once for all who ask; `false` if only a person can help. */
const renew = Effect.fnUntraced(function* (
  subject: Subject,
  used: string | undefined,
  requests: Requests.Requests
): Effect.fn.Return<boolean, McpError> {
  const { oauth, records } = subject
  const place = yield* records.place.get
  // The configuration may name another authorization server since the last sign-in.
  if (place === undefined || (oauth.issuer !== undefined && oauth.issuer !== place.server.issuer)) return false
  const client = yield* knownClient(subject, place)
  if (client === undefined) return false
  const renewed = records.renewTokens(
    used,
    Effect.fnUntraced(function* (old) {
      const { refreshToken, scopes } = old
      if (refreshToken === undefined) return old
      const resource = defined({ resource: place.resource })
      return tokenOf(yield* requests.refresh(place.server, client, refreshToken, resource), scopes, refreshToken)
    })
  )
  return yield* Effect.matchEffect(renewed, {
    onSuccess: () => Effect.succeed(true),
    onFailure: (error) =>
      error._tag === "Refused" || error._tag === "Declined"
        ? Effect.succeed(false)
        : Effect.fail(
            error._tag === "StoreError"
              ? subject.fail(`it could not be signed in to: ${error.message}`, error)
              : errorOf(subject, error)
          )
  })
})

/** Waits for the person's browser to come back from the page, and exchanges the callback for tokens. */
const byPage = Effect.fnUntraced(function* (
  subject: Subject,
  requests: Requests.Requests,
  place: Place,
  client: Requests.Client,
  back: { readonly address: string; readonly arrived: Deferred.Deferred<string> },
  scope: string | undefined
): Effect.fn.Return<Requests.Tokens, McpError | Reason> {
  const { around, fail, name } = subject
  const resource = defined({ resource: place.resource })
  const consent = wordsIn(scope).includes("offline_access") ? { prompt: "consent" } : {}
  const request = { redirect: back.address, state: "mcp", scopes: wordsIn(scope) }
  const page = yield* requests.authorization(place.server, client, request, { ...resource, ...consent })
  yield* around.open({ server: name, url: page.url, origin: new URL(page.url).origin })
  const callback = yield* Effect.timeoutOrElse(Deferred.await(back.arrived), {
    duration: patience * 1000,
    orElse: () => Effect.fail(fail(`nobody signed in within ${patience} seconds`))
  })
  const { state, verifier } = page
  const flow = { state, verifier, redirect: back.address }
  return yield* requests.exchange(place.server, client, new URL(callback), flow, resource)
})

/** Waits for the person to type a code in on another device (RFC 8628). */
const byCode = Effect.fnUntraced(function* (
  { around, fail, name }: Subject,
  requests: Requests.Requests,
  place: Place,
  client: Requests.Client,
  scope: string | undefined
): Effect.fn.Return<Requests.Tokens, McpError | Reason> {
  const resource = defined({ resource: place.resource })
  const device = yield* requests.device(place.server, client, wordsIn(scope), resource)
  yield* around.open({ server: name, url: device.url, origin: new URL(device.url).origin, userCode: device.userCode })
  const seconds = Math.min(device.seconds, patience)
  return yield* Effect.timeoutOrElse(requests.poll(place.server, client, { ...device, seconds }, resource), {
    duration: seconds * 1000,
    orElse: () => Effect.fail(fail(`nobody typed the code in within ${seconds} seconds`))
  })
})

const configurationProblem = ({ around, oauth }: Subject): string | undefined => {
  if (oauth.grant === "jwt-bearer") {
    return oauth.clientId === undefined || around.assertion === undefined
      ? "jwt-bearer needs a clientId, and the `assertion` of McpOAuth.layer"
      : undefined
  }
  const hasSecret = oauth.clientId !== undefined && (oauth.clientSecret ?? oauth.privateKey) !== undefined
  return oauth.grant === "client_credentials" && !hasSecret
    ? "client_credentials need a clientId, and a clientSecret or a privateKey"
    : undefined
}

const signIn = Effect.fnUntraced(function* (
  subject: Subject,
  { resourceMetadataUrl }: Challenge,
  wanted: string | undefined,
  { fetch, requests }: Connection
): Effect.fn.Return<void, McpError | Reason, Scope> {
  const { around, fail, oauth, records } = subject
  const problem = configurationProblem(subject)
  if (problem !== undefined) return yield* fail(problem)
  const arrived = yield* Deferred.make<string>()
  const receive = (callback: string) => Effect.as(Deferred.succeed(arrived, callback), "You can close this page.")
  const address =
    isAlone(subject) || around.redirect === undefined
      ? nowhere
      : yield* Effect.mapError(around.redirect.open(receive, oauth.callbackPort), (words) => fail(words))
  const place = yield* locate(subject, requests, resourceMetadataUrl)
  const isByCode = !isAlone(subject) && around.redirect === undefined
  if (isByCode && place.server.device_authorization_endpoint === undefined) {
    return yield* fail("its authorisation server gives out no codes to type in elsewhere")
  }
  const scope = scopeOf(subject, place, wanted)
  const client = yield* clientOf(subject, requests, place, address, scope)
  yield* records.place.set(place)
  const byGrant = Effect.gen(function* () {
    const { parameters, type } = yield* ownGrant(subject, place, scope, fetch)
    return yield* requests.grant(
      place.server,
      client,
      type,
      defined({ ...parameters, scope, resource: place.resource })
    )
  })
  const tokens = yield* isAlone(subject)
    ? byGrant
    : isByCode
      ? byCode(subject, requests, place, client, scope)
      : byPage(subject, requests, place, client, { address, arrived }, scope)
  yield* records.setTokens(tokenOf(tokens, scope === undefined ? undefined : wordsIn(scope)))
})

/** Errors after which a newly registered client may succeed. */
const wantsNewClient = ({ oauth }: Subject, reason: Reason | McpError): boolean =>
  oauth.clientId === undefined &&
  reason._tag === "Refused" &&
  ["invalid_scope", "invalid_client", "unauthorized_client"].includes(reason.error)

/** Makes the authorization of a server, for one connection after the other. */
export const make = Effect.fnUntraced(function* (
  around: Around,
  server: { readonly name: string; readonly config: HttpServer }
) {
  const subject = yield* makeSubject(around, server)
  const { oauth, proofs, records } = subject
  const lock = Semaphore.makeUnsafe(1)

  /** Gets a valid token. Requests that find the same token refused share one flight. */
  const authorize = (challenge: Challenge, connection: Connection): Effect.Effect<void, McpError> =>
    lock.withPermits(1)(
      Effect.gen(function* () {
        const had = yield* records.tokens
        if (had !== undefined && Redacted.value(had.accessToken) !== challenge.used) return
        const isMissing = challenge.status === 401
        const canRenew = isMissing && had?.refreshToken !== undefined
        if (canRenew && (yield* renew(subject, challenge.used, connection.requests))) return
        const scope = isMissing
          ? (challenge.scope ?? oauth.scopes?.join(" "))
          : textOf([...(had?.scopes ?? []), ...wordsIn(challenge.scope)])
        const attempt = Effect.scoped(signIn(subject, challenge, scope, connection))
        const repeated = Effect.catch(attempt, (reason) =>
          wantsNewClient(subject, reason) ? Effect.andThen(records.client.forget, attempt) : Effect.fail(reason)
        )
        yield* Effect.mapError(repeated, (reason) => errorOf(subject, reason))
      })
    )

  return { authorize, tokens: records.tokens, proofs }
})
