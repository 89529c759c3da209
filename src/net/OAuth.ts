/**
 * Signing in to services by OAuth 2.1: a person is asked in the middle of a tool, and the tokens never meet the model.
 *
 * ```ts
 * import { Effect, Redacted } from "effect"
 * import { HttpClient, HttpClientRequest } from "effect/http"
 * import { Tool } from "effect-deepagents"
 * import { OAuth } from "effect-deepagents/net"
 *
 * const calendar: OAuth.Provider = {
 *   name: "calendar",
 *   server: "https://accounts.example.com",
 *   clientId: "…",
 *   scopes: ["calendar.read"]
 * }
 *
 * const today = Tool.make("events_today", {
 *   description: "Lists the events of today",
 *   parameters: {},
 *   execute: Effect.fnUntraced(function* () {
 *     const token = yield* OAuth.connect(calendar, { tenant: "user/ada" })
 *     const response = yield* HttpClient.execute(
 *       HttpClientRequest.bearerToken(HttpClientRequest.get("https://api.example.com/today"), Redacted.value(token))
 *     )
 *     return yield* response.text
 *   })
 * })
 * ```
 *
 * Authorisation code with PKCE over a {@link Redirect}, and the device flow (RFC 8628). The package `oauth4webapi` must
 * be installed. Servers must be https, except on this machine itself.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { HttpClient } from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import type { ToolContext } from "../core/ToolContext.ts"
import type { ToolError } from "../core/ToolError.ts"
import type { CredentialStore } from "../stores/CredentialStore.ts"
import type { StoreError } from "../stores/StoreError.ts"
import * as Way from "../support/http/redirect.ts"
import type { Redirect } from "../support/http/redirect.ts"
import type { Account, Provider, Service, SignIn } from "./internal/oauth/model.ts"
import { make } from "./internal/oauth/signIns.ts"
import type { OAuthError } from "./OAuthError.ts"

export type { Account, Endpoints, Provider, Service, SignIn } from "./internal/oauth/model.ts"

export type { Redirect }

/**
 * The application's own address. What comes to it must be handed to {@link complete}, in any process that shares the
 * store of credentials.
 */
export const redirectTo = (address: string): Redirect => Way.fixed(address)

/** Sign-ins, and the tokens that came of them: kept by tenant and account in the `CredentialStore`. */
export class OAuth extends Context.Service<OAuth, Service>()("effect-deepagents/OAuth") {}

/** The service. Without a `redirect` there is the device flow only. Sign-ins that were begun end with the layer. */
export const layer = (options?: {
  readonly redirect?: Redirect | undefined
}): Layer.Layer<OAuth, never, CredentialStore | HttpClient> => Layer.effect(OAuth, make(options?.redirect))

/**
 * A token for requests, for tools: if nobody has signed in yet, or with fewer scopes, it asks a person to do so, by
 * `ToolContext.ask` with the page and its origin. The question is taken back as soon as they have; where the run is
 * suspended meanwhile, it goes on when they answer. Calls that ask at once share one sign-in. Fails with what
 * {@link accessToken} fails with, with `Declined`, `Expired`, and with a `ToolError` where there is nobody to ask.
 */
export const connect = (
  provider: Provider,
  account: Account
): Effect.Effect<Redacted.Redacted, OAuthError | StoreError | ToolError, OAuth | ToolContext> =>
  OAuth.use((oauth) => oauth.connect(provider, account))

/**
 * A token for requests, renewed if it has less than a minute left, or if it is the one that a service `refused`. One
 * renewal runs at a time, in all processes. Asks nobody: fails with `NotConnected`.
 */
export const accessToken = (
  provider: Provider,
  account: Account,
  options?: { readonly refused?: Redacted.Redacted | undefined }
): Effect.Effect<Redacted.Redacted, OAuthError | StoreError, OAuth> =>
  OAuth.use((oauth) => oauth.accessToken(provider, account, options))

/**
 * Begins a sign-in outside of a tool, for a page or a command of the application. The one that is open is given again.
 * It ends after 300 seconds; a device's when its server says so.
 */
export const begin = (provider: Provider, account: Account): Effect.Effect<SignIn, OAuthError | StoreError, OAuth> =>
  OAuth.use((oauth) => oauth.begin(provider, account))

/**
 * Finishes a sign-in with the address that the person's browser came to, path and query included. Each can be finished
 * once. Check that it is the browser of the person who began: this page of yours must need their session.
 */
export const complete = (callback: string): Effect.Effect<void, OAuthError | StoreError, OAuth> =>
  OAuth.use((oauth) => oauth.complete(callback))

/**
 * Signs out: takes back the tokens at the server (`revoked`), and removes them; if the server can't, removes them only
 * (`forgotten`). If the server fails, they stay.
 */
export const revoke = (
  provider: Provider,
  account: Account
): Effect.Effect<"revoked" | "forgotten" | "none", OAuthError | StoreError, OAuth> =>
  OAuth.use((oauth) => oauth.revoke(provider, account))
