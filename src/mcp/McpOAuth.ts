/**
 * Signing in to servers that want it: the pages of their authorisation servers are shown to a person, and the tokens
 * are kept, renewed and widened.
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
 * A server says by 401 that it wants a token, and by 403 `insufficient_scope` that it wants one of more scopes. Its
 * metadata (RFC 9728) lead to its authorisation server; the client is the one of the configuration, a metadata document,
 * or registered there and then. PKCE, state, issuer (RFC 9207) and resource (RFC 8707) are always used and checked.
 */
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { CredentialStore } from "../stores/CredentialStore.ts"
import { observed } from "../support/effect/observed.ts"
import type { FetchLike } from "../support/http/fetchLike.ts"
import type { Redirect } from "../support/http/redirect.ts"
import { reveal } from "../support/store/redacted.ts"
import type { Assertion } from "./internal/oauth/assertion.ts"
import { isBound, make, type Token } from "./internal/oauth/oauth.ts"
import type { Page } from "./internal/oauth/page.ts"
import { load } from "./internal/wire/sdk.ts"
import { type Authorize, McpAuthorization } from "./McpAuthorization.ts"
import type { McpError } from "./McpError.ts"

export { type Assertion, type Audience, byIdentityProvider, type IdentityProvider } from "./internal/oauth/assertion.ts"
export type { Redirect }

/**
 * `tenant` is the namespace of the tokens in the `CredentialStore`; in it they are kept by server. `redirect` is the
 * way back from the page (`LoopbackRedirect.redirect` of `effect-deepagents/net`); without it, a code (`userCode`) is
 * typed in at the page on any other device (RFC 8628), where the authorisation server gives such codes out. `open` shows
 * the page to a person, who has 300 seconds: give such a server a `connectTimeout` that is as long. `clientMetadataUrl` is
 * the address of a client metadata document, for servers that take one in the place of a registration. `assertion` gives
 * the token that servers with the grant `jwt-bearer` are signed in to with: that of a workload (Kubernetes, a cloud), or
 * one of {@link byIdentityProvider}.
 */
export interface Options {
  readonly tenant: string
  readonly redirect?: Redirect | undefined
  readonly open: (page: Page) => Effect.Effect<void>
  readonly clientName?: string | undefined
  readonly clientMetadataUrl?: string | undefined
  readonly assertion?: Assertion | undefined
}

const valueOf = ({ accessToken }: Token): string => Redacted.value(accessToken)

/**
 * The authorisation of all servers of an `McpServers.layer` that it is provided to. Requests that find the same token
 * refused share one renewal (in all processes) or one sign-in, and go on with its result; the call in which more scopes
 * are wanted goes on, too. Fails with `McpError` `Unauthorized`.
 */
export const layer = (options: Options): Layer.Layer<never, never, CredentialStore> =>
  Layer.effect(
    McpAuthorization,
    Effect.gen(function* () {
      const credentials = yield* CredentialStore
      const { assertion, clientMetadataUrl, clientName = "effect-deepagents", open, redirect, tenant } = options
      const around = { credentials, tenant, redirect, open, clientName, clientMetadataUrl, assertion }
      const made = new Map<string, Effect.Success<ReturnType<typeof make>>>()
      const authorize: Authorize = Effect.fnUntraced(function* (server, fetch) {
        const sdk = yield* load(server.name)
        const key = JSON.stringify([server.name, reveal(server.config.url)])
        const known = made.get(key) ?? (yield* make(sdk, around, server))
        made.set(key, known)
        const context = yield* Effect.context()
        // A sign-in ends with the connection: its listener, its lock and its wait for a person with it.
        const whileConnected = yield* FiberSet.makeRuntimePromise<never, void, McpError>()
        const run = <A, E>(effect: Effect.Effect<A, E>): Promise<A> => observed(Effect.runPromiseWith(context)(effect))
        const send = async (
          input: Parameters<FetchLike>[0],
          init: RequestInit | undefined,
          token: Token | undefined
        ) => {
          if (token === undefined) return fetch(input, init)
          const used = valueOf(token)
          if (isBound(token)) {
            const session = await run(known.dpop)
            return sdk.withDpop(session, () => used)((to, more) => fetch(to, more))(
              input instanceof Request ? input.url : input,
              init
            )
          }
          const headers = new Headers(init?.headers)
          headers.set("authorization", `Bearer ${used}`)
          return fetch(input, { ...init, headers })
        }
        const authorised: FetchLike = async (input, init) => {
          const token = await run(known.tokens)
          const used = token === undefined ? undefined : valueOf(token)
          const response = await send(input, init, token)
          if (response.status !== 401 && response.status !== 403) return response
          const { error, resourceMetadataUrl, scope } = sdk.extractWWWAuthenticateParams(response)
          if (response.status === 403 && error !== "insufficient_scope") return response
          await response.body?.cancel()
          const challenge = { status: response.status, used, scope, resourceMetadataUrl }
          await observed(whileConnected(known.authorised(challenge, fetch)))
          return send(input, init, await run(known.tokens))
        }
        return authorised
      })
      return authorize
    })
  )
