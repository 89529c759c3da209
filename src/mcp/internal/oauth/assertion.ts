/** Tokens of others that a client signs in with: of a workload, or of the identity provider of a company (RFC 7523). */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { FetchLike } from "../../../support/http/fetchLike.ts"
import { isLoopback } from "../../../support/http/redirect.ts"
import { defined } from "../../../support/json/defined.ts"
import { reveal } from "../../../support/store/redacted.ts"
import type { Secret } from "../../McpConfig.ts"
import { load } from "../wire/sdk.ts"

/**
 * The authorisation server (`issuer`) that a token is to be shown to, for a `resource`: the MCP server's address. The
 * MCP server named both, unless its configuration has an `issuer`. `fetch` is that of the connection.
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

const errorOf = (error: unknown): Error => (error instanceof Error ? error : new Error("it gave no reason"))

/**
 * Has the identity provider of a company exchange the token of a person for one that the authorisation server of an MCP
 * server takes (an ID-JAG, by RFC 8693): nobody sees a page, and the provider decides who may use which server.
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
  ({ fetch, issuer: audience, resource, scope, server }) =>
    Effect.gen(function* () {
      const sdk = yield* load(server)
      const exchanging = (signal: AbortSignal) => ({
        fetchFn: (input: string | URL, init?: RequestInit) => fetch(input, { ...init, signal })
      })
      const endpoint =
        tokenEndpoint ??
        (yield* Effect.tryPromise({
          try: (signal) => sdk.discoverAuthorizationServerMetadata(issuer, exchanging(signal)),
          catch: errorOf
        }))?.token_endpoint
      const to = URL.parse(endpoint ?? "")
      if (to === null || (to.protocol !== "https:" && !isLoopback(to))) {
        return yield* Effect.fail(new Error(`the identity provider ${issuer} has no token endpoint of https`))
      }
      const token = Redacted.value(yield* idToken)
      const { jwtAuthGrant } = yield* Effect.tryPromise({
        try: (signal) =>
          sdk.requestJwtAuthorizationGrant({
            tokenEndpoint: to,
            audience,
            resource,
            idToken: token,
            clientId,
            ...defined({ clientSecret: clientSecret && reveal(clientSecret), scope }),
            ...exchanging(signal)
          }),
        catch: errorOf
      })
      return Redacted.make(jwtAuthGrant)
    })

/** The grant. */
export const grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"

/** The request of a token for an assertion. */
export const request = (assertion: Redacted.Redacted<string>, scope: string | undefined): URLSearchParams =>
  new URLSearchParams({
    grant_type: grant,
    assertion: Redacted.value(assertion),
    ...defined({ scope })
  })
