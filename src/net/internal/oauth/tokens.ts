/** Stores, renews and revokes tokens. */
import * as Cache from "effect/Cache"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import type { CredentialStore, OAuthToken } from "../../../stores/CredentialStore.ts"
import { defined } from "../../../support/json/defined.ts"
import type { Server } from "../../../support/oauth/metadata.ts"
import { invalid, type Reason } from "../../../support/oauth/reason.ts"
import type { Client, Requests, Tokens } from "../../../support/oauth/requests.ts"
import { encodePart } from "../../../support/text/percent.ts"
import { OAuthError } from "../../OAuthError.ts"
import type { Flow } from "./flows.ts"
import type { Account, Provider, Service } from "./model.ts"

type Token = typeof OAuthToken.Type

/** Milliseconds before its expiry at which a token is renewed. */
const renewalMargin = 60_000

/** An account at a service, with the key of its token. */
export interface Subject {
  readonly provider: Provider
  readonly account: string
  readonly tenant: string
  readonly name: string
  readonly issuer: string
  readonly client: Client
  readonly scopes: ReadonlyArray<string>
}

export const subjectOf = (provider: Provider, { account = "default", tenant }: Account): Subject => ({
  provider,
  account,
  tenant,
  // Encoding keeps the name apart from the account.
  name: `oauth ${encodePart(provider.name)} ${account}`,
  issuer: typeof provider.server === "string" ? provider.server : provider.server.issuer,
  client: { id: provider.clientId, secret: provider.clientSecret, authentication: provider.authentication },
  scopes: provider.scopes ?? []
})

export const failWith =
  ({ account, provider }: { readonly provider: { readonly name: string }; readonly account: string }) =>
  (reason: Reason): OAuthError =>
    new OAuthError({ provider: provider.name, account, reason })

const notConnected = (problem: string): Reason => ({ _tag: "NotConnected", problem })

export const askedOf = ({ metadata, scopes = [] }: Token): ReadonlyArray<string> => {
  const requestedScopes = metadata?.["asked"]
  return Array.isArray(requestedScopes) ? requestedScopes.filter((scope) => typeof scope === "string") : scopes
}

export const missingScopes = (wanted: ReadonlyArray<string>, requestedScopes: ReadonlyArray<string>) =>
  wanted.filter((scope) => !requestedScopes.includes(scope))

const tokenOf = (tokens: Tokens, rest: Partial<Token>): Token => ({ ...rest, ...tokens, _tag: "OAuthToken" }) as const

/** Makes the operations on tokens. */
export const make = Effect.fnUntraced(function* (credentials: CredentialStore["Service"], way: Requests) {
  const discover = Effect.fnUntraced(function* (issuer: string) {
    return (yield* way.discoverServer(issuer)) ?? (yield* Effect.fail(invalid("it publishes no metadata")))
  })
  const servers = yield* Cache.makeWith(discover, {
    capacity: 64,
    timeToLive: (exit) => (Exit.isSuccess(exit) ? Duration.hours(1) : Duration.zero)
  })

  const serverOf = ({ server }: Provider): Effect.Effect<Server, Reason> =>
    typeof server === "string"
      ? Cache.get(servers, server)
      : Effect.succeed(
          defined({
            issuer: server.issuer,
            authorization_endpoint: server.authorize,
            token_endpoint: server.token,
            device_authorization_endpoint: server.device,
            revocation_endpoint: server.revoke
          })
        )

  /** Finds the token of this server and client. It must not be sent to others. */
  const findToken = Effect.fnUntraced(function* ({ issuer, name, provider, tenant }: Subject) {
    const credential = yield* credentials.get(tenant, name)
    const isOurs =
      credential?._tag === "OAuthToken" &&
      credential.metadata?.["server"] === issuer &&
      credential.metadata["client"] === provider.clientId
    return isOurs ? credential : undefined
  })

  const store = ({ asked, name, tenant }: Pick<Flow, "asked" | "name" | "tenant">, issuer: string, id: string) =>
    Effect.fnUntraced(function* (tokens: Tokens) {
      const token = tokenOf(tokens, { metadata: { server: issuer, client: id, asked } })
      yield* credentials.set(tenant, name, token.scopes === undefined ? { ...token, scopes: asked } : token)
    })

  const renew = (subject: Subject, refused: Redacted.Redacted | undefined) =>
    Effect.fnUntraced(function* (old: Token) {
      const { refreshToken } = old
      if (refreshToken === undefined) {
        const problem = refused === undefined ? "its token has expired" : "the service no longer takes its token"
        return yield* Effect.fail(notConnected(problem))
      }
      const server = yield* serverOf(subject.provider)
      const tokens = yield* Effect.mapError(way.refresh(server, subject.client, refreshToken), (reason) =>
        reason._tag === "Refused" && reason.error === "invalid_grant"
          ? notConnected("its server no longer takes the refresh token")
          : reason
      )
      const { expiresAt: _, ...rest } = old
      return tokenOf(tokens, rest)
    })

  const valid = Effect.fnUntraced(function* (subject: Subject, refused?: Redacted.Redacted) {
    const fail = failWith(subject)
    const token = yield* findToken(subject)
    if (token === undefined) return yield* fail(notConnected("nobody has signed in"))
    const lacking = missingScopes(subject.scopes, askedOf(token))
    if (lacking.length > 0) {
      return yield* fail(notConnected(`it was signed in to without the scope ${lacking.join(" ")}`))
    }
    const now = yield* Clock.currentTimeMillis
    const credential = yield* credentials.refreshed(subject.tenant, subject.name, {
      isExpired: (one) =>
        one._tag === "OAuthToken" &&
        ((one.expiresAt ?? Infinity) <= now + (one.refreshToken === undefined ? 0 : renewalMargin) ||
          (refused !== undefined && Redacted.value(refused) === Redacted.value(one.accessToken))),
      refresh: (one) =>
        one._tag === "OAuthToken" ? Effect.mapError(renew(subject, refused)(one), fail) : Effect.succeed(one)
    })
    return credential._tag === "OAuthToken" ? credential.accessToken : credential.key
  })

  const revoke: Service["revoke"] = Effect.fnUntraced(function* (provider, account) {
    const subject = subjectOf(provider, account)
    const oauthToken = yield* findToken(subject)
    if (oauthToken === undefined) return "none"
    const { accessToken, refreshToken } = oauthToken
    const server = yield* Effect.mapError(serverOf(provider), failWith(subject))
    const can = server.revocation_endpoint !== undefined
    if (can) {
      const tokens = refreshToken === undefined ? [accessToken] : [refreshToken, accessToken]
      const each = (token: Redacted.Redacted) => way.revoke(server, subject.client, token)
      yield* Effect.mapError(Effect.forEach(tokens, each, { discard: true }), failWith(subject))
    }
    yield* credentials.remove(subject.tenant, subject.name)
    return can ? "revoked" : "forgotten"
  })

  return { serverOf, findToken, store, valid, revoke }
})
