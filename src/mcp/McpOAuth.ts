/**
 * Signs in to MCP servers by OAuth 2.1: shows the page to a person, and keeps, renews and widens the tokens.
 *
 * ```ts
 * import { Console, Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { McpOAuth, McpServers } from "effect-deepagents/mcp"
 * import { CredentialKey, CredentialStore, Storage } from "effect-deepagents/stores"
 * import * as LoopbackRedirect from "effect-deepagents/net/LoopbackRedirect"
 *
 * const credentials = Layer.provide(CredentialStore.layer, [Storage.layerMemory, CredentialKey.layerRandom])
 *
 * const authorization = McpOAuth.layer({
 *   tenant: "user/ada",
 *   redirect: LoopbackRedirect.redirect,
 *   open: ({ origin, server, url }) => Console.log(`${server}: sign in at ${origin}, by ${url}`)
 * }).pipe(Layer.provide(credentials))
 * ```
 *
 * A server asks by 401 for a token, and by 403 `insufficient_scope` for more scopes. Its metadata (RFC 9728) lead to its
 * authorization server. The client comes from the configuration, a metadata document, or a registration. PKCE, state,
 * issuer (RFC 9207) and resource (RFC 8707) are always used and checked. Install the package `oauth4webapi`.
 */
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { CredentialStore } from "../stores/CredentialStore.ts"
import { observed } from "../support/effect/observed.ts"
import type { FetchLike } from "../support/http/fetchLike.ts"
import type { Redirect } from "../support/http/redirect.ts"
import { make as makeRequests } from "../support/oauth/requests.ts"
import { parseChallenge, sendWithProof } from "../support/oauth/resource.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import { reveal } from "../support/store/redacted.ts"
import type { Assertion } from "./internal/oauth/assertion.ts"
import { isBound, make } from "./internal/oauth/oauth.ts"
import type { Page } from "./internal/oauth/subject.ts"
import * as shapes from "./internal/shapes.ts"
import { type Authorize, McpAuthorization } from "./McpAuthorization.ts"
import type { McpError } from "./McpError.ts"

export type { IdentityProvider } from "./internal/oauth/assertion.ts"

export { type Assertion, byIdentityProvider } from "./internal/oauth/assertion.ts"

/** Options of {@link layer}. */
export interface Options {
  /** The namespace of the tokens in the `CredentialStore`. */
  readonly tenant: string
  /** The way back from the page (`LoopbackRedirect.redirect`). Without it, a person types in a code (RFC 8628). */
  readonly redirect?: Redirect | undefined
  /** Shows the page to a person, who has 300 seconds: give the server as long a `connectTimeout`. */
  readonly open: (page: Page) => Effect.Effect<void>
  /** The name that new clients register with. */
  readonly clientName?: string | undefined
  /** The address of a client metadata document. Servers that support it need no registration. */
  readonly clientMetadataUrl?: string | undefined
  /** The token for the grant `jwt-bearer`: of a workload, or by {@link byIdentityProvider}. */
  readonly assertion?: Assertion | undefined
}

const refuseLayer = makeLayerCheck("McpOAuth.layer", shapes.mcpOAuthLayer)

/**
 * Authorizes all servers of an `McpServers.layer`. Requests with the same refused token share one renewal (in all
 * processes) or one sign-in, and continue afterwards. Fails with `McpError` `Unauthorized`.
 */
export const layer = (options: Options): Layer.Layer<never, never, CredentialStore> =>
  refuseLayer(options) ??
  Layer.effect(
    McpAuthorization,
    Effect.gen(function* () {
      const credentials = yield* CredentialStore
      const { assertion, clientMetadataUrl, clientName = "effect-deepagents", open, redirect, tenant } = options
      const around = { credentials, tenant, redirect, open, clientName, clientMetadataUrl, assertion }
      const authorizations = new Map<string, Effect.Success<ReturnType<typeof make>>>()
      const authorize: Authorize = Effect.fnUntraced(function* (server, fetch) {
        const key = JSON.stringify([server.name, reveal(server.config.url)])
        const authorization = authorizations.get(key) ?? (yield* make(around, server))
        authorizations.set(key, authorization)
        const connection = { requests: makeRequests(fetch), fetch }
        const context = yield* Effect.context()
        // A sign-in ends with the connection: its listener, its lock and its wait for a person with it.
        const whileConnected = yield* FiberSet.makeRuntimePromise<never, void, McpError>()
        const run = <A, E>(effect: Effect.Effect<A, E>): Promise<A> => observed(Effect.runPromiseWith(context)(effect))
        const send: FetchLike = async (input, init) => {
          const token = await run(authorization.tokens)
          if (token === undefined) return fetch(input, init)
          const used = Redacted.value(token.accessToken)
          if (isBound(token)) return sendWithProof(fetch, await run(authorization.proofs), used, input, init)
          const headers = new Headers(init?.headers)
          headers.set("authorization", `Bearer ${used}`)
          return fetch(input, { ...init, headers })
        }
        const authorized: FetchLike = async (input, init) => {
          const token = await run(authorization.tokens)
          const used = token === undefined ? undefined : Redacted.value(token.accessToken)
          const response = await send(input, init)
          if (response.status !== 401 && response.status !== 403) return response
          const { error, resourceMetadataUrl, scope } = parseChallenge(response)
          if (response.status === 403 && error !== "insufficient_scope") return response
          await response.body?.cancel()
          const challenge = { status: response.status, used, scope, resourceMetadataUrl }
          await observed(whileConnected(authorization.authorize(challenge, connection)))
          return send(input, init)
        }
        return authorized
      })
      return authorize
    })
  )
