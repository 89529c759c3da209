/** Assertions (RFC 7523): a client signs in with the token of a workload, or of a company's identity provider. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { FetchLike } from "../../../support/http/fetchLike.ts"
import { isLoopback } from "../../../support/http/redirect.ts"
import { defined } from "../../../support/json/defined.ts"
import type { Reason } from "../../../support/oauth/reason.ts"
import { exchangeGrant, make as makeRequests } from "../../../support/oauth/requests.ts"
import { reveal } from "../../../support/store/redacted.ts"
import type { Secret } from "../../McpConfig.ts"

/**
 * The authorisation server (`issuer`) that a token is to be shown to, for a `resource`: the MCP server's address. The
 * MCP server named both, unless its configuration has an `issuer`. `fetch` is the connection's.
 */
export interface Audience {
  readonly server: string
  readonly issuer: string
  readonly resource: string
  readonly scope: string | undefined
  readonly fetch: FetchLike
}

/** Gives the token (a JWT) that the client shows with the grant `jwt-bearer`, each time that it signs in. */
export type Assertion = (audience: Audience) => Effect.Effect<Redacted.Redacted<string>, Error>

/**
 * An identity provider (`issuer`), the client that it knows, and the token (`idToken`) that it gave a person for that.
 * Tokens are exchanged where its metadata say, or at `tokenEndpoint`.
 */
export interface IdentityProvider {
  readonly issuer: string
  readonly tokenEndpoint?: string | undefined
  readonly clientId: string
  readonly clientSecret?: Secret | undefined
  readonly idToken: Effect.Effect<Redacted.Redacted<string>, Error>
}

const wordsOf = (reason: Reason): string =>
  "problem" in reason ? reason.problem : reason._tag === "Refused" ? reason.error : reason._tag

/**
 * Exchanges a person's token at the identity provider of their company for an ID-JAG (RFC 8693), which the authorization
 * server of an MCP server takes. Nobody sees a page, and the provider decides who may use which server.
 *
 * ```ts
 * import { Effect, Redacted } from "effect"
 * import { McpOAuth } from "effect-deepagents/mcp"
 *
 * declare const idToken: Effect.Effect<Redacted.Redacted<string>, Error>
 *
 * const assertion = McpOAuth.byIdentityProvider({ issuer: "https://login.example.com", clientId: "agents", idToken })
 * ```
 */
export const byIdentityProvider =
  ({ clientId, clientSecret, idToken, issuer, tokenEndpoint }: IdentityProvider): Assertion =>
  ({ fetch, issuer: audience, resource, scope }) =>
    Effect.gen(function* () {
      const requests = makeRequests(fetch)
      const endpoint = tokenEndpoint ?? (yield* requests.discoverServer(issuer))?.token_endpoint
      const to = URL.parse(endpoint ?? "")
      if (to === null || (to.protocol !== "https:" && !isLoopback(to))) {
        return yield* Effect.fail(new Error(`the identity provider ${issuer} has no token endpoint of https`))
      }
      const subject = Redacted.value(yield* idToken)
      const secret = clientSecret === undefined ? undefined : Redacted.make(reveal(clientSecret))
      const client = defined({ id: clientId, secret, authentication: "post" })
      const { accessToken } = yield* requests.grant({ issuer, token_endpoint: to.href }, client, exchangeGrant, {
        requested_token_type: "urn:ietf:params:oauth:token-type:id-jag",
        subject_token: subject,
        subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
        audience,
        resource,
        ...defined({ scope })
      })
      return accessToken
    }).pipe(Effect.mapError((reason) => (reason instanceof Error ? reason : new Error(wordsOf(reason)))))

/** The grant by which a client shows an assertion. */
export const grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
